"""Pausing and resuming a schedule: occurrences due during the pause are dropped, later ones run.

With a calendar or jitter, an occurrence can run long after its instant, but never after the next instant. So at most
one occurrence has a past instant and still runs: the latest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_NOTE_LENGTH
from duetime.domain.schedules.occurrences import judged, previous_nominal
from duetime.domain.schedules.revisions import is_stopped
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_changes import retimed, with_stopped
from duetime.domain.schedules.schedule_history import ScheduleAction
from duetime.domain.tasks.action_history import BY_SYSTEM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.revisions import StoppedOccurrence
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


def latest_occurrence(stored: StoredSchedule, now: Millis, calendars: Sequence[Calendar] = ()) -> Occurrence | None:
    """The occurrence of the latest instant, for a schedule whose occurrences can be due after their instants."""
    if stored.is_permanent or not (stored.spec.is_delayed or stored.spec.calendars):
        return None
    schedule = stored.schedule(calendars)
    nominal = previous_nominal(schedule, now + 1)
    return None if nominal is None else judged(schedule, nominal)


def paused(
    stored: StoredSchedule,
    now: Millis,
    reason: str,
    calendars: Sequence[Calendar] = (),
    by: Attribution = BY_SYSTEM,
    still_due: Sequence[StoppedOccurrence] = (),
) -> StoredSchedule:
    """A paused copy with the reason.

    Args:
        stored: the schedule, including occurrences that its user stopped.
        now: the time.
        reason: in words.
        calendars: the known ones.
        by: who requested it.
        still_due: placed occurrences with a past instant that are due after `now`.
    """
    held = retimed(stored, now, calendars)
    held = replace(
        held,
        state=ScheduleState.PAUSED,
        paused_reason=reason[:MAX_NOTE_LENGTH],
        # Occurrences that the trigger placed late can still be due after the pause.
        done=min(stored.done, held.done),
    )
    held = with_stopped(held, [*still_due, *held.stopped]) if still_due else held
    held = held.after_action(ScheduleAction.PAUSED, replace(by, reason=held.paused_reason), now)
    return held.remarked(now, "", f"paused: {reason}" if reason else "paused")


def is_dropped(task: Task, now: Millis) -> bool:
    """Whether the end of a pause drops an occurrence placed before it: it was due, and has not started."""
    return not is_stopped(task) and (task.finished_at is not None or task.due_at <= now)


def resumed(
    stored: StoredSchedule,
    now: Millis,
    calendars: Sequence[Calendar],
    dropped: Sequence[StoppedOccurrence],
    by: Attribution,
) -> StoredSchedule:
    """An active copy: occurrences that were due during the pause are not caught up.

    Args:
        stored: the schedule.
        now: the time.
        calendars: its calendars.
        dropped: occurrences placed before the pause that were due during it.
        by: who requested it.
    """
    found = latest_occurrence(stored, now, calendars)
    remaining = None if stored.remaining_runs is None else stored.remaining_runs + len(dropped)
    owed = None
    if found is not None and found.nominal > stored.done and found.runs and found.due_at > now and remaining != 0:
        owed, remaining = found, None if remaining is None else remaining - 1
    after = replace(
        stored,
        state=ScheduleState.ACTIVE,
        paused_reason="",
        done=now,
        updated_at=now,
        version=stored.version + 1,
        owed=owed,
        remaining_runs=remaining,
        runs_started=max(0, stored.runs_started - len(dropped)),
        stopped=tuple(each for each in stored.stopped if each not in dropped),
    )
    return after.after_action(ScheduleAction.RESUMED, by, now)
