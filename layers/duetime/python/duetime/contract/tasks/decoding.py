"""From the body of a request to what a use case takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any

from duetime.contract.http.json_paths import BODY, path_of
from duetime.contract.http.request_errors import Fault, FieldsInvalid
from duetime.contract.http.safe_json import reject_invalid_values
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.tasks.bodies import (
    BatchEnvelope,
    EventBridgeTarget,
    HandlerTarget,
    HttpTarget,
    LambdaTarget,
    PullTarget,
    TaskCreate,
    TaskFields,
    TaskPatch,
    TopologyTarget,
)
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_JSON_DEPTH, MAX_PAYLOAD_BYTES
from duetime.domain.tasks import targets
from duetime.domain.tasks import task as domain
from duetime.domain.tasks.arns import AwsService
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.task import TaskSpec
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.contract.http.safe_json import Document
    from duetime.contract.tasks.bodies import AwsTarget, Lock, Retry, Target
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph

_Place = tuple[str | int, ...]
_ROOT: _Place = ()
_MADE = {"retry", "lock"}
_KEPT_AS_IT_IS = tuple(name for name in domain.TASK_OPTIONS if name not in _MADE)


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One task of a batch: what is asked for, or why it is refused.

    Attributes:
        value: its JSON, for the hash of an idempotency key.
    """

    value: object
    wanted: TaskSpec | FieldsInvalid


def task_spec(document: Document) -> TaskSpec:
    """The task that a body asks for.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    reject_invalid_values(document.value, document)
    return _spec(document.value, _ROOT)


def task_spec_at(value: object, place: tuple[str | int, ...], document: Document) -> TaskSpec:
    """The task that a part of a body asks for.

    Raises:
        FieldsInvalid: it is nested too deeply, or some fields cannot be accepted.
    """
    _reject_deep(value, place)
    reject_invalid_values(value, document, place)
    return _spec(value, place)


def task_change(document: Document) -> TaskChange:
    """The change that a body asks for.

    Raises:
        FieldsInvalid: some fields cannot be accepted, or there are none.
    """
    return change_of(read_body(TaskPatch, document))


def change_of(body: TaskPatch, place: _Place = _ROOT) -> TaskChange:
    """The change that a body, or the part of one at a place, asks for.

    Raises:
        FieldsInvalid: it contradicts itself, or names no field.
    """
    _reject_contradictions(body, place)
    given = body.model_fields_set
    if not given:
        raise FieldsInvalid([Fault(path_of(place) if place else BODY, "names no field to change")])
    fields: Any = {name: value for name, value in _plain_fields(body).items() if name in given}
    return TaskChange(
        fields=fields,
        due_at=body.at,
        delay=_delay(body),
        payload=_payload(body, place) if "payload" in given else None,
    )


def batch_items(document: Document) -> list[BatchItem]:
    """The tasks that a body asks for, each read for itself.

    Raises:
        FieldsInvalid: the body is no list of as many tasks as a batch may have.
    """
    reject_invalid_values(_around_tasks(document.value), document)
    envelope = validated(BatchEnvelope, document.value)
    return [BatchItem(value, _item(value, ("tasks", index), document)) for index, value in enumerate(envelope.tasks)]


def compact(value: object) -> bytes:
    """JSON in UTF-8 without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _around_tasks(value: object) -> object:
    """What a batch's body holds besides its tasks."""
    if not isinstance(value, dict):
        return value
    return {key: part for key, part in value.items() if key != "tasks" or not isinstance(part, list)}


def _item(value: object, place: _Place, document: Document) -> TaskSpec | FieldsInvalid:
    try:
        return task_spec_at(value, place, document)
    except FieldsInvalid as refusal:
        return refusal


def _reject_deep(value: object, place: _Place) -> None:
    """Refuse one task of a batch that is nested too deeply; the guard has bounded the batch as a whole."""
    level = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [part for whole in level for part in _parts(whole)]
    if any(isinstance(part, dict | list) for part in level):
        raise FieldsInvalid([Fault(path_of(place), f"is nested deeper than {MAX_JSON_DEPTH} levels")])


