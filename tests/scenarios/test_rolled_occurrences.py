"""Calendars can roll occurrences to another day, and each rolled time runs once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import DAY, to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import PATH, Schedules
from tests.scenarios.test_moved_occurrences import is_save
from tests.scenarios.test_stopped_occurrences import stop

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

FRIDAY = 1_795_802_400_000 - 10 * MINUTE
"""Ten minutes before 18:00 on 27 November 2026, in UTC."""
WEEKENDS: dict[str, Any] = {"weekdays": ["sat", "sun"]}
OPEN: dict[str, Any] = {"dates": {"2000-01-01": ""}}
RUN = FRIDAY + 10 * MINUTE


class Rolled(Schedules):
    """A schedule for Saturdays at 18:00, which a calendar rolls to Friday at 18:00, ten minutes after the start."""

    def __init__(self) -> None:
        super().__init__(start=FRIDAY)

    def begin(self, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Create the schedule and its calendar."""
        self.put(WEEKENDS)
        self.make(**{"cron": "0 18 * * sat", "calendars": ["days"], "on_excluded": "previous_day", **fields})

    def put(self, calendar: dict[str, Any]) -> None:
        """Replace the calendar."""
        assert self.ask("PUT", "/v1/calendars/days", calendar).status in {200, 201}

    def place(self) -> Task:
        """Let time pass until the occurrence is placed."""
        assert self.run_until(self.placed, 15 * MINUTE)
        self.run(2 * SECOND)
        (task,) = self.placed()
        return task


def test_a_rolled_occurrence_runs_at_its_time_on_the_other_day() -> None:
    """The preview shows the rolled time, the task runs on Friday, and the explanation covers Saturday."""
    with Rolled() as schedules:
        schedules.begin(cron="0 18 * * fri,sat")
        first, second = schedules.schedule()["upcoming"][:2]
        assert (first["scheduled_at"], second["scheduled_at"]) == (to_iso(RUN), to_iso(RUN + 7 * DAY))
        assert first["note"] == "instead of 2026-11-28T18:00:00+00:00 (days: Saturday)"
        schedules.run(15 * MINUTE)
        (task,) = schedules.placed()
        assert schedules.ran() == {RUN: 1}
        assert task.schedule_ref is not None
        assert (task.schedule_ref.previous, task.schedule_ref.next) == (RUN - 7 * DAY, RUN + 7 * DAY)
        saturday = schedules.ask("GET", f"{PATH}/explain", query=f"at={to_iso(RUN + DAY)}").body
        assert saturday["outcome"] == "excluded"
        assert "it runs at 2026-11-27T18:00:00+00:00 instead of 2026-11-28T18:00:00+00:00" in saturday["text"]


@pytest.mark.parametrize("how", ["cancel", "pause"])
def test_a_stopped_rolled_occurrence_stays_stopped_after_calendar_changes(how: str) -> None:
    """A stopped rolled occurrence does not run after the calendar is replaced and restored."""
    with Rolled() as schedules:
        schedules.begin(remaining_runs=3)
        stop(schedules, schedules.place(), how)
        schedules.put(OPEN)
        assert schedules.amend(task={"type": PLAIN, "payload": 1}).status == 200
        schedules.put(WEEKENDS)
        assert schedules.amend(catch_up_seconds=100).status == 200
        schedules.run(5 * MINUTE)
        assert schedules.ran() == {}
        assert schedules.schedule()["remaining_runs"] == 3


def test_a_dropped_occurrence_uses_up_no_run_whatever_the_calendar() -> None:
    """A placed occurrence that a change drops uses up no run, even if its calendar no longer rolls it."""
    with Rolled() as schedules:
        schedules.begin(remaining_runs=3)
        schedules.place()
        schedules.put(OPEN)
        assert schedules.amend(task={"type": PLAIN, "payload": 1}).status == 200
        schedules.run(5 * MINUTE)
        assert schedules.ran() == {}
        assert (schedules.schedule()["remaining_runs"], schedules.schedule()["runs_started"]) == (3, 0)


def test_a_rolled_occurrence_runs_once_despite_a_replaced_calendar() -> None:
    """An occurrence runs once if its trigger died after placing it and a new calendar no longer has its time."""
    with Rolled() as schedules:
        schedules.begin()
        died = schedules.once(is_save, lambda call: call.machine.die())
        assert schedules.run_until(lambda: died, 20 * MINUTE)
        schedules.put(OPEN)
        schedules.run(RUN + 5 * MINUTE - schedules.now)
        assert schedules.ran() == {RUN: 1}


def test_a_new_calendar_that_rolls_into_the_past_causes_no_run() -> None:
    """A new calendar that rolls a time into the past causes no run."""
    with Rolled() as schedules:
        schedules.begin(cron="5 18 * * sat", catch_up_seconds=3600)
        schedules.put(OPEN)
        schedules.run(RUN + 6 * MINUTE - schedules.now)
        schedules.put(WEEKENDS)
        schedules.run(HOUR)
        assert schedules.ran() == {}
        assert schedules.schedule()["upcoming"][0]["scheduled_at"] == to_iso(RUN + 5 * MINUTE + 7 * DAY)


def test_a_rolled_occurrence_is_changed_by_its_rolled_time() -> None:
    """A change to a rolled occurrence must name its rolled time; its original time is refused."""
    with Rolled() as schedules:
        schedules.begin()
        path, moved = "occurrences/update", to_iso(RUN + 4 * MINUTE)
        assert schedules.control(path, {"scheduled_at": to_iso(RUN + DAY), "action": "skip"}).status == 422
        assert schedules.control(path, {"scheduled_at": to_iso(RUN), "action": "move", "due_at": moved}).status == 200
        schedules.run(20 * MINUTE)
        assert schedules.ran() == {RUN + 4 * MINUTE: 1}


def test_a_backfill_runs_a_rolled_occurrence_at_its_rolled_time() -> None:
    """After a pause on Friday, a backfill runs the rolled occurrence once, at the rolled time."""
    with Rolled() as schedules:
        schedules.begin()
        assert schedules.control("pause").status == 200
        schedules.run(15 * MINUTE)
        assert schedules.control("resume").status == 200
        period = {"scheduled_after": to_iso(RUN - HOUR), "scheduled_before": to_iso(RUN + 2 * MINUTE)}
        assert schedules.control("backfills", period).status == 201
        schedules.run(3 * MINUTE)
        assert schedules.ran() == {RUN: 1}
