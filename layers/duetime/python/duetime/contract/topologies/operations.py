"""The operations on topologies."""

from __future__ import annotations

from dataclasses import replace

from duetime.contract.http.operation import IF_MATCH, IF_NONE_MATCH, KEY, Operation, Returns
from duetime.contract.tasks.operations import CHANGED, TASK
from duetime.contract.tasks.report_bodies import EmptyRequest
from duetime.contract.topologies.bodies import TopologyCreate, TopologyListQuery
from duetime.contract.topologies.responses import TopologyPage, TopologyResponse
from duetime.domain import errors
from duetime.domain.limits import MAX_EXAMINED

CREATE = Operation(
    "createTopology",
    "POST /v1/topologies",
    "Create a topology",
    TASK.created("Path of the topology.").but("The topology's task; its payload is the graph."),
    description="A graph of tasks, run as one task: a node starts the moment its own parents let it. Cycles, "
    "unknown parents and names given twice are refused.",
    body=TopologyCreate,
    nesting=2,
    headers=(KEY,),
    errors=(errors.KeyReused,),
)
LIST = Operation(
    "listTopologies",
    "GET /v1/topologies",
    "List one's topologies",
    Returns(TopologyPage, "A page of the list."),
    description=f"The tasks that are topologies, as the list of tasks has them. A page examines at most {MAX_EXAMINED} "
    "tasks, so it may be shorter than its `limit`, or empty, and still have a successor: go on until `next_token` is "
    "null.",
    query=TopologyListQuery,
)
READ = Operation(
    "getTopology",
    "GET /v1/topologies/{topology_id}",
    "See where a topology and its nodes stand",
    Returns(TopologyResponse, "The topology.", {"ETag": "The version of its task, and a hash of this answer."}),
    description="The ETag changes whenever the answer does, also by a node. Requests that change the topology take it "
    "as `If-Match`, and compare the version of its task alone: what its nodes did since does not matter.",
    headers=(IF_NONE_MATCH,),
    errors=(errors.ContentExpired,),
)


def _action(
    name: str, summary: str, description: str, accepted: str = "", also: tuple[type[Exception], ...] = ()
) -> Operation:
    """What a user may have done with a topology; with many nodes it goes on after the answer."""
    done = TASK.but("The topology's task.")
    goes_on = replace(
        done.accepted(accepted),
        headers={**TASK.headers, "Location": "Path of the bulk operation, if the nodes do not heed it yet."},
    )
    if accepted:
        description += " What is asked holds for the run at once; with many nodes, a bulk operation has them heed it."
    return Operation(
        f"{name}Topology",
        f"POST /v1/topologies/{{topology_id}}/{name}",
        summary,
        done,
        description=description,
        accepted=goes_on if accepted else None,
        body=EmptyRequest,
        headers=(IF_MATCH,),
        errors=(*CHANGED, *also),
    )


RETRY = _action(
    "retry",
    "Retry a failed topology",
    "What succeeded is kept with its results; what failed, and what waited for that, runs again as new tasks. Asking "
    "again once it was retried changes nothing, unless it has failed since.",
    also=(errors.ContentExpired,),
)
CANCEL = _action(
    "cancel",
    "Cancel a topology",
    "What has not started is cancelled; what runs is asked to stop. A topology that failed under `rollback` is not "
    "rolled back any further.",
    "Its nodes are being stopped.",
)
PAUSE = _action(
    "pause", "Hold a topology", "Nothing more starts; what runs goes on to its end.", "It has begun, and holds."
)
RESUME = _action(
    "resume",
    "Let a paused topology go on",
    "With all its nodes. One that goes on already stays as it is.",
    "Its nodes are being resumed.",
)
