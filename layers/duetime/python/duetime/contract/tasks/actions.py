"""Requests for an existing task, from its user and from workers: their bodies, and how they are decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import compact
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.tasks.fields import ErrorMessage, ErrorType, Fence, Percent, ProgressMessage, Reason
from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.targets import Query
from duetime.domain.tasks.task import Progress

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.attempt_results import Ending


_FAILED = {"properties": {"outcome": {"const": "failed"}}}
_WITH_ERROR = {"required": ["error"], "not": {"required": ["result"]}}
_WITHOUT_ERROR = {"not": {"anyOf": [{"required": ["error"]}, {"required": ["retriable"]}]}}


def _as_notification(schema: dict[str, Any]) -> None:
    """An error belongs to a failure, and a result to a success; omitted fields are absent, not null."""
    error = schema["properties"]["error"]
    schema["properties"]["error"] = {**error["anyOf"][0], "description": error["description"]}
    schema |= {"if": _FAILED, "then": _WITH_ERROR, "else": _WITHOUT_ERROR}


class EmptyRequest(Body):
    """A request without fields; the body can be left out."""


class TaskAction(Body):
    """An action on a task; the body can be left out."""

    reason: Reason = ""


class TaskCancel(TaskAction):
    """Cancels a task; the body can be left out."""

    force: Annotated[bool, Field(description="Also ask a running task to stop, which it does when it can.")] = False
    include_children: Annotated[
        bool,
        Field(
            description="Also cancel the tasks that it started, and those that they started, even if it has ended. One "
            "request cancels some hundreds: repeat it while the response says that there are more."
        ),
    ] = False


def _as_signal(schema: dict[str, Any]) -> None:
    """A payload belongs to an approval."""
    rejects = {"properties": {"approve": {"const": False}}, "required": ["approve"]}
    schema |= {"if": rejects, "then": {"not": {"required": ["payload"]}}}


class TaskSignal(Body):
    """Approves or rejects a task that waits for it."""

    model_config = ConfigDict(json_schema_extra=_as_signal)

    approve: Annotated[bool, Field(description="Whether it is approved; false rejects it.")]
    payload: Annotated[
        Any,
        Field(
            description=f"For an approval, the result of the task: any JSON, at most {MAX_RESULT_BYTES} bytes.",
            examples=[{"limit": 500}],
        ),
    ] = None
    reason: Reason = ""


OPTIONAL_BODIES = (EmptyRequest, TaskAction)
"""Optional bodies, including subclasses."""


class TaskQueryBody(Body):
    """Queries the endpoint of a task."""

    action: Annotated[
        Literal["status", "progress", "summary"],
        Field(description="Query to send; the target must list it in its `queries`."),
    ]


class ReportedError(Body):
    """Why an attempt failed."""

    type: ErrorType
    message: ErrorMessage = ""


class OutcomeReport(Body):
    """The outcome of an asynchronous attempt."""

    model_config = ConfigDict(json_schema_extra=_as_notification)

    fence: Fence
    outcome: Annotated[Literal["succeeded", "failed"], Field(description="How the attempt ended.")]
    result: Annotated[
        Any,
        Field(description=f"Result of a success: any JSON, at most {MAX_RESULT_BYTES} bytes.", examples=[{"rows": 17}]),
    ] = None
    error: Annotated[ReportedError | None, Field(description="Error of a failure.")] = None
    retriable: Annotated[bool, Field(description="For a failure: whether another attempt may be made.")] = True


class HeartbeatReport(Body):
    """A heartbeat of a running attempt."""

    fence: Fence


class ProgressReport(Body):
    """The progress of a running attempt; counts as a heartbeat."""

    fence: Fence
    percent: Percent
    message: ProgressMessage = ""


_OF_A_FAILURE = ("error", "retriable")


@dataclass(frozen=True, slots=True)
class Report:
    """A report of an attempt.

    Attributes:
        fence: of the attempt.
        progress: the progress; `None` for a heartbeat.
    """

    fence: int
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A report of an attempt's end.

    Attributes:
        fence: of the attempt.
    """

    fence: int
    ending: Ending


def reject_fields(document: Document) -> None:
    """Rejects all fields by name.

    Raises:
        FieldsInvalid: there is a field, or the body is not an object.
    """
    read_body(EmptyRequest, document)


def action_reason(document: Document) -> str:
    """The reason of an action; empty for no reason.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(TaskAction, document).reason


def cancellation(document: Document) -> TaskCancel:
    """Decodes a cancel.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(TaskCancel, document)


def query(document: Document) -> Query:
    """Decodes a query to an endpoint.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return Query(read_body(TaskQueryBody, document).action)


def heartbeat(document: Document) -> Report:
    """Decodes a heartbeat.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return Report(read_body(HeartbeatReport, document).fence)


def progress(document: Document) -> Report:
    """Decodes a report of progress.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(ProgressReport, document)
    return Report(body.fence, Progress(body.percent, body.message))


def notice(document: Document) -> Notice:
    """Decodes a report of an attempt's end.

    Raises:
        FieldsInvalid: some fields are invalid, or do not belong to the outcome.
    """
    body = read_body(OutcomeReport, document)
    return Notice(body.fence, _success(body) if body.outcome == "succeeded" else _failure(body))


@dataclass(frozen=True, slots=True)
class Signal:
    """A person's decision.

    Attributes:
        payload: JSON text in UTF-8.
    """

    approve: bool
    payload: bytes
    reason: str


def signal(document: Document) -> Signal:
    """Decodes a decision.

    Raises:
        FieldsInvalid: some fields are invalid, or do not belong to the decision.
    """
    body = read_body(TaskSignal, document)
    if not body.approve and "payload" in body.model_fields_set:
        raise FieldsInvalid([Fault("payload", "is allowed with an approval only; give a reason", FaultCode.CONFLICT)])
    return Signal(body.approve, _result("payload", body.payload), body.reason)


def _result(field: str, value: object) -> bytes:
    result = compact(value)
    if len(result) > MAX_RESULT_BYTES:
        raise FieldsInvalid([Fault(field, f"is larger than {MAX_RESULT_BYTES} bytes", FaultCode.TOO_LONG)])
    return result


def _success(body: OutcomeReport) -> Ending:
    if strange := [name for name in _OF_A_FAILURE if name in body.model_fields_set]:
        raise FieldsInvalid(
            Fault(name, "is allowed with the outcome 'failed' only", FaultCode.CONFLICT) for name in strange
        )
    return Succeeded(_result("result", body.result))


def _failure(body: OutcomeReport) -> Ending:
    if "result" in body.model_fields_set:
        raise FieldsInvalid([Fault("result", "is allowed with the outcome 'succeeded' only", FaultCode.CONFLICT)])
    if body.error is None:
        raise FieldsInvalid([Fault("error", "is required with the outcome 'failed'", FaultCode.REQUIRED)])
    return failure(body.error.type, body.error.message, retriable=body.retriable)
