"""Converts fields of a task's body into domain values."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact, path_of
from duetime.contract.http.validation_errors import validated
from duetime.contract.mapping import value_of
from duetime.contract.tasks.bodies import BinaryPayload, TaskCreate, TaskFields, UploadPayload
from duetime.contract.tasks.target_fields import (
    ApprovalTarget,
    BatchTarget,
    CallBatch,
    CodeBuildTarget,
    EcsTarget,
    EventBridgeTarget,
    EventTarget,
    GlueTarget,
    HandlerTarget,
    HttpTarget,
    LambdaTarget,
    PullTarget,
    StepFunctionsTarget,
    TopologyTarget,
)
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_PAYLOAD_BYTES
from duetime.domain.tasks import placeholders, targets, task_options
from duetime.domain.tasks.targets import (
    Auth,
    AuthScheme,
    AwsService,
    BodyKind,
    HttpRequest,
    Keep,
    RequestBody,
    ResponseOptions,
)
from duetime.domain.tasks.task_options import OnConflict, RetryPolicy
from duetime.domain.tasks.type_defaults import DEFAULTED, TaskSpec
from duetime.domain.times import SECOND
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime.domain.uploads import UPLOAD
from duetime_common.payload_codecs import BINARY, Binary, json_of_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.contract.tasks import target_fields as bodies
    from duetime.contract.tasks.bodies import Lock, LockPatch, TaskPatch
    from duetime.contract.tasks.target_fields import AwsTarget, DefinitionRun, JobTarget, Target
    from duetime.domain.tasks.dependencies import Dependencies
    from duetime.domain.times import Millis


Place = tuple[str | int, ...]
ROOT: Place = ()
_BUILT_IN = TaskSpec("")
_MADE = {"retry", "lock", "locks", "rate", "notify_on"}
_ONLY_IN_CREATIONS = "is allowed only where a task is created"
_KEPT_AS_IT_IS = frozenset(task_options.TASK_OPTIONS) - _MADE
_OF_CREATIONS = frozenset({"allow_unknown_type", "unique", "debounce", "order", "parent_task_id", "group", "after"})
_MAY_CONTRADICT = frozenset({"delay_seconds", "locks", "rollback_on_failure", "debounce"})
"""Fields that can contradict other fields; a request without any of these fields has no contradictions."""
_DEFAULTED = frozenset(DEFAULTED)
_DEFAULTS = {name: getattr(_BUILT_IN, name) for name in (*task_options.TASK_OPTIONS, "target", "unique")}
"""The values of options that a request does not give."""


def fields_spec(body: TaskCreate, place: Place = ROOT) -> TaskSpec:
    """Converts the fields of a task, without reading a topology's graph.

    Raises:
        FieldsInvalid: fields contradict each other, or the payload is too large.
    """
    given = body.model_fields_set
    if not given.isdisjoint(_MAY_CONTRADICT):
        _reject_contradictions(body, place)
        _reject_contradicting_keys(body, place)
    fields = _given(body)
    if not given.isdisjoint(_OF_CREATIONS):
        fields |= _of_creation(body, place)
    upload = _upload_of(body, place)
    if upload is not None:
        fields["upload"] = upload
    elif "payload" in given:
        fields["payload"] = payload_bytes(body, place)
    if "due_at" in given:
        fields["due_at"] = body.due_at
    if "delay_seconds" in given:
        fields["delay"] = delay_of(body)
    # Options that the request explicitly sets to their default values.
    explicit = [name for name in _DEFAULTED & given if fields[name] == _DEFAULTS[name]]
    return TaskSpec(type=body.type, explicit=frozenset(explicit), **fields)


def _of_creation(body: TaskCreate, place: Place) -> dict[str, Any]:
    """The fields, apart from the type, that only creations have."""
    return {
        "allow_unknown_type": body.allow_unknown_type,
        "unique": value_of(task_options.Unique, body.unique),
        "debounce": value_of(task_options.Debounce, body.debounce),
        "order": value_of(task_options.OrderKey, body.order),
        "parent_task_id": None if body.parent_task_id is None else TaskId(body.parent_task_id),
        "group": None if body.group is None else body.group.id,
        "after": _after(body, place) if body.after else None,
    }


def _after(body: TaskCreate, place: Place) -> Dependencies:
    """The dependencies of the task.

    Raises:
        FieldsInvalid: the request could change an existing task instead of creating a task, or the task would wait for
            a task that waits for it.
    """
    # This module is imported late, because few tasks wait for other tasks.
    from duetime.domain.tasks.dependencies import Dependencies, Dependency, OccurrenceRef  # noqa: PLC0415 - see the line above

    if body.debounce is not None or (body.unique is not None and body.unique.on_conflict is OnConflict.REPLACE):
        reason = "cannot be given together with debounce, or with a unique key that replaces"
        raise FieldsInvalid([Fault(path_of((*place, "after")), reason, FaultCode.CONFLICT)])
    if body.order is not None and not all(isinstance(each, str) for each in body.after or ()):
        reason = "cannot name an occurrence of a schedule together with order: its task could come behind this one"
        raise FieldsInvalid([Fault(path_of((*place, "after")), reason, FaultCode.CONFLICT)])
    on = [
        Dependency(TaskId(each))
        if isinstance(each, str)
        else Dependency(None, OccurrenceRef(each.schedule, each.occurrence))
        for each in body.after or ()
    ]
    return Dependencies(tuple(on), body.trigger_rule or TriggerRule.ALL_SUCCESS)


def plain_fields(body: TaskFields) -> dict[str, Any]:
    """The fields that have the same names in the domain."""
    return {**_DEFAULTS, **_given(body)}


def _given(body: TaskFields) -> dict[str, Any]:
    """The given fields; if only one of `lock` and `locks` is given, the other field is added."""
    given = body.model_fields_set
    fields = {name: getattr(body, name) for name in _KEPT_AS_IT_IS & given}
    if "target" in given:
        fields["target"] = _target(body.target)
    if "retry" in given:
        fields["retry"] = value_of(RetryPolicy, body.retry)
    if "lock" in given or "locks" in given:
        one, several = value_of(task_options.LockSpec, body.lock), [_lock(lock) for lock in body.locks]
        fields["lock"], fields["locks"] = task_options.one_form(one, several)
    if "rate" in given:
        fields["rate"] = value_of(task_options.Rate, body.rate)
    if "notify_on" in given:
        fields["notify_on"] = value_of(task_options.NotifyOn, body.notify_on)
    return fields


def _lock(body: Lock) -> task_options.LockSpec:
    return value_of(task_options.LockSpec, body)


def reject_two_due_times(body: TaskFields | TaskPatch, place: Place) -> None:
    """Rejects a body with two due times.

    Raises:
        FieldsInvalid: the body has two due times.
    """
    if body.due_at is not None and {"due_at", "delay_seconds"} <= body.model_fields_set:
        reason = "cannot be given together with"
        raise FieldsInvalid(
            [
                Fault(path_of((*place, "due_at")), f"{reason} delay_seconds", FaultCode.CONFLICT),
                Fault(path_of((*place, "delay_seconds")), f"{reason} due_at", FaultCode.CONFLICT),
            ]
        )


def reject_two_forms_of_locks(lock: Lock | LockPatch | None, locks: Sequence[Lock] | None, place: Place = ROOT) -> None:
    """Rejects a body with both `lock` and `locks`.

    Raises:
        FieldsInvalid: the body has both.
    """
    if lock is not None and locks:
        reason = "cannot be given together with lock: name all locks in locks"
        raise FieldsInvalid([Fault(path_of((*place, "locks")), reason, FaultCode.CONFLICT)])


def _reject_contradictions(body: TaskFields, place: Place) -> None:
    """Rejects contradictions, such as two due times, or a rollback that the target does not support."""
    reject_two_due_times(body, place)
    reject_two_forms_of_locks(body.lock, body.locks, place)
    if body.rollback_on_failure and isinstance(body.target, HttpTarget) and "rollback" not in body.target.phases:
        reason = "needs 'rollback' among the phases of the target"
        raise FieldsInvalid([Fault(path_of((*place, "rollback_on_failure")), reason, FaultCode.CONFLICT)])


def _reject_contradicting_keys(body: TaskCreate, place: Place) -> None:
    """Rejects fields that contradict `debounce`, because debouncing determines the due time and the unique key."""
    if body.debounce is None:
        return
    given = {"due_at", "delay_seconds"} & body.model_fields_set | ({"unique"} if body.unique is not None else set())
    if given:
        reason = "cannot be given together with debounce"
        raise FieldsInvalid(Fault(path_of((*place, name)), reason, FaultCode.CONFLICT) for name in sorted(given))


def reject_uniqueness(body: TaskCreate, place: Place, reason: str, *, order: str = "") -> None:
    """Rejects a unique key, an ordered key, a parent, a group and dependencies where these fields are not allowed.

    Args:
        body: the fields.
        place: path of the body in the request.
        reason: why no unique key is allowed.
        order: why no ordered key is allowed; empty if ordered keys are allowed.

    Raises:
        FieldsInvalid: the body has such a field.
    """
    created = _ONLY_IN_CREATIONS
    reasons = {"unique": reason, "debounce": reason, "parent_task_id": created, "group": created, "after": created}
    if "depends_on" in type(body).model_fields:
        reasons["after"] = "is not allowed in a node: use `depends_on`"
    else:
        reasons["trigger_rule"] = created
    if order:
        reasons["order"] = order
    faults = [(name, reasons[name]) for name in reasons if getattr(body, name) is not None]
    if _names_upload(body):
        faults.append((f"payload.{UPLOAD}", created))
    if faults:
        raise FieldsInvalid(Fault(path_of((*place, name)), why, FaultCode.NOT_ALLOWED) for name, why in faults)


def payload_bytes(body: TaskFields | TaskPatch, place: Place) -> bytes:
    """The payload in stored form.

    Raises:
        FieldsInvalid: the payload is too large, has an unknown placeholder, represents bytes in an invalid format, or
            names an upload.
    """
    if _names_upload(body):
        raise FieldsInvalid([Fault(path_of((*place, "payload", UPLOAD)), _ONLY_IN_CREATIONS, FaultCode.NOT_ALLOWED)])
    if isinstance(body.payload, dict) and BINARY in body.payload and not isinstance(body.target, TopologyTarget):
        return _binary_payload(body.payload, (*place, "payload"))
    payload = compact(body.payload)
    if len(payload) > MAX_PAYLOAD_BYTES:
        reason = f"is larger than {MAX_PAYLOAD_BYTES} bytes"
        raise FieldsInvalid([Fault(path_of((*place, "payload")), reason, FaultCode.TOO_LONG)])
    # Placeholders in a graph belong to its nodes, which are validated individually.
    if placeholders.holds_any(payload) and not isinstance(body.target, TopologyTarget):
        _reject_bad_placeholders(body.payload, (*place, "payload"))
    return payload


def _names_upload(body: TaskFields | TaskPatch) -> bool:
    return isinstance(body.payload, dict) and UPLOAD in body.payload and not isinstance(body.target, TopologyTarget)


def _upload_of(body: TaskCreate, place: Place) -> str | None:
    """The id of the upload that a payload names; `None` for other payloads.

    Raises:
        FieldsInvalid: the payload has other fields, or the task could replace an existing task.
    """
    if not _names_upload(body):
        return None
    upload = validated(UploadPayload, body.payload, (*place, "payload")).upload
    if body.debounce is not None or (body.unique is not None and body.unique.on_conflict is OnConflict.REPLACE):
        reason = "cannot be given together with debounce, or with a unique key that replaces"
        raise FieldsInvalid([Fault(path_of((*place, "payload", UPLOAD)), reason, FaultCode.CONFLICT)])
    return upload


def _binary_payload(payload: dict[str, object], place: Place) -> bytes:
    """A payload that represents bytes, in stored form, which also includes a default content type.

    Raises:
        FieldsInvalid: the payload has other fields, is not base64, or has too many bytes.
    """
    binary = validated(BinaryPayload, payload, place).binary
    data = base64.b64decode(binary.base64)
    if len(data) > MAX_PAYLOAD_BYTES:
        reason = f"has more than {MAX_PAYLOAD_BYTES} bytes"
        raise FieldsInvalid([Fault(path_of((*place, BINARY, "base64")), reason, FaultCode.TOO_LONG)])
    return compact(json_of_bytes(Binary(data, binary.content_type)))


def _reject_bad_placeholders(value: object, place: Place) -> None:
    faults = []
    for where, text, is_key in placeholders.texts_of(value, place):
        why = "is a key with a placeholder; only values may hold one" if is_key else placeholders.refusal(text)
        if why is not None:
            faults.append(Fault(path_of(where), why))
    if faults:
        raise FieldsInvalid(faults)


def delay_of(body: TaskFields | TaskPatch) -> Millis | None:
    """The delay from a task's acceptance to its due time; `None` if not given."""
    if "delay_seconds" not in body.model_fields_set or body.delay_seconds is None:
        return None
    return milliseconds(body.delay_seconds)


