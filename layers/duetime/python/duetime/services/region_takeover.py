"""Makes another Region the active Region.

The takeover stops the old Region if that Region can be reached, takes over the records, and opens the new Region. Each
step can be repeated, because the record of the active Region shows the progress of an interrupted takeover.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.dispatch.cursors import groups_of
from duetime.domain.dispatch.enqueue_plan import ScheduleTimer
from duetime.domain.operating_parameters import REGION_LIFE, REGION_OVERLAP, REGION_SETTLES
from duetime.domain.regions import (
    ActiveRegion,
    cursors_behind,
    is_taken_over,
    next_region,
    taken_over,
)
from duetime.domain.tasks.task import ContentPlace
from duetime.domain.times import SECOND, Millis
from duetime.services.lost_plans import LostPlans
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task
    from duetime.ports.restore import RegionRecords, RegionStore
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import CursorStore, ShardStore
    from duetime.ports.tasks import ContentStore
    from duetime.ports.topologies import TopologyStore

_TRIES = 5
_LOOK = 5 * SECOND
_PROBE_LOOK = 200
_PROBE_PATIENCE = 60 * SECOND


class RegionsDiverge(Exception):
    """A takeover cannot continue."""


@frozen
class RegionSide:
    """One Region with its replica of the table.

    Attributes:
        name: name of the Region.
        regions: stores the record of the active Region.
        records: tasks and schedules.
        cursors: the cursors of this Region's trigger.
        shards: the number of shards.
    """

    name: str
    regions: RegionStore
    records: RegionRecords
    cursors: CursorStore
    shards: ShardStore


@dataclass(slots=True)
class TakeoverReport:
    """The results of a takeover, for one segment or all segments of the table.

    Attributes:
        scanned: number of items that were read.
        tasks: number of tasks by result: `open`, `cut_off` or `completed_again`; some of these tasks are nodes that are
            `cancelled` later, because no run of their topology would start them.
        schedules: number of schedules with a new timer.
        unreadable: keys of records that no version of duetime can read; these records stay unchanged.
    """

    scanned: int = 0
    tasks: Counter[str] = field(default_factory=Counter)
    schedules: int = 0
    unreadable: list[str] = field(default_factory=list)

    def add(self, other: TakeoverReport) -> None:
        """Add the results for another segment."""
        self.scanned += other.scanned
        self.tasks.update(other.tasks)
        self.schedules += other.schedules
        self.unreadable += other.unreadable


@frozen
class RegionTakeover:
    """The takeover by one Region.

    Attributes:
        target: the Region that becomes active.
        source: the Region that was active; a forced takeover uses only its name and the replicated copies of its
            cursors.
        contents: contents outside the records, in the target's bucket.
        topologies: run states of topologies, in the target.
        runtime: the clock, and the source of nonces.
        least_epoch: the setting `epoch`.
        is_forced: whether the source is left unchanged, because it cannot be reached.
        drain: how long attempts in the source may continue.
    """

    target: RegionSide
    source: RegionSide
    contents: ContentStore
    topologies: TopologyStore
    runtime: Runtime
    least_epoch: int
    is_forced: bool
    drain: Millis

    def begin(self, say: Callable[[str], None]) -> ActiveRegion:
        """Record the target as the active Region, in the source first, and wait until the source is quiet.

        Returns:
            The record. If the record is already open, the target is already processing tasks, and only late-arriving
            records remain to be taken over.

        Raises:
            RegionsDiverge: the source does not replicate, or another takeover began in the meantime.
        """
        sides = (self.target,) if self.is_forced else (self.target, self.source)
        known = [found for side in sides if (found := side.regions.read()) is not None]
        region = next_region(self.target.name, known, self.least_epoch, self.runtime.now())
        if region.is_open:
            self._save(self.target, region)
            return region
        if not self.is_forced:
            self._save(self.source, region)
            say(f"{self.source.name} no longer starts anything")
            self._wait_until_quiet(say)
            lag = self.replication_lag()
            say(f"{self.source.name} has replicated its writes; the last one took {lag} ms")
        self._save(self.target, region)
        self._sleep(REGION_SETTLES)
        return region

    def replication_lag(self) -> Millis:
        """The current replication delay from the source to the target, in milliseconds.

        Raises:
            RegionsDiverge: a test item does not arrive.
        """
        probe, begun = self.runtime.nonce(), self.runtime.now()
        self.source.regions.put_probe(probe)
        while self.target.regions.read_probe() != probe:
            if self.runtime.now() >= begun + _PROBE_PATIENCE:
                raise RegionsDiverge(
                    f"an item written in {self.source.name} has not arrived in {self.target.name} within"
                    f" {_PROBE_PATIENCE // SECOND} seconds; force the takeover if it cannot wait"
                )
            self._sleep(_PROBE_LOOK)
        return self.runtime.now() - begun

    def carry_cursors(self) -> None:
        """Let the target's trigger begin slightly before the point that the source's trigger has reached."""
        now = self.runtime.now()
        for group in groups_of(self.target.shards.read().number):
            # These cursors are the replicated copies in the target.
            if (found := self.source.cursors.read(group)) is not None:
                self.target.cursors.replace(group, cursors_behind(found, now))

    def take_over(
        self,
        region: ActiveRegion,
        segment: int = 0,
        segments: int = 1,
        progress: Callable[[int], None] = lambda _scanned: None,
    ) -> TakeoverReport:
        """Take over the records in one of the table's segments; segments can run at the same time."""
        report, cursor, more = TakeoverReport(), "", True
        plans = LostPlans(self.target.records, self.topologies, self.runtime, region.since)
        while more:
            page = self.target.records.takeover_page(segment, segments, cursor, region.since - REGION_OVERLAP)
            for task in page.tasks:
                # The run is reopened first, because it may continue as soon as the task is taken over.
                plans.reopen(task, is_taken_over=is_taken_over(task, region))
                self._take_over(task, region, report)
            plans.note(page.tasks)
            for stored in page.schedules:
                if stored.is_expandable:
                    now = self.runtime.now()
                    timer = ScheduleTimer(stored.uid, stored.owner, stored.name, stored.generation, now)
                    self.target.records.add_schedule_timer(timer)
                    report.schedules += 1
            report.scanned += page.scanned
            report.unreadable += page.unreadable
            progress(page.scanned)
            cursor, more = page.cursor, bool(page.cursor)
        if plans.is_any_left_over:
            # The nodes may only seem to be left over, because the rest of their plan may be replicated later.
            self._sleep(REGION_SETTLES)
            report.tasks["cancelled"] += plans.dismiss()
        return report

    def open(self, region: ActiveRegion) -> None:
        """Open the target, so that it processes tasks."""
        self._save(self.target, replace(region, is_open=True))

    def _save(self, side: RegionSide, region: ActiveRegion) -> None:
        if not side.regions.save(region):
            raise RegionsDiverge(f"{side.name} knows a later takeover than that of epoch {region.epoch}")

    def _wait_until_quiet(self, say: Callable[[str], None]) -> None:
        """Wait until no process regards the source as active, and until its attempts end or `drain` has passed."""
        until = self.runtime.now() + self.drain
        self._sleep(REGION_LIFE + _LOOK)
        while (running := self.source.records.running_tasks(self.runtime.now())) and self.runtime.now() < until:
            say(f"{running} tasks are still running there")
            self._sleep(_LOOK)
        # The last writes of these attempts must also be replicated.
        self._sleep(REGION_SETTLES)

    def _take_over(self, task: Task, region: ActiveRegion, report: TakeoverReport) -> None:
        current: Task | None = task
        for _ in range(_TRIES):
            if current is None:
                return
            done = taken_over(current, region, self.runtime.now(), keeps_leases=region.is_open)
            if done is None:
                return
            if done.timer is not None:
                self.target.records.add_timer(done.timer)
            self._retain(done.task)
            if self.target.records.rewrite(current, replace(done.task, nonce=self.runtime.nonce())):
                kind = "completed_again" if done.task.is_terminal else "cut_off" if done.was_cut_off else "open"
                report.tasks[kind] += 1
                return
            current = self.target.records.read_many([task.id]).get(task.id)

    def _retain(self, task: Task) -> None:
        """Remove the expiry from an open task's objects in S3, because the task may have ended in the other Region."""
        if not task.is_terminal:
            for content in task.contents_outside:
                if content.place is ContentPlace.OBJECT:
                    self.contents.retain(task.id, content)

    def _sleep(self, duration: Millis) -> None:
        self.runtime.clock.sleep_until(self.runtime.now() + duration)
