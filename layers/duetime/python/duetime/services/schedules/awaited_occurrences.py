"""Finds the tasks of occurrences that other tasks wait for, over the latest changes of their schedules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import OCCURRENCE_PATIENCE
from duetime.domain.schedules.occurrences import judged, may_mean
from duetime.domain.tasks.dependency_outcomes import OccurrenceRun
from duetime.domain.times import to_iso
from duetime.services.schedules.known_runs import former_revisions, possible_ids
from duetime.services.schedules.preview import SchedulePreview

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.dependencies import OccurrenceRef
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import Stores


@dataclass(frozen=True, slots=True)
class AwaitedOccurrences:
    """`duetime.ports.tasks.OccurrenceFinder` for schedules of which neither knows that anybody waits."""

    stores: Stores
    clock: Clock

    def find(self, owner: str, ref: OccurrenceRef) -> OccurrenceRun:
        """Find the task of an occurrence, by the ids that it can have."""
        stored, _ = self.stores.schedules.read(owner, ref.schedule)
        if stored is None:
            return OccurrenceRun(reason="is of a schedule that does not exist")
        if stored.is_permanent:
            return OccurrenceRun(reason="is of a permanent schedule, which has no occurrences at known times")
        return self._of(stored, ref)

    def _of(self, stored: StoredSchedule, ref: OccurrenceRef) -> OccurrenceRun:
        calendars = SchedulePreview(self.stores, self.clock).known_calendars(stored)
        schedule = replace(stored.schedule(calendars), remaining_runs=None)
        occurrence = judged(schedule, ref.nominal)
        ids = possible_ids(stored, occurrence, former_revisions(stored, schedule), stored.backfills)
        tasks = self.stores.tasks.read_many(sorted(ids), consistent=True).values()
        own = [each for each in tasks if each.schedule_ref is not None and each.schedule_ref.mark == stored.mark]
        runs = [each for each in own if not each.was_dropped]
        if runs:
            return OccurrenceRun(runs[0])
        # A schedule stores that it is about to create a task before it does.
        is_past = ref.nominal <= stored.done and occurrence.due_at + OCCURRENCE_PATIENCE < self.clock.now()
        if not is_past and stored.runs_left != 0 and occurrence.runs and may_mean(schedule, ref.nominal):
            return OccurrenceRun(expected_at=occurrence.due_at)
        if own:
            return OccurrenceRun(own[0])
        why = f": {occurrence.note}" if occurrence.note else ""
        return OccurrenceRun(reason=f"has no occurrence at {to_iso(ref.nominal)}{why}")
