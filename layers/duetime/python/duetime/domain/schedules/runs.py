"""Lists a schedule's runs: which occurrences ran, are running, failed, were skipped or missed, or are planned."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RUNNING_SECONDS
from duetime.domain.schedules.run_history import RUN_BY_HAND
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.tasks.task import Cause
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.run_history import BegunRun, Remark
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import NotifyOn
    from duetime.domain.times import Millis


NOT_KEPT = "its task, if it had one, is no longer kept"
ARCHIVED = f"{NOT_KEPT}; the archive has it"


class RunStatus(StrEnum):
    """Status of an occurrence.

    Attributes:
        PLANNED: its time is in the future.
        WAITING: its time has come, but no attempt is running, because the occurrence is queued, paused, or waits for
            something else.
        SKIPPED: a calendar, the previous run, a pause or a change to the schedule prevented the occurrence.
        MISSED: the occurrence should have run but did not, for example because of an outage.
        EXPIRED: its task has been removed, so its outcome is unknown.
    """

    PLANNED = "planned"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    MISSED = "missed"
    EXPIRED = "expired"


_ENDS = {
    State.SUCCEEDED: RunStatus.SUCCEEDED,
    State.FAILED: RunStatus.FAILED,
    State.ROLLED_BACK: RunStatus.FAILED,
    State.CANCELLED: RunStatus.CANCELLED,
}


@frozen
class ScheduleRun:
    """An occurrence and its status.

    Attributes:
        nominal: the time for which it was scheduled.
        cause: why the occurrence's task exists, or would exist.
        task: its task; `None` if it has no task.
        reason: why it did not run, or did not succeed.
    """

    nominal: Millis
    status: RunStatus
    cause: Cause = Cause.SCHEDULE
    task: Task | None = None
    reason: str = ""


@frozen
class ScheduleStatus:
    """Current status of a schedule, with its started runs and the next run.

    Attributes:
        latest_run: the latest run that was started by the timing or by request; `None` if unknown.
        runs_started: number of started runs, excluding backfills. If runs are neither limited in number nor kept from
            overlapping, starts are not counted, and this is the number of runs whose time has come.
        next_at: when the next run is due; `None` if there is no next run, or its time is unknown.
    """

    stored: StoredSchedule
    latest_run: BegunRun | None
    runs_started: int
    next_at: Millis | None


@frozen
class RunPage:
    """A page of runs, newest first.

    Attributes:
        stored: the schedule.
        since: the first listed due time.
        complete_since: every occurrence from this time on is listed.
        kept_since: tasks that ended before this time may have been removed.
        is_archived: whether removed tasks are in the archive.
        after: where the next page starts; `None` if there are no more runs.
    """

    stored: StoredSchedule
    runs: Sequence[ScheduleRun]
    since: Millis
    complete_since: Millis
    kept_since: Millis
    is_archived: bool
    after: TaskId | None


def run_of_task(task: Task, now: Millis) -> ScheduleRun:
    """The run of an occurrence that has a task."""
    ref = task.schedule_ref
    nominal, cause = (task.due_at, Cause.SCHEDULE) if ref is None else (ref.nominal, ref.cause)
    status, reason = _ENDS.get(task.state), ""
    if task.was_dropped and task.error is not None:
        status, reason = RunStatus.SKIPPED, task.error.message
    elif status is RunStatus.CANCELLED and task.cancellation is not None:
        reason = task.cancellation.by.reason
    elif status is RunStatus.FAILED and task.error is not None:
        reason = f"{task.error.type}: {task.error.message}"
    elif task.state in LEASED:
        status = RunStatus.RUNNING
    elif status is None:
        status = RunStatus.PLANNED if not task.attempt_history and task.due_at > now else RunStatus.WAITING
        reason = task.waiting_for or ""
    return ScheduleRun(nominal, status, cause, task, reason)


def run_without_task(
    stored: StoredSchedule, occurrence: Occurrence, task: Task | None, kept_since: Millis, not_kept: str
) -> ScheduleRun | None:
    """The run of an occurrence of the current timing whose task is not listed.

    Args:
        stored: the schedule.
        occurrence: an occurrence whose time has come.
        task: the occurrence's task, if it exists; a deleted task leaves a placeholder.
        kept_since: tasks that were due before this time may have been removed.
        not_kept: the reason to show if the task may have been removed.

    Returns: The run; `None` if the occurrence's task is listed, if the schedule has not placed the occurrence yet, or
    if the schedule had ended.
    """
    if task is not None and not task.erased:
        return None
    remark = next((each for each in reversed(stored.log) if each.key == occurrence.key), None)
    if not occurrence.runs:
        return ScheduleRun(occurrence.nominal, RunStatus.SKIPPED, reason=remark.note if remark else occurrence.note)
    if task is not None:
        return ScheduleRun(occurrence.nominal, RunStatus.EXPIRED, reason="its task was deleted")
    if _is_beyond_the_last(stored, occurrence):
        return None
    if occurrence.nominal > stored.done:
        if stored.state is not ScheduleState.PAUSED:
            return None
        return ScheduleRun(occurrence.nominal, RunStatus.SKIPPED, reason="the schedule is paused")
    if occurrence.due_at < kept_since:
        return ScheduleRun(occurrence.nominal, RunStatus.EXPIRED, reason=not_kept)
    return ScheduleRun(occurrence.nominal, RunStatus.MISSED, reason=remark.note if remark else "")


def _is_beyond_the_last(stored: StoredSchedule, occurrence: Occurrence) -> bool:
    """Whether an occurrence comes after the last run that its schedule allows."""
    last = stored.last_run
    return stored.remaining_runs == 0 and last is not None and occurrence.nominal > last.nominal


def runs_remarked(
    remarks: Iterable[Remark], known: frozenset[Millis], after: Millis, before: Millis
) -> Iterator[ScheduleRun]:
    """The skipped and missed runs that remarks describe, for occurrences of earlier timings that have no tasks.

    Args:
        remarks: remarks of the schedule.
        known: times of the occurrences whose tasks are listed.
        after: the first instant of the period.
        before: the end of the period, exclusive.
    """
    for remark in remarks:
        if not remark.key or remark.note.startswith(RUN_BY_HAND):
            continue
        nominal = remark.nominal
        if after <= nominal < before and nominal not in known:
            status = RunStatus.MISSED if remark.is_about_missed else RunStatus.SKIPPED
            yield ScheduleRun(nominal, status, reason=remark.note)


RUNS_COMPARED = 10
"""Number of a schedule's latest occurrences whose run durations are compared."""
FEWEST_COMPARED = 3
"""Minimum number of successful runs among the compared runs; with fewer successes, there is no limit for long runs."""


def with_usual_duration(notify_on: NotifyOn | None, factor: float | None, runs: Iterable[Task]) -> NotifyOn | None:
    """Notices with a limit for long runs, which is a multiple of the median duration unless a shorter limit is set.

    Args:
        notify_on: the notices of the schedule's tasks; `None` if there are none.
        factor: the multiple; `None` for no limit.
        runs: earlier tasks of the schedule; a run's duration is the duration of its last attempt.

    Returns:
        The notices; unchanged if too few of the runs have succeeded.
    """
    # A run without an attempt, such as an approval, has no duration.
    durations = [run.attempt_history[-1].took for run in runs if run.state is State.SUCCEEDED and run.attempt_history]
    if notify_on is None or factor is None or len(durations) < FEWEST_COMPARED:
        return notify_on
    limit = min(max(1, math.ceil(median(durations) * factor / SECOND)), MAX_RUNNING_SECONDS)
    given = notify_on.running_seconds
    return replace(notify_on, running_seconds=limit if given is None else min(limit, given))
