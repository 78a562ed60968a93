"""A request of API Gateway's HTTP API (payload format 2.0), parsed as its operation declares."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar  # with a default, before Python 3.13

from duetime.composition import composed
from duetime.contract.http import operation as declared
from duetime.contract.http import request_json
from duetime.contract.http.etags import version_wanted
from duetime.contract.http.query_parameters import no_query, read_query
from duetime.contract.http.request_errors import (
    BodyUnreadable,
    Fault,
    FaultCode,
    ParametersInvalid,
)
from duetime.contract.http.routes import reference_to
from duetime.contract.tasks.operations import EmptyRequest, action_reason, reject_fields
from duetime.domain.errors import TaskNotFound
from duetime.domain.ids import TRACEPARENT, InvalidTaskId, TaskId, read_traceparent
from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE, MAX_IDEMPOTENCY_KEY_LENGTH, MAX_JSON_DEPTH, MIN_KEY_SECONDS
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.times import SECOND
from duetime_common.binary_payloads import BASE64, CONTENT_TYPE
from duetime_common.payload_codecs import ENCRYPTED

from .callers import header_of, sender_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.operation import Operation
    from duetime.contract.http.query_parameters import Parameters
    from duetime.contract.http.request_json import Document
    from duetime.domain.callers import Caller
    from duetime.domain.times import Millis

    from .callers import Sender

_ENCRYPTED = re.compile(rf'"{BASE64}":"[^"]*"(?=,"{CONTENT_TYPE}":"{re.escape(ENCRYPTED)}")')
"""The bytes of an encrypted payload in JSON with sorted fields."""
ICALENDAR = "text/calendar"
Q = TypeVar("Q", bound="Parameters", default=Any)
_KEY = re.compile(rf"[!-~]{{1,{MAX_IDEMPOTENCY_KEY_LENGTH}}}")
_ULIDS = ("task_id", "topology_id", "operation_id")
"""Path parameters that ignore upper and lower case."""


@dataclass(frozen=True, slots=True)
class Request(Generic[Q]):
    """The request for an operation.

    Attributes:
        event: the gateway's event.
        operation: requested operation.
        parameters: path parameters.
        caller: who sends it, with the owner that it acts for.
        query: query parameters, parsed by the operation's model.
        version: version required by `If-Match`; `None` for any.
        key: idempotency key.
        key_life: how long the key is stored, in milliseconds.
        parent: the task whose handler sends the request; `None` for other callers.
    """

    event: Mapping[str, Any]
    operation: Operation[Q]
    parameters: Mapping[str, str]
    caller: Caller
    query: Q
    version: int | None
    key: str | None
    key_life: Millis
    parent: TaskId | None = None

    @property
    def owner(self) -> str:
        """The owner that the request acts for; empty if the operation is public."""
        return self.caller.owner

    @property
    def name(self) -> str:
        """The name in the path."""
        return self.parameters["name"]

    @property
    def task_id(self) -> TaskId:
        """The id in the path, of a task or of a topology, which is its task's.

        Raises:
            TaskNotFound: it is no valid id.
        """
        text = self.parameters["topology_id" if "topology_id" in self.parameters else "task_id"]
        try:
            return TaskId.parse(text)
        except InvalidTaskId:
            raise TaskNotFound(TaskId(text)) from None

    def reference_to(self, operation: Operation[Any]) -> str:
        """The path of an operation without parameters, relative to this request's."""
        return reference_to(operation.path, self.event["rawPath"])

    def attributed(self, reason: str) -> Attribution:
        """The caller and reason of the request."""
        actor = self.caller.actor if self.parent is None else f"handler of {self.parent}"
        # The record already has the owner.
        return Attribution(name="" if actor == self.owner else actor, reason=reason)

    @property
    def attribution(self) -> Attribution:
        """The caller and reason of an action, whose body has no other fields and may be omitted."""
        return self.attributed(action_reason(self.document()) if self.has_body else "")

    @property
    def instance(self) -> str:
        """The URN of this request."""
        return instance(self.event)

    @property
    def raw_query(self) -> str:
        """The query string as sent."""
        return _raw_query(self.event)

    @property
    def has_body(self) -> bool:
        """Whether the request has a body that is not empty."""
        return bool((self.event.get("body") or "").strip())

    @property
    def size(self) -> int:
        """Size of the body as sent, in characters."""
        return len(self.event.get("body") or "")

    @property
    def is_icalendar(self) -> bool:
        """Whether the body is declared to be an iCalendar file."""
        return (self.header("Content-Type") or "").partition(";")[0].strip().lower() == ICALENDAR

    @property
    def traceparent(self) -> str | None:
        """The request's trace context; `None` if it has none, or it is malformed."""
        return read_traceparent(self.header(TRACEPARENT))

    def header(self, name: str) -> str | None:
        """The value of a header, if the request has it."""
        return header_of(self.event, name)

    def document(self) -> Document:
        """The body's JSON, sanitized."""
        media_type = self.header("Content-Type")
        if media_type is not None and media_type != declared.JSON:
            # Most clients send exactly this media type.
            from duetime.contract.http.media_types import reject_unless_json  # noqa: PLC0415 - see the line above

            reject_unless_json(media_type, self.operation.media_types)
        return request_json.document_of(self._text(), MAX_JSON_DEPTH + self.operation.nesting)

    def reject_body(self) -> None:
        """Reject a body with content; a missing body and an empty object are allowed."""
        if self.has_body:
            reject_fields(self.document())

    def text(self) -> bytes:
        """The body of a request in UTF-8, with any content.

        Raises:
            BodyUnreadable: it is not valid UTF-8.
        """
        try:
            return self._text().encode()
        except UnicodeEncodeError as error:
            raise BodyUnreadable(f"contains a lone surrogate at character {error.start}") from None

    def _text(self) -> str:
        return request_json.text_of(
            self.event.get("body") or "",
            is_base64=bool(self.event.get("isBase64Encoded")),
            encoding=(self.header("Content-Encoding") or "").strip().lower().removeprefix("identity"),
            length=self.header("Content-Length"),
        )


