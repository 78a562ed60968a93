"""Decodes graphs from request bodies and stored payloads."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import BODY, compact, path_of
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.mapping import value_of
from duetime.contract.tasks.bodies import TaskCreate
from duetime.contract.tasks.field_decoding import Place, fields_spec, reject_uniqueness
from duetime.contract.tasks.target_fields import TopologyTarget
from duetime.contract.topologies.bodies import TopologyCreate, TopologyGraph, TopologyNode, TopologyRetry
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_GRAPH_BYTES
from duetime.domain.topologies.graph import GRAPH_FIELDS, Graph, Node
from duetime.domain.topologies.maps import ITEMS, NodeMap, graph_of_map, is_map, with_sample_items
from duetime.domain.topologies.validation import validated_graph
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.type_defaults import TaskSpec


@frozen
class TopologyRequest:
    """A decoded request for a topology: the task and the graph."""

    spec: TaskSpec
    graph: Graph


def topology_request(document: Document) -> TopologyRequest:
    """Decodes a topology.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
    """
    body = read_body(TopologyCreate, replace(document, value=with_sample_items(document.value)))
    graph = graph_from(body)
    value = document.value if isinstance(document.value, dict) else {}
    own = {name: value[name] for name in body.model_fields_set if name not in GRAPH_FIELDS}
    task = validated(TaskCreate, {"type": body.type, **own})
    payload = compact({name: value[name] for name in GRAPH_FIELDS if name in value})
    if len(payload) > MAX_GRAPH_BYTES:
        reason = f"have {len(payload)} bytes together; {MAX_GRAPH_BYTES} are allowed"
        raise FieldInvalid("nodes", reason, FaultCode.TOO_LONG)
    return TopologyRequest(fields_spec(task).of_graph(payload, graph.lasts_seconds), graph)


def retry_request(document: Document) -> TopologyRetry:
    """Decodes a request to retry a topology.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(TopologyRetry, document)


def read_graph(payload: bytes, parameters: Collection[str] = ()) -> Graph:
    """Decodes the graph in a new topology's payload, including the graphs of definitions that its nodes name.

    Args:
        payload: JSON in UTF-8.
        parameters: names of the run's parameters, for a run of a definition.

    Raises:
        FieldInvalid: the payload does not contain a valid graph.
    """
    return _read(payload, parameters, is_new=True)


def read_stored_graph(payload: bytes) -> Graph:
    """Decodes the graph of a stored topology, whose parameters were checked when it was accepted.

    Raises:
        FieldInvalid: the payload does not contain a valid graph.
    """
    return _read(payload, None, is_new=False)


def _read(payload: bytes, parameters: Collection[str] | None, *, is_new: bool) -> Graph:
    try:
        value = json.loads(payload)
        if is_new:
            # Only workers create the payload of a map.
            return _with_graphs(value, parameters)
        return _map_graph(value, parameters) if is_map(value) else _with_graphs(value, parameters)
    except ValueError:
        raise FieldInvalid("payload", "should be a graph", FaultCode.WRONG_TYPE) from None
    except FieldsInvalid as refusal:
        fault = refusal.faults[0]
        raise FieldInvalid("payload" if fault.field == BODY else fault.field, fault.reason, fault.code) from None


def graph_of(value: object, parameters: Collection[str] | None = ()) -> Graph:
    """Decodes a graph from parsed JSON.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
    """
    return graph_from(validated(TopologyGraph, with_sample_items(value)), parameters)


def _with_graphs(value: object, parameters: Collection[str] | None) -> Graph:
    """Decodes a graph from JSON that already contains the graph of each definition that a node names."""
    return graph_from(validated(TopologyGraph, with_sample_items(value)), parameters, has_graphs=True)


def _map_graph(value: Any, parameters: Collection[str] | None) -> Graph:  # noqa: ANN401 - as a map's payload has it
    """The graph of a map's run, which has no nodes if the items are unknown or there are no items."""
    graph = _with_graphs(graph_of_map(value), parameters) if value[ITEMS] else Graph(())
    return replace(graph, is_map=True, tolerated_failures=value["tolerated_failures"])


