"""The bodies of requests about a task that exists already: by its user, and by whoever works on it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from duetime.contract.tasks.bodies import Body
from duetime.contract.tasks.fields import (  # noqa: TC001 - pydantic reads the annotations when the class is made
    ErrorMessage,
    ErrorType,
    Fence,
    Percent,
    ProgressMessage,
)
from duetime.domain.limits import MAX_RESULT_BYTES

_FAILED = {"properties": {"outcome": {"const": "failed"}}}
_OF_A_FAILURE = {"required": ["error"], "not": {"required": ["result"]}}
_OF_A_SUCCESS = {"not": {"anyOf": [{"required": ["error"]}, {"required": ["retriable"]}]}}


def _as_notification(schema: dict[str, Any]) -> None:
    """An error belongs to a failure, and a result to a success; what is left out is not null."""
    error = schema["properties"]["error"]
    schema["properties"]["error"] = {**error["anyOf"][0], "description": error["description"]}
    schema |= {"if": _FAILED, "then": _OF_A_FAILURE, "else": _OF_A_SUCCESS}


class EmptyRequest(Body):
    """Nothing: this request takes no fields, and no body at all will do."""


class TaskCancel(Body):
    """How a task is cancelled; no body at all will do."""

    force: Annotated[bool, Field(description="Ask a running task to stop as well, which it does when it can.")] = False


class TaskQueryBody(Body):
    """What the endpoint of a task is asked for."""

    action: Annotated[Literal["status", "progress", "summary"], Field(description="It must be among its `queries`.")]


class ReportedError(Body):
    """Why an attempt failed."""

    type: ErrorType
    message: ErrorMessage = ""


class OutcomeReport(Body):
    """How an attempt ended whose target had only accepted the work."""

    model_config = ConfigDict(json_schema_extra=_as_notification)

    fence: Fence
    outcome: Annotated[Literal["succeeded", "failed"], Field(description="How the attempt ended.")]
    result: Annotated[
        Any, Field(description=f"Of a success: any JSON, at most {MAX_RESULT_BYTES} bytes.", examples=[{"rows": 17}])
    ] = None
    error: Annotated[ReportedError | None, Field(description="Of a failure: why.")] = None
    retriable: Annotated[bool, Field(description="Of a failure: whether another attempt might help.")] = True


class HeartbeatReport(Body):
    """A sign of life of a running attempt."""

    fence: Fence


class ProgressReport(Body):
    """How far a running attempt has come; a sign of life as well."""

    fence: Fence
    percent: Percent
    message: ProgressMessage = ""
