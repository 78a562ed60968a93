"""Approvals and event waits of schedules' runs and of tasks with an ordered key, which wait for their turn first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.http.timestamps import instant_of
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.schedules import PATH, Schedules

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

APPROVAL = {"type": "release", "target": {"kind": "approval", "timeout_seconds": 7200}}
EVENT = {"type": "paid", "target": {"kind": "wait_for_event", "event": "order.paid", "timeout_seconds": 7200}}
ASKED = "an approval"


def decide(schedules: Schedules, task: Task, *, approve: bool = True) -> int:
    """Approve or reject a task; return the status of the response."""
    schedules.topologies.signalled.add((task.id.text, approve))
    return schedules.ask("POST", f"/v1/tasks/{task.id}/signal", {"approve": approve}).status


def asked(schedules: Schedules) -> list[Task]:
    """The tasks that wait for an approval or an event now, ordered by id."""
    waiting = {ASKED, "the event order.paid"}
    tasks = (task for task in schedules.watching.tasks() if task.state == "waiting" and task.waiting_for in waiting)
    return sorted(tasks, key=lambda task: task.id)


def ordered(schedules: Schedules, body: dict[str, Any]) -> list[Task]:
    """Three due tasks with one ordered key, in order of their creation."""
    made = [schedules.ask("POST", "/v1/tasks", body | {"order": {"key": "release"}}) for _ in range(3)]
    schedules.run(MINUTE)
    return [schedules.record(each.body["id"]) for each in made]


def test_an_ordered_approval_is_decided_only_in_its_turn() -> None:
    """A task with an ordered key can be decided only in its turn, and its time for a decision counts from its turn."""
    with Schedules() as schedules:
        first, second, third = ordered(schedules, APPROVAL)
        assert [each.waiting_for for each in (first, second, third)] == [ASKED, "order release", "order release"]
        assert decide(schedules, third) == 409
        schedules.run(HOUR + 50 * MINUTE)
        assert decide(schedules, first) == 200
        schedules.run(MINUTE)
        assert [each.id for each in asked(schedules)] == [second.id]
        schedules.run(HOUR)
        assert decide(schedules, schedules.record(second.id.text)) == 200
        schedules.run(2 * HOUR + 2 * MINUTE)
        last = schedules.record(third.id.text)
        assert (last.state, last.error and last.error.type) == ("failed", "ApprovalTimedOut")
        assert last.attempt_history[-1].started_at - second.due_at >= 2 * (HOUR + 50 * MINUTE)


def test_ordered_event_waits_take_a_signal_in_their_turn() -> None:
    """A task with an ordered key begins to wait for its event in its turn, and takes a signal that came before."""
    with Schedules() as schedules:
        tasks = ordered(schedules, EVENT)
        assert [each.id for each in asked(schedules)] == [tasks[0].id]
        assert schedules.ask("POST", "/v1/signals", {"name": "order.paid", "payload": 1}).status in {200, 202}
        schedules.run(MINUTE)
        ended = [schedules.record(each.id.text) for each in tasks]
        assert [each.state for each in ended] == ["succeeded"] * 3
        starts = [each.attempt_history[-1].started_at for each in ended]
        assert starts == sorted(starts)


@pytest.mark.parametrize("body", [APPROVAL, EVENT], ids=["approval", "event"])
def test_a_run_that_waits_for_an_approval_or_an_event_is_not_finished(body: dict[str, Any]) -> None:
    """While a run waits for an approval or an event, later occurrences are skipped; after its end, another waits."""
    with Schedules() as schedules:
        schedules.make(task=body)
        schedules.run(5 * MINUTE)
        (first,) = asked(schedules)
        assert len(schedules.skipped()) >= 3
        assert schedules.ask("POST", f"/v1/tasks/{first.id}/cancel").status == 200
        schedules.run(2 * MINUTE)
        (second,) = asked(schedules)
        assert second.id > first.id


def test_runs_are_approved_in_order_with_buffer_all() -> None:
    """With `buffer_all`, runs are decided one after another, and each run has its full time for a decision."""
    with Schedules() as schedules:
        schedules.make(task=APPROVAL, overlap="buffer_all", remaining_runs=3)
        schedules.run(HOUR + 50 * MINUTE)
        due = []
        for _ in range(3):
            (task,) = asked(schedules)
            due.append(task.due_at)
            assert task.next_at >= schedules.now + HOUR - 50 * MINUTE
            assert decide(schedules, task) == 200
            schedules.run(HOUR)
        assert due == sorted(due)
        assert len(due) == len(set(due))
        assert schedules.schedule()["state"] == "ended"


@pytest.mark.parametrize("overlap", ["replace_other", "cancel_other"])
def test_the_next_occurrence_replaces_a_run_that_waits_for_an_approval(overlap: str) -> None:
    """A run that waits for an approval is cancelled by the next occurrence, which then waits for an approval."""
    with Schedules() as schedules:
        schedules.make(task=APPROVAL, overlap=overlap)
        schedules.run(3 * MINUTE)
        (first,) = asked(schedules)
        schedules.run(2 * MINUTE)
        (second,) = asked(schedules)
        assert second.due_at > first.due_at
        assert schedules.record(first.id.text).state == "cancelled"


@pytest.mark.parametrize("change", ["pause", "change", "delete"])
@pytest.mark.parametrize("approve", [True, None])
def test_a_run_that_waits_for_an_approval_outlasts_its_schedule(change: str, approve: bool | None) -> None:  # noqa: FBT001 - a test parameter
    """A run that waits for an approval has begun, so it is decided although its schedule was paused or deleted."""
    with Schedules() as schedules:
        schedules.make(task=APPROVAL, cron="0 * * * *")
        schedules.run_until(lambda: asked(schedules), 2 * HOUR, MINUTE)
        (task,) = asked(schedules)
        if change == "change":
            assert schedules.amend(cron="30 1 * * *").status == 200
        else:
            done = schedules.control("pause") if change == "pause" else schedules.ask("DELETE", PATH)
            assert done.status in {200, 204}
        assert "skipped" not in schedules.ask("GET", f"/v1/tasks/{task.id}/explain").body["text"]
        if approve:
            assert decide(schedules, task) == 200
        schedules.run(2 * HOUR + MINUTE)
        ended = schedules.record(task.id.text)
        assert (ended.state, ended.error and ended.error.type) == (
            ("succeeded", None) if approve else ("failed", "ApprovalTimedOut")
        )


@pytest.mark.parametrize("overlap", ["skip", "allow_all"])
@pytest.mark.parametrize("approve", [True, False])
def test_decided_runs_count_against_the_limit_on_runs(overlap: str, approve: bool) -> None:  # noqa: FBT001 - a test parameter
    """An approved or rejected run has begun, so that it counts against the limit on runs, and is the latest run."""
    with Schedules() as schedules:
        schedules.make(task=APPROVAL, overlap=overlap, remaining_runs=2)
        decided = []
        for _ in range(20):
            schedules.run(MINUTE)
            for task in asked(schedules):
                assert decide(schedules, task, approve=approve) == 200
                decided.append(task)
        shown = schedules.schedule()
        assert len(decided) == 2
        assert (shown["state"], shown["runs_started"], shown["remaining_runs"]) == ("ended", 2, 0)
        assert shown["last_run"]["task_id"] == decided[-1].id.text


def test_an_approved_run_is_the_latest_run_of_a_schedule_without_a_limit() -> None:
    """An approved run is the latest run of its schedule, which started when it was approved."""
    with Schedules() as schedules:
        schedules.make(task=APPROVAL, cron="0 * * * *")
        schedules.run_until(lambda: asked(schedules), 2 * HOUR, MINUTE)
        (task,) = asked(schedules)
        assert schedules.schedule()["last_run"] is None
        schedules.run(HOUR // 2)
        approved_at = schedules.now
        assert decide(schedules, task) == 200
        schedules.run(MINUTE)
        last = schedules.schedule()["last_run"]
        assert last["task_id"] == task.id.text
        assert approved_at <= instant_of(last["started_at"]) <= approved_at + SECOND


def test_a_run_cancelled_while_it_waits_for_an_approval_does_not_count_against_the_limit() -> None:
    """A run that was cancelled before anybody decided about it has not begun, so that another run takes its place."""
    with Schedules() as schedules:
        schedules.make(task=APPROVAL, remaining_runs=2)
        for cancelled in (True, False, False):
            assert schedules.run_until(lambda: asked(schedules), 5 * MINUTE, SECOND)
            (task,) = asked(schedules)
            if cancelled:
                assert schedules.ask("POST", f"/v1/tasks/{task.id}/cancel").status == 200
            else:
                assert decide(schedules, task) == 200
            schedules.run(5 * SECOND)
        schedules.run(3 * MINUTE)
        assert schedules.schedule()["state"] == "ended"


def test_approved_runs_meet_an_expectation() -> None:
    """An approved run is a success of its schedule, at the time of the approval."""
    with Schedules() as schedules:
        schedules.make(task=APPROVAL, expect_every_seconds=300)
        approved_at = []
        for _ in range(20):
            schedules.run(MINUTE)
            for task in asked(schedules):
                approved_at.append(schedules.now)
                assert decide(schedules, task) == 200
        found = schedules.schedule()["expectation"]
        assert found["misses"] == 0
        assert any(at <= instant_of(found["met_at"]) <= at + SECOND for at in approved_at)
        for task in asked(schedules):
            assert decide(schedules, task, approve=False) == 200
        schedules.run(11 * MINUTE)
        assert schedules.schedule()["expectation"]["misses"] >= 1
