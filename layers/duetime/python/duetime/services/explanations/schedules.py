"""Explains from stored data what happened at a scheduled time of a schedule; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import FieldInvalid, ScheduleNotFound
from duetime.domain.explanations.schedule_explanation import (
    OccurrenceFacts,
    ScheduleExplanation,
    explain_none,
    explain_occurrence,
    explain_permanent,
    time_meant,
)
from duetime.domain.schedules.occurrences import preceding
from duetime.services.schedules.runs import OF_ITS_TIMING, RunsQuery
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Clock
    from duetime.ports.stores import Stores
    from duetime.services.schedules.preview import SchedulePreview
    from duetime.services.schedules.runs import ScheduleRuns

_LATEST = 20
"""How many runs are read to find the latest run of the schedule's own timing."""


@frozen
class ScheduleExplainer:
    """Explains why a schedule ran or did not run at a time, from the schedule's runs.

    Attributes:
        retention: how long a finished task is kept.
    """

    stores: Stores
    schedule_preview: SchedulePreview
    runs: ScheduleRuns
    clock: Clock
    retention: RetentionPolicy

    def explain(self, owner: str, name: str, at: Millis | None = None) -> ScheduleExplanation:
        """Explain what happened at one time of a schedule; without `at`, the latest time that has passed is explained.

        Raises:
            ScheduleNotFound: no schedule has that name.
        """
        stored, _ = self.stores.schedules.read(owner, name)
        if stored is None:
            raise ScheduleNotFound(name)
        schedule, now = stored.schedule(self._calendars(stored)), self.clock.now()
        if at is None and (at := self._latest(stored, schedule, now)) is None:
            return explain_none(stored, schedule, now)
        first, length = time_meant(at)
        found = self.runs.at(stored, first, length)
        facts = OccurrenceFacts(
            found.tasks,
            found.former,
            now,
            now - self.retention.of(stored.spec.task.type),
            is_complete=found.is_complete,
        )
        if stored.is_permanent:
            return explain_permanent(stored, at, facts)
        return explain_occurrence(stored, schedule, at, facts)

    def _latest(self, stored: StoredSchedule, schedule: Schedule, now: Millis) -> Millis | None:
        """The latest past time of an existing run, or of the current timing."""
        page = self.runs.list(stored.owner, stored.name, RunsQuery(limit=_LATEST))
        ran = [each.nominal for each in page.runs if each.cause in OF_ITS_TIMING and each.nominal <= now]
        meant = [] if stored.is_permanent else preceding(schedule, now + 1, 1)
        return max((*ran, *(each.nominal for each in meant if each.nominal >= stored.created_at)), default=None)

    def _calendars(self, stored: StoredSchedule) -> tuple[Calendar, ...]:
        try:
            return self.schedule_preview.resolve(stored.owner, stored.spec.calendars)
        except FieldInvalid:
            return ()
