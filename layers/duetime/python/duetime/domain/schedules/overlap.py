"""Decides whether an occurrence may start, given the other runs of its schedule. Decisions are returned as values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_WAITING_RUNS
from duetime.domain.operating_parameters import OVERLAP_CHECK_INTERVAL
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_results import Postponed, SkipCode, Skipped
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause
from duetime.domain.tasks.waits import has_awaited_target
from duetime.domain.times import to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.run_history import Activity
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import ScheduleRef, Task
    from duetime.domain.times import Millis

_STILL_GOING = " is still running"
_CAME_SINCE = " replaces it"
_WAITING_LIMITS = {Overlap.BUFFER_ONE: 1, Overlap.BUFFER_ALL: MAX_WAITING_RUNS}
_LONGEST_CHECK = 10
"""Longest interval between checks of an occurrence far back in the queue, as a multiple of `OVERLAP_CHECK_INTERVAL`."""
LATEST_RUNS = frozenset({Overlap.CANCEL_OTHER, Overlap.REPLACE_OTHER})
"""Policies under which a later occurrence replaces an earlier occurrence."""


@frozen
class OtherRuns:
    """The other runs of a schedule, as seen by an occurrence that wants to start.

    Attributes:
        latest: the run with the latest instant among the admitted and waiting runs; `None` if there are no other runs.
        ahead: the first open run in the queue, for which the occurrence waits; `None` if no run is
            ahead.
    """

    ahead: Task | None = None
    latest: Task | None = None


@frozen
class StartDecision:
    """The decision about an occurrence that wants to start.

    Attributes:
        verdict: why the occurrence may not start; `None` if it may start.
        activity: the activity to store before acting on the verdict; if another activity was stored in between, the
            verdict is invalid.
        stop: the run that must be asked to stop before `activity` is stored.
    """

    verdict: Postponed | Skipped | None
    activity: Activity
    stop: Task | None = None


def may_overlap(stored: StoredSchedule) -> bool:
    """Whether any number of a schedule's occurrences may run concurrently."""
    return stored.spec.overlap is Overlap.ALLOW_ALL and not stored.is_permanent


def for_run(stored: StoredSchedule, schedule_ref: ScheduleRef) -> StoredSchedule:
    """A copy of the schedule with the overlap policy of one of its runs. A backfill's runs have a separate policy."""
    if schedule_ref.cause is not Cause.BACKFILL:
        return stored
    overlap = Overlap.BUFFER_ALL if schedule_ref.is_buffered else Overlap.ALLOW_ALL
    return replace(stored, spec=replace(stored.spec, overlap=overlap))


def has_begun(task: Task) -> bool:
    """Whether an occurrence runs to its end, regardless of changes to its schedule.

    An occurrence has also begun if it waits, or has waited, for an approval or an event.
    """
    return bool(task.attempt_history) or has_awaited_target(task)


def skipped(stored: StoredSchedule, schedule_ref: ScheduleRef) -> Skipped | None:
    """Why an occurrence is skipped, regardless of other runs; runs that an owner requested are never skipped."""
    if not schedule_ref.is_by_timing:
        return None
    if stored.state is ScheduleState.PAUSED:
        return Skipped(f"the schedule {stored.name!r} is paused", SkipCode.PAUSED)
    if not stored.is_current(schedule_ref):
        reason = f"the schedule {stored.name!r} was changed or paused after this run was planned"
        return Skipped(reason, SkipCode.CHANGED)
    return None


def skipped_before(stored: StoredSchedule, schedule_ref: ScheduleRef) -> Skipped | None:
    """Why an occurrence was skipped in favor of another run, if its worker stored the remark but not the outcome."""
    if schedule_ref.cause is Cause.BACKFILL:
        # The remark is about the run that the timing itself placed at this instant.
        return None
    key = stored.spec.clock.zone.text_at(schedule_ref.nominal)
    notes = (
        each.note for each in stored.log if each.key == key and (_STILL_GOING in each.note or _CAME_SINCE in each.note)
    )
    reason = next(notes, None)
    return None if reason is None else Skipped(reason, SkipCode.OVERLAP)


def waiting_limit(stored: StoredSchedule) -> int:
    """Maximum number of occurrences that can wait for the running occurrence."""
    return 1 if stored.is_permanent else _WAITING_LIMITS.get(stored.spec.overlap, 0)


