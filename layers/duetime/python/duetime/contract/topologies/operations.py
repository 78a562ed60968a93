"""The REST API for topologies: responses and operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.bulk.operations import BulkOperationResponse, bulk_response
from duetime.contract.http.operation import FOR_A_LEASE, IF_MATCH, KEY, KEY_LIFE, LEASE, TRACEPARENT, Operation, Returns
from duetime.contract.mapping import response_of
from duetime.contract.tasks import encoding
from duetime.contract.tasks.encoding import definition_run_response
from duetime.contract.tasks.operations import CHANGED, KEPT_TASK, TASK, TaskAction
from duetime.contract.tasks.queries import EstimateQuery
from duetime.contract.tasks.responses import (
    AppliedList,
    DefinitionRunResponse,
    Instant,
    TaskErrorResponse,
    TopologyReferenceResponse,
)
from duetime.contract.topologies.bodies import NodeListQuery, TopologyCreate, TopologyListQuery, TopologyRetry
from duetime.domain import errors
from duetime.domain.limits import MAX_EXAMINED
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import definition_of
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.run_progress import counted, critical_path, durations, percent
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Node
    from duetime.domain.topologies.node_status import NodeStatus
    from duetime.domain.topologies.run_state import View


class NodeResponse(TypedDict):
    """A node of a topology, and its state."""

    task_id: Annotated[str | None, Field(description="Id of the node's task; null before the topology has started.")]
    type: str
    is_topology: Annotated[
        bool,
        Field(description="Whether the node is itself a topology, whose nodes `GET /v1/topologies/{task_id}` shows."),
    ]
    state: State
    reason: Annotated[
        str | None,
        Field(
            description="Why the node was cancelled: `skipped` (by its trigger rule or condition), `upstream_failed` "
            "or `stopped`; null if it was not cancelled."
        ),
    ]
    percent: Annotated[int, Field(description="Progress in percent; 100 after success.")]
    depends_on: list[str]
    trigger_rule: TriggerRule
    when: Annotated[str | None, Field(description="The node's condition; null if there is none.")]
    expected_seconds: float | None
    started_at: Instant | None
    finished_at: Annotated[
        Instant | None,
        Field(
            description=(
                "When the outcome was stored and all follow-up work was done. The node's children may have started "
                "earlier, at the end of its last attempt."
            )
        ),
    ]


class ListedNodeResponse(NodeResponse):
    """A node of a topology in a list, with its name."""

    name: Annotated[str, Field(description="Name of the node in the graph.")]


class TopologyNodePage(TypedDict):
    """A page of the nodes of a topology."""

    nodes: Sequence[ListedNodeResponse]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class CriticalPathResponse(TypedDict):
    """The chain of nodes that determines when the run ends."""

    nodes: list[str]
    seconds: float


class TopologySummary(TypedDict):
    """A topology, as shown in lists."""

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
        DefinitionRunResponse | None,
        Field(description="The definition that the topology is a run of; null if there is none."),
    ]
    topology: Annotated[
        TopologyReferenceResponse | None,
        Field(description="The topology that contains this topology as a node; null if there is none."),
    ]
    version: int


class TopologyPage(TypedDict):
    """A page of topologies."""

    topologies: Sequence[TopologySummary]
    applied: Annotated[AppliedList, Field(description="The filters of the list.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


class TopologyResponse(TopologySummary):
    """A topology, with its task and the state of each node."""

    run: Annotated[int, Field(description="Number of the run; 0 before the first run.")]
    on_failure: OnFailure
    timeout_seconds: int | None
    outputs: Annotated[list[str], Field(description="Nodes whose results are part of the topology's result.")]
    percent: Annotated[
        int, Field(description="Progress of the run in percent; nodes are weighted by expected duration.")
    ]
    counts: Annotated[
        Mapping[str, int], Field(description="Number of nodes by state, or by `reason` if a node has one.")
    ]
    critical_path: CriticalPathResponse
    operation: Annotated[
        BulkOperationResponse | None,
        Field(
            description=(
                "The latest bulk operation on the nodes; null if there is none, which is usual for small topologies."
            )
        ),
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
    """The response for a topology in its current state."""
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
        view: the topology with the nodes to show.
        token: token of the next page.
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


CREATE = Operation(
    "createTopology",
    "POST /v1/topologies",
    "Create a topology",
    TASK.created("Path of the topology.").but("The topology's task; its payload is the graph."),
    description="A graph of tasks that runs as one task: each node starts as soon as its trigger rule is met. Cycles, "
    "unknown parents and duplicate names are rejected.",
    kept=KEPT_TASK,
    query=EstimateQuery,
    body=TopologyCreate,
    nesting=2,
    headers=(KEY, KEY_LIFE, TRACEPARENT, LEASE),
    errors=(errors.KeyReused, errors.UniqueKeyHeld, *FOR_A_LEASE),
)
LIST = Operation(
    "listTopologies",
    "GET /v1/topologies",
    "List topologies",
    Returns(TopologyPage, "A page of topologies."),
    description=f"Your topologies, ordered by due time. A page examines at most {MAX_EXAMINED} tasks, so it can be "
    "shorter than `limit` or empty and still have a next page: continue until `next_token` is null.",
    query=TopologyListQuery,
)
DELETE = Operation(
    "deleteTopology",
    "DELETE /v1/topologies/{topology_id}",
    "Delete a topology with all of its nodes",
    Returns(None, "The topology is deleted.", status=204),
    description="A topology that has not started is cancelled first. Deleting a topology that is running, or has a "
    "running node, is a conflict: cancel the topology, and wait for its end. The topology is gone at once; if deleting "
    "the nodes takes longer, a bulk operation of the kind `delete` finishes the deletion. Repeat a failed request: the "
    "response is 404 once the topology is gone, and the repeated request deletes leftover data.",
    headers=(IF_MATCH,),
    errors=CHANGED,
)
READ = Operation(
    "getTopology",
    "GET /v1/topologies/{topology_id}",
    "Get a topology",
    Returns(
        TopologyResponse, "The topology.", {"ETag": "The version of the topology's task, and a hash of the response."}
    ),
    description=(
        "The topology with the state of each node. The ETag changes whenever the response changes. Requests that "
        "change the topology take the ETag as `If-Match` and compare only the version of the topology's task, so "
        "changes to nodes do not matter."
    ),
    errors=(errors.ContentExpired,),
)
LIST_NODES = Operation(
    "listTopologyNodes",
    "GET /v1/topologies/{topology_id}/nodes",
    "List the nodes of a topology",
    Returns(TopologyNodePage, "A page of nodes, in the order of the graph."),
    description="Reads only the nodes of the page. Use this operation for large topologies, for which `getTopology` is "
    "slow because progress, counts and the critical path need all nodes.",
    query=NodeListQuery,
    errors=(errors.ContentExpired,),
)


def _action(
    name: str, summary: str, description: str, accepted: str = "", also: tuple[type[Exception], ...] = ()
) -> Operation:
    """Declares a user action on a topology; for a topology with many nodes, the action continues after the response."""
    done = TASK.but("The topology's task.")
    accepted_response = replace(
        done.accepted(accepted),
        headers={**TASK.headers, "Location": "Path of the bulk operation that updates the nodes, if there is one."},
    )
    if accepted:
        description += " The request applies to the run at once; with many nodes, a bulk operation updates them."
    return Operation(
        f"{name}Topology",
        f"POST /v1/topologies/{{topology_id}}/{name}",
        summary,
        done,
        description=description,
        accepted=accepted_response if accepted else None,
        body=TaskAction,
        headers=(IF_MATCH,),
        errors=(*CHANGED, *also),
    )


RETRY = replace(
    _action(
        "retry",
        "Retry a topology",
        "Nodes that succeeded are kept with their results; nodes that failed, and nodes that waited for them, run "
        "again as new tasks. The nodes in `nodes` and their dependents also run again, even if the topology has "
        "succeeded. Repeating the request while the topology runs changes nothing. Later, a request without `nodes` "
        "has an effect only if the topology has failed again; send `If-Match` if you "
        "repeat a request with `nodes`.",
        also=(errors.ContentExpired, errors.UniqueKeyHeld),
    ),
    body=TopologyRetry,
)
CANCEL = _action(
    "cancel",
    "Cancel a topology",
    "Nodes that have not started are cancelled; running nodes are asked to stop. A rollback after a failure is "
    "stopped, too.",
    "The nodes are being cancelled.",
)
PAUSE = _action(
    "pause",
    "Pause a topology",
    "No more nodes start; running nodes finish.",
    "The topology has started, and is being paused.",
)
RESUME = _action(
    "resume",
    "Resume a paused topology",
    "All nodes continue. Repeating the request changes nothing.",
    "The nodes are being resumed.",
)
