"""Composes the writing of outcomes where a worker does the next steps, and the handling of dead letters."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.services.outcomes.completion_steps import DelegatedCompletion
from duetime.services.outcomes.outcome import OutcomeWriter
from duetime.services.worker.dead_letters import DeadLetterService

if TYPE_CHECKING:
    from duetime.services.outcomes.completion_steps import CompletionSteps


class OutcomeServices(Part):
    """Writes outcomes, and delegates the next steps."""

    @cached_property
    def delegated_completion(self) -> DelegatedCompletion:
        """Leaves the steps after an outcome to a worker."""
        return DelegatedCompletion(self.part(CoreServices).queues)

    @cached_property
    def delegating_writer(self) -> OutcomeWriter:
        """Writes outcomes; a worker does the steps after them."""
        return self.writer_with(self.delegated_completion)

    def writer_with(self, completion: CompletionSteps) -> OutcomeWriter:
        """Writes outcomes; `completion` does the steps after them."""
        core = self.part(CoreServices)
        return OutcomeWriter(
            stores=core.stores,
            enqueuer=core.enqueuer,
            completion=completion,
            runtime=self.runtime,
            retention=self.settings.retention_ms,
        )


class DeadLetterServices(Part):
    """Handles dead letters."""

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
