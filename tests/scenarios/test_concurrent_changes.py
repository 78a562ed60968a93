"""A refused change has no effect on the timing that a concurrent change has set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.tasks.task_options import RetryPolicy
from duetime.domain.times import to_iso
from duetime.handlers import Accepted
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario
from tests.simulation.account import PULLED
from tests.simulation.endpoints import URL

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call


def _is_write_of(task_id: str, operation: str, call: Call) -> bool:
    return call.machine.function == "api" and call.operation == operation and task_id in str(call.request)


@pytest.mark.parametrize("seconds", [(5, 55), (55, 5), (5, 5)])
def test_a_rejected_change_does_not_delay_the_accepted_change(seconds: tuple[int, int]) -> None:
    """Two concurrent changes move a task within the same minute, and the task runs at the accepted time."""
    with Scenario() as scenario:
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 3600}).body
        path, minute = f"/v1/tasks/{created['id']}", (scenario.now // MINUTE + 30) * MINUTE
        # The first change's write of the record waits until the second change has written its timer.
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 40)
        headers = {"If-Match": f'"{created["version"]}"'}
        dues = [minute + each * SECOND for each in seconds]
        first = scenario.send("PATCH", path, {"due_at": to_iso(dues[0])}, headers=headers)
        scenario.run(15)
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 120)
        second = scenario.send("PATCH", path, {"due_at": to_iso(dues[1])}, headers=headers)
        scenario.run(5 * SECOND)
        assert sorted([first[0].status, second[0].status]) == [200, 412]
        scenario.run(40 * MINUTE)
        task = scenario.record(created["id"])
        assert task.due_at == dues[0 if first[0].status == 200 else 1]
        assert (task.state, (task.lateness or 0) < SECOND) == ("succeeded", True)


def test_two_concurrent_updates_are_merged() -> None:
    """Two concurrent updates are merged, and neither undoes the other."""
    with Scenario() as scenario:
        body = {"type": PLAIN, "delay_seconds": 3600, "tags": {"a": "0"}, "retry": {"max_attempts": 9}}
        created = scenario.ask("POST", "/v1/tasks", body).body
        path = f"/v1/tasks/{created['id']}"
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 40)
        first = scenario.send("PATCH", path, {"tags": {"a": "1"}, "retry": {"max_seconds": 7}})
        scenario.run(15)
        second = scenario.send("PATCH", path, {"tags": {"b": "2"}, "retry": {"multiplier": 3}})
        scenario.run(5 * SECOND)
        assert (first[0].status, second[0].status) == (200, 200)
        task = scenario.record(created["id"])
        assert (task.version, task.tags) == (3, {"a": "1", "b": "2"})
        assert task.retry == RetryPolicy(9, multiplier=3.0, max_seconds=7.0)


def test_a_rejected_change_does_not_move_the_task_to_another_queue() -> None:
    """If two changes set different priorities for the same instant, the message goes to the accepted queue."""
    with Scenario() as scenario:
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 3600}).body
        path, at = f"/v1/tasks/{created['id']}", to_iso((scenario.now // MINUTE + 30) * MINUTE)
        queues: list[str] = []

        def note(call: Call) -> None:
            if call.operation == "send_message_batch" and created["id"] in str(call.request):
                queues.append(call.request["QueueUrl"])

        scenario.before_call = note
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 40)
        headers = {"If-Match": f'"{created["version"]}"'}
        first = scenario.send("PATCH", path, {"due_at": at, "priority": "high"}, headers=headers)
        scenario.run(15)
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 120)
        second = scenario.send("PATCH", path, {"due_at": at, "priority": "low"}, headers=headers)
        scenario.run(HOUR)
        assert (first[0].status, second[0].status) == (200, 412)
        assert any("high" in url for url in queues), queues
        assert scenario.record(created["id"]).attempt == 1


def test_a_rejected_change_does_not_disable_the_timer_of_the_accepted_change() -> None:
    """If a change that would have sent a message itself is refused, the trigger still handles the accepted timer."""
    with Scenario() as scenario:
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 7200}).body
        path, headers = f"/v1/tasks/{created['id']}", {"If-Match": f'"{created["version"]}"'}
        # One second later, a message for that minute would be sent at once instead of by the trigger.
        scenario.time.run_until((scenario.now // MINUTE + 1) * MINUTE + 29 * SECOND)
        due = to_iso((scenario.now // MINUTE + 4) * MINUTE + 30 * SECOND)
        # The second change has read the record, and its write of the payload is slow.
        large = ["%08x" % (n * 2654435761 % 2**32) for n in range(200)]
        scenario.slow(lambda call: _is_write_of(created["id"], "put_item", call), 2 * SECOND)
        second = scenario.send("PATCH", path, {"due_at": due, "payload": large}, headers=headers)
        scenario.run(300)
        first = scenario.send("PATCH", path, {"due_at": due}, headers=headers)
        scenario.run(10 * SECOND)
        assert (first[0].status, second[0].status) == (200, 412)
        scenario.run(HOUR)
        task = scenario.record(created["id"])
        assert (task.state, (task.lateness or 0) < SECOND) == ("succeeded", True)


def test_the_heartbeats_of_one_minute_share_a_timer() -> None:
    """Each heartbeat of a deferred attempt sets a timer for its new deadline, with at most one timer per minute."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: Accepted()
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "notify_within_seconds": 1800}).body
        scenario.run(5 * SECOND)
        for _ in range(30):
            answer = scenario.ask("POST", f"/v1/tasks/{created['id']}/heartbeat", {"fence": 1})
            assert answer.status == 200
            scenario.run(10 * SECOND)
        timers = [item for item in scenario.items() if schema.TIMER_MARK in item[schema.SORT_KEY]["S"]]
        minutes = [item[schema.PARTITION_KEY]["S"] for item in timers]
        # The first timer was set by the deferral.
        assert 5 <= len(minutes[1:]) == len(set(minutes[1:])) <= 7
        scenario.run(HOUR)
        assert scenario.record(created["id"]).attempt > 1


