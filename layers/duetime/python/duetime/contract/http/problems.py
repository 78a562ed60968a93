"""Every refusal as a problem of RFC 9457, and the one table of their codes."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http import request_errors
from duetime.contract.http.request_errors import Fault, FaultyRequest
from duetime.domain import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/problem+json"


class ProblemFault(TypedDict):
    """One field, query parameter or header, and why it cannot be accepted; `body` stands for the whole body."""

    field: str
    reason: str


class Problem(TypedDict):
    """A problem of RFC 9457. `code` is stable; `instance` names the request, by which its log lines are found."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    errors: list[ProblemFault]


@dataclass(frozen=True, slots=True)
class Kind:
    """What all problems of one code have in common."""

    status: HTTPStatus
    code: str
    title: str


INTERNAL = Kind(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "The request failed for a reason of our own")
KINDS: Mapping[type[Exception], Kind] = {
    request_errors.BodyUnreadable: Kind(HTTPStatus.BAD_REQUEST, "body_unreadable", "The body is not JSON"),
    request_errors.ParametersInvalid: Kind(
        HTTPStatus.BAD_REQUEST, "parameters_invalid", "A parameter cannot be accepted"
    ),
    request_errors.CallerUnknown: Kind(HTTPStatus.UNAUTHORIZED, "caller_unknown", "The caller is not known"),
    request_errors.CallerForbidden: Kind(HTTPStatus.FORBIDDEN, "caller_refused", "The caller cannot own tasks"),
    request_errors.PathNotFound: Kind(HTTPStatus.NOT_FOUND, "path_unknown", "There is nothing at this path"),
    errors.TaskNotFound: Kind(HTTPStatus.NOT_FOUND, "task_unknown", "There is no such task"),
    errors.ContentExpired: Kind(HTTPStatus.GONE, "content_expired", "What it needs has expired"),
    errors.OperatorRequired: Kind(HTTPStatus.FORBIDDEN, "operator_required", "Only an operator may do this"),
    errors.SwitchNotFound: Kind(HTTPStatus.NOT_FOUND, "switch_unknown", "There is no such switch"),
    errors.SwitchesFull: Kind(HTTPStatus.CONFLICT, "switches_full", "There are too many switches"),
    errors.BulkNotFound: Kind(HTTPStatus.NOT_FOUND, "bulk_operation_unknown", "There is no such bulk operation"),
    errors.BulkEnded: Kind(HTTPStatus.CONFLICT, "move_refused", "Its state does not allow it"),
    errors.BulkOfTopology: Kind(HTTPStatus.CONFLICT, "move_refused", "Its state does not allow it"),
    errors.LockNotFound: Kind(HTTPStatus.NOT_FOUND, "lock_unknown", "There is no such lock"),
    errors.ScheduleNotFound: Kind(HTTPStatus.NOT_FOUND, "schedule_unknown", "There is no such schedule"),
    errors.BackfillNotFound: Kind(HTTPStatus.NOT_FOUND, "backfill_unknown", "There is no such backfill"),
    errors.ScheduleExists: Kind(HTTPStatus.CONFLICT, "schedule_exists", "There is a schedule of this name"),
    errors.ScheduleStateConflict: Kind(HTTPStatus.CONFLICT, "move_refused", "Its state does not allow it"),
    errors.ScheduleVersionMismatch: Kind(HTTPStatus.PRECONDITION_FAILED, "version_differs", "It has changed"),
    errors.CalendarNotFound: Kind(HTTPStatus.NOT_FOUND, "calendar_unknown", "There is no such calendar"),
    errors.CalendarExists: Kind(HTTPStatus.PRECONDITION_FAILED, "calendar_exists", "There is a calendar of this name"),
    errors.CalendarVersionMismatch: Kind(HTTPStatus.PRECONDITION_FAILED, "version_differs", "It has changed"),
    errors.CalendarUsed: Kind(HTTPStatus.CONFLICT, "calendar_used", "A schedule names the calendar"),
    request_errors.MethodUnsupported: Kind(HTTPStatus.METHOD_NOT_ALLOWED, "method_unsupported", "Not with this method"),
    errors.StateConflict: Kind(HTTPStatus.CONFLICT, "move_refused", "Its state does not allow it"),
    errors.FenceMismatch: Kind(HTTPStatus.CONFLICT, "fence_differs", "The attempt is over, or it is another's"),
    errors.LockLost: Kind(HTTPStatus.CONFLICT, "lock_lost", "The attempt has lost its lock"),
    errors.AttemptOverdue: Kind(HTTPStatus.CONFLICT, "attempt_overdue", "The attempt has taken too long"),
    errors.TypeNotPulled: Kind(HTTPStatus.FORBIDDEN, "type_not_pulled", "The caller may not pull this type"),
    errors.LeaseNotFound: Kind(HTTPStatus.NOT_FOUND, "lease_unknown", "There is no such lease"),
    errors.NotifiedOtherwise: Kind(HTTPStatus.CONFLICT, "notified_otherwise", "The attempt has ended differently"),
    errors.VersionMismatch: Kind(HTTPStatus.PRECONDITION_FAILED, "version_differs", "It has changed"),
    request_errors.BodyTooLarge: Kind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", "The body is too large"),
    request_errors.MediaTypeUnsupported: Kind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media_type_unsupported", "The body is not declared to be JSON"
    ),
    request_errors.FieldsInvalid: Kind(
        HTTPStatus.UNPROCESSABLE_ENTITY, "fields_invalid", "Some fields cannot be accepted"
    ),
    errors.FieldInvalid: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "fields_invalid", "Some fields cannot be accepted"),
    errors.KeyReused: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency_key_reused", "The idempotency key is taken"),
    errors.QueryNotOffered: Kind(HTTPStatus.CONFLICT, "query_not_offered", "The target does not answer that"),
    errors.TargetUnreachable: Kind(HTTPStatus.BAD_GATEWAY, "target_unreachable", "The target gave no usable answer"),
    errors.TargetSilent: Kind(HTTPStatus.GATEWAY_TIMEOUT, "target_silent", "The target did not answer in time"),
    errors.Unavailable: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", "Try again in a moment"),
}


