"""A task that has not started within `expires_seconds` never starts, and its failure is reported everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PHASED, PLAIN, SECOND, UNDONE
from tests.scenarios.schedules import Schedules
from tests.scenarios.tasks import RECOVERY, Tasks
from tests.scenarios.test_pull_workers import Pulled
from tests.simulation.endpoints import CALLBACK_URL, NOTICE_URL

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

STOP = "/v1/switches/all/all"
SOON = 2 * SECOND
"""A task that is checked at its expiry has ended within this time after the expiry."""


def has_expired(tasks: Any, task_id: str) -> bool:  # noqa: ANN401 - any of the scenarios
    """Whether a task has expired without an attempt."""
    task = tasks.record(task_id)
    return task.has_expired and (task.attempt, task.attempt_history, task.started_at) == (0, (), None)


def expiry_of(tasks: Tasks, task_id: str) -> int:
    """The latest time at which a task may start."""
    at = tasks.record(task_id).start_by
    assert at is not None
    return at


def reads_lock(call: Call) -> bool:
    """Whether a worker reads a lock after its claim."""
    return call.machine.function == "worker" and (call.partition or "").startswith(schema.LOCK_PREFIX)


@pytest.mark.parametrize("kind", [PLAIN, UNDONE, PHASED])
def test_a_task_held_by_a_switch_fails_at_its_expiry(kind: str) -> None:
    """A task that a switch holds fails at its expiry with a callback and a notice, and its target is never called."""
    with Tasks() as tasks:
        tasks.faulty = True
        assert tasks.ask("PUT", STOP, {"stopped": True}).status == 200
        told = {"callback_url": CALLBACK_URL, "notify_on": {"to": NOTICE_URL, "failed": True}}
        task_id = tasks.create(SECOND, kind, expires_seconds=30, rollback_on_failure=kind != PLAIN, **told)
        at = expiry_of(tasks, task_id)
        tasks.time.run_until(at - SECOND)
        assert not tasks.record(task_id).is_terminal
        assert "expires" in tasks.ask("GET", f"/v1/tasks/{task_id}/explain").body["text"]
        tasks.time.run_until(at + SOON)
        assert has_expired(tasks, task_id)
        assert tasks.ask("DELETE", STOP).status in {200, 204}
        tasks.run(HOUR)
        assert tasks.phases() == []
        assert [state for _, state in tasks.callbacks] == ["failed"]
        assert [kind for _, kind in tasks.notices] == ["task.failed"]
        assert tasks.counts()["tasks_expired"] == 1
        events = tasks.ask("GET", f"/v1/tasks/{task_id}/events").body["events"]
        assert [each["type"] for each in events] == ["created", "expired", "finished"]
        assert "it had not started by" in tasks.ask("GET", f"/v1/tasks/{task_id}/explain").body["text"]


def test_a_message_that_arrives_after_the_expiry_starts_no_task() -> None:
    """If the recovery scan's message arrives after a task's expiry, the task does not start."""
    with Tasks() as tasks:
        tasks.faulty = True
        task_id = tasks.create(5 * SECOND, expires_seconds=10)
        tasks.lose_messages()
        tasks.run(RECOVERY + 30 * SECOND)
        assert has_expired(tasks, task_id)
        assert tasks.phases() == []


def test_a_slow_worker_does_not_call_the_target_after_the_expiry() -> None:
    """A worker that claims a task in time but is then slow does not call the target after the expiry."""
    with Tasks() as tasks:
        tasks.faulty = True
        task_id = tasks.create(SECOND, expires_seconds=5, lock={"key": "db"})
        met = tasks.slow(reads_lock, 15 * SECOND)
        tasks.run(MINUTE)
        assert met
        assert has_expired(tasks, task_id)
        assert tasks.phases() == []


def test_a_task_that_waits_for_a_lock_leaves_the_line_at_expiry() -> None:
    """A task that waits for a lock fails at its expiry, and the next task in line gets the lock."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.last(100)
        lock: dict[str, Any] = {"lock": {"key": "db"}, "timeout_seconds": 300}
        first = tasks.create(0, **lock)
        tasks.run(SECOND)
        waiter = tasks.create(0, expires_seconds=40, **lock)
        last = tasks.create(SECOND, **lock)
        tasks.time.run_until(expiry_of(tasks, waiter) + SOON)
        assert has_expired(tasks, waiter)
        assert tasks.record(first).state == "running"
        tasks.run(5 * MINUTE)
        assert [tasks.state(each) for each in (first, last)] == ["succeeded"] * 2
        assert tasks.effect_times(waiter) == []
        assert tasks.effect_times(last)[0] - tasks.effect_times(first)[0] < 105 * SECOND


