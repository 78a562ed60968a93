"""Takes over a restored table: raises the fences of its open records, and reports what ran after the restore point."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from duetime.domain.callers import Caller, Role
from duetime.domain.dispatch.enqueue_plan import ScheduleTimer
from duetime.domain.restore import (
    AfterRestore,
    Divergence,
    Takeover,
    divergence_of,
    facts,
    take_over,
    take_over_occurrence,
)
from duetime.domain.switches import ALL_TASKS, Switch
from duetime.domain.tasks.task import ContentPlace, fence_of_epoch
from duetime.services.lost_plans import LostPlans
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.restore import RecordPage, Records, TakeoverPage
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import ContentStore
    from duetime.ports.topologies import TopologyStore
    from duetime.services.switch_admin import SwitchAdmin

R = TypeVar("R", bound="Records")

_TRIES = 5
_REPORTED = frozenset(Divergence) - {Divergence.NONE, Divergence.UNKNOWN}
_OPERATOR = Caller("duetime restore", frozenset({Role.OPERATOR}))
STOP_REASON = "the table was restored; delete this switch to start tasks again"


@dataclass(slots=True)
class RestoreReport:
    """The findings and results of a takeover, for one segment or several.

    Attributes:
        scanned: number of items that were read.
        taken_over: number of records with a new fence.
        divergences: number of tasks by what happened to them after the restore point, and by how the takeover treated
            them.
        cancelled: number of nodes cancelled because no run of their topology would start them.
        unreadable: keys of records that no version of duetime can read; these records stay unchanged.
    """

    scanned: int = 0
    taken_over: int = 0
    cancelled: int = 0
    divergences: Counter[tuple[str, str]] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)

    def add(self, other: RestoreReport) -> None:
        """Add the numbers of another segment."""
        self.scanned += other.scanned
        self.taken_over += other.taken_over
        self.cancelled += other.cancelled
        self.divergences.update(other.divergences)
        self.unreadable += other.unreadable


@frozen
class Restore(Generic[R]):
    """Takes over the records of a restored table.

    No function may use the table yet. Every step can be repeated, even after an interruption, because records that were
    already taken over are not changed.

    Attributes:
        restored: the restored table.
        replaced: the table that the restored table replaces; `None` if the replaced table is lost.
        contents: contents outside the restored table's records.
        switches: switches of the restored table.
        topologies: run states of the restored table's topologies.
        runtime: the clock, and the new epoch.
        after: how to treat tasks that ran after the restore point.
        report: called with each task that changed after the restore point.
        at: the restore point; 0 if it is not known.
    """

    restored: R
    replaced: R | None
    contents: ContentStore
    switches: SwitchAdmin
    topologies: TopologyStore
    runtime: Runtime
    after: AfterRestore
    report: Callable[[Mapping[str, str]], None]
    at: Millis

    def stop(self) -> None:
        """Set a switch that stops all tasks, so that no task starts until an operator deletes the switch."""
        self.switches.put(_OPERATOR, Switch(ALL_TASKS, stopped=True, reason=STOP_REASON))

    def take_over(
        self, segment: int = 0, segments: int = 1, progress: Callable[[int], None] = lambda _scanned: None
    ) -> RestoreReport:
        """Take over the open records in one of the table's segments; segments can run at the same time."""
        report, cursor, more = RestoreReport(), "", True
        plans = LostPlans(self.restored, self.topologies, self.runtime, self.at)
        while more:
            page = self.restored.open_page(segment, segments, cursor)
            known = {} if self.replaced is None else self.replaced.read_many([task.id for task in page.tasks])
            for task in page.tasks:
                plans.reopen(task, is_taken_over=task.fence == fence_of_epoch(task.fence, self.runtime.epoch))
                self._take_over(task, known.get(task.id), report)
            plans.note(page.tasks)
            for stored in page.schedules:
                # The schedule's own timer may be lost, because a backup does not keep the order of writes to items.
                if stored.is_expandable:
                    now = self.runtime.now()
                    timer = ScheduleTimer(stored.uid, stored.owner, stored.name, stored.generation, now)
                    self.restored.add_schedule_timer(timer)
            more, cursor = _next(page, report, progress)
        report.cancelled += plans.dismiss()
        return report

    def compare(
        self,
        segment: int = 0,
        segments: int = 1,
        progress: Callable[[int], None] = lambda _scanned: None,
    ) -> RestoreReport:
        """Report the changes that the restored table lacks: tasks that were created or retried after the restore point.

        Schedule occurrences that had run are written into the restored table, unless they may run again.

        Args:
            segment: one of the segments of the replaced table.
            segments: number of segments.
            progress: called with the number of items that were read.
        """
        report, cursor, more = RestoreReport(), "", self.replaced is not None
        while more and self.replaced is not None:
            page = self.replaced.page_since(segment, segments, cursor, self.at)
            known = self.restored.read_many([task.id for task in page.tasks])
            for task in page.tasks:
                self._compare(task, known.get(task.id), report)
            more, cursor = _next(page, report, progress)
        return report

    def _take_over(self, task: Task, replaced: Task | None, report: RestoreReport) -> None:
        current: Task | None = task
        for _ in range(_TRIES):
            if current is None:
                return
            divergence = divergence_of(current, replaced, is_known=self.replaced is not None)
            done = take_over(current, replaced, divergence, self.after, self.runtime.epoch, self.runtime.now())
            if done is None or self._is_written(current, done):
                if done is not None:
                    report.taken_over += 1
                    self._note(replaced or task, done.divergence, done.effect, report)
                return
            # The record has changed, because a request was sent twice or another run of this command takes over the
            # same task.
            current = self.restored.read_many([task.id]).get(task.id)

    def _is_written(self, before: Task, done: Takeover) -> bool:
        if done.timer is not None:
            self.restored.add_timer(done.timer)
        if done.copies_contents and self.replaced is not None:
            self.restored.copy_contents(before.id, self.replaced)
        if not done.task.is_terminal:
            for content in done.task.contents_outside:
                # The bucket is not restored, so the object may have an expiry that was set when the task ended after
                # the restore point.
                if content.place is ContentPlace.OBJECT:
                    self.contents.retain(before.id, content)
        return self.restored.rewrite(before, replace(done.task, nonce=self.runtime.nonce()))

    def _compare(self, task: Task, restored: Task | None, report: RestoreReport) -> None:
        if restored is not None:
            if task.created_at < self.at and restored.finished_at is not None:
                self._note(task, Divergence.REOPENED, "ended", report)
            return
        effect = "lost"
        if task.schedule_ref is not None:
            done = take_over_occurrence(task, self.after, self.runtime.epoch, self.runtime.now())
            effect = "runs"
            if done is not None and self.replaced is not None:
                self.restored.copy_contents(task.id, self.replaced)
                self.restored.insert(replace(done.task, nonce=self.runtime.nonce()))
                effect = done.effect
        self._note(task, Divergence.CREATED, effect, report)

    def _note(self, task: Task, divergence: Divergence, effect: str, report: RestoreReport) -> None:
        report.divergences[divergence.value, effect] += 1
        if divergence in _REPORTED:
            self.report(facts(task, divergence, effect))


def _next(page: RecordPage | TakeoverPage, report: RestoreReport, progress: Callable[[int], None]) -> tuple[bool, str]:
    report.scanned += page.scanned
    report.unreadable += page.unreadable
    progress(page.scanned)
    return bool(page.cursor), page.cursor
