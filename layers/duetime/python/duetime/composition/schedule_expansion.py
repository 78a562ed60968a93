"""Composes the expansion of schedules into occurrences."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition.core import CoreServices
from duetime.composition.deferred_imports import deferred, read_graph, topology_definitions
from duetime.composition.root import Part
from duetime.services.schedules.expander import ScheduleExpander
from duetime.services.schedules.expansion_planner import ExpansionPlanner
from duetime.services.schedules.occurrence_tasks import OccurrenceTasks
from duetime.services.tasks.creation_rules import CreationRules

if TYPE_CHECKING:
    from duetime.services.schedules.overlap import OverlapControl
    from duetime.services.tasks.control import TaskControl


class ScheduleServices(Part):
    """Creates the occurrences of schedules."""

    @cached_property
    def overlap_control(self) -> OverlapControl:
        """Applies the overlap policies of schedules to occurrences."""
        from duetime.services.schedules.overlap import OverlapControl, RunQueue

        core = self.part(CoreServices)
        run_queue = RunQueue(core.stores.tasks, deferred(self._task_control), core.enqueuer, self.runtime.clock)
        return OverlapControl(core.stores, core.enqueuer, self.expander, self.runtime, run_queue)

    @cached_property
    def expander(self) -> ScheduleExpander:
        """Creates the occurrences of schedules."""
        core = self.part(CoreServices)
        occurrence_tasks = OccurrenceTasks(core.stores.contents, core.enqueuer, self.runtime, self._creation_rules)
        planner = ExpansionPlanner(core.stores, occurrence_tasks, self.runtime, self.settings.look_ahead_ms)
        return ScheduleExpander(planner, self.runtime)

    @cached_property
    def _creation_rules(self) -> CreationRules:
        core = self.part(CoreServices)
        return CreationRules(core.target_rules, read_graph, topology_definitions(core.stores, self.runtime))

    def _task_control(self) -> TaskControl:
        """Stops replaced runs, and notifies the schedule of their ends."""
        from duetime.composition.locks import LockServices
        from duetime.services.tasks.control import TaskControl, TaskReopener
        from duetime.services.tasks.update import TaskUpdater

        core, locks = self.part(CoreServices), self.part(LockServices).manager
        updater = TaskUpdater(
            stores=core.stores,
            enqueuer=core.enqueuer,
            runtime=self.runtime,
            retention=self.settings.retention_ms,
            lock_manager=locks,
            rules=self._creation_rules,
            occurrence_listener=self.overlap_control,
        )
        return TaskControl(
            core.stores,
            core.enqueuer,
            updater,
            locks,
            self.runtime,
            TaskReopener(core.stores, core.enqueuer, self.runtime),
        )
