"""Composes the use cases of requests about schedules and calendars, which the API alone takes."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import calendar_from_ics
from duetime.composition.root import Part
from duetime.composition.schedule_expansion import ScheduleServices
from duetime.composition.tasks import TaskServices
from duetime.services.repeated_requests import RepeatedRequests
from duetime.services.schedules.calendars import CalendarManager
from duetime.services.schedules.create import ScheduleCreator
from duetime.services.schedules.manage import OccurrenceChanger, ScheduleManager
from duetime.services.schedules.manual_runs_and_backfills import ManualRuns
from duetime.services.schedules.preview import SchedulePreview
from duetime.services.schedules.runs import ScheduleRuns
from duetime.services.schedules.schedule_writer import ScheduleWriter


class ScheduleRequestServices(Part):
    """Managing schedules and calendars."""

    @cached_property
    def creator(self) -> ScheduleCreator:
        """Creates schedules."""
        core = self.part(CoreServices)
        return ScheduleCreator(self._writer, core.stores, self.runtime, core.shards, RepeatedRequests(core.stores.keys))

    @cached_property
    def manager(self) -> ScheduleManager:
        """Updates and controls schedules."""
        return ScheduleManager(self._writer, self.part(CoreServices).stores, self.runtime)

    @cached_property
    def occurrence_changer(self) -> OccurrenceChanger:
        """Skips, moves and runs early single occurrences."""
        return OccurrenceChanger(self._writer, self.runtime)

    @cached_property
    def manual_runs(self) -> ManualRuns:
        """Runs and backfills schedules."""
        core = self.part(CoreServices)
        return ManualRuns(self._writer, core.stores, core.enqueuer, self.runtime, RepeatedRequests(core.stores.keys))

    @cached_property
    def _writer(self) -> ScheduleWriter:
        core, settings = self.part(CoreServices), self.settings
        return ScheduleWriter(
            stores=core.stores,
            enqueuer=core.enqueuer,
            expander=self.part(ScheduleServices).expander,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            retention=settings.retention_ms,
        )

    @cached_property
    def preview(self) -> SchedulePreview:
        """Tells what schedules have done and will do."""
        return SchedulePreview(self.part(CoreServices).stores, self.runtime.clock)

    @cached_property
    def runs(self) -> ScheduleRuns:
        """Lists the runs of schedules."""
        core = self.part(CoreServices)
        return ScheduleRuns(
            core.stores, self.part(TaskServices).reader, self.preview, self.runtime.clock, self.settings.retention_ms
        )

    @cached_property
    def calendar_manager(self) -> CalendarManager:
        """Keeps calendars."""
        return CalendarManager(self.part(CoreServices).stores, self.runtime, calendar_from_ics)
