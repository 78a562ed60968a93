"""Holding tasks back whose Python handlers cannot be imported: they wait, and nothing else does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import HANDLERS_RETRY
from duetime.domain.tasks.attempt_results import Postponed
from duetime.domain.tasks.targets import HandlerTarget

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import HandlerPackage


@dataclass(frozen=True, slots=True)
class HandlerAvailability:
    """Says which tasks cannot begin because the package of handlers is broken."""

    package: HandlerPackage
    runtime: Runtime

    def held(self, task: Task) -> Postponed | None:
        """Whether a task that was just claimed must wait for its handler: it costs no attempt."""
        if not isinstance(task.target, HandlerTarget) or (why := self.package.why_broken()) is None:
            return None
        self.runtime.telemetry.count("handlers_unavailable")
        self.runtime.telemetry.note("the package of handlers cannot be imported", error=why, task=task.id.text)
        return Postponed(self.runtime.now() + HANDLERS_RETRY, f"HandlersUnavailable: {why}")
