"""Composes the use cases for schedules and calendars, and the trigger, which creates occurrences.

Objects that only requests or only the trigger need are imported within their properties.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.composition.core import BulkServices, CoreServices
from duetime.services.schedules.expander import ScheduleExpander
from duetime.services.schedules.expansion_planner import ExpansionPlanner
from duetime.services.schedules.occurrence_tasks import OccurrenceTasks

if TYPE_CHECKING:
    from duetime.domain.schedules.calendars import Calendar, CalendarMode
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.times import Millis
    from duetime.services.explanations.schedules import ScheduleExplainer
    from duetime.services.schedules.calendars import CalendarManager
    from duetime.services.schedules.manage import OccurrenceChanger, ScheduleManager
    from duetime.services.schedules.manual_runs_and_backfills import ManualRuns
    from duetime.services.schedules.preview import SchedulePreview
    from duetime.services.schedules.runs import ScheduleRuns
    from duetime.services.schedules.schedule_writer import ScheduleCreator, ScheduleWriter
    from duetime.services.trigger.dispatcher import Dispatcher


class ScheduleServices(Part):
    """Manages schedules and calendars, and creates the occurrences of schedules."""

    @cached_property
    def expander(self) -> ScheduleExpander:
        """Creates the occurrences of schedules."""
        core = self.part(CoreServices)
        occurrence_tasks = OccurrenceTasks(core.stores.contents, core.enqueuer, self.runtime, core.creation_rules)
        planner = ExpansionPlanner(core.stores, occurrence_tasks, self.runtime, self.settings.look_ahead_ms)
        return ScheduleExpander(planner, self.runtime)

    @cached_property
    def creator(self) -> ScheduleCreator:
        """Creates schedules."""
        from duetime.services.schedules.schedule_writer import RepeatedRequests, ScheduleCreator

        core = self.part(CoreServices)
        return ScheduleCreator(self._writer, core.stores, self.runtime, core.shards, RepeatedRequests(core.stores.keys))

    @cached_property
    def manager(self) -> ScheduleManager:
        """Updates and controls schedules."""
        from duetime.services.schedules.manage import ScheduleManager

        return ScheduleManager(self._writer, self.part(CoreServices).stores, self.runtime)

    @cached_property
    def occurrence_changer(self) -> OccurrenceChanger:
        """Skips single occurrences, moves them, or runs them early."""
        from duetime.services.schedules.manage import OccurrenceChanger

        return OccurrenceChanger(self._writer, self.runtime)

    @cached_property
    def manual_runs(self) -> ManualRuns:
        """Runs and backfills schedules."""
        from duetime.services.schedules.manual_runs_and_backfills import ManualRuns
        from duetime.services.schedules.schedule_writer import RepeatedRequests

        core = self.part(CoreServices)
        return ManualRuns(self._writer, core.stores, core.enqueuer, self.runtime, RepeatedRequests(core.stores.keys))

    @cached_property
    def _writer(self) -> ScheduleWriter:
        from duetime.services.schedules.schedule_writer import ScheduleWriter

        core, settings = self.part(CoreServices), self.settings
        return ScheduleWriter(
            stores=core.stores,
            enqueuer=core.enqueuer,
            expander=self.expander,
            runtime=self.runtime,
            look_ahead=settings.look_ahead_ms,
            retention=settings.retention,
        )

    @cached_property
    def preview(self) -> SchedulePreview:
        """Shows the past and future occurrences of schedules."""
        from duetime.services.schedules.preview import SchedulePreview

        return SchedulePreview(self.part(CoreServices).stores, self.runtime.clock)

    @cached_property
    def runs(self) -> ScheduleRuns:
        """Lists the runs of schedules."""
        from duetime.services.schedules.runs import ScheduleRuns

        core = self.part(CoreServices)
        return ScheduleRuns(core.stores, core.task_reader, self.preview, self.runtime.clock, self.settings.retention)

    @cached_property
    def calendar_manager(self) -> CalendarManager:
        """Manages calendars."""
        from duetime.services.schedules.calendars import CalendarManager

        return CalendarManager(self.part(CoreServices).stores, self.runtime, calendar_from_ics)

    @cached_property
    def explainer(self) -> ScheduleExplainer:
        """Explains why schedules ran or did not run."""
        from duetime.services.explanations.schedules import ScheduleExplainer

        stores, retention = self.part(CoreServices).stores, self.settings.retention
        return ScheduleExplainer(stores, self.preview, self.runs, self.runtime.clock, retention)


def calendar_from_ics(
    data: bytes, name: str, start: Millis, end: Millis, *, mode: CalendarMode, zone: Zone
) -> Calendar:
    """The `duetime.services.schedules.calendars.CalendarReader`. Its large module is imported only for this call."""
    from duetime.adapters import calendars

    return calendars.calendar_from_ics(data, name, start, end, mode=mode, zone=zone)


class TriggerServices(Part):
    """Reads due tasks minute by minute, and sends their messages."""

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """Reads the tasks of each minute, and sends their messages."""
        from duetime.adapters.lambda_invocations import EgressHeartbeat, LambdaFanOut
        from duetime.services.trigger.dispatcher import Dispatcher, DueMessages, EarlyScan

        core, look_ahead = self.part(CoreServices), self.settings.look_ahead_ms
        function = self.settings.invoked_as
        due_messages = DueMessages(
            tasks=core.stores.tasks,
            queues=core.queues,
            expander=self.part(ScheduleServices).expander,
            bulk_operations=self.part(BulkServices).operations,
            runtime=self.runtime,
            look_ahead=look_ahead,
            precision=self.settings.precision,
            pace=core.pace,
        )
        return Dispatcher(
            stores=core.stores,
            queues=core.queues,
            fan_out=LambdaFanOut(self.platform.clients.lambdas(), function, self.runtime.executor),
            runtime=self.runtime,
            shards=core.shards,
            look_ahead=look_ahead,
            due_messages=due_messages,
            early_scan=EarlyScan(core.stores.tasks, core.queues, due_messages, self.runtime),
            heartbeat=EgressHeartbeat(
                self.platform.clients.lambdas(),
                self.settings.egress_function,
                self.settings.heartbeat_url,
                self.runtime.telemetry,
            ),
        )
