"""Decodes request bodies of topology definitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.contract.http.request_errors import MOST_FAULTS, Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact, path_of
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.tasks.bodies import TaskCreate
from duetime.contract.tasks.decoding import spec_of
from duetime.contract.topologies.bodies import TYPE
from duetime.contract.topologies.decoding import graph_from
from duetime.contract.topologies.definition_bodies import (
    DefinitionParameter,
    TopologyDefinitionFields,
    TopologyRunCreate,
)
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_GRAPH_BYTES
from duetime.domain.topologies.maps import with_sample_items
from duetime.domain.topologies.parameters import Parameter, misplaced, with_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.domain.topologies.graph import Graph

_OF_THE_DEFINITION = ("version", "parameters")


def definition_content(document: Document, name: str) -> tuple[bytes, Graph]:
    """The content of a definition to store, and the graph of a run with sample values.

    The graph is validated with the defaults of its parameters, and with a sample of the type for each parameter without
    one. Each run is validated again with its own values.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
    """
    value = document.value
    if isinstance(value, dict) and isinstance(nodes := value.get("nodes"), dict):
        value = {**value, "nodes": _with_samples(nodes, _declared(value))}
    body = read_body(TopologyDefinitionFields, replace(document, value=with_sample_items(value)))
    if body.name not in {None, name}:
        raise FieldsInvalid([Fault("name", f"should be {name!r}, as in the path, or be left out", FaultCode.CONFLICT)])
    graph = graph_from(body, body.parameters.keys())
    content = compact({field: each for field, each in _written(document).items() if field != "name"})
    if len(content) > MAX_GRAPH_BYTES:
        reason = f"have {len(content)} bytes together; {MAX_GRAPH_BYTES} are allowed"
        raise FieldInvalid("nodes", reason, FaultCode.TOO_LONG)
    return content, graph


def run_spec(document: Document, name: str) -> TaskSpec:
    """Decodes a run of a definition; its graph is read later.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(TopologyRunCreate, document)
    own = {field: each for field, each in _written(document).items() if field not in _OF_THE_DEFINITION}
    definition = {"name": name, "version": body.version, "parameters": body.parameters}
    target = {"kind": TYPE, "definition": definition}
    return spec_of(validated(TaskCreate, {"type": body.type, **own, "target": target}))


def _declared(value: Mapping[str, object]) -> Mapping[str, Parameter]:
    """The parameters that a definition declares; empty if they are invalid, which is reported with other faults."""
    written = value.get("parameters")
    if not isinstance(written, dict):
        return {}
    try:
        declared = {name: validated(DefinitionParameter, each) for name, each in written.items()}
    except FieldsInvalid:
        return {}
    return {name: Parameter.of(each.written) for name, each in declared.items()}


def _with_samples(nodes: Mapping[str, object], declared: Mapping[str, Parameter]) -> Mapping[str, object]:
    """Nodes with sample values for their parameters.

    Raises:
        FieldsInvalid: a node uses an unknown parameter, or uses one where it is not replaced.
    """
    faults = [Fault(path_of(place), reason) for place, reason in misplaced(nodes, declared)]
    if faults:
        raise FieldsInvalid(faults[:MOST_FAULTS])
    return with_values(nodes, {name: parameter.sample for name, parameter in declared.items()})


def _written(document: Document) -> Mapping[str, object]:
    return document.value if isinstance(document.value, dict) else {}
