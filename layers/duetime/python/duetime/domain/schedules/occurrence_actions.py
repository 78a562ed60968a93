"""Decides the changes or the error that result from a request to change a single occurrence.

Decisions are returned as values.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CHANGED_OCCURRENCES
from duetime.domain.operating_parameters import CHANGED_OCCURRENCE_LIFE, MAX_CLOCK_DIFFERENCE
from duetime.domain.schedules.definition import ChangedOccurrence, changed_of
from duetime.domain.times import SECOND, to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.times import Millis

CHANGED_OCCURRENCES = "changed_occurrences"
_SCHEDULED_AT, _DUE_AT = "scheduled_at", "due_at"
_NOW = SECOND
"""How far into the future "run now" moves an occurrence, so that its time has not passed when the change is stored."""


@frozen
class ManualRun:
    """A run of a schedule's task that the schedule's owner requests.

    Attributes:
        payload: JSON text in UTF-8 that replaces the schedule's payload; `None` to use the schedule's payload.
        due_at: when the run is due; `None` for `delay` after the request.
        delay: delay in milliseconds.
    """

    payload: bytes | None = None
    due_at: Millis | None = None
    delay: Millis = 0


class OccurrenceAction(StrEnum):
    """The action on one occurrence.

    Attributes:
        SKIP: the occurrence does not run.
        MOVE: the occurrence runs at another time.
        RUN_NOW: the occurrence runs now instead of at its time.
        RESTORE: the occurrence runs at its original time.
    """

    SKIP = "skip"
    MOVE = "move"
    RUN_NOW = "run_now"
    RESTORE = "restore"


@frozen
class OccurrenceRequest:
    """A request to change one occurrence.

    Attributes:
        nominal: the occurrence's instant in the timing.
        action: the requested action.
        due_at: the new time for `MOVE`; otherwise `None`.
    """

    nominal: Millis
    action: OccurrenceAction
    due_at: Millis | None = None

    def changes_of(self, schedule: Schedule, now: Millis) -> tuple[ChangedOccurrence, ...]:
        """The schedule's occurrence changes, including the requested change.

        Raises:
            FieldInvalid: the change is not possible; the message gives the reason.
        """
        before = schedule.spec.changed_occurrences
        at = now + _NOW if self.action is OccurrenceAction.RUN_NOW else self.due_at
        wanted = ChangedOccurrence(self.nominal, at)
        if self.action is OccurrenceAction.RESTORE:
            known = changed_of(before, self.nominal) is not None
            return without_change(schedule, self.nominal, now) if known else before
        return before if wanted in before else with_change(schedule, wanted, now)

    def is_ahead_of(self, changes: Iterable[ChangedOccurrence], now: Millis) -> bool:
        """Whether both the occurrence and its new time are in the future."""
        change = changed_of(changes, self.nominal)
        return min(self.nominal, self.nominal if change is None or change.at is None else change.at) > now


def with_change(schedule: Schedule, change: ChangedOccurrence, now: Millis) -> tuple[ChangedOccurrence, ...]:
    """The schedule's occurrence changes and a new change, which replaces any earlier change to the same occurrence.

    Raises:
        FieldInvalid: the occurrence does not exist or is in the past, or its new time is invalid.
    """
    others = without_change(schedule, change.nominal, now)
    if not _is_meant(schedule, change.nominal):
        raise FieldInvalid(_SCHEDULED_AT, "is not a time of the schedule", FaultCode.NOT_ALLOWED)
    if change.at is not None:
        _check_new_time(schedule, change, others, now)
    kept = [each for each in others if not _is_past(each, now)]
    if len(kept) >= MAX_CHANGED_OCCURRENCES:
        raise FieldInvalid(
            _SCHEDULED_AT,
            f"cannot be changed: {MAX_CHANGED_OCCURRENCES} other occurrences are changed already",
            FaultCode.OUT_OF_RANGE,
        )
    return tuple(sorted((*kept, change), key=lambda each: each.nominal))


def without_change(schedule: Schedule, nominal: Millis, now: Millis) -> tuple[ChangedOccurrence, ...]:
    """The schedule's occurrence changes without the change at `nominal`, which must be in the future.

    Raises:
        FieldInvalid: the occurrence or its new time is in the past or due within seconds, or its user stopped the
            occurrence.
    """
    before = changed_of(schedule.spec.changed_occurrences, nominal)
    if min(nominal, nominal if before is None or before.at is None else before.at) <= now + MAX_CLOCK_DIFFERENCE:
        raise FieldInvalid(_SCHEDULED_AT, "is not in the future: change its task instead", FaultCode.OUT_OF_RANGE)
    if nominal in schedule.stopped:
        raise FieldInvalid(_SCHEDULED_AT, "has a task that its user stopped, or ran early", FaultCode.CONFLICT)
    return tuple(each for each in schedule.spec.changed_occurrences if each.nominal != nominal)


def kept_by(schedule: Schedule, changes: Sequence[ChangedOccurrence], now: Millis) -> tuple[ChangedOccurrence, ...]:
    """The occurrence changes to keep under a new timing: past changes, and changes to occurrences in that timing."""
    return tuple(each for each in changes if each.nominal <= now or _is_meant(schedule, each.nominal))


def _check_new_time(
    schedule: Schedule, change: ChangedOccurrence, others: Sequence[ChangedOccurrence], now: Millis
) -> None:
    at, spec = change.at or 0, schedule.spec
    if at <= now:
        raise FieldInvalid(_DUE_AT, "should be in the future", FaultCode.OUT_OF_RANGE)
    if not (spec.start_at or 0) <= at <= (at if spec.end_at is None else spec.end_at):
        raise FieldInvalid(_DUE_AT, "should be between start_at and end_at of the schedule", FaultCode.OUT_OF_RANGE)
    if at == change.nominal:
        raise FieldInvalid(_DUE_AT, "is the occurrence's own time: use the action restore", FaultCode.CONFLICT)
    if _is_meant(schedule, at) or any(at in (each.nominal, each.at) for each in others):
        raise FieldInvalid(_DUE_AT, f"is the time of another occurrence, {to_iso(at)}", FaultCode.CONFLICT)


def _is_meant(schedule: Schedule, at: Millis) -> bool:
    """Whether the timing includes an instant, ignoring users' changes to occurrences."""
    return schedule.unchanged_recurrence.after(at - 1) == at


def _is_past(change: ChangedOccurrence, now: Millis) -> bool:
    """Whether it is certain that no task of a change is still pending."""
    return max(change.nominal, change.at or 0) < now - CHANGED_OCCURRENCE_LIFE
