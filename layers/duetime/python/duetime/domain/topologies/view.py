"""A topology from the view of its user."""

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
    """A topology with the status of its nodes.

    Attributes:
        run_state: its state; `None` before its start.
        statuses: of all or the requested nodes, in the order of the graph.
        operation: the latest bulk operation on its nodes, if it is still stored.
    """

    task: Task
    graph: Graph
    run_state: RunState | None
    statuses: Statuses
    operation: BulkOperation | None = None


_NEVER_BEGAN = NodeStatus(State.CANCELLED, Reason.STOPPED, is_missing=True)


def shown_statuses(task: Task, statuses: Statuses) -> Statuses:
    """The status of each node from the view of its user.

    A topology can end before all of its nodes have tasks. Nodes without one will not start: they are shown like other
    nodes that were stopped before their start.

    Args:
        task: of the topology.
        statuses: of the nodes, according to the records of their tasks.
    """
    if not task.is_terminal:
        return statuses
    return {key: _NEVER_BEGAN if status.is_missing else status for key, status in statuses.items()}