def read(event: Mapping[str, Any], operation: Operation[Q], parameters: Mapping[str, str]) -> Request[Q]:
    """The request in an event, with everything that its operation declares except the body.

    Raises:
        RequestError: the caller, the query or a header is invalid, or there is a body with content
            although the operation has no fields.
    """
    _reject_ignored_conditions(event, operation)
    sender = sender_of(event, operation)
    query: Any = None
    raw_query = _raw_query(event)
    if operation.query is None:
        no_query(raw_query)
    else:
        query = read_query(operation.query, raw_query)
    key = _idempotency_key(event) if declared.KEY in operation.headers else None
    key_life = _key_life(event, key, sender) if declared.KEY_LIFE in operation.headers else _usual_key_life(sender)
    if key is not None and sender.task_id is not None:
        # A client's key contains no space: each task has its own keys, which are never those of other requests.
        key = f"{sender.task_id} {key}"
    version = None
    if declared.IF_MATCH in operation.headers:
        version = version_wanted(header_of(event, declared.IF_MATCH.name))
    known = _with_capitals(parameters)
    request = Request(event, operation, known, sender.caller, query, version, key, key_life, sender.task_id)
    if operation.body is EmptyRequest or (operation.body is None and operation.method != "GET"):
        request.reject_body()
    return request


def request_id(event: Mapping[str, Any]) -> str:
    """The id of a request, for finding its lines in the gateway's log."""
    return str(event.get("requestContext", {}).get("requestId", "unnamed"))


def instance(event: Mapping[str, Any]) -> str:
    """The name of a request: its id as a URN."""
    return f"urn:duetime:request:{request_id(event)}"


def body_hash(value: object) -> str:
    """A hash of a body's meaning, independent of the order of fields, of whitespace and of encrypted bytes."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if ENCRYPTED in canonical:
        # The same payload differs each time it is encrypted.
        canonical = _ENCRYPTED.sub("", canonical)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _reject_ignored_conditions(event: Mapping[str, Any], operation: Operation[Any]) -> None:
    """Reject a condition that the operation does not check, as its sender relies on it."""
    if operation.is_safe:
        return
    honoured = {header.name for header in operation.headers}
    ignored = [name for name in declared.CONDITIONS if name not in honoured and header_of(event, name) is not None]
    if ignored:
        reason = f"is not supported by {operation.id}: it would not be checked, so the request was not carried out"
        raise ParametersInvalid(Fault(name, reason, FaultCode.UNSUPPORTED) for name in ignored)


def _with_capitals(parameters: Mapping[str, str]) -> Mapping[str, str]:
    """The path parameters, with ids of tasks and the like in capitals."""
    return {name: text.upper() if name in _ULIDS and text.isascii() else text for name, text in parameters.items()}


def _raw_query(event: Mapping[str, Any]) -> str:
    return event.get("rawQueryString") or ""


def _idempotency_key(event: Mapping[str, Any]) -> str | None:
    name = declared.KEY.name
    key = header_of(event, name)
    if key is not None and _KEY.fullmatch(key) is None:
        reason = f"should be 1 to {MAX_IDEMPOTENCY_KEY_LENGTH} visible ASCII characters"
        raise ParametersInvalid.of(name, reason, FaultCode.PATTERN)
    return key


def _usual_key_life(sender: Sender) -> Millis:
    """How long a key is stored if the request does not say so: those of a task, for as long as it may be retried."""
    return IDEMPOTENCY_KEY_LIFE if sender.task_id is None else composed().settings.retention.shortest


def _key_life(event: Mapping[str, Any], key: str | None, sender: Sender) -> Millis:
    name = declared.KEY_LIFE.name
    text = header_of(event, name)
    if text is None:
        return _usual_key_life(sender)
    if key is None:
        raise ParametersInvalid.of(name, f"says nothing without {declared.KEY.name}", FaultCode.CONFLICT)
    most = composed().settings.retention.shortest // SECOND
    if re.fullmatch("[0-9]{1,9}", text) is None or not MIN_KEY_SECONDS <= int(text) <= most:
        reason = f"should be a whole number of seconds, {MIN_KEY_SECONDS} to {most}"
        raise ParametersInvalid.of(name, reason, FaultCode.OUT_OF_RANGE)
    return int(text) * SECOND
