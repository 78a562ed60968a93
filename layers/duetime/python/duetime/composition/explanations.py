"""Composes the use cases that explain tasks and schedules."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.composition.schedule_requests import ScheduleRequestServices
from duetime.composition.tasks import TaskServices
from duetime.composition.topologies import TopologyServices
from duetime.services.explanations.schedules import ScheduleExplainer
from duetime.services.explanations.tasks import TaskExplainer


class ExplanationServices(Part):
    """Explaining tasks and schedules."""

    @cached_property
    def tasks(self) -> TaskExplainer:
        """Explains tasks."""
        return TaskExplainer(
            stores=self.part(CoreServices).stores,
            task_reader=self.part(TaskServices).reader,
            topology_repository=self.part(TopologyServices).outlines,
            clock=self.runtime.clock,
            lease=self.settings.lease_ms,
        )

    @cached_property
    def schedules(self) -> ScheduleExplainer:
        """Explains schedules."""
        schedules = self.part(ScheduleRequestServices)
        return ScheduleExplainer(
            self.part(CoreServices).stores,
            schedules.preview,
            schedules.runs,
            self.runtime.clock,
            self.settings.retention_ms,
        )
