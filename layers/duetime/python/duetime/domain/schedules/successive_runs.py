"""Computes a permanent schedule's chain of runs, in which each run is scheduled when the previous run has ended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.schedules.calendars import next_working_moment
from duetime.domain.schedules.occurrences import Occurrence
from duetime.domain.schedules.run_history import LastRun
from duetime.domain.schedules.schedule import ScheduleState, next_permanent_run
from duetime.domain.schedules.timings import Permanent

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


def run_of(stored: StoredSchedule, nominal: Millis) -> Occurrence:
    """A permanent schedule's run at an instant."""
    return Occurrence(nominal, nominal, nominal, stored.spec.clock.zone.text_at(nominal))


def first_run(schedule: Schedule, since: Millis) -> Millis | None:
    """The first run of a chain that starts at `since`; `None` if the schedule has no run."""
    pause = schedule.timing.pause if isinstance(schedule.timing, Permanent) else 0
    return _working(schedule, next_permanent_run(schedule, since - pause))


def run_after(schedule: Schedule, last: LastRun, ended_at: Millis) -> Millis | None:
    """The run after a run that has ended; `None` if there are no more runs."""
    at = next_permanent_run(schedule, ended_at)
    # The instant must differ from the previous run's instant, because instants identify runs.
    return _working(schedule, None if at is None else max(at, last.nominal + 1))


def continued(stored: StoredSchedule, nominal: Millis | None) -> StoredSchedule:
    """A copy in which the next run is scheduled, or which has ended if there is no next run."""
    if nominal is None:
        return replace(stored, state=ScheduleState.ENDED)
    remaining = stored.remaining_runs
    task_id = stored.id_of(run_of(stored, nominal))
    return replace(
        stored,
        last_run=LastRun(task_id, nominal, stored.revision_of(nominal)),
        remaining_runs=None if remaining is None else remaining - 1,
        runs_started=stored.runs_started + 1,
    )


def ended_at(task: Task, now: Millis) -> Millis:
    """When a run's last attempt ended, or else when its task ended; `now` if neither time is known."""
    if task.attempt_history and (line := task.attempt_history[-1]).started_at:
        return line.started_at + line.took
    return now if task.finished_at is None else task.finished_at


def _working(schedule: Schedule, at: Millis | None) -> Millis | None:
    if at is None or not schedule.calendars:
        return at
    moment = next_working_moment(schedule.calendars, at)
    if moment is None or (schedule.spec.end_at is not None and moment > schedule.spec.end_at):
        return None
    return moment
