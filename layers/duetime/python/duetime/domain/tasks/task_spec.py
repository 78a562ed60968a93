"""A client's request to create a task, decoded and within limits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task_options import TaskOptions

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.dependencies import Dependencies
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task_options import Debounce, OrderKey, Unique
    from duetime.domain.times import Millis

_GRAPH_OF_ITS_OWN = TopologyTarget()
DEFAULTED = (
    "priority",
    "retry",
    "timeout_seconds",
    "notify_within_seconds",
    "rollback_on_failure",
    "lock",
    "locks",
    "rate",
    "notify_on",
    "expires_seconds",
    "fair_key",
    "fair_weight",
    "unique",
)
"""The options that a type can have defaults for: those that describe the work, and not one task."""


@dataclass(frozen=True, slots=True)
class TaskSpec(TaskOptions):
    """A client's request, decoded and within limits.

    Attributes:
        type: determines the handler, or the kind of work for an endpoint or a pull worker.
        payload: JSON text in UTF-8, passed to the target unchanged.
        upload: id of the upload that is its payload, instead of `payload`; `None` for none.
        due_at: when it should run; `None` means now.
        delay: how long after its acceptance it should run; excludes `due_at`.
        target: the target; `None` for the default of the type (`TargetRules.target_of`).
        allow_unknown_type: whether its type may be without a known handler.
        unique: makes it the only task with a key; excludes `debounce`.
        debounce: lets further creations with a key delay it; excludes a due time.
        order: makes it run after the earlier tasks of its key.
        parent_task_id: the task that started it, as the request names it.
        group: id of the group that it joins; `None` for none.
        after: the tasks that must end before it starts.
        explicit: options that were given with the value that they have anyway, so that no default of the type replaces
            them.
    """

    type: str
    payload: bytes = b"null"
    upload: str | None = None
    due_at: Millis | None = None
    delay: Millis | None = None
    target: Target | None = None
    allow_unknown_type: bool = False
    unique: Unique | None = None
    debounce: Debounce | None = None
    order: OrderKey | None = None
    parent_task_id: TaskId | None = None
    group: str | None = None
    after: Dependencies | None = None
    explicit: frozenset[str] = field(default_factory=frozenset)

    def of_graph(
        self, payload: bytes, notify_within_seconds: int, target: TopologyTarget = _GRAPH_OF_ITS_OWN
    ) -> TaskSpec:
        """The spec of a topology's task: the graph is its payload, with a time limit for the whole run."""
        return replace(self, payload=payload, target=target, notify_within_seconds=notify_within_seconds)
