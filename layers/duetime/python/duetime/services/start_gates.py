"""All checks before a due task starts, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import ApprovalTarget

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_results import Postponed, Skipped
    from duetime.domain.tasks.task import Task
    from duetime.ports.attempts import StartGate
    from duetime.ports.runtime import Clock


@dataclass(frozen=True, slots=True)
class ApprovalGate:
    """Holds tasks that wait for an approval until somebody decides, or their time is over."""

    clock: Clock

    def held(self, task: Task) -> Postponed | None:
        """Whether a task that was just claimed waits for an approval: it costs no attempt."""
        if not isinstance(task.target, ApprovalTarget):
            return None
        # Few tasks wait for one, and functions start without it.
        from duetime.domain.tasks.approvals import waiting_time  # noqa: PLC0415 - see the line above

        return waiting_time(task, self.clock.now())


@dataclass(frozen=True, slots=True)
class StartGates:
    """Several gates as one; the first that does not let a task begin decides.

    Attributes:
        of_all: those of every task.
        of_occurrences: what comes after them for a task that a schedule has placed.
    """

    of_all: tuple[StartGate, ...]
    of_occurrences: StartGate

    def held(self, task: Task) -> Postponed | Skipped | None:
        """Whether a task that was just claimed must wait or be skipped, and why; nothing if it may begin."""
        gates = self.of_all if task.schedule_ref is None else (*self.of_all, self.of_occurrences)
        return next((held for gate in gates if (held := gate.held(task))), None)
