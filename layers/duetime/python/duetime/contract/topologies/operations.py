"""Operations on topologies."""

from __future__ import annotations

from dataclasses import replace

from duetime.contract.http.operation import FOR_A_LEASE, IF_MATCH, KEY, KEY_LIFE, LEASE, TRACEPARENT, Operation, Returns
from duetime.contract.tasks.actions import TaskAction
from duetime.contract.tasks.operations import CHANGED, KEPT_TASK, TASK
from duetime.contract.tasks.queries import EstimateQuery
from duetime.contract.topologies.bodies import NodeListQuery, TopologyCreate, TopologyListQuery, TopologyRetry
from duetime.contract.topologies.responses import TopologyNodePage, TopologyPage, TopologyResponse
from duetime.domain import errors
from duetime.domain.limits import MAX_EXAMINED

CREATE = Operation(
    "createTopology",
    "POST /v1/topologies",
    "Create a topology",
    TASK.created("Path of the topology.").but("The topology's task; its payload is the graph."),
    description="A graph of tasks that runs as one task: each node starts as soon as its parents allow it. Cycles, "
    "unknown parents and duplicate names are refused.",
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
    description="One that has not started is cancelled first. While it runs, or one of its nodes does, it is a "
    "conflict: cancel it, and wait for its end. The topology is gone at once; if its nodes take longer to delete, a "
    "bulk operation of the kind `delete` deletes them. Repeat a request that has failed: the response is 404 once "
    "the topology is gone, and the repeated request deletes what is left.",
    headers=(IF_MATCH,),
    errors=CHANGED,
)
READ = Operation(
    "getTopology",
    "GET /v1/topologies/{topology_id}",
    "Get a topology",
    Returns(TopologyResponse, "The topology.", {"ETag": "The version of its task, and a hash of the response."}),
    description="With the state of each node. The ETag changes whenever the response does. Requests that change the "
    "topology take it as `If-Match` and compare the version of its task only: changes of its nodes do not matter.",
    errors=(errors.ContentExpired,),
)
LIST_NODES = Operation(
    "listTopologyNodes",
    "GET /v1/topologies/{topology_id}/nodes",
    "List the nodes of a topology",
    Returns(TopologyNodePage, "A page of nodes, in the order of the graph."),
    description="Only the nodes of the page are read: for large topologies, of which `getTopology` takes long, as its "
    "progress, its counts and its critical path need all of them.",
    query=NodeListQuery,
    errors=(errors.ContentExpired,),
)


def _action(
    name: str, summary: str, description: str, accepted: str = "", also: tuple[type[Exception], ...] = ()
) -> Operation:
    """Declares an action of a user on a topology; with many nodes, it continues after the response."""
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
        "Nodes that succeeded are kept with their results; nodes that failed, and those that waited for them, run "
        "again as new tasks. With `nodes`, those run again, too, with all that depends on them, also if the topology "
        "has succeeded. Repeating the request changes nothing while it runs; without `nodes` also later, unless it has "
        "failed again. Repeat one with `nodes` under `If-Match`.",
        also=(errors.ContentExpired, errors.UniqueKeyHeld),
    ),
    body=TopologyRetry,
)
CANCEL = _action(
    "cancel",
    "Cancel a topology",
    "Nodes that have not started are cancelled; running nodes are asked to stop. A rollback that follows a failure "
    "is stopped, too.",
    "The nodes are being cancelled.",
)
PAUSE = _action(
    "pause",
    "Pause a topology",
    "No more nodes start; running nodes continue to their end.",
    "The topology has started, and is being paused.",
)
RESUME = _action(
    "resume",
    "Resume a paused topology",
    "All its nodes continue. Repeating the request changes nothing.",
    "The nodes are being resumed.",
)
