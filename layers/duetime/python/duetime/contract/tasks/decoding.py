"""Decodes request bodies for tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import path_of, reject_invalid_values
from duetime.contract.http.validation_errors import validated
from duetime.contract.tasks.bodies import BatchEnvelope, TaskCreate
from duetime.contract.tasks.field_decoding import ROOT, Place, fields_spec
from duetime.contract.tasks.target_fields import TopologyTarget
from duetime.domain.limits import MAX_JSON_DEPTH
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.type_defaults import TaskSpec


_CONTAINERS = (dict, list)


@frozen
class BatchItem:
    """One task of a batch: the decoded request, or the error.

    Attributes:
        value: the task's JSON, which is hashed for idempotency keys.
    """

    value: object
    wanted: TaskSpec | FieldsInvalid


def task_spec(document: Document) -> TaskSpec:
    """Decodes a task.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    reject_invalid_values(document.value, document)
    return _spec(document.value, ROOT)


def task_spec_at(value: object, place: tuple[str | int, ...], document: Document) -> TaskSpec:
    """Decodes a task in a part of a body.

    Raises:
        FieldsInvalid: the task is nested too deeply, or some fields are invalid.
    """
    if document.depth > MAX_JSON_DEPTH:
        _reject_deep(value, place)
    reject_invalid_values(value, document, place)
    return _spec(value, place)


def batch_items(document: Document) -> list[BatchItem]:
    """Decodes each task of a batch individually.

    Raises:
        FieldsInvalid: the body does not contain a list, or has too many tasks.
    """
    reject_invalid_values(_around_tasks(document.value), document)
    envelope = validated(BatchEnvelope, document.value)
    return [BatchItem(value, _item(value, ("tasks", index), document)) for index, value in enumerate(envelope.tasks)]


def _around_tasks(value: object) -> object:
    """The body of a batch without its tasks."""
    if not isinstance(value, dict):
        return value
    return {key: part for key, part in value.items() if key != "tasks" or not isinstance(part, list)}


def _item(value: object, place: Place, document: Document) -> TaskSpec | FieldsInvalid:
    try:
        return task_spec_at(value, place, document)
    except FieldsInvalid as refusal:
        return refusal


def _reject_deep(value: object, place: Place) -> None:
    """Rejects a task of a batch that is nested too deeply; the parser limits only the entire batch."""
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [part for whole in level for part in _parts(whole) if isinstance(part, _CONTAINERS)]
        if not level:
            return
    raise FieldsInvalid([Fault(path_of(place), f"is nested deeper than {MAX_JSON_DEPTH} levels", FaultCode.TOO_DEEP)])


def _parts(value: object) -> Iterable[object]:
    """The elements of a list, or the values of an object."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _spec(value: object, place: Place) -> TaskSpec:
    return spec_of(validated(TaskCreate, value, place), place)


def spec_of(body: TaskCreate, place: Place = ROOT) -> TaskSpec:
    """Converts a body, or a part of a body, into a task.

    Raises:
        FieldsInvalid: fields contradict each other, or the payload is too large or, for a topology, not a valid graph.
    """
    if not isinstance(body.target, TopologyTarget):
        return fields_spec(body, place)
    # This module is imported only when needed, because few tasks are topologies, and cold starts should be fast.
    from duetime.contract.topologies.decoding import topology_spec  # noqa: PLC0415 - see the line above

    return topology_spec(body, place)
