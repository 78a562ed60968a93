"""A topology as its user sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.states import State
from duetime.domain.topologies.node_status import NodeStatus, Reason

if TYPE_CHECKING:
    from duetime.domain.bulk.operation import BulkOperation
    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.node_status import Statuses
    from duetime.domain.topologies.run_state import RunState


@dataclass(frozen=True, slots=True)
class View:
    """A topology with where its nodes stand.

    Attributes:
        run_state: how far it has come; `None` while it has not begun.
        statuses: of all nodes, or of those that were asked for, in the order of the graph.
        operation: the bulk operation that was started last on its nodes, if it is still known.
    """

    task: Task
    graph: Graph
    run_state: RunState | None
    statuses: Statuses
    operation: BulkOperation | None = None


_NEVER_BEGAN = NodeStatus(State.CANCELLED, Reason.STOPPED, is_missing=True)


def shown_statuses(task: Task, statuses: Statuses) -> Statuses:
    """Where each node stands, for its user.

    A topology can end before all of its nodes have a task, or any. Those that have none will not begin: they are shown
    like every other node that was stopped before it began.

    Args:
        task: the topology's.
        statuses: where each node stands by the record of its task.
    """
    if not task.is_terminal:
        return statuses
    return {key: _NEVER_BEGAN if status.is_missing else status for key, status in statuses.items()}
