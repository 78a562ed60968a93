"""`client.topologies`: graphs of tasks that run as a unit."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from pydantic import Field

from duetime_client.changes import watch
from duetime_client.io_operations import Item, Pause, Request
from duetime_client.open_literals import (  # noqa: TC001 - pydantic reads the annotations
    RequestedAction,
    TaskState,
    TopologyFailurePolicy,
)
from duetime_client.pages import pages
from duetime_client.request_estimates import estimate_query
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import nothing, one, read, task_of
from duetime_client.session import IDEMPOTENCY_KEY, guard, key_or_random, segment
from duetime_client.task import TERMINAL, Failure, ResponseModel
from duetime_client.task_actions import action
from duetime_client.task_request_fields import body_of, query_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.changes import Change
    from duetime_client.io_operations import Items
    from duetime_client.task import Task

TOPOLOGIES = "/v1/topologies"
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 5.0


class TopologyNode(ResponseModel):
    """A node of a topology, and its state."""

    task_id: str | None = None
    type: str
    is_topology: bool = False
    state: TaskState
    reason: str | None = None
    percent: int = 0
    depends_on: list[str] = Field(default_factory=list)
    trigger_rule: str
    when: str | None = None
    expected_seconds: float | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ListedTopologyNode(TopologyNode):
    """A node of a topology in a list, with its name."""

    name: str


class CriticalPath(ResponseModel):
    """The chain of nodes that determines when the topology ends."""

    nodes: list[str]
    seconds: float


class TopologyFilter(TypedDict, total=False):
    """Which topologies to list (those that match all fields), and in which order."""

    state: TaskState
    type: str
    name: str
    definition: str
    tags: Mapping[str, str]
    due_after: datetime | str
    due_before: datetime | str
    order: Literal["asc", "desc"]
    order_by: Literal["due_at", "finished_at"]


class DefinitionRun(ResponseModel):
    """The definition, version and parameters from which a topology was created."""

    name: str
    version: int
    parameters: Mapping[str, Any] = Field(default_factory=dict)


class OuterTopology(ResponseModel):
    """The outer topology of a nested topology, and the name of its node in the outer topology."""

    id: str
    run: int
    node: str
    reason: str | None = None


class TopologySummary(ResponseModel):
    """A topology in a list, which shows only the topology's own task."""

    id: str
    state: TaskState
    name: str | None = None
    due_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    requested_action: RequestedAction | None = None
    error: Failure | None = None
    definition: DefinitionRun | None = None
    topology: OuterTopology | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the topology's outcome is known."""
        return self.state in TERMINAL


class Topology(TopologySummary):
    """A graph of tasks, and its state."""

    run: int
    on_failure: TopologyFailurePolicy
    outputs: list[str] = Field(default_factory=list)
    percent: int
    counts: Mapping[str, int]
    critical_path: CriticalPath
    nodes: Mapping[str, TopologyNode]


class TopologyOperations(Resource):
    """Topologies."""

    @Operation
    def create(
        self, body: Mapping[str, Any], *, idempotency_key: str | None = None, estimate: bool = False
    ) -> Request[Task]:
        """Create a topology from the body of `POST /v1/topologies`, which `read_topology` reads from a file.

        With `estimate`, the returned task includes the estimated cost of the topology and its nodes (`task.estimate`).
        """
        headers = {IDEMPOTENCY_KEY: key_or_random(idempotency_key)}
        query = estimate_query(is_wanted=estimate)
        return Request("POST", TOPOLOGIES, task_of, body=body_of(body), query=query, headers=headers)

    @Operation
    def get(self, task_id: str) -> Request[Topology]:
        """Get a topology with the states of its nodes."""
        return Request("GET", _path_of(task_id), one(Topology))

    @Stream
    def list(self, *, page_size: int | None = None, **filters: Unpack[TopologyFilter]) -> Items[TopologySummary]:
        """List all topologies that match the filters; pages are fetched as needed."""
        query = list(query_of(filters, page_size))
        return pages(self._session, TOPOLOGIES, "topologies", partial(read, TopologySummary), query)

    @Stream
    def list_nodes(self, task_id: str, *, page_size: int | None = None) -> Items[ListedTopologyNode]:
        """List the nodes of a topology in the order of its graph; pages are fetched as needed."""
        query = list(query_of({}, page_size))
        return pages(self._session, f"{_path_of(task_id)}/nodes", "nodes", partial(read, ListedTopologyNode), query)

    @Stream
    def follow(self, task_id: str) -> Items[Topology]:
        """Yield the topology at each poll until its outcome is known."""
        pause = _FIRST_PAUSE
        while True:
            topology = yield from TopologyOperations.get.steps(self, task_id)
            yield Item(topology)
            if topology.is_terminal:
                return
            yield Pause(pause)
            pause = min(pause * 1.1, _LONGEST_PAUSE)

    @Stream
    def watch(self, task_id: str) -> Items[Change]:
        """Yield changes to a topology and its nodes as they happen, until the topology ends; see `tasks.watch`."""
        return watch(self._session, f"topology:{task_id}", {})

    @Operation
    def retry(
        self, task_id: str, *, nodes: Sequence[str] = (), reason: str = "", if_match: str | None = None
    ) -> Request[Task]:
        """Run a topology again; nodes that succeeded are not repeated.

        Args:
            task_id: Id of the topology.
            nodes: Names of nodes to run again with all their dependents, even if the topology succeeded.
            reason: The reason, for the topology's history.
            if_match: The required version (ETag) of the topology's task.

        Raises:
            Conflict: The topology has not ended, or it has succeeded and no nodes are named.
            InvalidRequest: The topology has no node with one of the names.
        """
        return _action(task_id, "retry", reason, if_match, nodes)

    @Operation
    def cancel(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Cancel nodes that have not started, and ask running nodes to stop."""
        return _action(task_id, "cancel", reason, if_match)

    @Operation
    def pause(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Start no more nodes; running nodes continue."""
        return _action(task_id, "pause", reason, if_match)

    @Operation
    def resume(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Resume a paused topology."""
        return _action(task_id, "resume", reason, if_match)

    @Operation
    def delete(self, task_id: str, *, if_match: str | None = None) -> Request[None]:
        """Delete a topology with all of its nodes; a topology that has not started is cancelled first.

        Raises:
            Conflict: The topology or one of its nodes is running; cancel the topology, and wait for its end.
        """
        return Request("DELETE", _path_of(task_id), nothing, headers=guard(if_match))


class Topologies(TopologyOperations, SyncResource):
    """`client.topologies` of `Client`."""


class AsyncTopologies(TopologyOperations, AsyncResource):
    """`client.topologies` of `AsyncClient`."""


def _action(task_id: str, name: str, reason: str, if_match: str | None, nodes: Sequence[str] = ()) -> Request[Task]:
    # Repeating the request is safe, except with `if_match`, because the version has changed, and with chosen nodes,
    # which may have succeeded meanwhile.
    repeatable = if_match is None and not nodes
    return action(f"{_path_of(task_id)}/{name}", reason, if_match, nodes=nodes, repeatable=repeatable)


def _path_of(task_id: str) -> str:
    return f"{TOPOLOGIES}/{segment(task_id)}"
