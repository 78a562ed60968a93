"""The tasks of topologies: those with a graph for their payload, and those that name a definition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.contract.http.json_paths import BODY, path_of
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.tasks.field_decoding import Place, fields_spec
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_DEADLINE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.contract.tasks.bodies import TaskCreate
    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.domain.topologies.graph import Graph


def graph_spec(body: TaskCreate, place: Place, read: Callable[[object], Graph]) -> tuple[TaskSpec, Graph]:
    """The topology that a body with a graph for its payload asks for, and the graph.

    Raises:
        FieldsInvalid: it contradicts itself, or its payload is too large, or is no graph.
    """
    spec, graph = fields_spec(body, place), _graph(body.payload, (*place, "payload"), read)
    if "notify_within_seconds" in body.model_fields_set:
        # A time that is asked for by name is the client's own.
        return spec, graph
    return replace(spec, notify_within_seconds=graph.lasts_seconds), graph


def definition_spec(body: TaskCreate, place: Place) -> TaskSpec:
    """The run of a definition, whose graph is still to be read: it says how long the attempt lasts.

    Raises:
        FieldsInvalid: it contradicts itself, or has a payload.
    """
    spec = fields_spec(body, place)
    if body.payload is not None:
        reason = "cannot be given together with target.definition, whose graph is the payload"
        raise FieldsInvalid([Fault(path_of((*place, "payload")), reason, FaultCode.CONFLICT)])
    if "notify_within_seconds" in body.model_fields_set:
        return spec
    return replace(spec, notify_within_seconds=MAX_DEADLINE_SECONDS)


def _graph(payload: object, place: Place, read: Callable[[object], Graph]) -> Graph:
    """The graph that is a topology's payload; one that cannot be run is refused."""
    try:
        return read(payload)
    except FieldInvalid as refusal:
        raise FieldsInvalid([Fault(f"{path_of(place)}.{refusal.field}", refusal.reason, refusal.code)]) from None
    except FieldsInvalid as refusal:
        where = path_of(place)
        faults = [Fault(where if f.field == BODY else f"{where}.{f.field}", f.reason, f.code) for f in refusal.faults]
        raise FieldsInvalid(faults) from None
