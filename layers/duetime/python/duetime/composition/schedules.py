"""Composes what makes the occurrences of schedules."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import read_graph
from duetime.composition.root import Part
from duetime.services.schedules.expander import ScheduleExpander
from duetime.services.schedules.expansion_planner import ExpansionPlanner
from duetime.services.schedules.occurrence_tasks import OccurrenceTasks
from duetime.services.schedules.overlap import OverlapControl
from duetime.services.tasks.creation_rules import CreationRules


class ScheduleServices(Part):
    """Making the occurrences of schedules."""

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
        occurrence_tasks = OccurrenceTasks(core.stores.contents, core.enqueuer, self.runtime, rules)
        planner = ExpansionPlanner(core.stores, occurrence_tasks, self.runtime, self.settings.look_ahead_ms)
        return ScheduleExpander(planner, self.runtime)
