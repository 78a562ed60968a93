"""Decodes events that create or cancel tasks, and converts events in other formats to EventBridge's format."""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from duetime.contract.http import request_json
from duetime.contract.http.request_errors import BodyUnreadable, FaultyRequest
from duetime.contract.http.request_json import Document, reject_invalid_values
from duetime.contract.http.timestamps import instant_of
from duetime.contract.http.validation_errors import validated
from duetime.contract.tasks.decoding import task_spec_at
from duetime.domain.ids import TRACEPARENT, read_traceparent
from duetime.domain.intake_rules import IntakeEvent
from duetime.domain.limits import MAX_EVENT_NAME_LENGTH, MAX_JSON_DEPTH
from duetime.domain.tasks.creation import Order, Origin
from duetime.domain.times import SECOND, Millis, to_iso

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from duetime.domain.tasks.type_defaults import TaskSpec

_DETAIL, _DETAIL_TYPE = "detail", "detail-type"
_QUEUE = "queue"
"""Source of messages that were sent directly to the intake's queue rather than as events. SQS assigns the ids of these
messages."""
_Name = Annotated[str, Field(min_length=1, max_length=MAX_EVENT_NAME_LENGTH)]


class Event(BaseModel):
    """The relevant fields of an event apart from its detail; other fields are ignored.

    Source: EventBridge User Guide, "Events".
    """

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    id: _Name
    source: _Name
    time: Annotated[Millis, BeforeValidator(instant_of)]


def read_record(record: Mapping[str, Any], queues: Collection[str], detail_type: str) -> Order | IntakeEvent:
    """Decodes a record that Lambda has received from a stream or a queue.

    Args:
        record: the record from the Lambda event.
        queues: ARNs of queues whose messages are events for intake rules.
        detail_type: detail type of the events in the intake's own queue whose detail is a task; all other events are
            for intake rules.

    Raises:
        FaultyRequest: the body is unreadable, or some fields are invalid.
    """
    if record["eventSource"] == "aws:dynamodb":
        return _event_of_stream(record)
    if record["eventSourceARN"] in queues:
        return _event_of_message(record)
    document = _read(record["body"])
    value = document.value
    if isinstance(value, dict) and _DETAIL in value and value.get(_DETAIL_TYPE, detail_type) != detail_type:
        return _event_of(document)
    trace = record.get("messageAttributes", {}).get(TRACEPARENT, {}).get("stringValue")
    spec, origin = _task_of(document, record)
    return Order(spec, origin=origin, traceparent=read_traceparent(trace))


def _read(body: str) -> Document:
    return request_json.read(body, depth=MAX_JSON_DEPTH + 1)


def _task_of(document: Document, record: Mapping[str, Any]) -> tuple[TaskSpec, Origin]:
    """The task in a message, and the event from which the task is created.

    If the message is just a task, the message itself serves as the event.
    """
    value = document.value
    if isinstance(value, dict) and _DETAIL in value:
        return task_spec_at(value[_DETAIL], (_DETAIL,), document), _origin(document)
    # This time is the same for every delivery of a message.
    delivered = Origin(_QUEUE, record["messageId"], int(record["attributes"]["SentTimestamp"]))
    return task_spec_at(value, (), document), delivered


def _event_of(document: Document) -> IntakeEvent:
    """An event in EventBridge's format."""
    reject_invalid_values(document.value, document)
    return IntakeEvent(cast("Mapping[str, Any]", document.value), _origin(document))


def _event_of_message(record: Mapping[str, Any]) -> IntakeEvent:
    """The event in a message from one of the queues in the settings, or the message itself as an event.

    Source: AWS Lambda Developer Guide, "Using Lambda with Amazon SQS".
    """
    body: Any
    try:
        document = _read(record["body"])
        reject_invalid_values(document.value, document)
        body = document.value
    except FaultyRequest:
        # Messages may have any format.
        body = record["body"]
    if isinstance(body, dict) and {_DETAIL, _DETAIL_TYPE, "id", "source", "time"} <= body.keys():
        return _event_of(document)
    attributes = {
        name: each["stringValue"]
        for name, each in record.get("messageAttributes", {}).items()
        if each.get("stringValue") is not None
    }
    return _made(
        "aws.sqs",
        "SQS message",
        record["messageId"],
        int(record["attributes"]["SentTimestamp"]),
        record["eventSourceARN"],
        {"body": body, "attributes": attributes},
    )


def _event_of_stream(record: Mapping[str, Any]) -> IntakeEvent:
    """The event for a change in a DynamoDB table, with `keys`, `new` and `old` as JSON.

    Binary attributes become base64 strings, and sets become lists. Source: AWS Lambda Developer Guide, "Using Lambda
    with DynamoDB".
    """
    change = record["dynamodb"]
    detail = {
        "eventName": record["eventName"],
        "keys": _json_of(change.get("Keys")),
        "new": _json_of(change.get("NewImage")),
        "old": _json_of(change.get("OldImage")),
    }
    at = int(change["ApproximateCreationDateTime"] * SECOND)
    return _made("aws.dynamodb", "DynamoDB stream record", record["eventID"], at, record["eventSourceARN"], detail)


def events_of_logs(data: str) -> Iterator[IntakeEvent]:
    """One event for each CloudWatch Logs line.

    The event has the line's `message`, and `json` if the message is a JSON object. Source: CloudWatch Logs User Guide,
    "Subscription filters with AWS Lambda".

    Args:
        data: the delivered JSON, compressed with gzip and encoded as base64.

    Raises:
        BodyUnreadable: the data has another format.
    """
    try:
        found = json.loads(gzip.decompress(base64.b64decode(data, validate=True)))
    except (binascii.Error, OSError, EOFError, zlib.error, ValueError) as error:
        raise BodyUnreadable("is not a delivery of CloudWatch Logs") from error
    if found["messageType"] != "DATA_MESSAGE":
        # CloudWatch Logs sends this record only to test the delivery.
        return
    place = {"logGroup": found["logGroup"], "logStream": found["logStream"]}
    for line in found["logEvents"]:
        detail = {**place, "message": line["message"], "json": _object_in(line["message"])}
        yield _made("aws.logs", "CloudWatch Logs event", line["id"], line["timestamp"], found["logGroup"], detail)


def _object_in(message: str) -> Mapping[str, Any] | None:
    try:
        document = _read(message)
        reject_invalid_values(document.value, document)
    except FaultyRequest:
        return None
    return document.value if isinstance(document.value, dict) else None


def _made(source: str, detail_type: str, id_: str, at: Millis, resource: str, detail: object) -> IntakeEvent:
    """An event in EventBridge's format."""
    event = {
        "id": id_,
        "source": source,
        _DETAIL_TYPE: detail_type,
        "time": to_iso(at),
        "resources": [resource],
        _DETAIL: detail,
    }
    return _event_of(Document(event, marked=False))


def _origin(document: Document) -> Origin:
    value = cast("Mapping[str, Any]", document.value)
    around = {name: part for name, part in value.items() if name in Event.model_fields}
    reject_invalid_values(around, document)
    event = validated(Event, around)
    return Origin(event.source, event.id, event.time)


def _json_of(image: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if image is None else {name: _plain(value) for name, value in image.items()}


def _plain(value: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """An attribute as JSON (Source: DynamoDB API Reference, "AttributeValue")."""
    ((kind, given),) = value.items()
    match kind:
        case "NULL":
            return None
        case "N":
            return _number(given)
        case "NS":
            return [_number(each) for each in given]
        case "L":
            return [_plain(each) for each in given]
        case "M":
            return _json_of(given)
        case _:
            return given


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
