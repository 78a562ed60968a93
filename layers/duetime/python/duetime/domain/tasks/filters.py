"""Which of an owner's tasks a list shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Conditions that a listed task meets, all of them.

    Attributes:
        tags: keys and the values they must have.
        due_after: due no earlier than this.
        due_before: due before this.
        error: class of the error that the last failed attempt ended with.
        parent: the topology that it is a node of.
    """

    state: State | None = None
    type: str | None = None
    name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    due_after: Millis | None = None
    due_before: Millis | None = None
    error: str | None = None
    parent: TaskId | None = None

    def matches(self, task: Task) -> bool:
        """Whether a task meets every condition."""
        return (
            self.state in (None, task.state)
            and self.type in (None, task.type)
            and self.name in (None, task.name)
            and all(task.tags.get(key) == value for key, value in self.tags.items())
            and (self.due_after is None or task.due_at >= self.due_after)
            and (self.due_before is None or task.due_at < self.due_before)
            and (self.error is None or (task.error is not None and task.error.type == self.error))
            and (self.parent is None or (task.node_ref is not None and task.node_ref.topology == self.parent))
        )
