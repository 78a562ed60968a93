"""A topology as its user sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.bulk import BulkOperation
    from duetime.domain.task import Task
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.head import Head
    from duetime.domain.topologies.statuses import Statuses


@dataclass(frozen=True, slots=True)
class View:
    """A topology with where all of its nodes stand.

    Attributes:
        head: how far it has come; `None` while it has not begun.
        operation: the bulk operation that was started last on its nodes, if it is still known.
    """

    task: Task
    graph: Graph
    head: Head | None
    statuses: Statuses
    operation: BulkOperation | None = None
