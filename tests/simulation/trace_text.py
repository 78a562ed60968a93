"""The trace of a simulation as text, with one line per call: its time, machine, operation, key and outcome."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Line = tuple[Any, ...]
"""A line of a trace: a time in milliseconds, who acted, and what happened."""

_NAMES = {
    **{attribute.name: field for field, attribute in ATTRIBUTES.items()},
    schema.PARTITION_KEY: "partition",
    schema.SORT_KEY: "key",
    schema.VERSION_OF_SCHEMA: "schema",
}
_KEYS = frozenset({schema.PARTITION_KEY, schema.SORT_KEY})
_BRIEFLY = (
    "state",
    "version",
    "generation",
    "fence",
    "attempt",
    "next_at",
    "lease_expires_at",
    "requested_action",
    "finished_at",
)
"""The fields of a record that are shown for a response."""
_LEFT_OUT = frozenset({"Attributes", "Successful", "ResponseMetadata"})
_LABEL = re.compile(r"[#:]\w+")
_WIDTH = 300
_LED_TO = 60
"""The maximum number of lines that are shown before a violation."""
VIOLATION = "VIOLATION"


def told(lines: Sequence[Line]) -> list[str]:
    """The lines of a trace as text."""
    start = lines[0][0] if lines else 0
    return [_told(line, start) for line in lines]


def told_before(lines: Sequence[Line]) -> list[str]:
    """The last lines before the first violation that name the violation's task, schedule or topology."""
    at = next((number for number, line in enumerate(lines) if VIOLATION in line[2:]), None)
    if at is None:
        return []
    start = lines[0][0]
    words = {word.strip("',:()[]") for word in str(lines[at][-1]).split()}
    names = {word for word in words if len(word) > 20 or word.startswith("schedule-")}
    told_lines = [_told(line, start) for line in lines[: at + 1] if _mentions(line, names)]
    return told_lines[-_LED_TO:]


def _mentions(line: Line, names: Iterable[str]) -> bool:
    text = str(line[2:])
    return any(name in text for name in names)


def _told(line: Line, start: int) -> str:
    at, who, *what = line
    seconds = (at - start) / 1000
    words = _call(*what) if len(what) == 3 and isinstance(what[1], dict) else " ".join(map(str, what))
    return f"{seconds:>9.3f} {who:<13} {words[:_WIDTH]}"


def _call(operation: str, request: dict[str, Any], answer: object) -> str:
    """An AWS call as text: its operation, item or message, changes, and result."""
    is_record = _is_record(request)
    parts = [operation, _key(request)]
    if "UpdateExpression" in request:
        parts.append(_spelled(request["UpdateExpression"], request, is_record))
    if "ConditionExpression" in request and isinstance(answer, Exception):
        parts.append("if " + _spelled(request["ConditionExpression"], request, is_record))
    if "KeyConditionExpression" in request:
        parts.append(_spelled(request["KeyConditionExpression"], request, is_record=False))
    if "Item" in request:
        parts.append(_item(request["Item"], is_record))
    parts += [_entry(entry) for entry in request.get("Entries", ())]
    parts += [f"{name}={request[name]}" for name in ("FunctionName", "name", "taskToken") if name in request]
    return " ".join(part for part in parts if part) + " -> " + _response(answer, is_record)


def _is_record(request: Mapping[str, Any]) -> bool:
    """Whether a call is about a task's record, whose attributes have special names."""
    key = request.get("Key") or request.get("Item")
    return isinstance(key, Mapping) and str(key.get(schema.PARTITION_KEY, {}).get("S", ""))[:1].isdigit()


def _key(request: Mapping[str, Any]) -> str:
    key = request.get("Key") or request.get("Item") or {}
    if isinstance(key, str):
        return key
    if schema.SORT_KEY in key:
        return f"{_value(key[schema.PARTITION_KEY])}/{_value(key[schema.SORT_KEY])}"
    return str(request.get("QueueUrl", "")).rpartition("/")[2]


def _spelled(expression: str, request: Mapping[str, Any], is_record: bool) -> str:  # noqa: FBT001 - what it is about
    """A DynamoDB expression in which names and values replace the placeholders."""
    names = {label: _name(each, is_record) for label, each in request.get("ExpressionAttributeNames", {}).items()}
    values = {label: _value(each) for label, each in request.get("ExpressionAttributeValues", {}).items()}
    said = {**names, **values}
    return "[" + _LABEL.sub(lambda found: said.get(found[0], found[0]), expression) + "]"


def _name(name: str, is_record: bool) -> str:  # noqa: FBT001 - same
    return _NAMES.get(name, name) if is_record or name in _KEYS else name


def _item(item: Mapping[str, Any], is_record: bool) -> str:  # noqa: FBT001 - same
    shown = {_name(name, is_record): _value(value) for name, value in item.items() if name not in _KEYS}
    return "{" + ", ".join(f"{name}={value}" for name, value in shown.items()) + "}"


def _value(value: Mapping[str, Any]) -> str:
    ((kind, inside),) = value.items()
    return f"{len(inside)} bytes" if kind == "B" else str(inside)


def _entry(entry: Mapping[str, Any]) -> str:
    if "MessageBody" in entry:
        return f"{entry['MessageBody']} in {entry.get('DelaySeconds', 0)} s"
    if "DetailType" in entry:
        return f"{entry['DetailType']} {json.loads(entry['Detail'])['id']}"
    return f"{entry['ReceiptHandle']}" + (
        f" away for {entry['VisibilityTimeout']} s" if "VisibilityTimeout" in entry else ""
    )


def _response(answer: object, is_record: bool) -> str:  # noqa: FBT001 - same
    if isinstance(answer, ClientError):
        refused = answer.response.get("Item")
        code = str(answer.response["Error"]["Code"])
        return f"{code} {_brief(refused, is_record)}" if isinstance(refused, Mapping) else code
    if not isinstance(answer, Mapping):
        return str(answer)
    found = answer.get("Item") or answer.get("Attributes")
    if isinstance(found, Mapping) and schema.SORT_KEY in found:
        return _brief(found, is_record)
    if "Items" in answer:
        return f"{answer['Count']} items " + " ".join(_value(each[schema.SORT_KEY]) for each in answer["Items"][:10])
    if "Messages" in answer:
        return " ".join(f"{each['Body']} as {each['ReceiptHandle']}" for each in answer["Messages"])
    failed = [entry["Id"] for entry in answer.get("Failed", ())]
    rest = {name: value for name, value in answer.items() if name not in _LEFT_OUT}
    return f"entries {failed} failed" if failed else json.dumps(rest, default=str) if rest else "done"


def _brief(item: Mapping[str, Any], is_record: bool) -> str:  # noqa: FBT001 - same
    """The important fields of a task record; all other items are shown completely."""
    if not is_record:
        return _item(item, is_record)
    named = {_NAMES.get(name, name): value for name, value in item.items()}
    return "{" + ", ".join(f"{name}={_value(named[name])}" for name in _BRIEFLY if name in named) + "}"
