"""Tasks join a group, each member's end is counted once, and the following task runs once after the last end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.limits import GROUP_LIFE
from duetime.domain.operating_parameters import GROUP_CHECK_LONGEST, GROUP_MEMBER_LOST
from duetime.domain.tasks.states import State
from duetime.domain.times import to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks
from tests.simulation.endpoints import NOTICE_URL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

ID = "import-17"
REPORT = UNDONE
"""The type of tasks that run after a group."""


class Groups(Tasks):
    """A scenario about one group.

    Attributes:
        told: what the following tasks were told about the group.
    """

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - a handler gets it
        """Record what a handler is given about the group."""
        if getattr(context, "inputs", None) is not None:
            self.told.append(context.inputs["group"])
        return super().act(phase, context, payload)

    def join(self, delay: Millis = 0, **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a member of the group; return the task's id."""
        return self.create(delay, group={"id": ID}, **fields)

    def put(self, **fields: Any) -> Reply:  # noqa: ANN401 - JSON
        """Close the group with a task that runs after it."""
        rule = fields.pop("rule", "all_done")
        task = {"type": REPORT, "timeout_seconds": 60, **fields}
        return self.ask("PUT", f"/v1/groups/{ID}", {"on_complete": {"task": task, "rule": rule}})

    def closed(self, **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Close the group, and check that this succeeds; return the id of the following task."""
        reply = self.put(**fields)
        assert reply.status == 200, reply.body
        return str(reply.body["on_complete"]["task_id"])

    def group(self, query: str = "") -> Mapping[str, Any]:
        """The group as the API shows it."""
        reply = self.ask("GET", f"/v1/groups/{ID}", query=query) if query else self.ask("GET", f"/v1/groups/{ID}")
        assert reply.status == 200, reply.body
        shown: Mapping[str, Any] = reply.body
        return shown

    def check_completed_at(self, at: Millis) -> None:
        """Check that the group was completed within a second of a time, and not by this read."""
        shown = self.group()
        assert shown["state"] == "completed"
        assert to_iso(at) <= shown["completed_at"] <= to_iso(at + SECOND)

    def has_run(self, completion: str) -> bool:
        """Whether the following task's target was called."""
        return bool(self.effect_times(completion))


def test_a_group_whose_following_task_is_cancelled_completes_with_its_last_member() -> None:
    """If a group's following task is cancelled, the group completes with its last member, and no task runs after it."""
    with Groups() as groups:
        member = groups.join(5 * MINUTE)
        completion = groups.closed()
        groups.run(MINUTE)
        groups.do(completion, "cancel")
        groups.run(MINUTE)
        assert groups.group()["state"] == "closed"
        groups.run(5 * MINUTE)
        groups.check_completed_at(groups.record(member).outcome_at)
        assert groups.group()["counts"] == {"succeeded": 1}
        assert not groups.has_run(completion)


def test_cancelling_a_paused_following_task_completes_the_group() -> None:
    """If the following task is paused when the last member ends, cancelling it completes the group."""
    with Groups() as groups:
        groups.join(5 * MINUTE)
        completion = groups.closed()
        groups.run(MINUTE)
        groups.do(completion, "pause")
        groups.run(5 * MINUTE)
        assert groups.group()["state"] == "closed"
        cancelled_at = groups.now
        groups.do(completion, "cancel")
        groups.run(MINUTE)
        groups.check_completed_at(cancelled_at)
        assert groups.group()["counts"] == {"succeeded": 1}


def test_a_task_runs_soon_after_the_last_member() -> None:
    """The following task runs once, soon after the last member's end, and gets the members' outcomes."""
    with Groups() as groups:
        members = [groups.join(delay) for delay in (0, 30 * SECOND, 10 * MINUTE)]
        completion = groups.closed()
        assert groups.state(completion) in {State.SCHEDULED, State.PREPARING, State.RUNNING, State.WAITING}
        groups.run(9 * MINUTE)
        waiting = groups.ask("GET", f"/v1/tasks/{completion}").body
        assert waiting["waiting_for"] == {"reason": "group", "text": f"group {ID}"}
        assert waiting["completes_group"] == ID
        shown = groups.group()
        assert (shown["state"], shown["counts"], shown["progress"]) == ("closed", {"scheduled": 1, "succeeded": 2}, 66)
        assert groups.run_until(lambda: groups.state(members[-1]) is State.SUCCEEDED)
        ended = groups.now
        assert groups.run_until(lambda: groups.has_run(completion), within=2 * SECOND), groups.now - ended
        groups.run(HOUR)
        assert len(groups.effect_times(completion)) == 1
        assert groups.told == [{"id": ID, "total": 3, "counts": {"succeeded": 3}}]
        shown = groups.group()
        assert (shown["state"], shown["total"], shown["ended"], shown["progress"]) == ("completed", 3, 3, 100)


def test_the_following_task_is_due_when_the_last_member_has_ended() -> None:
    """While members are open, the following task neither expires nor is late; it is due at the last member's end."""
    with Groups() as groups:
        groups.join(10 * MINUTE)
        late = {"to": NOTICE_URL, "late_seconds": 100}
        completion = groups.closed(expires_seconds=150, notify_on=late)
        groups.run(9 * MINUTE)
        assert groups.ask("GET", f"/v1/tasks/{completion}").body["expires_at"] is None
        groups.run(2 * MINUTE)
        shown = groups.ask("GET", f"/v1/tasks/{completion}").body
        assert (shown["state"], shown["lateness_ms"] < 2 * SECOND) == ("succeeded", True)
        assert groups.notices == []


@pytest.mark.parametrize("stops_after", [MINUTE, 0], ids=["stopped later", "stopped before"])
def test_the_following_task_expires_after_the_last_members_end(stops_after: Millis) -> None:
    """If a switch holds the following task, it expires `expires_seconds` after the last member's end, and is late."""
    with Groups() as groups:
        groups.join(10 * MINUTE)
        if not stops_after:
            groups.ask("PUT", f"/v1/switches/type/{REPORT}", {"stopped": True})
        completion = groups.closed(expires_seconds=400, notify_on={"to": NOTICE_URL, "late_seconds": 100})
        groups.run(stops_after)
        groups.ask("PUT", f"/v1/switches/type/{REPORT}", {"stopped": True})
        groups.run(10 * MINUTE + 30 * SECOND - stops_after)
        assert groups.state(completion) is State.WAITING
        assert groups.notices == []
        groups.run(7 * MINUTE)
        task = groups.record(completion)
        assert task.error is not None
        assert (task.state, task.error.type) == (State.FAILED, "Expired")
        assert [kind for _, kind in groups.notices] == ["task.late"]
        assert (task.finished_at or 0) == pytest.approx(task.due_at + 400 * SECOND, abs=3 * SECOND)


def test_an_empty_group_is_complete_at_once() -> None:
    """A closed empty group is complete at once; its following task runs once, and no task can join."""
    with Groups() as groups:
        completion = groups.closed(rule="all_success")
        assert groups.closed(rule="all_success") == completion
        assert groups.run_until(lambda: groups.has_run(completion), within=5 * SECOND)
        refused = groups.ask("POST", "/v1/tasks", {"type": PLAIN, "group": {"id": ID}})
        assert (refused.status, refused.body["code"]) == (409, "group_closed")
        assert groups.put(rule="all_done").status == 409
        groups.run(HOUR)
        assert len(groups.effect_times(completion)) == 1
        assert groups.closed(rule="all_success") == completion
        groups.run(MINUTE)
        assert len(groups.effect_times(completion)) == 1


@pytest.mark.parametrize(
    ("rule", "runs"), [("all_done", True), ("all_success", False), ("one_failed", True), ("none_failed", False)]
)
def test_a_rule_decides_whether_the_task_runs(rule: str, *, runs: bool) -> None:
    """Depending on the rule, a failed member lets the following task run or cancels it, and the record says why."""
    with Groups() as groups:
        groups.target = lambda _phase, context: 1 / 0 if context.payload == "fail" else "done"
        groups.join()
        groups.join(payload="fail", retry=ONCE)
        completion = groups.closed(rule=rule)
        assert groups.run_until(lambda: groups.record(completion).is_terminal, within=MINUTE)
        assert groups.has_run(completion) is runs
        if not runs:
            shown = groups.ask("GET", f"/v1/tasks/{completion}").body
            assert (shown["state"], shown["error"]["type"]) == ("cancelled", "Skipped")
            assert f"rule {rule}" in shown["error"]["message"]
        assert groups.group()["state"] == "completed"


def test_cancelled_members_count_as_ended_and_retried_members_are_awaited() -> None:
    """Cancelled members count as ended, and the group waits for a member that is retried before its completion."""
    with Groups() as groups:
        groups.fail()
        first = groups.join(retry=ONCE)
        groups.join(HOUR)
        assert groups.run_until(lambda: groups.state(first) is State.FAILED)
        completion = groups.closed(rule="all_done")
        groups.run(MINUTE)
        groups.last(30)
        assert groups.ask("POST", f"/v1/groups/{ID}/retry", {}).body["affected"] == 1
        cancelled = groups.ask("POST", f"/v1/groups/{ID}/cancel", {})
        assert (cancelled.status, cancelled.body["affected"]) == (200, 1)
        groups.run(10 * SECOND)
        assert groups.group()["counts"] == {"cancelled": 1, "running": 1}
        assert groups.run_until(lambda: groups.has_run(completion), within=MINUTE)
        assert groups.told == [{"id": ID, "total": 2, "counts": {"cancelled": 1, "succeeded": 1}}]
        assert groups.ask("POST", "/v1/groups/other/retry", {}).body["code"] == "group_not_found"


def test_a_members_retry_after_completion_changes_only_the_counts() -> None:
    """After completion, a member's retry changes the counts, but the following task does not run again."""
    with Groups() as groups:
        groups.fail()
        member = groups.join(retry=ONCE)
        assert groups.run_until(lambda: groups.state(member) is State.FAILED)
        groups.target = lambda _phase, _context: "done"
        completion = groups.closed()
        assert groups.run_until(lambda: groups.has_run(completion), within=5 * SECOND)
        groups.run(MINUTE)
        assert groups.do(member, "retry").status == 200
        assert groups.group()["counts"].keys() & {"scheduled", "waiting", "running", "succeeded"}
        groups.run(HOUR)
        assert groups.group()["counts"] == {"succeeded": 1}
        assert len(groups.effect_times(completion)) == 1


def test_a_group_without_a_task_is_complete_when_its_last_member_ends() -> None:
    """A request that waits for a group without a following task gets its response when the last member ends."""
    with Groups() as groups:
        groups.join(20 * SECOND)
        assert groups.ask("PUT", f"/v1/groups/{ID}", {}).body["state"] == "closed"
        groups.run(5 * SECOND)
        begun = groups.now
        assert groups.group("wait_seconds=25")["state"] == "completed"
        assert 14 * SECOND < groups.now - begun < 18 * SECOND


def is_of_member(call: Call) -> bool:
    """Whether a call writes a member's item."""
    is_write = call.operation in {"update_item", "put_item"}
    return is_write and (call.partition or "").startswith(schema.GROUP_MEMBERS_PREFIX)


def is_record(call: Call) -> bool:
    """Whether a call writes a new task's record."""
    return call.operation == "put_item" and schema.STATE in call.request["Item"]


def test_a_check_finds_a_members_end_that_was_not_counted() -> None:
    """If a worker dies after writing the outcome but before counting it, the next check counts it."""
    with Groups() as groups:
        groups.faulty = True
        groups.join(30 * SECOND)
        completion = groups.closed()
        groups.run(20 * SECOND)
        met = groups.once(is_of_member, lambda call: call.machine.die())
        assert groups.run_until(lambda: met)
        assert groups.run_until(lambda: groups.has_run(completion), within=RECOVERY + GROUP_CHECK_LONGEST)
        groups.run(HOUR)
        assert len(groups.effect_times(completion)) == 1


def test_a_crashed_member_creation_does_not_block_a_groups_completion() -> None:
    """If the API dies between writing the member's item and its record, the item is dropped later."""
    with Groups() as groups:
        groups.faulty = True
        groups.join()
        met = groups.once(is_record, lambda call: call.machine.die())
        groups.send("POST", "/v1/tasks", {"type": PLAIN, "group": {"id": ID}})
        assert groups.run_until(lambda: met)
        completion = groups.closed()
        assert groups.run_until(lambda: groups.has_run(completion), within=GROUP_MEMBER_LOST + GROUP_CHECK_LONGEST)
        assert groups.told == [{"id": ID, "total": 1, "counts": {"succeeded": 1}}]


@pytest.mark.parametrize("nth", range(12))
def test_a_repeated_close_completes_the_group_after_any_crash(nth: int) -> None:
    """If the API dies at any call, a repeated request closes the group, and the following task runs once."""
    with Groups() as groups:
        groups.faulty = True
        groups.join()
        calls: list[Call] = []

        def die_at(call: Call) -> None:
            if call.machine.function == "api":
                calls.append(call)
                if len(calls) == nth + 1:
                    call.machine.die()

        groups.before_call = die_at
        groups.send("PUT", f"/v1/groups/{ID}", {"on_complete": {"task": {"type": REPORT}}})
        groups.run(30 * SECOND)
        groups.before_call = None
        assert len(calls) > nth
        completion = groups.ask("PUT", f"/v1/groups/{ID}", {"on_complete": {"task": {"type": REPORT}}}).body[
            "on_complete"
        ]["task_id"]
        assert groups.run_until(lambda: groups.has_run(completion), within=RECOVERY)
        groups.run(HOUR)
        assert len(groups.effect_times(completion)) == 1


@pytest.mark.parametrize("nth", range(10))
def test_the_following_task_runs_once_after_any_crash_of_the_last_member(nth: int) -> None:
    """If the last member's worker dies at any call, the following task still runs once."""
    with Groups() as groups:
        groups.faulty = True
        member = groups.join(30 * SECOND)
        completion = groups.closed()
        groups.run(25 * SECOND)
        calls: list[Call] = []

        def die_at(call: Call) -> None:
            if call.machine.function == "worker":
                calls.append(call)
                if len(calls) == nth + 1:
                    call.machine.die()

        groups.before_call = die_at
        groups.run(20 * SECOND)
        groups.before_call = None
        assert len(calls) > nth
        assert groups.run_until(lambda: groups.has_run(completion), within=2 * RECOVERY + GROUP_CHECK_LONGEST)
        assert groups.state(member) is State.SUCCEEDED
        groups.run(HOUR)
        assert len(groups.effect_times(completion)) == 1


def test_a_member_is_kept_while_it_is_open() -> None:
    """A member's item gets a time to live when the task ends; a retry removes the time to live."""
    with Groups() as groups:
        groups.fail()
        member = groups.join(40 * 24 * HOUR, retry=ONCE)
        (item,) = groups.items(schema.GROUP_MEMBERS_PREFIX)
        assert schema.TTL not in item
        assert groups.do(member, "run").status == 200
        groups.run(MINUTE)
        (item,) = groups.items(schema.GROUP_MEMBERS_PREFIX)
        assert int(item[schema.TTL]["N"]) * SECOND > groups.now + GROUP_LIFE - HOUR
        groups.last(1)
        assert groups.do(member, "retry").status == 200
        (item,) = groups.items(schema.GROUP_MEMBERS_PREFIX)
        assert schema.TTL not in item


def test_the_explanation_of_a_following_task_names_its_group() -> None:
    """The explanation of a following task names the group that the task waits for."""
    with Groups() as groups:
        groups.join(HOUR)
        completion = groups.closed()
        groups.run(5 * MINUTE)
        gates = groups.ask("GET", f"/v1/tasks/{completion}/explain").body["gates"]
        (gate,) = (each for each in gates if each["state"] == "waiting")
        assert gate["name"] == "group"
        assert f"all members of the group {ID} have ended" in gate["text"]


def test_a_groups_callback_url_is_called_as_the_following_task() -> None:
    """With `callback_url`, the following task calls that URL."""
    with Groups() as groups:
        groups.join()
        body = {"on_complete": {"callback_url": "https://example.org/done"}}
        completion = groups.ask("PUT", f"/v1/groups/{ID}", body).body["on_complete"]["task_id"]
        task = groups.ask("GET", f"/v1/tasks/{completion}").body
        assert (task["type"], task["target"]["kind"], task["target"]["url"], task["retry"]["max_attempts"]) == (
            "duetime.group_callback",
            "http",
            "https://example.org/done",
            60,
        )
        groups.run(MINUTE)
        assert (groups.state(completion), groups.phases(completion)) == (State.SUCCEEDED, ["run"])
