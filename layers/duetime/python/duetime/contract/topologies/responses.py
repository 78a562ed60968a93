"""Responses about topologies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.bulk.responses import BulkOperationResponse, bulk_response
from duetime.contract.mapping import response_of
from duetime.contract.tasks import encoding
from duetime.contract.tasks.encoding import definition_run_response
from duetime.contract.tasks.responses import (
    AppliedList,
    DefinitionRunResponse,
    Instant,
    TaskErrorResponse,
    TopologyReferenceResponse,
)
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import definition_of
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.run_result import counted, critical_path, durations, percent
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Node
    from duetime.domain.topologies.join_counters import NodeStatus
    from duetime.domain.topologies.run_state import View


class NodeResponse(TypedDict):
    """A node of a topology, and its state."""

    task_id: Annotated[str | None, Field(description="Id of its task; null before the topology has started.")]
    type: str
    is_topology: Annotated[
        bool, Field(description="Whether it is a topology itself: `GET /v1/topologies/{task_id}` shows its nodes.")
    ]
    state: State
    reason: Annotated[
        str | None,
        Field(
            description="Why it was cancelled: `skipped` (by its trigger rule or its condition), `upstream_failed` or "
            "`stopped`; null if it was not."
        ),
    ]
    percent: Annotated[int, Field(description="Progress in percent; 100 once it has succeeded.")]
    depends_on: list[str]
    trigger_rule: TriggerRule
    when: Annotated[str | None, Field(description="Its condition; null if it has none.")]
    expected_seconds: float | None
    started_at: Instant | None
    finished_at: Annotated[
        Instant | None,
        Field(
            description="When its outcome was stored and followed up. Its children may have started before, at the "
            "end of its last attempt."
        ),
    ]


class ListedNodeResponse(NodeResponse):
    """A node of a topology in a list, with its name."""

    name: Annotated[str, Field(description="Name of the node in the graph.")]


class TopologyNodePage(TypedDict):
    """A page of the nodes of a topology."""

    nodes: Sequence[ListedNodeResponse]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last one.")]


class CriticalPathResponse(TypedDict):
    """The chain of nodes that determines when the run ends."""

    nodes: list[str]
    seconds: float


class TopologySummary(TypedDict):
    """A topology as lists show it."""

    id: str
    state: State
    type: str
    name: str | None
    tags: Mapping[str, str]
    due_at: Instant
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    requested_action: RequestedAction | None
    error: TaskErrorResponse | None
    definition: Annotated[
        DefinitionRunResponse | None, Field(description="The definition that it is a run of; null if it is none.")
    ]
    topology: Annotated[
        TopologyReferenceResponse | None, Field(description="The topology that it is a node of; null if it is none.")
    ]
    version: int


class TopologyPage(TypedDict):
    """A page of topologies."""

    topologies: Sequence[TopologySummary]
    applied: Annotated[AppliedList, Field(description="The filters of the list.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last one.")]


class TopologyResponse(TopologySummary):
    """A topology: its task, and the state of each node of its graph."""

    run: Annotated[int, Field(description="Number of the run; 0 before the first.")]
    on_failure: OnFailure
    timeout_seconds: int | None
    outputs: Annotated[list[str], Field(description="Nodes whose results are a part of the topology's result.")]
    percent: Annotated[
        int, Field(description="Progress of the run in percent; each node counts by its expected duration.")
    ]
    counts: Annotated[Mapping[str, int], Field(description="Number of nodes by state.")]
    critical_path: CriticalPathResponse
    operation: Annotated[
        BulkOperationResponse | None,
        Field(description="The latest bulk operation on its nodes; null if there was none, as for small topologies."),
    ]
    nodes: Mapping[str, NodeResponse]


def topology_entry(task: Task) -> TopologySummary:
    """A topology in a list."""
    return response_of(
        TopologySummary,
        task,
        id=task.id.text,
        name=task.name or None,
        error=response_of(TaskErrorResponse, task.error),
        definition=None if (ref := definition_of(task.target)) is None else definition_run_response(ref),
        topology=encoding.topology_response(task.node_ref),
    )


def topology_response(view: View, now: Millis) -> TopologyResponse:
    """The response for a topology in its present state."""
    task, graph, run_state, statuses = view.task, view.graph, view.run_state, view.statuses
    path = critical_path(graph, durations(graph, statuses, now))
    return TopologyResponse(
        **topology_entry(task),
        run=run_state.number if run_state else 0,
        on_failure=graph.on_failure,
        timeout_seconds=graph.timeout_seconds,
        outputs=list(graph.outputs),
        percent=percent(graph, statuses),
        counts=counted(statuses),
        critical_path=CriticalPathResponse(nodes=list(path.nodes), seconds=path.seconds),
        operation=None if view.operation is None else bulk_response(view.operation),
        nodes={node.key: _node_response(node, _task_id(view, node.key), statuses[node.key]) for node in graph.nodes},
    )


def node_page(view: View, token: str | None) -> TopologyNodePage:
    """The response for a page of a topology's nodes.

    Args:
        view: the topology, with the nodes to show.
        token: of the next page.
    """
    nodes = [
        ListedNodeResponse(name=key, **_node_response(view.graph.by_key[key], _task_id(view, key), status))
        for key, status in view.statuses.items()
    ]
    return TopologyNodePage(nodes=nodes, next_token=token)


def _task_id(view: View, key: str) -> TaskId | None:
    return None if view.run_state is None else view.run_state.task_id(key)


def _node_response(node: Node, task_id: TaskId | None, status: NodeStatus) -> NodeResponse:
    return response_of(
        NodeResponse,
        status,
        task_id=None if task_id is None else task_id.text,
        type=node.spec.type,
        is_topology=node.is_topology,
        depends_on=list(node.depends_on),
        trigger_rule=node.trigger_rule,
        when=node.when,
        expected_seconds=node.expected_seconds,
    )
