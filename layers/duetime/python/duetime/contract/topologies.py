"""Topologies over REST: the bodies of requests, what they are read as, the answers and the operations."""

from __future__ import annotations

import json
from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when a class is made
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract import answers, routes, steps
from duetime.contract.answers import ErrorAnswer, Instant  # noqa: TC001 - pydantic reads the annotations
from duetime.contract.bodies import Body, TaskCreate
from duetime.contract.decoding import compact, spec_of
from duetime.contract.encoding import error_answer, instant
from duetime.contract.faults import validated
from duetime.contract.fields import (  # noqa: TC001 - pydantic reads the annotations
    At,
    CallbackUrl,
    DelaySeconds,
    Tags,
    TaskName,
    TaskPriority,
    TaskType,
)
from duetime.contract.operation import ETAG, KEY, ONE_CHANGED, OWNED, OWNER, READ_BODY, Operation
from duetime.contract.refusals import FieldsInvalid
from duetime.contract.reports import read_body
from duetime.domain import errors
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_EXPECTED_SECONDS, MAX_GRAPH_BYTES
from duetime.domain.states import State  # noqa: TC001 - pydantic reads the annotations
from duetime.domain.task import Asked, Priority, TaskSpec
from duetime.domain.times import to_iso
from duetime.domain.topologies.checking import checked
from duetime.domain.topologies.graph import Graph, Node, OnFailure
from duetime.domain.topologies.progress import counted, critical_path, durations, percent
from duetime.domain.topologies.rules import TriggerRule

if TYPE_CHECKING:
    from duetime.contract.guard import Document
    from duetime.domain.ids import TaskId
    from duetime.domain.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.head import Head
    from duetime.domain.topologies.statuses import NodeStatus, Statuses

TYPE = "topology"
_OF_THE_GRAPH = ("nodes", "on_failure", "deadline_seconds")
_NODE_EXAMPLE = {"fetch": {"type": "fetch"}, "report": {"type": "report", "depends_on": ["fetch"], "inputs": ["fetch"]}}


class TopologyNode(TaskCreate):
    """A node: a task without a due time, and what it waits for."""

    depends_on: Annotated[list[str], Field(default_factory=list, description="The nodes that it waits for.")]
    rule: Annotated[TriggerRule, Field(strict=False, description="How those must have ended for it to run.")] = (
        TriggerRule.ALL_SUCCESS
    )
    inputs: Annotated[
        list[str], Field(default_factory=list, description="Those of them whose results its target is given.")
    ]
    expected_seconds: Annotated[
        float | None,
        Field(ge=0, le=MAX_EXPECTED_SECONDS, description="How long it should run: its weight in the whole's progress."),
    ] = None


class TopologyGraph(Body):
    """A graph: what the payload of a topology's task holds."""

    nodes: Annotated[dict[str, TopologyNode], Field(description="The nodes, by their names.", examples=[_NODE_EXAMPLE])]
    on_failure: Annotated[
        OnFailure,
        Field(
            strict=False,
            description="When a node has failed: start nothing more (`stop`), let the rules decide (`continue`), or "
            "also undo what has run, in reverse order (`rollback`).",
        ),
    ] = OnFailure.STOP
    deadline_seconds: Annotated[
        int | None,
        Field(ge=1, le=MAX_DEADLINE_SECONDS, description="How long the whole may take; null for as long as it needs."),
    ] = None


def _as_creation(schema: dict[str, Any]) -> None:
    """No due time is written as one that is left out, not as null."""
    schema["properties"]["at"].pop("default", None)


class TopologyCreate(TopologyGraph):
    """A topology to be created; without `at` and `delay_seconds` it is due now."""

    model_config = ConfigDict(json_schema_extra=_as_creation)

    type: TaskType = TYPE
    at: Annotated[At, Field(description="When it is due. Excludes `delay_seconds`.")] = None
    delay_seconds: DelaySeconds = 0
    priority: TaskPriority = Priority.NORMAL
    callback_url: Annotated[CallbackUrl | None, Field(description="Where its outcome is told.")] = None
    name: TaskName = ""
    tags: Tags = Field(default_factory=dict)


class NodeAnswer(TypedDict):
    """A node, and where it stands."""

    task_id: Annotated[str | None, Field(description="Its task; null before the topology has begun.")]
    type: str
    state: State
    reason: Annotated[str | None, Field(description="Why it was cancelled: `skipped`, `upstream_failed`, `stopped`.")]
    percent: int
    depends_on: list[str]
    rule: TriggerRule
    expected_seconds: float | None
    started_at: Instant | None
    ended_at: Annotated[Instant | None, Field(description="When its last attempt ended; its children may start then.")]
    finished_at: Annotated[Instant | None, Field(description="When all that followed was done, its children included.")]


class PathAnswer(TypedDict):
    """The chain of nodes that the end of the whole waits for."""

    nodes: list[str]
    seconds: float


class TopologyAnswer(TypedDict):
    """A topology: its task, and its graph with where each node stands."""

    id: str
    state: State
    type: str
    name: str | None
    tags: Mapping[str, str]
    due_at: Instant
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    asked: Asked | None
    error: ErrorAnswer | None
    version: int
    run: Annotated[int, Field(description="Counts its runs; 0 before the first.")]
    on_failure: OnFailure
    deadline_seconds: int | None
    percent: Annotated[int, Field(description="How far it has come, each node by how long it is expected to run.")]
    counts: Annotated[Mapping[str, int], Field(description="How many nodes stand where.")]
    critical_path: PathAnswer
    nodes: Mapping[str, NodeAnswer]