def _parts(value: object) -> Iterable[object]:
    """What a list or an object holds."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _spec(value: object, place: _Place) -> TaskSpec:
    return spec_of(validated(TaskCreate, value, place), place)


def spec_of(body: TaskCreate, place: _Place = _ROOT) -> TaskSpec:
    """The task that a body, or the part of one at a place, asks for.

    Raises:
        FieldsInvalid: it contradicts itself, or its payload is too large.
    """
    _reject_contradictions(body, place)
    spec = TaskSpec(
        type=body.type,
        payload=_payload(body, place),
        due_at=body.at,
        delay=_delay(body),
        allow_unknown_type=body.allow_unknown_type,
        **_plain_fields(body),
    )
    if not isinstance(body.target, TopologyTarget):
        return spec
    graph = _graph(body.payload, (*place, "payload"))
    # The attempt lasts as long as its graph may; a shorter time that is asked for by name is the client's own.
    return spec if "deadline_seconds" in body.model_fields_set else spec.of_graph(spec.payload, graph.lasts_seconds)


def _plain_fields(body: TaskFields) -> dict[str, Any]:
    """The fields that a task has under the same name."""
    return {
        **{name: getattr(body, name) for name in _KEPT_AS_IT_IS},
        "target": _target(body.target) if "target" in body.model_fields_set else None,
        "retry": _retry(body.retry),
        "lock": _lock(body.lock),
    }


def _reject_contradictions(body: TaskFields, place: _Place) -> None:
    """Refuse what cannot hold together: two due times, and a rollback that the target named does not offer."""
    if {"at", "delay_seconds"} <= body.model_fields_set:
        reason = "cannot be given together with"
        raise FieldsInvalid(
            [
                Fault(path_of((*place, "at")), f"{reason} delay_seconds"),
                Fault(path_of((*place, "delay_seconds")), f"{reason} at"),
            ]
        )
    if body.rollback and isinstance(body.target, HttpTarget) and "rollback" not in body.target.phases:
        raise FieldsInvalid([Fault(path_of((*place, "rollback")), "needs 'rollback' among the phases of the target")])


def _graph(payload: object, place: _Place) -> Graph:
    """The graph that is a topology's payload; one that cannot be run is refused."""
    # A node is a task as well, so the reader of graphs imports this module.
    from duetime.contract.topologies.decoding import graph_of  # noqa: PLC0415 - see the line above

    try:
        return graph_of(payload)
    except FieldInvalid as refusal:
        raise FieldsInvalid([Fault(f"{path_of(place)}.{refusal.field}", refusal.reason)]) from None
    except FieldsInvalid as refusal:
        where = path_of(place)
        faults = [Fault(where if f.field == BODY else f"{where}.{f.field}", f.reason) for f in refusal.faults]
        raise FieldsInvalid(faults) from None


def _payload(body: TaskFields, place: _Place) -> bytes:
    payload = compact(body.payload)
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise FieldsInvalid([Fault(path_of((*place, "payload")), f"is larger than {MAX_PAYLOAD_BYTES} bytes")])
    return payload


def _delay(body: TaskFields) -> Millis | None:
    if "delay_seconds" not in body.model_fields_set:
        return None
    # The decimal that was written, rounded up: binary fractions would make 0.29 s a millisecond more or less.
    return int((Decimal(str(body.delay_seconds)) * SECOND).to_integral_value(ROUND_CEILING))


def _target(body: Target) -> targets.Target:
    if isinstance(body, HttpTarget):
        phases = frozenset(targets.Phase(phase) for phase in body.phases)
        return targets.HttpTarget(body.url, phases, frozenset(targets.Query(query) for query in body.queries))
    if isinstance(body, HandlerTarget):
        return targets.HandlerTarget()
    if isinstance(body, TopologyTarget):
        return targets.TopologyTarget()
    return targets.PullTarget() if isinstance(body, PullTarget) else _aws_target(body)


def _aws_target(body: AwsTarget) -> targets.AwsTarget:
    return targets.AwsTarget(
        AwsService(body.kind),
        body.arn,
        waits=not isinstance(body, LambdaTarget) or body.mode == "sync",
        detail_type=(body.detail_type or "") if isinstance(body, EventBridgeTarget) else "",
    )


def _lock(body: Lock | None) -> domain.LockSpec | None:
    return None if body is None else domain.LockSpec(body.key, body.limit, body.scope)


def _retry(body: Retry) -> RetryPolicy:
    return RetryPolicy(body.max_attempts, body.initial_seconds, body.multiplier, body.max_seconds)