def start_decision(
    stored: StoredSchedule, task: Task, activity: Activity, others: OtherRuns, now: Millis
) -> StartDecision:
    """Decides whether an occurrence starts. Occurrences run one at a time; if they may wait, they run in queue order.

    Args:
        stored: a schedule whose occurrences must not overlap.
        task: the occurrence that wants to start; not `activity.active`.
        activity: the schedule's activity as read.
        others: its other runs.
        now: the time.
    """
    if stored.spec.overlap in LATEST_RUNS and not stored.is_permanent:
        return _for_the_latest(stored, task, activity, others, now)
    queue, ahead = _behind(activity, task.id), others.ahead
    if ahead is None:
        return StartDecision(None, replace(activity.with_begun(task, now), waiting=queue))
    # All runs before `ahead` have ended.
    waiting = _behind(activity, ahead.id)
    if task.id not in waiting:
        if len(waiting) >= (most := waiting_limit(stored)):
            if task.schedule_ref is not None and task.schedule_ref.is_buffered:
                # An occurrence of a backfill is not dropped, but requests a place in the queue again.
                later = now + _LONGEST_CHECK * OVERLAP_CHECK_INTERVAL
                return StartDecision(Postponed(later, f"the run of {_nominal(ahead)}"), activity)
            reason = f"the run of {_nominal(ahead)}{_STILL_GOING}" + (f", and {len(waiting)} waiting" if most else "")
            return StartDecision(Skipped(reason, SkipCode.OVERLAP), activity)
        # Missed occurrences arrive in any order, but can be sorted because their ids start with the original due times.
        waiting = tuple(sorted((*waiting, task.id)))
    # Each occurrence is notified when the previous occurrence ends, and also checks by itself in case the notification
    # is lost.
    position = min(waiting.index(task.id) + 1, _LONGEST_CHECK)
    verdict = Postponed(now + position * OVERLAP_CHECK_INTERVAL, f"the run of {_nominal(ahead)}")
    if ahead.id != activity.active:
        # `ahead` has not been admitted, so it is still in the queue, and is counted when it starts.
        waiting = (ahead.id, *waiting)
    return StartDecision(verdict, replace(activity, waiting=waiting))


def _for_the_latest(
    stored: StoredSchedule, task: Task, activity: Activity, others: OtherRuns, now: Millis
) -> StartDecision:
    """Lets only the latest occurrence run: the previous run is asked to stop, and waiting occurrences are skipped."""
    if others.latest is not None and _instant(others.latest) > _instant(task):
        return StartDecision(Skipped(f"the run of {_nominal(others.latest)}{_CAME_SINCE}", SkipCode.OVERLAP), activity)
    running = others.ahead if others.ahead is not None and others.ahead.id == activity.active else None
    if running is None or stored.spec.overlap is Overlap.REPLACE_OTHER:
        return StartDecision(None, replace(activity.with_begun(task, now), waiting=()), running)
    verdict = Postponed(now + OVERLAP_CHECK_INTERVAL, f"the run of {_nominal(running)}")
    return StartDecision(verdict, replace(activity, waiting=(task.id,)), running)


def no_run_left(stored: StoredSchedule, schedule_ref: ScheduleRef, activity: Activity) -> Skipped | None:
    """Why an occurrence may not start because no runs are left; `None` if it may start.

    Only started runs are counted, so too many runs can be placed if a late run was wrongly assumed to be lost.
    """
    if stored.runs_limit is None or not schedule_ref.is_by_timing or activity.begun < stored.runs_limit:
        return None
    return Skipped(f"no run was left: {stored.runs_limit} have started", SkipCode.NO_RUNS_LEFT)


def _behind(activity: Activity, task_id: TaskId) -> tuple[TaskId, ...]:
    """The occurrences that wait behind a run; empty for an unknown run."""
    if task_id == activity.active:
        return activity.waiting
    return activity.waiting[activity.waiting.index(task_id) + 1 :] if task_id in activity.waiting else ()


def pauses_schedule(stored: StoredSchedule, task: Task) -> bool:
    """Whether an occurrence's outcome pauses its schedule; the outcomes of a backfill's runs do not pause it."""
    if not stored.spec.pause_on_failure or task.schedule_ref is None or task.schedule_ref.cause is Cause.BACKFILL:
        return False
    was_undone = task.state is State.ROLLED_BACK and any(
        record.outcome is AttemptOutcome.FAILED for record in task.attempt_history
    )
    return task.state is State.FAILED or was_undone


def _instant(task: Task) -> Millis:
    return task.schedule_ref.nominal if task.schedule_ref else task.due_at


def _nominal(task: Task) -> str:
    """Describes which occurrence a task runs."""
    return to_iso(_instant(task))
