"""An occurrence that a user stops before its time does not come back after any change to the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import PATH, Schedules, is_of_a_schedule

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime_testing.simulation.faults import Call

STOPS = ["cancel", "pause", "delete"]
CHANGES: dict[str, list[tuple[str, str, Any]]] = {
    "payload": [("PATCH", "", {"task": {"type": PLAIN, "payload": {"new": 1}}})],
    "timing": [("PATCH", "", {"cron": "*/1 * * * *"})],
    "twice": [("PATCH", "", {"catch_up_seconds": 70}), ("PATCH", "", {"pause_on_failure": True})],
    "there-and-back": [("PATCH", "", {"cron": "30 3 1 1 *"}), ("PATCH", "", {"cron": "* * * * *"})],
    "pause-and-resume": [("POST", "/pause", None), ("POST", "/resume", None)],
    "zone": [("PATCH", "", {"timezone": "Asia/Kathmandu"})],
}


def made(schedules: Schedules, **fields: Any) -> None:  # noqa: ANN401 - JSON
    """Create a schedule 45 s before the next minute, so that several occurrences are placed at once."""
    schedules.faulty = True  # paused and stopped occurrences never run
    schedules.run(MINUTE - schedules.now % MINUTE + 15 * SECOND)
    schedules.make(**{"overlap": "allow_all", **fields})
    schedules.run(SECOND)


def stop(schedules: Schedules, task: Task, how: str) -> None:
    """Stop an occurrence as a user does."""
    path = f"/v1/tasks/{task.id}"
    answer = schedules.ask("POST", f"{path}/{'pause' if how == 'pause' else 'cancel'}")
    assert answer.status == 200, answer.body
    if how == "delete":
        assert schedules.ask("DELETE", path).status == 204


def change(schedules: Schedules, name: str) -> None:
    """Change the schedule."""
    for method, path, body in CHANGES[name]:
        answer = schedules.ask(method, f"{PATH}{path}", body)
        assert answer.status == 200, answer.body


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("how", STOPS)
def test_a_stopped_occurrence_stays_stopped_after_changes_of_its_schedule(how: str, name: str) -> None:
    """After changes to the schedule, a stopped occurrence does not run, and all other occurrences run once."""
    with Schedules() as schedules:
        made(schedules)
        first, second, *_ = schedules.placed()
        assert second.schedule_ref is not None
        stop(schedules, second, how)
        change(schedules, name)
        schedules.run(5 * MINUTE)
        ran = schedules.ran()
        assert second.schedule_ref.nominal not in ran
        wanted = schedules.minutes(first.due_at, schedules.now - SECOND)
        assert ran == dict.fromkeys((at for at in wanted if at != second.due_at), 1)


@pytest.mark.parametrize("name", ["payload", "timing", "pause-and-resume"])
def test_a_paused_occurrence_runs_once_it_is_resumed_after_a_change_of_its_schedule(name: str) -> None:
    """An occurrence that is paused and resumed runs on time and once, even if its schedule has changed."""
    with Schedules() as schedules:
        made(schedules)
        second = schedules.placed()[1]
        stop(schedules, second, "pause")
        change(schedules, name)
        assert schedules.ask("POST", f"/v1/tasks/{second.id}/resume").status == 200
        schedules.run(5 * MINUTE)
        assert schedules.ran()[second.due_at] == 1
        assert 0 <= schedules.effect_times(second.id.text)[0] - second.due_at < SECOND
        assert schedules.record(second.id.text).state == "succeeded"


def test_an_occurrence_that_was_run_early_does_not_run_again_after_a_change() -> None:
    """After a change, an occurrence that a user has already run early is not placed again."""
    with Schedules() as schedules:
        made(schedules)
        second = schedules.placed()[1]
        assert schedules.ask("POST", f"/v1/tasks/{second.id}/run").status in {200, 202}
        schedules.run(5 * SECOND)
        assert schedules.ran()[second.due_at] == 1
        change(schedules, "payload")
        schedules.run(5 * MINUTE)
        assert schedules.ran()[second.due_at] == 1


@pytest.mark.parametrize("name", ["payload", "pause-and-resume"])
def test_a_cancelled_occurrence_uses_up_no_remaining_run(name: str) -> None:
    """A cancelled occurrence uses up none of the four remaining runs, even if the schedule changes later."""
    with Schedules() as schedules:
        made(schedules, remaining_runs=4)
        stop(schedules, schedules.placed()[1], "cancel")
        change(schedules, name)
        schedules.run(15 * MINUTE)
        shown = schedules.schedule()
        assert (sum(schedules.ran().values()), shown["remaining_runs"], shown["state"]) == (4, 0, "ended")


@pytest.mark.parametrize("name", ["payload", "pause-and-resume"])
def test_a_paused_occurrence_keeps_one_of_the_remaining_runs(name: str) -> None:
    """A paused occurrence keeps one of the four remaining runs, and runs when it is resumed."""
    with Schedules() as schedules:
        made(schedules, remaining_runs=4)
        second = schedules.placed()[1]
        stop(schedules, second, "pause")
        change(schedules, name)
        schedules.run(15 * MINUTE)
        shown = schedules.schedule()
        assert (sum(schedules.ran().values()), shown["remaining_runs"], shown["state"]) == (3, 1, "active")
        assert schedules.do(second.id.text, "resume").status == 200
        assert schedules.run_until(lambda: schedules.schedule()["state"] == "ended", HOUR, MINUTE)
        assert sum(schedules.ran().values()) == 4


@pytest.mark.parametrize("how", STOPS)
@pytest.mark.parametrize("body", [{"catch_up_seconds": 70}, {"permanent": {"gap_seconds": 500}}])
def test_a_stopped_run_of_a_permanent_schedule_stays_stopped(how: str, body: dict[str, Any]) -> None:
    """A stopped run of a permanent schedule does not come back after a change."""
    with Schedules() as schedules:
        made(schedules, permanent={"gap_seconds": 600}, overlap="skip")
        schedules.run(30 * SECOND)
        ahead = schedules.placed()[-1]
        assert ahead.due_at > schedules.now + 9 * MINUTE
        stop(schedules, ahead, how)
        assert schedules.amend(**body).status == 200
        schedules.run(ahead.due_at - schedules.now + 10 * SECOND)
        assert schedules.ran()[ahead.due_at] == 0


def test_a_permanent_schedule_waits_for_its_paused_run_despite_changes() -> None:
    """A permanent schedule waits for its paused run, and continues after that run is resumed."""
    with Schedules() as schedules:
        made(schedules, permanent={"gap_seconds": 120}, overlap="skip")
        schedules.run(10 * SECOND)
        ahead = schedules.placed()[-1]
        stop(schedules, ahead, "pause")
        for seconds in (70, 80):
            assert schedules.amend(catch_up_seconds=seconds).status == 200
        schedules.run(20 * MINUTE)
        assert sum(schedules.ran().values()) == 1
        assert schedules.amend(catch_up_seconds=90).status == 200
        assert schedules.ask("POST", f"/v1/tasks/{ahead.id}/resume").status == 200
        schedules.run(5 * MINUTE)
        assert sum(schedules.ran().values()) == 4
        assert schedules.ran()[ahead.due_at] == 1


def test_an_occurrence_that_is_stopped_while_its_schedule_is_changed_stays_stopped() -> None:
    """An occurrence stopped between the read and the write of a change does not run."""
    with Schedules() as schedules:
        made(schedules)
        second = schedules.placed()[1]
        slow = schedules.slow(lambda call: call.operation == "put_item" and "r#" in (call.partition or ""), 2 * SECOND)
        replies = schedules.send("PATCH", PATH, {"catch_up_seconds": 70})
        assert schedules.run_until(lambda: slow)
        stop(schedules, second, "cancel")
        assert schedules.run_until(lambda: replies)
        assert replies[0].status == 200
        schedules.run(5 * MINUTE)
        assert schedules.ran()[second.due_at] == 0


def test_the_list_of_occurrences_shows_a_stopped_occurrence_with_the_reason() -> None:
    """The list of future occurrences says that a stopped occurrence does not run, and why."""
    with Schedules() as schedules:
        made(schedules)
        second = schedules.placed()[1]
        stop(schedules, second, "cancel")
        change(schedules, "payload")
        answer = schedules.ask("GET", f"{PATH}/occurrences", query="")
        assert answer.status == 200
        (found,) = [each for each in answer.body["occurrences"] if each["scheduled_at"] == to_iso(second.due_at)]
        assert (found["runs"], found["note"]) == (False, "its task was stopped or run early by a user")


@pytest.mark.parametrize("how", STOPS)
def test_an_occurrence_stopped_before_the_triggers_save_stays_stopped(how: str) -> None:
    """An occurrence that a trigger placed before it died, and that was stopped before a change, does not run."""
    with Schedules() as schedules:
        made(schedules)
        schedules.run(3 * MINUTE)

        def is_save(call: Call) -> bool:
            return call.machine.function == "trigger" and call.operation == "put_item" and is_of_a_schedule(call)

        died = schedules.once(is_save, lambda call: call.machine.die())
        before = {task.id for task in schedules.placed()}
        assert schedules.run_until(lambda: died, 3 * MINUTE)
        placed = [task for task in schedules.placed() if task.id not in before]
        last = placed[-1]
        stop(schedules, last, how)
        change(schedules, "payload")
        schedules.run(10 * MINUTE + MINUTE // 2 - schedules.now % MINUTE)
        ran = schedules.ran()
        assert last.due_at not in ran
        wanted = schedules.minutes(schedules.created_at, schedules.now - SECOND)
        assert ran == dict.fromkeys((at for at in wanted if at != last.due_at), 1)
        ahead = [task for task in schedules.placed() if task.state == "scheduled" and task.due_at > schedules.now]
        # The stopped occurrence's time has come, and no other placed task is due.
        assert (schedules.schedule()["runs_started"], bool(ahead)) == (len(ran) + 1, True)
