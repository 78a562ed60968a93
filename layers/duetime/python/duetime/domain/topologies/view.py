"""A topology as its user sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.bulk.operation import BulkOperation
    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.node_status import Statuses
    from duetime.domain.topologies.run_state import RunState


@dataclass(frozen=True, slots=True)
class View:
    """A topology with where all of its nodes stand.

    Attributes:
        run_state: how far it has come; `None` while it has not begun.
        operation: the bulk operation that was started last on its nodes, if it is still known.
    """

    task: Task
    graph: Graph
    run_state: RunState | None
    statuses: Statuses
    operation: BulkOperation | None = None
