"""Whether an occurrence may begin, given the others of its schedule. Decisions as values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import OVERLAP_CHECK_INTERVAL
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_results import Postponed, SkipCode, Skipped
from duetime.domain.tasks.parent_references import Cause
from duetime.domain.tasks.states import State
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.parent_references import ScheduleRef
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

_STILL_GOING = " is still going"


@dataclass(frozen=True, slots=True)
class StartDecision:
    """What happens to an occurrence that wants to begin.

    Attributes:
        verdict: `None` if it may begin.
        activity: what the schedule must remember first; the verdict holds only if nobody wrote it in between.
    """

    verdict: Postponed | Skipped | None
    activity: Activity


def may_overlap(stored: StoredSchedule) -> bool:
    """Whether any number of a schedule's occurrences may run at once."""
    return stored.spec.overlap is Overlap.ALLOW_ALL and not stored.is_permanent


def skipped(stored: StoredSchedule, schedule_ref: ScheduleRef) -> Skipped | None:
    """Why an occurrence is skipped, whatever else runs; one that its owner triggered or backfilled never is."""
    if not schedule_ref.is_by_timing:
        return None
    if stored.state is ScheduleState.PAUSED:
        return Skipped(f"the schedule {stored.name!r} is paused", SkipCode.PAUSED)
    if not stored.is_current(schedule_ref):
        reason = f"the schedule {stored.name!r} was changed or paused after this was placed"
        return Skipped(reason, SkipCode.CHANGED)
    return None


def skipped_before(stored: StoredSchedule, schedule_ref: ScheduleRef) -> Skipped | None:
    """Why an occurrence was skipped for the run before it, if that is remarked: its worker died before it wrote so."""
    key = stored.spec.clock.zone.text_at(schedule_ref.nominal)
    notes = (each.note for each in stored.log if each.key == key and _STILL_GOING in each.note)
    reason = next(notes, None)
    return None if reason is None else Skipped(reason, SkipCode.OVERLAP)


def start_decision(
    stored: StoredSchedule, task: Task, activity: Activity, active: Task | None, buffered: Task | None, now: Millis
) -> StartDecision:
    """Let one occurrence begin at a time; where one may wait, it is the next.

    Args:
        stored: a schedule whose occurrences must not overlap.
        task: the occurrence that wants to begin; not `activity.active`.
        activity: of the schedule, as it was read.
        active: the task of `activity.active`, unless it has ended.
        buffered: the task of `activity.buffered`, unless it has ended or is `task` itself.
        now: the time.
    """
    if active is None and buffered is None:
        return StartDecision(None, replace(activity, active=task.id, buffered=None))
    if stored.spec.overlap is not Overlap.BUFFER_ONE and not stored.is_permanent:
        reason = f"the run of {_nominal(active or buffered)}{_STILL_GOING}"
        return StartDecision(Skipped(reason, SkipCode.OVERLAP), activity)
    if active is not None and buffered is not None:
        reason = f"the run of {_nominal(active)}{_STILL_GOING}, and that of {_nominal(buffered)} waits"
        return StartDecision(Skipped(reason, SkipCode.OVERLAP), activity)
    # If the active one has ended, the one that waits is next, and this one takes its place in the buffer.
    first = activity.active if buffered is None else buffered.id
    verdict = Postponed(now + OVERLAP_CHECK_INTERVAL, f"the run of {_nominal(active or buffered)}")
    return StartDecision(verdict, replace(activity, active=first, buffered=task.id))


def pauses_schedule(stored: StoredSchedule, task: Task) -> bool:
    """Whether the outcome of an occurrence pauses its schedule; a backfill's does not."""
    if not stored.spec.pause_on_failure or task.schedule_ref is None or task.schedule_ref.cause is Cause.BACKFILL:
        return False
    was_undone = task.state is State.ROLLED_BACK and any(
        record.outcome is AttemptOutcome.FAILED for record in task.attempt_history
    )
    return task.state is State.FAILED or was_undone


def _nominal(task: Task | None) -> str:
    """Which occurrence a task is, in words."""
    return "" if task is None else to_iso(task.schedule_ref.nominal if task.schedule_ref else task.due_at)
