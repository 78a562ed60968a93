"""The pause of a schedule and its end: what is due meanwhile is dropped, and what is due after it runs.

A calendar or jitter may have an occurrence run long after its instant. It never runs after the next instant, so there
is at most one whose instant is past and that is still to run: the one of the latest instant.
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
    """The occurrence of the latest instant, of a schedule whose occurrences can be due after their instants."""
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
    """Held, with the reason why.

    Args:
        stored: the schedule, knowing what its user stopped.
        now: the time.
        reason: in words.
        calendars: as far as they are known.
        by: who requested it.
        still_due: what was placed and has a past instant, and is due after `now`.
    """
    held = retimed(stored, now, calendars)
    held = replace(
        held,
        state=ScheduleState.PAUSED,
        paused_reason=reason[:MAX_NOTE_LENGTH],
        # What the trigger was late to place can still be due after the pause.
        done=min(stored.done, held.done),
    )
    held = with_stopped(held, [*still_due, *held.stopped]) if still_due else held
    held = held.after_action(ScheduleAction.PAUSED, replace(by, reason=held.paused_reason), now)
    return held.remarked(now, "", f"paused: {reason}" if reason else "paused")


def is_dropped(task: Task, now: Millis) -> bool:
    """Whether an occurrence that was placed before a pause is dropped by its end: it was due, and has not begun."""
    return not is_stopped(task) and (task.finished_at is not None or task.due_at <= now)


def resumed(
    stored: StoredSchedule,
    now: Millis,
    calendars: Sequence[Calendar],
    dropped: Sequence[StoppedOccurrence],
    by: Attribution,
) -> StoredSchedule:
    """Active again from now on: what was due while it was held is not caught up.

    Args:
        stored: the schedule.
        now: the time.
        calendars: that it names.
        dropped: what was placed before the pause and was due during it.
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
