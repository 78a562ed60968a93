"""Users skip, move, run early or restore single occurrences, and each occurrence runs once, as requested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import to_iso
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.schedules import Schedules

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from tests.simulation.users import Reply


def change(schedules: Schedules, at: Millis, action: str, due_at: Millis | None = None) -> Reply:
    """Request a change to the occurrence at an instant."""
    moved = {} if due_at is None else {"due_at": to_iso(due_at)}
    return schedules.control("occurrences/update", {"scheduled_at": to_iso(at), "action": action, **moved})


def hourly() -> tuple[Schedules, Millis]:
    """Create an hourly schedule; return it with its first scheduled time."""
    schedules = Schedules()
    schedules.make(cron="0 * * * *", jitter_seconds=600)
    return schedules, (schedules.now // HOUR + 1) * HOUR


@pytest.mark.parametrize("is_paused", others_slow([False, True]))
def test_each_changed_occurrence_runs_once_as_requested(is_paused: bool) -> None:  # noqa: FBT001 - a test parameter
    """Moved, early and restored occurrences run once, and skipped ones do not run, even if there is a pause."""
    schedules, first = hourly()
    with schedules:
        earlier, later = first + 2 * HOUR - 50 * MINUTE, first + 5 * HOUR + 7 * MINUTE
        assert change(schedules, first + 3 * HOUR, "run_now").status == 200
        run_at = schedules.now
        assert change(schedules, first + HOUR, "skip").status == 200
        assert change(schedules, first + 2 * HOUR, "move", earlier).status == 200
        assert change(schedules, first + 4 * HOUR, "move", later).status == 200
        assert change(schedules, first + 6 * HOUR, "skip").status == 200
        shown = change(schedules, first + 6 * HOUR, "restore").body
        assert [each["due_at"] for each in shown["changed_occurrences"][:2]] == [None, to_iso(earlier)]
        schedules.time.run_until(first + 20 * MINUTE)
        if is_paused:
            assert schedules.control("pause").status == 200
            assert schedules.control("resume").status == 200
        schedules.time.run_until(first + 6 * HOUR + 30 * MINUTE)
        ran = schedules.ran()
        assert set(ran.values()) == {1}
        by_hand = next(iter(ran))
        assert run_at < by_hand <= run_at + 10 * SECOND
        assert list(ran)[1:] == [first, earlier, first + 5 * HOUR, later, first + 6 * HOUR]
        exact = [effect.at for effect in schedules.effects if effect.at in range(later, later + SECOND)]
        assert len(exact) == 1
        assert schedules.schedule()["runs_started"] == len(ran)


def test_the_queued_task_of_a_moved_occurrence_does_not_run() -> None:
    """A moved occurrence's queued task is dropped, and the occurrence runs once at its new time."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(2 * MINUTE)
        at = (schedules.now // MINUTE + 2) * MINUTE
        assert any(task.schedule_ref and task.schedule_ref.nominal == at for task in schedules.placed())
        assert change(schedules, at, "move", at + 20 * SECOND).status == 200
        schedules.run(5 * MINUTE)
        ran = schedules.ran()
        assert (at in ran, ran[at + 20 * SECOND], set(ran.values())) == (False, 1, {1})
        known = schedules.ask("GET", "/v1/schedules/nightly/occurrences", None).status
        assert known == 200


def test_a_new_timing_keeps_only_the_changes_of_its_own_occurrences() -> None:
    """After the timing is changed, the skipped occurrences that the new timing includes stay skipped."""
    schedules, first = hourly()
    with schedules:
        for at in (first + HOUR, first + 2 * HOUR):
            assert change(schedules, at, "skip").status == 200
        kept = first + HOUR if (first + HOUR) // HOUR % 2 == 0 else first + 2 * HOUR
        changed = schedules.amend(cron="0 */2 * * *").body
        assert [each["scheduled_at"] for each in changed["changed_occurrences"]] == [to_iso(kept)]


def test_an_error_for_an_invalid_change_of_an_occurrence_names_the_field() -> None:
    """The error for an invalid change to an occurrence names the field; repeating a change has no effect."""
    schedules, first = hourly()
    with schedules:
        refusals = [
            (change(schedules, first + MINUTE, "skip"), "scheduled_at", "is not a time of the schedule"),
            (change(schedules, first - HOUR, "skip"), "scheduled_at", "is not in the future"),
            (change(schedules, first, "move", first + HOUR), "due_at", "is the time of another occurrence"),
            (change(schedules, first, "move", first), "due_at", "is the occurrence's own time: use the action restore"),
            (change(schedules, first, "move", schedules.now - MINUTE), "due_at", "should be in the future"),
            (change(schedules, first, "move"), "due_at", "should be given with the action move"),
            (change(schedules, first, "skip", first + MINUTE), "due_at", "should be given with the action move"),
        ]
        for reply, field, reason in refusals:
            assert reply.status == 422, reply.body
            (fault,) = reply.body["errors"]
            assert (fault["field"], reason in fault["reason"]) == (field, True), reply.body
        version = change(schedules, first, "skip").body["version"]
        assert change(schedules, first, "skip").body["version"] == version
        assert change(schedules, first + HOUR, "restore").body["version"] == version
