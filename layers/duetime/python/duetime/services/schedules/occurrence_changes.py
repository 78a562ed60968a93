"""Changes of single occurrences: skipped, moved, or run early."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.schedules.occurrence_actions import CHANGED_OCCURRENCES
from duetime.domain.schedules.schedule_history import BY_OWNER, ScheduleAction
from duetime.services.schedules.next_revision import with_spec
from duetime.services.schedules.schedule_writer import busy

if TYPE_CHECKING:
    from duetime.domain.schedules.occurrence_actions import OccurrenceRequest
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.action_history import Attribution
    from duetime.ports.runtime import Runtime
    from duetime.services.schedules.schedule_writer import ScheduleWriter


@dataclass(frozen=True, slots=True)
class OccurrenceChanger:
    """Changes occurrences that are to come, for their schedule's owner."""

    writer: ScheduleWriter
    runtime: Runtime

    def change(
        self,
        owner: str,
        name: str,
        request: OccurrenceRequest,
        version: int | None = None,
        by: Attribution = BY_OWNER,
    ) -> StoredSchedule:
        """Skip, move or run early a single occurrence that is to come, or take that back; twice is once.

        Raises:
            FieldInvalid: it is no occurrence of the schedule, or not to come, or its new time cannot be.
        """
        before = seen = self.writer.read(owner, name, version)

        def changed(stored: StoredSchedule) -> StoredSchedule:
            nonlocal seen
            seen = self.writer.marked(stored)
            calendars = self.writer.expander.planner.known_calendars_of(seen)
            changes = request.changes_of(seen.schedule(calendars), self.runtime.now())
            if changes == stored.spec.changed_occurrences:
                return stored
            spec = replace(seen.spec, changed_occurrences=changes)
            after = with_spec(seen, spec, self.runtime.now(), calendars)
            if not request.is_ahead_of(changes, after.updated_at):
                # This process stood still meanwhile.
                raise busy(name)
            return after.after_action(ScheduleAction.UPDATED, by, after.updated_at, (CHANGED_OCCURRENCES,))

        after = self.writer.write(before, version, changed, with_timer=True)
        return self.writer.expand(self.writer.with_stopped_since(seen, after))
