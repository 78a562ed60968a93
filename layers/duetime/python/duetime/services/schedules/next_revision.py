"""A schedule in its next revision: what becomes of the occurrences that are due or placed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.schedules.occurrence_actions import kept_by
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_changes import edited, rescheduled, retimed, with_new_timing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.definition import ScheduleSpec
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.times import Millis


def with_spec(stored: StoredSchedule, spec: ScheduleSpec, now: Millis, calendars: Sequence[Calendar]) -> StoredSchedule:
    """In its next revision, with another specification; active again if it had ended.

    Args:
        stored: the schedule, knowing what its user stopped.
        spec: what it is to be; of the changes of single occurrences it keeps those that its timing means.
        now: the time.
        calendars: as far as they are known.
    """
    has_same_timing = spec.has_timing_of(stored.spec)
    if spec.changed_occurrences and spec.changed_occurrences == stored.spec.changed_occurrences and not has_same_timing:
        # Others that it names now are not known here.
        known = calendars if spec.calendars == stored.spec.calendars else ()
        schedule = replace(stored, spec=spec).schedule(known)
        spec = replace(spec, changed_occurrences=kept_by(schedule, spec.changed_occurrences, now))
    after = _in_next_revision(stored, spec)(stored, now, calendars)
    after = replace(after, spec=replace(spec, task=replace(spec.task, payload=b"")))
    if not has_same_timing:
        after = with_new_timing(after)
    elif stored.state is ScheduleState.PAUSED:
        # What is due after the pause runs, whenever its instant was.
        after = replace(after, done=stored.done)
    return replace(after, state=ScheduleState.ACTIVE) if after.state is ScheduleState.ENDED else after


def _in_next_revision(
    stored: StoredSchedule, spec: ScheduleSpec
) -> Callable[[StoredSchedule, Millis, Sequence[Calendar]], StoredSchedule]:
    """How an update brings a schedule to its next revision: what becomes of the occurrences that were due by now."""
    is_permanent = stored.is_permanent or spec.written.permanent is not None
    if stored.state is ScheduleState.ACTIVE and spec.has_timing_of(stored.spec):
        return edited
    return retimed if is_permanent or stored.state is ScheduleState.PAUSED else rescheduled
