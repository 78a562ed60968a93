"""Request bodies for an existing task, from its user and from workers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.contract.http.request_model import Body
from duetime.contract.tasks.fields import ErrorMessage, ErrorType, Fence, Percent, ProgressMessage, Reason
from duetime.domain.limits import MAX_RESULT_BYTES

_FAILED = {"properties": {"outcome": {"const": "failed"}}}
_OF_A_FAILURE = {"required": ["error"], "not": {"required": ["result"]}}
_OF_A_SUCCESS = {"not": {"anyOf": [{"required": ["error"]}, {"required": ["retriable"]}]}}


def _as_notification(schema: dict[str, Any]) -> None:
    """An error belongs to a failure, and a result to a success; omitted fields are absent, not null."""
    error = schema["properties"]["error"]
    schema["properties"]["error"] = {**error["anyOf"][0], "description": error["description"]}
    schema |= {"if": _FAILED, "then": _OF_A_FAILURE, "else": _OF_A_SUCCESS}


class EmptyRequest(Body):
    """A request without fields; the body can be left out."""


class TaskAction(Body):
    """An action on a task; the body can be left out."""

    reason: Reason = ""


class TaskCancel(TaskAction):
    """Cancels a task; the body can be left out."""

    force: Annotated[bool, Field(description="Also ask a running task to stop, which it does when it can.")] = False


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
