"""Everything that may keep a due task from beginning, asked in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Postponed, Skipped
    from duetime.domain.tasks.task import Task
    from duetime.ports.attempts import StartGate


@dataclass(frozen=True, slots=True)
class StartGates:
    """Several gates as one; the first that does not let a task begin decides."""

    gates: tuple[StartGate, ...]

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a task that was just claimed must wait or be skipped, and why; nothing if it may begin."""
        return next((held for gate in self.gates if (held := gate.held(task))), None)