def milliseconds(seconds: float) -> Millis:
    """A delay in milliseconds, rounded up, so that nothing is due early.

    The decimal as written is used, because binary fractions could add or lose a millisecond, as for 0.29 s.
    """
    return int((Decimal(str(seconds)) * SECOND).to_integral_value(ROUND_CEILING))


def _target(body: Target) -> targets.Target:
    if isinstance(body, HttpTarget):
        phases = frozenset(targets.Phase(phase) for phase in body.phases)
        queries = frozenset(targets.Query(query) for query in body.queries)
        return targets.HttpTarget(body.url, phases, queries, _request(body), _batch(body.batch))
    if isinstance(body, HandlerTarget):
        return targets.HandlerTarget()
    if isinstance(body, TopologyTarget):
        return targets.TopologyTarget(_definition(body.definition))
    if isinstance(body, ApprovalTarget):
        return targets.ApprovalTarget(body.timeout_seconds, targets.OnTimeout(body.on_timeout))
    if isinstance(body, EventTarget):
        return targets.EventTarget(body.event, body.key, body.timeout_seconds, body.lookback_seconds, body.when)
    return targets.PullTarget() if isinstance(body, PullTarget) else _aws_target(body)


def _batch(body: CallBatch | None) -> targets.CallBatch | None:
    return None if body is None else targets.CallBatch(body.max_size, body.max_wait_seconds)