def test_a_task_that_started_in_time_can_be_retried_after_its_expiry() -> None:
    """If the first attempt started in time, later attempts can start after the expiry."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.fail(1)
        retried = tasks.create(0, expires_seconds=5, retry={"max_attempts": 2, "initial_seconds": 60})
        tasks.run(10 * MINUTE)
        assert tasks.outcomes(retried) == ["retried", "succeeded"]
        assert tasks.effect_times(retried)[1] > tasks.record(retried).due_at + 5 * SECOND
        tasks.hang()
        lost = tasks.create(0, expires_seconds=5)
        tasks.run(2 * SECOND)
        tasks.kill()
        tasks.run(10 * MINUTE)
        assert tasks.state(lost) == "succeeded"
        assert len(tasks.effect_times(lost)) == 2


@pytest.mark.parametrize(("pause", "state"), [(10, "succeeded"), (120, "failed")])
def test_a_task_resumed_after_its_expiry_expires(pause: int, state: str) -> None:
    """A paused task does not expire, but a task that is resumed after its expiry does."""
    with Tasks() as tasks:
        task_id = tasks.create(5 * SECOND, expires_seconds=60)
        assert tasks.do(task_id, "pause").status == 200
        tasks.run(pause * SECOND)
        assert tasks.state(task_id) == "paused"
        assert tasks.do(task_id, "resume").status == 200
        tasks.run(MINUTE)
        assert tasks.state(task_id) == state
        assert has_expired(tasks, task_id) == (state == "failed")


@pytest.mark.parametrize("verb", ["run", "retry"])
def test_run_and_retry_requests_remove_the_expiry(verb: str) -> None:
    """`run` on a paused task and `retry` on an expired task remove the limit; a repeat starts no second attempt."""
    with Tasks() as tasks:
        task_id = tasks.create(5 * SECOND, expires_seconds=10)
        tasks.do(task_id, "pause")
        tasks.run(MINUTE)
        if verb == "retry":
            tasks.do(task_id, "resume")
            tasks.run(SOON)
            assert has_expired(tasks, task_id)
        tasks.receiving = False
        reply = tasks.do(task_id, verb)
        assert (reply.status, reply.body["expires_seconds"], reply.body["expires_at"]) == (200, None, None)
        assert tasks.do(task_id, verb).status == 200
        tasks.receive_again()
        tasks.run(MINUTE)
        assert tasks.state(task_id) == "succeeded"
        assert len(tasks.effect_times(task_id)) == 1


def test_a_changed_due_time_or_limit_moves_the_expiry() -> None:
    """The expiry moves with the due time and the limit; for a past due time, it counts from the creation."""
    with Tasks() as tasks:
        task_id = tasks.create(10 * SECOND, expires_seconds=10)
        tasks.change(task_id, delay_seconds=60)
        assert expiry_of(tasks, task_id) == tasks.record(task_id).due_at + 10 * SECOND
        assert tasks.change(task_id, expires_seconds=None).body["expires_at"] is None
        tasks.run(2 * MINUTE)
        assert tasks.state(task_id) == "succeeded"
        late = tasks.create(due_at="2026-11-20T00:00:00Z", expires_seconds=10)
        tasks.run(MINUTE)
        assert tasks.state(late) == "succeeded"


def test_a_waiting_task_that_is_cancelled_does_not_expire() -> None:
    """A task that is cancelled while it waits does not expire."""
    with Tasks() as tasks:
        tasks.ask("PUT", STOP, {"stopped": True})
        task_id = tasks.create(0, expires_seconds=30)
        tasks.run(SECOND)
        assert tasks.cancel(task_id).status == 200
        tasks.run(5 * MINUTE)
        assert tasks.state(task_id) == "cancelled"


def test_a_pulled_task_without_pull_workers_expires_within_minutes() -> None:
    """A worker function fails an expired pulled task within minutes, even after a change to its limit or a pause."""
    with Pulled() as tasks:
        task_id = tasks.create_pulled(expires_seconds=60, callback_url=CALLBACK_URL)
        changed = tasks.create_pulled(expires_seconds=60)
        tasks.change(changed, expires_seconds=1_800)
        paused = tasks.create_pulled(10 * SECOND, expires_seconds=600)
        tasks.do(paused, "pause")
        tasks.run(5 * SECOND)
        tasks.do(paused, "resume")
        tasks.time.run_until(expiry_of(tasks, task_id) + 6 * MINUTE)
        assert has_expired(tasks, task_id)
        assert not tasks.record(changed).is_terminal
        tasks.time.run_until(expiry_of(tasks, paused) + 6 * MINUTE)
        assert has_expired(tasks, paused)
        assert not tasks.record(changed).is_terminal
        tasks.time.run_until(expiry_of(tasks, changed) + 6 * MINUTE)
        assert has_expired(tasks, changed)
        assert tasks.lease() == []


def test_a_leased_task_does_not_expire_during_its_lease() -> None:
    """A pulled task that is leased in time does not expire during its lease; an expired task is not leased."""
    with Pulled() as tasks:
        kept = tasks.create_pulled(expires_seconds=60)
        lease = tasks.lease_one()
        for _ in range(40):
            tasks.run(10 * SECOND)
            assert tasks.tell(lease, "heartbeat").status in {200, 409}
        assert (tasks.record(kept).attempt, tasks.record(kept).has_expired) == (1, False)
        late = tasks.create_pulled(expires_seconds=10)
        tasks.run(30 * SECOND)
        assert late not in [each["task"]["id"] for each in tasks.lease(most=5)]
        assert has_expired(tasks, late)


def test_an_expired_node_counts_as_failed() -> None:
    """If a node expires, the topology fails; the node's child does not run, but a node with `one_failed` starts."""
    with Graphs() as graphs:
        graphs.ask("PUT", "/v1/switches/type/slow", {"stopped": True})
        nodes: dict[str, dict[str, Any]] = {
            "held": {"type": "slow", "expires_seconds": 30, "allow_unknown_type": True},
            "after": {"type": PLAIN, "depends_on": ["held"]},
            "instead": {"type": PLAIN, "depends_on": ["held"], "trigger_rule": "one_failed"},
        }
        graphs.submit(nodes, on_failure="continue")
        graphs.run(10 * MINUTE)
        assert graphs.node("held").has_expired
        assert graphs.ran == ["instead"]
        assert graphs.whole().state == "failed"


def test_an_expired_run_of_a_schedule_is_shown_with_the_reason() -> None:
    """An expired run of a schedule is shown with the reason, and a catch-up run gets the full time limit."""
    with Schedules() as schedules:
        schedules.make(cron="*/10 * * * *", task={"type": PLAIN, "expires_seconds": 60})
        schedules.ask("PUT", STOP, {"stopped": True})
        schedules.run(13 * MINUTE)
        runs = schedules.ask("GET", "/v1/schedules/nightly/runs").body["runs"]
        assert [each["reason"][:9] for each in runs if each["status"] == "failed"] == ["Expired: "]
        schedules.ask("DELETE", STOP)
        schedules.ticking = False
        schedules.run(15 * MINUTE)
        schedules.ticking = True
        schedules.run(5 * MINUTE)
        assert "succeeded" in [task.state for task in schedules.placed()]
        assert any(task.due_at + 60 * SECOND < (task.started_at or 0) for task in schedules.placed())
