"""Every refusal as a problem of RFC 9457, and the one table of their codes."""

from __future__ import annotations

from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.problem_kinds import Kind, ProblemCode, kind_of
from duetime.contract.http.request_errors import Fault, FaultCode, FaultyRequest
from duetime.domain import errors
from duetime.domain.schedules import errors as for_schedules
from duetime.domain.topologies import errors as for_topologies

MEDIA_TYPE = "application/problem+json"


class ProblemFault(TypedDict):
    """A field, query parameter or header that cannot be accepted."""

    field: str
    reason: str
    code: FaultCode


class Problem(TypedDict):
    """Problem details (RFC 9457). `code` is stable, for programs; `instance` identifies the request, as in the logs."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: ProblemCode
    errors: list[ProblemFault]


def problem_of(error: Exception, instance: str) -> Problem:
    """An error as a problem. An unexpected one says nothing about the implementation.

    Args:
        error: what happened.
        instance: names the request.
    """
    kind = kind_of(error)
    return Problem(
        type=f"urn:duetime:problem:{kind.code}",
        title=kind.title,
        status=kind.status.value,
        detail=_detail(error, kind),
        instance=instance,
        code=kind.code,
        errors=[ProblemFault(field=fault.field, reason=fault.reason, code=fault.code) for fault in faults_of(error)],
    )


def faults_of(error: Exception) -> tuple[Fault, ...]:
    """What an error finds fault with, by name."""
    if isinstance(error, FaultyRequest):
        return error.faults
    if isinstance(error, errors.FieldInvalid):
        return (Fault(error.field, error.reason, error.code),)
    if isinstance(error, errors.KeyReused):
        return (Fault("Idempotency-Key", str(error), FaultCode.CONFLICT),)
    if isinstance(error, errors.UniqueKeyHeld) and error.field:
        return (Fault(error.field, f"is held by the task {error.holder.id}", FaultCode.CONFLICT),)
    if isinstance(error, for_schedules.CalendarExists | for_topologies.DefinitionExists):
        return (Fault("If-None-Match", str(error), FaultCode.CONFLICT),)
    if isinstance(
        error,
        errors.VersionMismatch
        | for_schedules.ScheduleVersionMismatch
        | for_schedules.CalendarVersionMismatch
        | for_topologies.DefinitionVersionMismatch,
    ):
        return (Fault("If-Match", str(error), FaultCode.CONFLICT),)
    return ()


def _detail(error: Exception, kind: Kind) -> str:
    # The message of an unavailable service is for the log: it may name what we stand on.
    return str(error) if isinstance(error, errors.RequestError) else kind.title