def graph_from(body: TopologyGraph, parameters: Collection[str] | None = (), *, has_graphs: bool = False) -> Graph:
    """Converts a body into a graph.

    Args:
        body: the fields of a graph.
        parameters: names of the parameters that conditions may use; `None` if they were checked before.
        has_graphs: whether the body contains the graph of each definition that a node names; false for requests.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
    """
    nodes = [_node(key, node, parameters, has_graphs=has_graphs) for key, node in body.nodes.items()]
    return validated_graph(nodes, body.on_failure, body.timeout_seconds, tuple(body.outputs), parameters)


_ONLY_OF_TOPOLOGIES = "is not allowed in a node: only the topology itself can have a key"


def _node(key: str, body: TopologyNode, parameters: Collection[str] | None, *, has_graphs: bool) -> Node:
    reject_uniqueness(body, ("nodes", key), _ONLY_OF_TOPOLOGIES, order=_ONLY_OF_TOPOLOGIES)
    spec, subgraph = _spec(body, ("nodes", key), parameters, has_graphs=has_graphs)
    return value_of(
        Node,
        body,
        key=key,
        spec=spec,
        depends_on=tuple(body.depends_on),
        inputs=tuple(body.inputs),
        map=None if body.map is None else NodeMap.of(body.map.model_dump()),
        subgraph=subgraph,
    )


def topology_spec(body: TaskCreate, place: Place) -> TaskSpec:
    """Converts a body, or a part of a body, that has the target `topology`.

    Raises:
        FieldsInvalid: fields contradict each other, or the payload is not a valid graph.
    """
    is_definition = isinstance(body.target, TopologyTarget) and body.target.definition is not None
    return definition_spec(body, place) if is_definition else graph_spec(body, place, graph_of)[0]


def _spec(
    body: TopologyNode, place: Place, parameters: Collection[str] | None, *, has_graphs: bool
) -> tuple[TaskSpec, Graph | None]:
    """A node's task, and the graph if the node is a sub-topology whose graph is not read later."""
    if not isinstance(body.target, TopologyTarget):
        return fields_spec(body, place), None
    if body.target.definition is not None:
        if not has_graphs:
            return definition_spec(body, place), None
        names: Collection[str] | None = body.target.definition.parameters.keys()
    else:
        # A run without parameters.
        names = None if parameters is None else ()
    read = _with_graphs if has_graphs else graph_of
    return graph_spec(body, place, lambda payload: read(payload, names))


def graph_spec(body: TaskCreate, place: Place, read: Callable[[object], Graph]) -> tuple[TaskSpec, Graph]:
    """Converts a body whose payload is a graph into a task and the graph.

    Raises:
        FieldsInvalid: fields contradict each other, or the payload is too large or not a graph.
    """
    spec, graph = fields_spec(body, place), _graph(body.payload, (*place, "payload"), read)
    if "notify_within_seconds" in body.model_fields_set:
        # An explicitly requested time limit is kept.
        return spec, graph
    return replace(spec, notify_within_seconds=graph.lasts_seconds), graph


def definition_spec(body: TaskCreate, place: Place) -> TaskSpec:
    """Converts a run of a definition, whose graph is read later and determines the time limit.

    Raises:
        FieldsInvalid: fields contradict each other, or there is a payload.
    """
    spec = fields_spec(body, place)
    if body.payload is not None:
        reason = "cannot be given together with target.definition, whose graph is the payload"
        raise FieldsInvalid([Fault(path_of((*place, "payload")), reason, FaultCode.CONFLICT)])
    if "notify_within_seconds" in body.model_fields_set:
        return spec
    return replace(spec, notify_within_seconds=MAX_DEADLINE_SECONDS)


def _graph(payload: object, place: Place, read: Callable[[object], Graph]) -> Graph:
    """Decodes the graph in a topology's payload, and rejects invalid graphs."""
    try:
        return read(payload)
    except FieldInvalid as refusal:
        raise FieldsInvalid([Fault(f"{path_of(place)}.{refusal.field}", refusal.reason, refusal.code)]) from None
    except FieldsInvalid as refusal:
        where = path_of(place)
        faults = [Fault(where if f.field == BODY else f"{where}.{f.field}", f.reason, f.code) for f in refusal.faults]
        raise FieldsInvalid(faults) from None
