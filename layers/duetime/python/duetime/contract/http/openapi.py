"""The OpenAPI document, made of the very models that requests are read by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from duetime.contract import locks, switches
from duetime.contract.bulk import bodies as requests
from duetime.contract.bulk import operations
from duetime.contract.http import problems
from duetime.contract.http.operations import OPERATIONS
from duetime.contract.http.version import CONTRACT_VERSION
from duetime.contract.pull import leases
from duetime.contract.pull.lease_tokens import TOKEN_PATTERN
from duetime.contract.schedules import bodies as schedule_bodies
from duetime.contract.schedules import calendars
from duetime.contract.schedules import responses as schedule_responses
from duetime.contract.tasks import attempt_bodies, bodies, responses
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN
from duetime.contract.topologies import bodies as topology_bodies
from duetime.contract.topologies import responses as topology_responses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.contract.http.operation import Operation

Schema = dict[str, Any]
_REFERENCE = "#/components/schemas/{model}"
_NO_VALUES: tuple[tuple[str, object], ...] = (("default", None), ("default", []))
_DESCRIBED: tuple[tuple[type, Literal["validation", "serialization"]], ...] = (
    (bodies.TaskCreate, "validation"),
    (bodies.TaskPatch, "validation"),
    (bodies.TaskBatch, "validation"),
    (attempt_bodies.NoFields, "validation"),
    (attempt_bodies.Notification, "validation"),
    (attempt_bodies.Heartbeat, "validation"),
    (attempt_bodies.ProgressReport, "validation"),
    (requests.CancelMany, "validation"),
    (requests.ChangeMany, "validation"),
    (requests.RedriveMany, "validation"),
    (operations.BulkResponse, "serialization"),
    (operations.BulkPage, "serialization"),
    (switches.SwitchFields, "validation"),
    (leases.LeaseRequest, "validation"),
    (leases.LeaseHeartbeat, "validation"),
    (leases.Completion, "validation"),
    (leases.LeaseFailure, "validation"),
    (leases.LeasePause, "validation"),
    (leases.LeasesResponse, "serialization"),
    (leases.LeaseState, "serialization"),
    (responses.TaskResponse, "serialization"),
    (responses.PageResponse, "serialization"),
    (responses.AttemptsResponse, "serialization"),
    (responses.TargetReply, "serialization"),
    (responses.BatchResponse, "serialization"),
    (requests.FilterActionResponse, "serialization"),
    (switches.SwitchResponse, "serialization"),
    (switches.SwitchesResponse, "serialization"),
    (locks.LockPage, "serialization"),
    (locks.LockResponse, "serialization"),
    (locks.LockEntry, "serialization"),
    (schedule_bodies.ScheduleCreate, "validation"),
    (schedule_bodies.SchedulePatch, "validation"),
    (schedule_bodies.PreviewRequest, "validation"),
    (schedule_bodies.PauseRequest, "validation"),
    (schedule_bodies.BackfillRequest, "validation"),
    (schedule_responses.ScheduleResponse, "serialization"),
    (schedule_responses.SchedulePage, "serialization"),
    (schedule_responses.PreviewResponse, "serialization"),
    (schedule_responses.OccurrencesResponse, "serialization"),
    (calendars.CalendarFields, "validation"),
    (calendars.CalendarResponse, "serialization"),
    (calendars.CalendarPage, "serialization"),
    (topology_bodies.TopologyCreate, "validation"),
    (topology_responses.TopologyResponse, "serialization"),
    (responses.HealthResponse, "serialization"),
    (problems.Problem, "serialization"),
)

_PATH_PARAMETERS: Schema = {
    "task_id": {
        "description": "The task's id.",
        "schema": {
            "type": "string",
            "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$",
            "examples": ["01M7XZ8CGJ0013P2ZBN3YDT3DX"],
        },
    },
    "operation_id": {
        "description": "The operation's id.",
        "schema": {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"},
    },
    "lease_id": {"description": "The lease.", "schema": {"type": "string", "pattern": TOKEN_PATTERN}},
    "key": {"description": "The lock's key.", "schema": {"type": "string", "pattern": LOCK_KEY_PATTERN}},
    "backfill_id": {"description": "The backfill's id.", "schema": {"type": "string"}},
    "name": {
        "description": "The name of the schedule or the calendar.",
        "schema": {"type": "string", "pattern": SCHEDULE_NAME_PATTERN},
    },
}


def document() -> Schema:
    """The whole document."""
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "duetime",
            "version": CONTRACT_VERSION,
            "description": "A distributed task scheduler in your own AWS account. "
            "A deployment accepts one of the named ways to authenticate.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"sigv4": []}, {"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "description": "AWS Signature Version 4; the owner is the user, or the role of all its sessions.",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                },
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
        },
    }


def _schemas() -> dict[str, Schema]:
    adapters: Iterable[tuple[str, Literal["validation", "serialization"], TypeAdapter[Any]]] = [
        (model.__name__, mode, TypeAdapter(model)) for model, mode in _DESCRIBED
    ]
    _, together = TypeAdapter.json_schemas(adapters, ref_template=_REFERENCE)
    definitions: dict[str, Schema] = together["$defs"]
    return dict(sorted(definitions.items()))


def _operation(operation: Operation) -> Schema:
    described: Schema = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description or operation.summary,
        "tags": [operation.tag],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_headers(operation)],
        "responses": {**_successes(operation), **_problems(operation)},
    }
    if operation.body is not None:
        content: Schema = {"application/json": {"schema": _reference(operation.body)}}
        content |= {media_type: {"schema": {"type": "string"}} for media_type in operation.body_types}
        described["requestBody"] = {"required": operation.body is not attempt_bodies.NoFields, "content": content}
    return described


def _path_parameters(operation: Operation) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, **described}
        for name, described in _PATH_PARAMETERS.items()
        if f"{{{name}}}" in operation.path
    ]


def _query_parameters(operation: Operation) -> list[Schema]:
    if operation.query is None:
        return []
    properties: dict[str, Schema] = operation.query.model_json_schema(ref_template=_REFERENCE)["properties"]
    return [_query_parameter(name, dict(schema)) for name, schema in properties.items()]


def _query_parameter(name: str, schema: Schema) -> Schema:
    description = schema.pop("description")
    # A parameter that is not given is left out: it is never null.
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    schema = {key: value for key, value in schema.items() if key != "title" and (key, value) not in _NO_VALUES}
    parameter: Schema = {"name": name, "in": "query", "description": description, "schema": schema}
    if schema.get("type") == "array":
        parameter |= {"style": "form", "explode": name == "tag"}
    return parameter


def _headers(operation: Operation) -> list[Schema]:
    return [
        {
            "name": header.name,
            "in": "header",
            "description": header.description,
            "schema": {"type": "string", **header.schema},
        }
        for header in operation.headers
    ]


def _successes(operation: Operation) -> dict[str, Schema]:
    answered: Schema = {"description": operation.answer_description}
    if operation.answer is not None:
        answered["content"] = {"application/json": {"schema": operation.answer_schema or _reference(operation.answer)}}
    if operation.answer_headers:
        answered["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in operation.answer_headers.items()
        }
    found = {str(operation.status): answered}
    if operation.accepted:
        found["202"] = {**answered, "description": operation.accepted}
        if operation.accepted_response is not None:
            found["202"]["content"] = {"application/json": {"schema": _reference(operation.accepted_response)}}
        if operation.accepted_headers:
            headers = {**operation.answer_headers, **operation.accepted_headers}
            found["202"]["headers"] = {
                name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()
            }
    if operation.has_not_modified:
        found["304"] = {
            "description": "The caller's copy, named by `If-None-Match`, is still the task.",
            "headers": answered["headers"],
        }
    return found


def _problems(operation: Operation) -> dict[str, Schema]:
    kinds: dict[str, list[problems.Kind]] = {}
    for error in operation.refusals:
        kinds.setdefault(str(problems.KINDS[error].status.value), []).append(problems.KINDS[error])
    kinds["500"] = [problems.INTERNAL]
    return {status: _problem(same) for status, same in sorted(kinds.items())}


def _problem(kinds: list[problems.Kind]) -> Schema:
    by_code = {kind.code: kind for kind in kinds}
    described: Schema = {
        "description": "; ".join(f"`{kind.code}`: {kind.title}" for kind in by_code.values()),
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
    }
    if "unavailable" in by_code:
        seconds = {"description": "Seconds to wait before asking again.", "schema": {"type": "string"}}
        described["headers"] = {"Retry-After": seconds}
    return described


def _reference(model: type) -> Schema:
    return {"$ref": _REFERENCE.format(model=model.__name__)}
