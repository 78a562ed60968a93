"""Composes the creation of tasks from events."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.sqs.rejected_events import SqsRejects
from duetime.composition.root import Part
from duetime.composition.tasks import TaskServices
from duetime.services.tasks.from_events import EventTaskCreator


class IntakeServices(Part):
    """Creates tasks from events."""

    @cached_property
    def event_tasks(self) -> EventTaskCreator:
        """Creates tasks from events."""
        settings, runtime = self.settings, self.runtime
        rejects = SqsRejects(self.platform.clients.sqs(), settings.intake_rejects, runtime.executor)
        return EventTaskCreator(
            self.part(TaskServices).batch_creator, rejects, runtime.telemetry, settings.intake_owner
        )