def _request(body: HttpTarget) -> HttpRequest:
    """The request that a target's fields describe."""
    auth, response = body.auth, body.response
    return HttpRequest(
        method=body.method or "",
        headers=tuple(body.headers.items()),
        query=tuple(body.query.items()),
        body=None if body.body is None else _request_body(body.body),
        success=tuple(sorted(set(body.success or ()))),
        auth=None if auth is None else Auth(auth.secret, AuthScheme(auth.scheme), auth.header or ""),
        response=ResponseOptions()
        if response is None
        else ResponseOptions(Keep(response.keep), response.max_bytes, response.when_larger == "truncate"),
    )


def _request_body(body: bodies.RequestBody) -> RequestBody:
    (name,) = body.model_fields_set
    kind, value = BodyKind(name.rstrip("_")), getattr(body, name)
    if kind.is_structured:
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return RequestBody(kind, value)


def _definition(body: DefinitionRun | None) -> targets.DefinitionRef | None:
    if body is None:
        return None
    return targets.DefinitionRef(body.name, body.version, compact(body.parameters).decode())


def _aws_target(body: AwsTarget) -> targets.AwsTarget:
    if isinstance(body, LambdaTarget):
        return _lambda_target(body)
    if isinstance(body, EcsTarget | BatchTarget | CodeBuildTarget | GlueTarget):
        return _job_target(body)
    return targets.AwsTarget(
        AwsService(body.kind),
        body.arn,
        detail_type=(body.detail_type or "") if isinstance(body, EventBridgeTarget) else "",
        is_job=isinstance(body, StepFunctionsTarget) and body.wait,
    )


def _job_target(body: JobTarget) -> targets.AwsTarget:
    parameters = compact(body.parameters).decode() if body.parameters else ""
    job = targets.AwsTarget(AwsService(body.kind), body.arn, is_job=True, parameters=parameters)
    if isinstance(body, EcsTarget):
        return replace(job, place=body.cluster, container=body.container)
    return replace(job, place=body.queue) if isinstance(body, BatchTarget) else job


def _lambda_target(body: LambdaTarget) -> targets.AwsTarget:
    is_durable = body.mode == "durable"
    return targets.AwsTarget(AwsService.LAMBDA, body.arn, waits=body.mode != "async", is_job=is_durable)
