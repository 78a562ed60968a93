"""Composes the questions to the endpoints of tasks."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.targets.http_target import HttpRunner
from duetime.composition.http_calls import HttpServices
from duetime.composition.root import Part
from duetime.composition.tasks import TaskServices
from duetime.services.tasks.read import TargetQueryService


class EndpointQueryServices(Part):
    """Asking the endpoints of tasks."""

    @cached_property
    def queries(self) -> TargetQueryService:
        """Asks the endpoints of tasks."""
        runner = HttpRunner(self.part(HttpServices).caller)
        return TargetQueryService(self.part(TaskServices).reader, runner, self.runtime.random_source)