@dataclass(frozen=True, slots=True)
class TopologyAsked:
    """A topology that is asked for: its task, and its graph."""

    spec: TaskSpec
    graph: Graph


def topology_asked(document: Document) -> TopologyAsked:
    """The topology that a body asks for.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
        FieldInvalid: one of them cannot.
    """
    body = read_body(TopologyCreate, document)
    graph = _graph(body)
    value = document.value if isinstance(document.value, dict) else {}
    own = {name: value[name] for name in body.model_fields_set if name not in _OF_THE_GRAPH}
    task = validated(TaskCreate, {"type": body.type, **own})
    if isinstance(task, tuple):
        raise FieldsInvalid(task)
    payload = compact({name: value[name] for name in _OF_THE_GRAPH if name in value})
    if len(payload) > MAX_GRAPH_BYTES:
        raise FieldInvalid("nodes", f"have {len(payload)} bytes together; {MAX_GRAPH_BYTES} are allowed")
    return TopologyAsked(spec_of(task).of_graph(payload, graph.deadline_seconds or MAX_DEADLINE_SECONDS), graph)


def read_graph(payload: bytes) -> Graph:
    """The graph that the payload of a topology's task holds.

    Raises:
        FieldInvalid: it holds none.
    """
    try:
        return graph_of(json.loads(payload))
    except ValueError:
        raise FieldInvalid("payload", "should be a graph") from None
    except FieldsInvalid as refusal:
        fault = refusal.faults[0]
        raise FieldInvalid(fault.field, fault.reason) from None


def graph_of(value: object) -> Graph:
    """The graph that parsed JSON describes.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
        FieldInvalid: one of them cannot.
    """
    body = validated(TopologyGraph, value)
    if isinstance(body, tuple):
        raise FieldsInvalid(body)
    return _graph(body)


def _graph(body: TopologyGraph) -> Graph:
    nodes = [_node(key, node) for key, node in body.nodes.items()]
    return checked(nodes, body.on_failure, body.deadline_seconds)


def _node(key: str, body: TopologyNode) -> Node:
    if body.target.kind == TYPE:
        raise FieldInvalid(f"nodes.{key}.target", "cannot be a topology: a graph has one level")
    spec = spec_of(body, ("nodes", key))
    return Node(
        key=key,
        spec=spec,
        depends_on=tuple(body.depends_on),
        rule=body.rule,
        inputs=tuple(body.inputs),
        expected_seconds=body.expected_seconds,
    )


def topology_answer(task: Task, graph: Graph, head: Head | None, statuses: Statuses, now: Millis) -> TopologyAnswer:
    """A topology as it stands now."""
    path = critical_path(graph, durations(graph, statuses, now))
    return TopologyAnswer(
        id=task.id.text,
        state=task.state,
        type=task.type,
        name=task.name or None,
        tags=task.tags,
        due_at=to_iso(task.due_at),
        created_at=to_iso(task.created_at),
        started_at=instant(task.started_at),
        finished_at=instant(task.finished_at),
        asked=task.asked,
        error=error_answer(task.error),
        version=task.version,
        run=head.number if head else 0,
        on_failure=graph.on_failure,
        deadline_seconds=graph.deadline_seconds,
        percent=percent(graph, statuses),
        counts=counted(statuses),
        critical_path=PathAnswer(nodes=list(path.nodes), seconds=path.seconds),
        nodes={
            node.key: _node_answer(node, head.task_id(node.key) if head else None, statuses[node.key])
            for node in graph.nodes
        },
    )


def _node_answer(node: Node, task_id: TaskId | None, status: NodeStatus) -> NodeAnswer:
    return NodeAnswer(
        task_id=None if task_id is None else task_id.text,
        type=node.spec.type,
        state=status.state,
        reason=status.reason,
        percent=status.percent,
        depends_on=list(node.depends_on),
        rule=node.rule,
        expected_seconds=node.expected_seconds,
        started_at=instant(status.started_at),
        ended_at=instant(status.ended_at),
        finished_at=instant(status.finished_at),
    )


def _action(id_: str, path: str, summary: str, description: str, **more: Any) -> Operation:  # noqa: ANN401 - fields of Operation
    return Operation(
        id=id_,
        method="POST",
        path=path,
        summary=summary,
        description=description,
        tag="topologies",
        body=steps.NoFields,
        answer=answers.TaskAnswer,
        answer_description="The topology's task.",
        answer_headers=ETAG,
        headers=(OWNER,),
        refusals=(*OWNED, *READ_BODY, *ONE_CHANGED),
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
        answer=answers.TaskAnswer,
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
        answer=TopologyAnswer,
        answer_description="The topology.",
        headers=(OWNER,),
        refusals=(*OWNED, errors.TaskUnknown),
    ),
    _action(
        "rerunTopology",
        routes.TOPOLOGY_RERUN,
        "Run a failed topology again",
        "What succeeded is kept with its results; what failed, and what waited for that, runs again as new tasks.",
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
    _action("resumeTopology", routes.TOPOLOGY_RESUME, "Let a paused topology go on", "With all its nodes."),
)