_FORMER_NAMES: Mapping[str, type[Exception]] = {
    "MoveRefused": errors.StateConflict,
    "TaskUnknown": errors.TaskNotFound,
    "VersionDiffers": errors.VersionMismatch,
}
"""Names that bulk operations stored before their classes were renamed; the last of them expire with their records."""


def code_of(name: str) -> str:
    """The code of an error whose class is called so, as a stored bulk operation counts it."""
    named = {error.__name__: kind.code for error, kind in KINDS.items()}
    return named.get(_FORMER_NAMES[name].__name__ if name in _FORMER_NAMES else name, "refused")


def kind_of(error: Exception) -> Kind:
    """What kind of problem an error is."""
    return next((KINDS[base] for base in type(error).__mro__ if base in KINDS), INTERNAL)


def problem_of(error: Exception, instance: str) -> Problem:
    """An error as a problem. One that nobody foresaw says nothing of our inside.

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
        errors=[ProblemFault(field=fault.field, reason=fault.reason) for fault in faults_of(error)],
    )


def faults_of(error: Exception) -> tuple[Fault, ...]:
    """What an error finds fault with, by name."""
    if isinstance(error, FaultyRequest):
        return error.faults
    if isinstance(error, errors.FieldInvalid):
        return (Fault(error.field, error.reason),)
    if isinstance(error, request_errors.MediaTypeUnsupported):
        return (Fault("Content-Type", str(error)),)
    if isinstance(error, errors.KeyReused):
        return (Fault("Idempotency-Key", str(error)),)
    if isinstance(error, errors.VersionMismatch | errors.ScheduleVersionMismatch | errors.CalendarVersionMismatch):
        return (Fault("If-Match", str(error)),)
    if isinstance(error, errors.CalendarExists):
        return (Fault("If-None-Match", str(error)),)
    return ()


def _detail(error: Exception, kind: Kind) -> str:
    # The message of an unavailable service is for the log: it may name what we stand on.
    return str(error) if isinstance(error, errors.RequestError) else kind.title
