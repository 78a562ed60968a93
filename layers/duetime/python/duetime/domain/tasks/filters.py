"""Which of an owner's tasks a list shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import TopologyTarget

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
        due_from: due no earlier than this.
        due_to: due before this.
        error: class of the error that the last failed attempt ended with.
        parent: the topology that it is a node of.
        is_topology: it is a topology; if this is left out, it may be any task.
    """

    state: State | None = None
    type: str | None = None
    name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    due_from: Millis | None = None
    due_to: Millis | None = None
    error: str | None = None
    parent: TaskId | None = None
    is_topology: bool = False

    def matches(self, task: Task) -> bool:
        """Whether a task meets every condition."""
        return (
            self.state in (None, task.state)
            and self.type in (None, task.type)
            and self.name in (None, task.name)
            and all(task.tags.get(key) == value for key, value in self.tags.items())
            and (self.due_from is None or task.due_at >= self.due_from)
            and (self.due_to is None or task.due_at < self.due_to)
            and (self.error is None or (task.error is not None and task.error.kind == self.error))
            and (not self.is_topology or isinstance(task.target, TopologyTarget))
            and (self.parent is None or (task.node_ref is not None and task.node_ref.topology == self.parent))
        )
