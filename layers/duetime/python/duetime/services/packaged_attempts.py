"""What handlers in packages of their own report while they run: progress, steps, checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.tasks.states import Move
from duetime.services.content_retention import write_checkpoint
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.packaged_types import AttemptToken
    from duetime.domain.tasks.targets import Phase
    from duetime.domain.tasks.task import Progress, Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import StepKeepers
    from duetime.ports.tasks import ContentStore, TaskStore
    from duetime_common.steps import StepKeeper


@frozen
class PackagedAttempts:
    """Processes the reports of attempts; their leases are renewed by the workers that wait for them.

    Attributes:
        attempt_steps: creates what stores the steps of an attempt's phase.
    """

    tasks: TaskStore
    contents: ContentStore
    attempt_steps: StepKeepers
    runtime: Runtime

    def task_of(self, token: AttemptToken) -> Task | None:
        """The task of an attempt, unless another attempt has it or it has ended."""
        task = self.tasks.read(token.task_id)
        return task if task is not None and token.is_of(task) else None

    def report(self, task: Task, progress: Progress | None) -> Task | None:
        """Store the progress; returns the record, with the request to the attempt, or `None` if the attempt is lost."""
        if progress is None or task.is_terminal:
            return task
        sets: TaskChanges = {"progress": progress}
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence), sets)
        result = self.tasks.apply(write)
        return result.task if isinstance(result, Applied) else None

    def save_checkpoint(self, task: Task, checkpoint: bytes) -> bool:
        """Store a checkpoint; returns whether the attempt still has the task."""
        if task.is_terminal:
            return False
        write = Write(task.id, Move.HEARTBEAT, self.runtime.nonce(), Guard(fence=task.fence))
        result = write_checkpoint((self.tasks, self.contents), self.runtime, task, checkpoint, write)
        return isinstance(result, Applied)

    def steps(self, task: Task, phase: Phase) -> StepKeeper:
        """What stores the steps of a phase."""
        return self.attempt_steps(lambda: True, task, phase)
