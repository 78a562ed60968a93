"""Composes the use cases of schedules and calendars."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import calendar_from_ics, read_graph
from duetime.composition.root import Part
from duetime.services.repeated_requests import RepeatedRequests
from duetime.services.schedules.calendars import CalendarManager
from duetime.services.schedules.create import ScheduleCreator
from duetime.services.schedules.expander import ScheduleExpander
from duetime.services.schedules.expansion_planner import ExpansionPlanner
from duetime.services.schedules.manage import ScheduleManager
from duetime.services.schedules.manual_runs import ManualRuns
from duetime.services.schedules.occurrence_tasks import OccurrenceTasks
from duetime.services.schedules.overlap import OverlapControl
from duetime.services.schedules.preview import SchedulePreview
from duetime.services.schedules.schedule_writer import ScheduleWriter
from duetime.services.tasks.creation_rules import CreationRules


class ScheduleServices(Part):
    """Managing schedules and calendars, and making their occurrences."""

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
            expander=self.expander,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            retention=settings.retention_ms,
        )

    @cached_property
    def preview(self) -> SchedulePreview:
        """Tells what schedules have done and will do."""
        return SchedulePreview(self.part(CoreServices).stores, self.runtime.clock)

    @cached_property
    def calendar_manager(self) -> CalendarManager:
        """Keeps calendars."""
        return CalendarManager(self.part(CoreServices).stores, self.runtime, calendar_from_ics)

    @cached_property
    def overlap_control(self) -> OverlapControl:
        """Keeps occurrences to their schedules."""
        core = self.part(CoreServices)
        return OverlapControl(core.stores, core.enqueuer, self.expander, self.runtime)

    @cached_property
    def expander(self) -> ScheduleExpander:
        """Makes the occurrences of schedules."""
        core = self.part(CoreServices)
        rules = CreationRules(core.target_rules, read_graph)
        occurrence_tasks = OccurrenceTasks(core.stores.contents, core.enqueuer, self.runtime.clock, rules)
        planner = ExpansionPlanner(core.stores, occurrence_tasks, self.runtime, self.settings.look_ahead_ms)
        return ScheduleExpander(planner, self.runtime)
