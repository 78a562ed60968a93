"""What a schedule remembers of its runs: the latest, those that run now, backfills, remarks and expectations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.parent_references import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.backfill import Backfill, BackfillCursor
    from duetime.domain.tasks.parent_references import ScheduleRef
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
RUN_BY_HAND = "run by hand: task "
"""How a remark begins that tells of a run which its owner had started."""


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest occurrence that was placed, which may lie ahead.

    Attributes:
        revision: under which it was placed.
    """

    task_id: TaskId
    nominal: Millis
    revision: int


@dataclass(frozen=True, slots=True)
class BegunRun:
    """A run that has begun.

    Attributes:
        nominal: the instant that it stands for.
        started_at: when it began.
    """

    task_id: TaskId
    nominal: Millis
    started_at: Millis


def begun_run(task: Task) -> BegunRun | None:
    """The run that a task is, if its target was called; what its user deleted does not say."""
    if task.schedule_ref is None or (task.started_at is None and not task.attempt_history):
        return None
    started = [each.started_at for each in task.attempt_history[:1]] if task.started_at is None else [task.started_at]
    return BegunRun(task.id, task.schedule_ref.nominal, started[0])


@dataclass(frozen=True, slots=True)
class Remark:
    """Why something did not run, or what else happened to a schedule.

    Attributes:
        at: when that was found.
        key: the occurrence, or the first of several; empty if it is about none.
        note: why, in words.
    """

    at: Millis
    key: str
    note: str


@dataclass(frozen=True, slots=True)
class BackfillRun:
    """A backfill on its way.

    Attributes:
        occurrences: how many it has, those that a calendar excludes included.
        cursor: how far it has come; `None` before its first occurrence.
        finished_at: when the last of it was placed, or it was cancelled.
    """

    id: str
    backfill: Backfill
    occurrences: int
    cursor: BackfillCursor | None = None
    finished_at: Millis | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """Which runs of a schedule have begun: of one whose runs must not overlap, or whose number is limited.

    Attributes:
        uid: the schedule's; what another one of the same name has left is forgotten.
        active: the latest run that was let begin; it may have ended.
        waiting: those that wait for its end, in the order in which they begin; some may have ended.
        begun: how many runs of its timing were let begin.
        by_hand: how many runs that its user had started were let begin.
        latest: the latest run that was let begin.
        counted: those of them before `active` that may not have called their target yet, if their number is limited.
        version: of this value.
    """

    uid: TaskId | None = None
    active: TaskId | None = None
    waiting: tuple[TaskId, ...] = ()
    version: int = 0
    begun: int = 0
    by_hand: int = 0
    counted: tuple[TaskId, ...] = ()
    latest: BegunRun | None = None

    @property
    def number_of_runs(self) -> int:
        """How many runs were let begin, but for those of backfills."""
        return self.begun + self.by_hand

    def of(self, uid: TaskId) -> Activity:
        """As far as it concerns this schedule."""
        return self if self.uid == uid else Activity(uid, version=self.version)

    def has_counted(self, task_id: TaskId) -> bool:
        """Whether a run was let begin before, and counted; it may have waited for a lock since."""
        return task_id == self.active or task_id in self.counted

    def with_begun(self, task: Task, now: Millis) -> Activity:
        """With one more run that begins; a backfill counts its own."""
        cause, nominal = (None, task.due_at) if task.schedule_ref is None else _of(task.schedule_ref)
        return replace(
            self,
            active=task.id,
            begun=self.begun + (cause in {Cause.SCHEDULE, Cause.CATCH_UP}),
            by_hand=self.by_hand + (cause is Cause.MANUAL),
            latest=BegunRun(task.id, nominal, task.started_at or now),
        )

    def without(self, tasks: Iterable[Task]) -> Activity:
        """Without these runs, which were let begin and never began: a lock or a rate had held them until their end."""
        causes = [(task.id, task.schedule_ref.cause) for task in tasks if task.schedule_ref is not None]
        ids = {task_id for task_id, _ in causes}
        return replace(
            self,
            active=None if self.active in ids else self.active,
            latest=None if self.latest is not None and self.latest.task_id in ids else self.latest,
            begun=self.begun - sum(cause in {Cause.SCHEDULE, Cause.CATCH_UP} for _, cause in causes),
            by_hand=self.by_hand - sum(cause is Cause.MANUAL for _, cause in causes),
            counted=tuple(each for each in self.counted if each not in ids),
        )


def _of(ref: ScheduleRef) -> tuple[Cause, Millis]:
    return ref.cause, ref.nominal


NO_ACTIVITY = Activity()
"""Of a schedule none of whose runs was counted."""


@dataclass(frozen=True, slots=True)
class CalendarEnd:
    """The end of what a calendar of a schedule knows, which was reported.

    Attributes:
        name: of the calendar.
        known_until: from when on its times are not known.
    """

    name: str
    known_until: Millis


@dataclass(frozen=True, slots=True)
class ExpectationState:
    """How far a schedule's expectations were looked into.

    Attributes:
        by_since: what counts for the next time of day comes after it.
        every_since: the latest success, or whatever else the next period counts from.
        missed_at: the latest deadline that was missed.
        met_at: the latest success that met a deadline.
        misses: how many deadlines were missed.
        looked_at: runs of the instants up to here were read.
        succeeded_at: when the latest success among those ended.
        open_runs: those of them that had not ended by then, oldest first.
    """

    by_since: Millis
    every_since: Millis
    missed_at: Millis | None = None
    met_at: Millis | None = None
    misses: int = 0
    looked_at: Millis = 0
    succeeded_at: Millis | None = None
    open_runs: tuple[TaskId, ...] = ()
