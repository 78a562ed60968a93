"""What a client asks for when it creates a task, decoded and within limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task_options import TaskOptions

if TYPE_CHECKING:
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task_options import Debounce, Unique
    from duetime.domain.times import Millis

_GRAPH_OF_ITS_OWN = TopologyTarget()


@dataclass(frozen=True, slots=True)
class TaskSpec(TaskOptions):
    """What a client asks for, decoded and within limits.

    Attributes:
        type: names the handler, or the kind of work for an endpoint or a pull worker.
        payload: JSON text in UTF-8, handed to the target as it is.
        due_at: when it shall run; `None` means now.
        delay: how long after its acceptance it shall run; excludes `due_at`.
        target: what is called; `None` leaves it to the type (`creation.target_of`).
        allow_unknown_type: whether its type may be one that no handler is known for yet.
        unique: that it shall be the only task of a key; excludes `debounce`.
        debounce: that further creations with a key put it off; excludes a due time.
    """

    type: str
    payload: bytes = b"null"
    due_at: Millis | None = None
    delay: Millis | None = None
    target: Target | None = None
    allow_unknown_type: bool = False
    unique: Unique | None = None
    debounce: Debounce | None = None

    def of_graph(
        self, payload: bytes, notify_within_seconds: int, target: TopologyTarget = _GRAPH_OF_ITS_OWN
    ) -> TaskSpec:
        """The same as a topology's task, with the graph for its payload and the time that the whole may take."""
        return replace(self, payload=payload, target=target, notify_within_seconds=notify_within_seconds)
