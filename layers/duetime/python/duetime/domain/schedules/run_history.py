"""A schedule's run history, which consists of the latest runs, open runs, backfills, remarks and expectations."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from duetime.domain.tasks.approvals import was_decided
from duetime.domain.tasks.task import Cause
from duetime.domain.times import from_datetime
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.backfill import Backfill, BackfillCursor
    from duetime.domain.tasks.task import ScheduleRef, Task
    from duetime.domain.times import Millis
RUN_BY_HAND = "run by hand: task "
"""Prefix of a remark about a run that the schedule's owner started."""
_MISSED = re.compile(r"[0-9]+ occurrences? (was|were) missed: ")


@frozen
class LastRun:
    """The latest placed occurrence, which may be in the future.

    Attributes:
        revision: the revision that placed it.
    """

    task_id: TaskId
    nominal: Millis
    revision: int


@frozen
class BegunRun:
    """A run that has started.

    Attributes:
        nominal: the run's instant.
        started_at: when the run started.
    """

    task_id: TaskId
    nominal: Millis
    started_at: Millis


def begun_run(task: Task) -> BegunRun | None:
    """A task's started run; `None` if the target was not called, or if the start of a deleted task is unknown.

    A run about which a person decided has started with the decision, which is its only step.
    """
    if task.schedule_ref is not None and not task.attempt_history and was_decided(task):
        return BegunRun(task.id, task.schedule_ref.nominal, task.outcome_at)
    if task.schedule_ref is None or (task.started_at is None and not task.attempt_history):
        return None
    started = [each.started_at for each in task.attempt_history[:1]] if task.started_at is None else [task.started_at]
    return BegunRun(task.id, task.schedule_ref.nominal, started[0])


@frozen
class Remark:
    """A remark says why something did not run, or describes another event in a schedule's life.

    Attributes:
        at: when the remark was made.
        key: key of the occurrence, or of the first of several occurrences; empty if the remark is not about an
            occurrence.
        note: human-readable note.
    """

    at: Millis
    key: str
    note: str

    @property
    def nominal(self) -> Millis:
        """The instant of the occurrence at `key`; only for a remark about an occurrence."""
        return from_datetime(datetime.fromisoformat(self.key))

    @property
    def is_about_missed(self) -> bool:
        """Whether the remark is the decision about missed occurrences, from the occurrence at `key` until `at`."""
        return bool(self.key) and _MISSED.match(self.note) is not None


@frozen
class BackfillRun:
    """A backfill with its progress.

    Attributes:
        occurrences: number of the backfill's occurrences, including excluded occurrences.
        cursor: its progress; `None` before its first occurrence.
        finished_at: when the last occurrence was placed, or the backfill was cancelled.
    """

    id: str
    backfill: Backfill
    occurrences: int
    cursor: BackfillCursor | None = None
    finished_at: Millis | None = None


@frozen
class Activity:
    """The started runs of a schedule whose runs must not overlap, or whose number is limited.

    Attributes:
        uid: uid of the schedule; an activity of an earlier schedule with the same name is ignored.
        active: the latest admitted run, which may have ended.
        waiting: runs that wait for `active` to end, in queue order; some may have ended.
        begun: number of admitted runs that the timing started.
        by_hand: number of admitted runs that a user started.
        latest: the latest admitted run, excluding backfills.
        counted: if the number of runs is limited, admitted runs before `active` that may not have called their target
            yet.
        version: number of writes of this value.
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
        """Number of admitted runs, excluding backfills."""
        return self.begun + self.by_hand

    def of(self, uid: TaskId) -> Activity:
        """This activity if it belongs to the schedule with the given uid; otherwise, an empty activity."""
        return self if self.uid == uid else Activity(uid, version=self.version)

    def has_counted(self, task_id: TaskId) -> bool:
        """Whether a run was already admitted and counted; the run may have been waiting for a lock since then."""
        return task_id == self.active or task_id in self.counted

    def with_begun(self, task: Task, now: Millis) -> Activity:
        """A copy with another admitted run, which is counted unless it belongs to a backfill."""
        cause, nominal = (None, task.due_at) if task.schedule_ref is None else _of(task.schedule_ref)
        return replace(
            self,
            active=task.id,
            begun=self.begun + (cause in {Cause.SCHEDULE, Cause.CATCH_UP}),
            by_hand=self.by_hand + (cause is Cause.MANUAL),
            latest=self.latest if cause is Cause.BACKFILL else BegunRun(task.id, nominal, task.started_at or now),
        )

    def without(self, tasks: Iterable[Task]) -> Activity:
        """A copy without admitted runs that never started, because they waited for a lock or rate until their end."""
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
"""The activity of a schedule that has no counted runs yet."""


@frozen
class CalendarEnd:
    """The reported end of a calendar's known times.

    Attributes:
        name: name of the calendar.
        known_until: the time after which its times are unknown.
    """

    name: str
    known_until: Millis


@frozen
class ExpectationState:
    """Progress of checking a schedule's expectations.

    Attributes:
        by_since: start of the window for the next `expect_success_by`.
        every_since: start of the next period of `expect_every_seconds`, which is usually the latest success.
        missed_at: the latest missed deadline.
        met_at: the latest success that met a deadline.
        misses: number of missed deadlines.
        looked_at: all runs with instants up to this instant have been read.
        succeeded_at: when the latest successful run that was read ended.
        open_runs: the runs that were read and were still open, oldest first.
    """

    by_since: Millis
    every_since: Millis
    missed_at: Millis | None = None
    met_at: Millis | None = None
    misses: int = 0
    looked_at: Millis = 0
    succeeded_at: Millis | None = None
    open_runs: tuple[TaskId, ...] = ()
