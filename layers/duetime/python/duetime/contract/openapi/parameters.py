"""Parameters of operations: in paths, queries and headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from duetime.contract.http.operation import OWNER
from duetime.contract.openapi.docstring_descriptions import described
from duetime.contract.openapi.portable import portable
from duetime.contract.openapi.schemas import REFERENCE
from duetime.contract.pull.lease_tokens import TOKEN_PATTERN
from duetime.contract.tasks.fields import LOCK_KEY_PATTERN, SCHEDULE_NAME_PATTERN
from duetime.domain.limits import MAX_OWNER_LENGTH
from duetime.domain.switches import SwitchScope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.operation import Header, Operation

Schema = dict[str, Any]
_ID: Schema = {"type": "string", "pattern": "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"}
_NAME: Schema = {"type": "string", "pattern": SCHEDULE_NAME_PATTERN}
_IN_PATH: Mapping[str, tuple[str, Schema]] = {
    "task_id": ("The task's id.", _ID),
    "topology_id": ("The topology's id.", _ID),
    "operation_id": ("The bulk operation's id.", _ID),
    "lease_id": ("The lease's id.", {"type": "string", "pattern": TOKEN_PATTERN}),
    "key": ("The lock's key.", {"type": "string", "pattern": LOCK_KEY_PATTERN}),
    "backfill_id": ("The backfill's id.", {"type": "string"}),
    "scope": ("The scope of the switch.", {"type": "string", "enum": [scope.value for scope in SwitchScope]}),
    "name": ("The {subject}'s name.", _NAME),
}
_SWITCH_NAME: tuple[str, Schema] = (
    "The type or the owner, with every `/` as `%2F`; `all` for the scope `all`.",
    {"type": "string", "minLength": 1, "maxLength": MAX_OWNER_LENGTH, "examples": ["report"]},
)
_NAMED = {"schedules": "schedule", "calendars": "calendar"}


def parameters(operation: Operation, *, names_owner: bool) -> list[Schema]:
    """All parameters of an operation.

    Args:
        operation: the operation.
        names_owner: whether the deployment reads the owner from a header.
    """
    headers = [_header(header) for header in operation.all_headers if names_owner or header is not OWNER]
    return [*_in_path(operation), *_in_query(operation), *headers]


def _in_path(operation: Operation) -> list[Schema]:
    subject = next((_NAMED[part] for part in operation.path.split("/") if part in _NAMED), "resource")
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    known = {**_IN_PATH, "name": _SWITCH_NAME} if "scope" in names else _IN_PATH
    return [_path_parameter(known, name, subject) for name in names]


def _path_parameter(known: Mapping[str, tuple[str, Schema]], name: str, subject: str) -> Schema:
    text, schema = known.get(name, (f"The {name.replace('_', ' ')}.", {"type": "string"}))
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": text.format(subject=subject),
        "schema": schema,
    }


def _in_query(operation: Operation) -> list[Schema]:
    if operation.query is None:
        return []
    schema: Schema = operation.query.model_json_schema(ref_template=REFERENCE)
    required = schema.get("required", [])
    return [
        _query_parameter(name, portable(field), is_required=name in required)
        for name, field in schema["properties"].items()
    ]


def _query_parameter(name: str, schema: Schema, *, is_required: bool) -> Schema:
    description = schema.pop("description", "")
    # Omitted parameters are absent, never null.
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    parameter: Schema = {"name": name, "in": "query", "description": description, "schema": described(schema)}
    if schema.get("type") == "array":
        # The default of all generators; commas are also accepted if the description says so.
        parameter |= {"style": "form", "explode": True}
    return parameter | ({"required": True} if is_required else {})


def _header(header: Header) -> Schema:
    described_by = portable({"type": "string", **header.schema, "description": header.description})
    description = described_by.pop("description")
    if "const" in described_by:
        # openapi-python-client omits operations with a header that has only one possible value.
        described_by["pattern"] = f"^{re.escape(described_by.pop('const'))}$"
    return {"name": header.name, "in": "header", "description": description, "schema": described_by}
