"""The operations on topologies."""

from __future__ import annotations

from typing import Any

from duetime.contract.http import routes
from duetime.contract.http.operation import ETAG, IF_MATCH, KEY, ONE_CHANGED, OWNED, OWNER, READ_BODY, Operation
from duetime.contract.tasks import attempt_bodies, responses
from duetime.contract.topologies.bodies import TopologyCreate
from duetime.contract.topologies.responses import TopologyResponse
from duetime.domain import errors

_GOES_ON = " What is asked holds for the run at once; with many nodes, a bulk operation has them heed it."


def _action(
    id_: str,
    path: str,
    summary: str,
    description: str,
    also: tuple[type[Exception], ...] = (),
    **more: Any,  # noqa: ANN401 - fields of Operation
) -> Operation:
    if "accepted" in more:
        more["accepted_headers"] = {"Location": "Path of the bulk operation, if the nodes do not heed it yet."}
        description += _GOES_ON
    return Operation(
        id=id_,
        method="POST",
        path=path,
        summary=summary,
        description=description,
        tag="topologies",
        body=attempt_bodies.NoFields,
        answer=responses.TaskResponse,
        answer_description="The topology's task.",
        answer_headers=ETAG,
        headers=(IF_MATCH, OWNER),
        refusals=(*OWNED, *READ_BODY, *ONE_CHANGED, *also),
        **more,
    )


TOPOLOGY_OPERATIONS = (
    Operation(
        id="createTopology",
        method="POST",
        path=routes.TOPOLOGIES,
        summary="Create a topology",
        description="A graph of tasks, run as one task: a node starts the moment its own parents let it. Cycles, "
        "unknown parents and names given twice are refused.",
        tag="topologies",
        status=201,
        body=TopologyCreate,
        answer=responses.TaskResponse,
        answer_description="The topology's task; its payload is the graph.",
        answer_headers={**ETAG, "Location": "Path of the topology."},
        headers=(KEY, OWNER),
        refusals=(*OWNED, *READ_BODY, errors.KeyReused),
    ),
    Operation(
        id="getTopology",
        method="GET",
        path=routes.TOPOLOGY,
        summary="See where a topology and its nodes stand",
        tag="topologies",
        answer=TopologyResponse,
        answer_description="The topology.",
        headers=(OWNER,),
        refusals=(*OWNED, errors.TaskNotFound, errors.ContentExpired),
    ),
    _action(
        "rerunTopology",
        routes.TOPOLOGY_RERUN,
        "Run a failed topology again",
        "What succeeded is kept with its results; what failed, and what waited for that, runs again as new tasks.",
        also=(errors.ContentExpired,),
    ),
    _action(
        "cancelTopology",
        routes.TOPOLOGY_CANCEL,
        "Cancel a topology",
        "What has not started is cancelled; what runs is asked to stop. A topology that failed under `rollback` is "
        "not rolled back any further.",
        accepted="Its nodes are being stopped.",
    ),
    _action(
        "pauseTopology",
        routes.TOPOLOGY_PAUSE,
        "Hold a topology",
        "Nothing more starts; what runs goes on to its end.",
        accepted="It has begun, and holds.",
    ),
    _action(
        "resumeTopology",
        routes.TOPOLOGY_RESUME,
        "Let a paused topology go on",
        "With all its nodes.",
        accepted="Its nodes are being resumed.",
    ),
)