def test_a_rejected_change_to_pull_workers_has_no_effect() -> None:
    """A refused change's timer for pull workers has no effect, and the accepted target is called once."""
    with Scenario() as scenario:
        calls: list[str] = []
        scenario.target = lambda phase, _context: calls.append(phase)
        handled = {"type": PULLED, "target": {"kind": "http", "url": URL}, "delay_seconds": 3600}
        created = scenario.ask("POST", "/v1/tasks", handled).body
        path, due = f"/v1/tasks/{created['id']}", (scenario.now // MINUTE + 10) * MINUTE
        at = to_iso(due)
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 40)
        headers = {"If-Match": f'"{created["version"]}"'}
        first = scenario.send("PATCH", path, {"due_at": at, "name": "kept"}, headers=headers)
        scenario.run(15)
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 120)
        second = scenario.send("PATCH", path, {"due_at": at, "target": {"kind": "pull"}}, headers=headers)
        scenario.time.run_until(due - 3 * SECOND)
        assert (first[0].status, second[0].status) == (200, 412)
        # The worker functions come late, so that the pull worker comes first.
        scenario.receiving = False
        wanted = {"types": [PULLED], "lease_seconds": 60, "worker": "w", "wait_seconds": 6}
        assert scenario.ask("POST", "/v1/leases", wanted).body["leases"] == []
        scenario.receiving = True
        for strand in scenario._pollers.values():
            scenario.time.nudge(strand)
        scenario.run(5 * MINUTE)
        task = scenario.record(created["id"])
        assert (task.state, task.attempt, calls) == ("succeeded", 1, ["run"])


def test_a_rejected_change_to_an_endpoint_hardly_delays_a_pulled_task() -> None:
    """If a change to an endpoint is refused, its timer delays a pulled task by at most a few seconds."""
    with Scenario() as scenario:
        created = scenario.ask(
            "POST", "/v1/tasks", {"type": PULLED, "delay_seconds": 3600, "timeout_seconds": 600}
        ).body
        path, due = f"/v1/tasks/{created['id']}", (scenario.now // MINUTE + 10) * MINUTE
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 40)
        headers = {"If-Match": f'"{created["version"]}"'}
        first = scenario.send("PATCH", path, {"due_at": to_iso(due), "name": "kept"}, headers=headers)
        scenario.run(15)
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 120)
        other = {"due_at": to_iso(due), "target": {"kind": "http", "url": URL}}
        second = scenario.send("PATCH", path, other, headers=headers)
        scenario.time.run_until(due + SECOND)
        assert (first[0].status, second[0].status) == (200, 412)
        wanted = {"types": [PULLED], "lease_seconds": 60, "worker": "w", "wait_seconds": 20}
        (lease,) = scenario.ask("POST", "/v1/leases", wanted).body["leases"]
        assert lease["task"]["attempt"] == 1
        assert scenario.now < due + 10 * SECOND


@pytest.mark.parametrize(("before", "after"), [(10, 30), (60, 10)])
def test_a_task_resumed_during_a_change_runs_at_the_new_time(before: int, after: int) -> None:
    """If a resume and a change to the due time overlap and both are accepted, the task runs at the new time."""
    with Scenario() as scenario:
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": before * 60}).body
        path, due = f"/v1/tasks/{created['id']}", (scenario.now // MINUTE + after) * MINUTE
        assert scenario.ask("POST", f"{path}/pause").status == 200
        # The resume has read the record, and its write is delayed until the other change is made.
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 100)
        resumed = scenario.send("POST", f"{path}/resume")
        scenario.run(30)
        changed = scenario.ask("PATCH", path, {"due_at": to_iso(due)})
        scenario.run(SECOND)
        assert (resumed[0].status, changed.status) == (200, 200)
        scenario.run(2 * HOUR)
        task = scenario.record(created["id"])
        assert (task.state, task.due_at) == ("succeeded", due)
        assert 0 <= (task.run_at or 0) - due < SECOND


def test_the_later_of_two_resumes_of_a_running_task_is_rejected() -> None:
    """Of two overlapping resumes, the first to be written withdraws the request to pause; the other is a conflict."""
    with Scenario() as scenario:
        created = scenario.ask("POST", "/v1/tasks", {"type": PULLED, "timeout_seconds": 600}).body
        path = f"/v1/tasks/{created['id']}"
        scenario.run(2 * SECOND)
        wanted = {"types": [PULLED], "lease_seconds": 60, "worker": "w", "wait_seconds": 0}
        assert scenario.ask("POST", "/v1/leases", wanted).body["leases"]
        assert scenario.ask("POST", f"{path}/pause").status == 202
        scenario.slow(lambda call: _is_write_of(created["id"], "update_item", call), 100)
        first = scenario.send("POST", f"{path}/resume")
        scenario.run(30)
        second = scenario.ask("POST", f"{path}/resume")
        scenario.run(SECOND)
        assert (first[0].status, second.status) == (409, 200)
        assert scenario.record(created["id"]).requested_action is None
