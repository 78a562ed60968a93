"""Composes the handling of dead letters."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.outcomes import OutcomeServices
from duetime.composition.root import Part
from duetime.services.worker.dead_letters import DeadLetterService


class DeadLetterServices(Part):
    """Handling dead letters."""

    @cached_property
    def dead_letters(self) -> DeadLetterService:
        """Fails the tasks of dead letters, or sends them again."""
        core, outcomes = self.part(CoreServices), self.part(OutcomeServices)
        return DeadLetterService(
            tasks=core.stores.tasks,
            queues=core.queues,
            enqueuer=core.enqueuer,
            outcome_writer=outcomes.delegating_writer,
            completion=outcomes.delegated_completion,
            runtime=self.runtime,
        )
