"""Converts all errors into RFC 9457 problems, and contains the table of their codes."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, NotRequired

from typing_extensions import TypedDict

from duetime.contract.http import request_errors
from duetime.contract.http.request_errors import Fault, FaultCode, FaultyRequest
from duetime.domain import errors
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


MEDIA_TYPE = "application/problem+json"


class ProblemFault(TypedDict):
    """An invalid field, query parameter or header."""

    field: str
    reason: str
    code: FaultCode


class Problem(TypedDict):
    """Problem details (RFC 9457).

    Programs can rely on `code`. `instance` is the request's id, which is also in the logs.
    """

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: ProblemCode
    errors: list[ProblemFault]
    quota: NotRequired[str]


def problem_of(error: Exception, instance: str) -> Problem:
    """Converts an error into a problem. The problem of an unexpected error reveals no implementation details.

    Args:
        error: the error.
        instance: identifies the request.
    """
    kind = kind_of(error)
    problem = Problem(
        type=f"urn:duetime:problem:{kind.code}",
        title=kind.title,
        status=kind.status.value,
        detail=_detail(error, kind),
        instance=instance,
        code=kind.code,
        errors=[ProblemFault(field=fault.field, reason=fault.reason, code=fault.code) for fault in faults_of(error)],
    )
    if isinstance(error, errors.QuotaExceeded):
        problem["quota"] = error.quota
    return problem


def faults_of(error: Exception) -> tuple[Fault, ...]:
    """The invalid fields that an error reports."""
    if isinstance(error, FaultyRequest):
        return error.faults
    if isinstance(error, errors.FieldInvalid):
        return (Fault(error.field, error.reason, error.code),)
    if isinstance(error, errors.KeyReused):
        return (Fault("Idempotency-Key", str(error), FaultCode.CONFLICT),)
    if isinstance(error, errors.UniqueKeyHeld) and error.field:
        return (Fault(error.field, f"is held by the task {error.holder.id}", FaultCode.CONFLICT),)
    if isinstance(error, errors.CalendarExists | errors.DefinitionExists):
        return (Fault("If-None-Match", str(error), FaultCode.CONFLICT),)
    if isinstance(
        error,
        errors.VersionMismatch
        | errors.ScheduleVersionMismatch
        | errors.CalendarVersionMismatch
        | errors.DefinitionVersionMismatch,
    ):
        return (Fault("If-Match", str(error), FaultCode.CONFLICT),)
    return ()


def _detail(error: Exception, kind: Kind) -> str:
    # The message about an unavailable service is only logged, because it may name internal services.
    return str(error) if isinstance(error, errors.RequestError) else kind.title


class ProblemCode(StrEnum):
    """Code by which programs can identify a kind of problem. Codes are never renamed."""

    INTERNAL = "internal"
    BODY_UNREADABLE = "body_unreadable"
    PARAMETERS_INVALID = "parameters_invalid"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    PATH_NOT_FOUND = "path_not_found"
    TASK_NOT_FOUND = "task_not_found"
    TASK_ARCHIVED = "task_archived"
    TASK_DELETED = "task_deleted"
    CONTENT_EXPIRED = "content_expired"
    OPERATOR_REQUIRED = "operator_required"
    ROLE_REQUIRED = "role_required"
    OWNER_FORBIDDEN = "owner_forbidden"
    API_KEY_NOT_FOUND = "api_key_not_found"
    API_KEYS_OFF = "api_keys_off"
    LINK_NOT_FOUND = "link_not_found"
    LINK_ENDED = "link_ended"
    LINKS_FULL = "links_full"
    SWITCH_NOT_FOUND = "switch_not_found"
    SWITCHES_FULL = "switches_full"
    QUOTA_EXCEEDED = "quota_exceeded"
    INTAKE_OFF = "intake_off"
    INTAKE_RULE_NOT_FOUND = "intake_rule_not_found"
    INTAKE_RULES_FULL = "intake_rules_full"
    QUOTAS_OFF = "quotas_off"
    QUOTAS_NOT_FOUND = "quotas_not_found"
    QUOTAS_FULL = "quotas_full"
    TYPE_NOT_FOUND = "type_not_found"
    TYPES_FULL = "types_full"
    SUBSCRIPTIONS_FULL = "subscriptions_full"
    BULK_OPERATION_NOT_FOUND = "bulk_operation_not_found"
    STATE_CONFLICT = "state_conflict"
    LOCK_NOT_FOUND = "lock_not_found"
    GROUP_NOT_FOUND = "group_not_found"
    GROUP_CLOSED = "group_closed"
    RATE_NOT_FOUND = "rate_not_found"
    ORDERED_KEY_NOT_FOUND = "ordered_key_not_found"
    UNIQUE_KEY_NOT_FOUND = "unique_key_not_found"
    SCHEDULE_NOT_FOUND = "schedule_not_found"
    BACKFILL_NOT_FOUND = "backfill_not_found"
    SCHEDULE_EXISTS = "schedule_exists"
    VERSION_MISMATCH = "version_mismatch"
    CALENDAR_NOT_FOUND = "calendar_not_found"
    CALENDAR_EXISTS = "calendar_exists"
    CALENDAR_IN_USE = "calendar_in_use"
    DEFINITION_NOT_FOUND = "definition_not_found"
    DEFINITION_EXISTS = "definition_exists"
    DEFINITION_IN_USE = "definition_in_use"
    METHOD_UNSUPPORTED = "method_unsupported"
    FENCE_MISMATCH = "fence_mismatch"
    LOCK_LOST = "lock_lost"
    ATTEMPT_OVERDUE = "attempt_overdue"
    TYPE_NOT_PULLED = "type_not_pulled"
    LEASE_NOT_FOUND = "lease_not_found"
    LEASE_ONLY_CREATES = "lease_only_creates"
    OUTCOME_CONFLICT = "outcome_conflict"
    BODY_TOO_LARGE = "body_too_large"
    MEDIA_TYPE_UNSUPPORTED = "media_type_unsupported"
    FIELDS_INVALID = "fields_invalid"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    UNIQUE_KEY_HELD = "unique_key_held"
    SUMMARY_OFF = "summary_off"
    QUERY_NOT_OFFERED = "query_not_offered"
    TARGET_UNREACHABLE = "target_unreachable"
    TARGET_TIMEOUT = "target_timeout"
    UNAVAILABLE = "unavailable"
    REGION_NOT_ACTIVE = "region_not_active"
    ENCODING_UNSUPPORTED = "encoding_unsupported"


@frozen
class Kind:
    """Properties that all problems with the same code share."""

    status: HTTPStatus
    code: ProblemCode
    title: str


INTERNAL = Kind(HTTPStatus.INTERNAL_SERVER_ERROR, ProblemCode.INTERNAL, "Internal error")
KINDS: Mapping[type[Exception], Kind] = {
    request_errors.BodyUnreadable: Kind(HTTPStatus.BAD_REQUEST, ProblemCode.BODY_UNREADABLE, "The body is not JSON"),
    request_errors.ParametersInvalid: Kind(
        HTTPStatus.BAD_REQUEST, ProblemCode.PARAMETERS_INVALID, "Invalid parameter or header"
    ),
    request_errors.CallerUnknown: Kind(
        HTTPStatus.UNAUTHORIZED, ProblemCode.UNAUTHENTICATED, "The caller is not authenticated"
    ),
    request_errors.CallerForbidden: Kind(HTTPStatus.FORBIDDEN, ProblemCode.FORBIDDEN, "The caller cannot own tasks"),
    request_errors.PathNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.PATH_NOT_FOUND, "There is no such path"),
    errors.TaskNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.TASK_NOT_FOUND, "There is no such task"),
    errors.TaskArchived: Kind(
        HTTPStatus.NOT_FOUND, ProblemCode.TASK_ARCHIVED, "There is no such task, except perhaps in the archive"
    ),
    errors.TaskDeleted: Kind(HTTPStatus.GONE, ProblemCode.TASK_DELETED, "The task was deleted"),
    errors.ContentExpired: Kind(HTTPStatus.GONE, ProblemCode.CONTENT_EXPIRED, "The content of the task has expired"),
    errors.OperatorRequired: Kind(HTTPStatus.FORBIDDEN, ProblemCode.OPERATOR_REQUIRED, "Only an operator can do this"),
    errors.RoleRequired: Kind(HTTPStatus.FORBIDDEN, ProblemCode.ROLE_REQUIRED, "The caller lacks the role for this"),
    errors.OwnerForbidden: Kind(
        HTTPStatus.FORBIDDEN, ProblemCode.OWNER_FORBIDDEN, "The caller may not act for this owner"
    ),
    errors.ApiKeyNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.API_KEY_NOT_FOUND, "There is no such API key"),
    errors.ApiKeysOff: Kind(HTTPStatus.CONFLICT, ProblemCode.API_KEYS_OFF, "The deployment accepts no API keys"),
    errors.LinkNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.LINK_NOT_FOUND, "There is no such link"),
    errors.LinkEnded: Kind(HTTPStatus.GONE, ProblemCode.LINK_ENDED, "The link has ended"),
    errors.LinksFull: Kind(HTTPStatus.CONFLICT, ProblemCode.LINKS_FULL, "The task has too many links"),
    errors.SwitchNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.SWITCH_NOT_FOUND, "There is no such switch"),
    errors.SwitchesFull: Kind(HTTPStatus.CONFLICT, ProblemCode.SWITCHES_FULL, "There are too many switches"),
    errors.QuotaExceeded: Kind(HTTPStatus.TOO_MANY_REQUESTS, ProblemCode.QUOTA_EXCEEDED, "A quota is used up"),
    errors.IntakeOff: Kind(HTTPStatus.CONFLICT, ProblemCode.INTAKE_OFF, "The deployment has no intake of events"),
    errors.IntakeRuleNotFound: Kind(
        HTTPStatus.NOT_FOUND, ProblemCode.INTAKE_RULE_NOT_FOUND, "The intake rule does not exist"
    ),
    errors.IntakeRulesFull: Kind(HTTPStatus.CONFLICT, ProblemCode.INTAKE_RULES_FULL, "There are too many intake rules"),
    errors.QuotasOff: Kind(HTTPStatus.CONFLICT, ProblemCode.QUOTAS_OFF, "The deployment has no quotas"),
    errors.QuotasNotFound: Kind(
        HTTPStatus.NOT_FOUND, ProblemCode.QUOTAS_NOT_FOUND, "The owner has no quotas of its own"
    ),
    errors.QuotasFull: Kind(
        HTTPStatus.CONFLICT, ProblemCode.QUOTAS_FULL, "There are too many owners with quotas of their own"
    ),
    errors.TypeNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.TYPE_NOT_FOUND, "There is no such type"),
    errors.TypesFull: Kind(HTTPStatus.CONFLICT, ProblemCode.TYPES_FULL, "There are too many types with defaults"),
    errors.SubscriptionsFull: Kind(
        HTTPStatus.CONFLICT, ProblemCode.SUBSCRIPTIONS_FULL, "There are too many subscriptions"
    ),
    errors.BulkNotFound: Kind(
        HTTPStatus.NOT_FOUND, ProblemCode.BULK_OPERATION_NOT_FOUND, "There is no such bulk operation"
    ),
    errors.BulkEnded: Kind(
        HTTPStatus.CONFLICT, ProblemCode.STATE_CONFLICT, "The state of the resource does not allow it"
    ),
    errors.BulkOfTopology: Kind(
        HTTPStatus.CONFLICT, ProblemCode.STATE_CONFLICT, "The state of the resource does not allow it"
    ),
    errors.LockNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.LOCK_NOT_FOUND, "There is no such lock"),
    errors.GroupNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.GROUP_NOT_FOUND, "There is no such group"),
    errors.GroupClosed: Kind(HTTPStatus.CONFLICT, ProblemCode.GROUP_CLOSED, "The group is closed"),
    errors.RateNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.RATE_NOT_FOUND, "There is no such rate"),
    errors.OrderedKeyNotFound: Kind(
        HTTPStatus.NOT_FOUND, ProblemCode.ORDERED_KEY_NOT_FOUND, "There is no such ordered key"
    ),
    errors.UniqueKeyNotFound: Kind(
        HTTPStatus.NOT_FOUND, ProblemCode.UNIQUE_KEY_NOT_FOUND, "No task holds this unique key"
    ),
    errors.ScheduleNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.SCHEDULE_NOT_FOUND, "There is no such schedule"),
    errors.BackfillNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.BACKFILL_NOT_FOUND, "There is no such backfill"),
    errors.ScheduleExists: Kind(HTTPStatus.CONFLICT, ProblemCode.SCHEDULE_EXISTS, "A schedule of this name exists"),
    errors.ScheduleStateConflict: Kind(
        HTTPStatus.CONFLICT, ProblemCode.STATE_CONFLICT, "The state of the resource does not allow it"
    ),
    errors.ScheduleVersionMismatch: Kind(
        HTTPStatus.PRECONDITION_FAILED, ProblemCode.VERSION_MISMATCH, "The resource has changed"
    ),
    errors.CalendarNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.CALENDAR_NOT_FOUND, "There is no such calendar"),
    errors.CalendarExists: Kind(
        HTTPStatus.PRECONDITION_FAILED, ProblemCode.CALENDAR_EXISTS, "A calendar of this name exists"
    ),
    errors.CalendarVersionMismatch: Kind(
        HTTPStatus.PRECONDITION_FAILED, ProblemCode.VERSION_MISMATCH, "The resource has changed"
    ),
    errors.CalendarUsed: Kind(HTTPStatus.CONFLICT, ProblemCode.CALENDAR_IN_USE, "A schedule uses the calendar"),
    errors.DefinitionNotFound: Kind(
        HTTPStatus.NOT_FOUND, ProblemCode.DEFINITION_NOT_FOUND, "There is no such topology definition"
    ),
    errors.DefinitionExists: Kind(
        HTTPStatus.PRECONDITION_FAILED, ProblemCode.DEFINITION_EXISTS, "A topology definition of this name exists"
    ),
    errors.DefinitionVersionMismatch: Kind(
        HTTPStatus.PRECONDITION_FAILED, ProblemCode.VERSION_MISMATCH, "The resource has changed"
    ),
    errors.DefinitionUsed: Kind(
        HTTPStatus.CONFLICT, ProblemCode.DEFINITION_IN_USE, "A schedule runs the topology definition"
    ),
    request_errors.MethodUnsupported: Kind(
        HTTPStatus.METHOD_NOT_ALLOWED, ProblemCode.METHOD_UNSUPPORTED, "Method not allowed"
    ),
    errors.StateConflict: Kind(
        HTTPStatus.CONFLICT, ProblemCode.STATE_CONFLICT, "The state of the resource does not allow it"
    ),
    errors.FenceMismatch: Kind(
        HTTPStatus.CONFLICT, ProblemCode.FENCE_MISMATCH, "The attempt has ended, or the fence is of another attempt"
    ),
    errors.LockLost: Kind(HTTPStatus.CONFLICT, ProblemCode.LOCK_LOST, "The attempt has lost its lock"),
    errors.AttemptOverdue: Kind(HTTPStatus.CONFLICT, ProblemCode.ATTEMPT_OVERDUE, "The attempt has taken too long"),
    errors.TypeNotPulled: Kind(
        HTTPStatus.FORBIDDEN, ProblemCode.TYPE_NOT_PULLED, "The caller is not allowed to pull this type"
    ),
    errors.LeaseOnlyCreates: Kind(
        HTTPStatus.FORBIDDEN,
        ProblemCode.LEASE_ONLY_CREATES,
        "This handler can only create tasks",
    ),
    errors.LeaseNotFound: Kind(HTTPStatus.NOT_FOUND, ProblemCode.LEASE_NOT_FOUND, "There is no such lease"),
    errors.NotifiedOtherwise: Kind(
        HTTPStatus.CONFLICT, ProblemCode.OUTCOME_CONFLICT, "The attempt has already ended with another outcome"
    ),
    errors.VersionMismatch: Kind(
        HTTPStatus.PRECONDITION_FAILED, ProblemCode.VERSION_MISMATCH, "The resource has changed"
    ),
    request_errors.BodyTooLarge: Kind(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, ProblemCode.BODY_TOO_LARGE, "The body is too large"
    ),
    request_errors.MediaTypeUnsupported: Kind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        ProblemCode.MEDIA_TYPE_UNSUPPORTED,
        "The media type of the body is not supported",
    ),
    request_errors.EncodingUnsupported: Kind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        ProblemCode.ENCODING_UNSUPPORTED,
        "The content encoding of the body is not supported",
    ),
    request_errors.FieldsInvalid: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, ProblemCode.FIELDS_INVALID, "Invalid fields"),
    errors.FieldInvalid: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, ProblemCode.FIELDS_INVALID, "Invalid fields"),
    errors.KeyReused: Kind(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        ProblemCode.IDEMPOTENCY_KEY_REUSED,
        "The idempotency key was used for another request",
    ),
    errors.UniqueKeyHeld: Kind(HTTPStatus.CONFLICT, ProblemCode.UNIQUE_KEY_HELD, "Another task holds the unique key"),
    errors.SummaryOff: Kind(HTTPStatus.CONFLICT, ProblemCode.SUMMARY_OFF, "The deployment does not count tasks"),
    errors.QueryNotOffered: Kind(
        HTTPStatus.CONFLICT, ProblemCode.QUERY_NOT_OFFERED, "The target does not offer the query"
    ),
    errors.TargetUnreachable: Kind(
        HTTPStatus.BAD_GATEWAY, ProblemCode.TARGET_UNREACHABLE, "The target sent no usable response"
    ),
    errors.TargetSilent: Kind(
        HTTPStatus.GATEWAY_TIMEOUT, ProblemCode.TARGET_TIMEOUT, "The target did not respond in time"
    ),
    errors.RegionNotActive: Kind(
        HTTPStatus.SERVICE_UNAVAILABLE, ProblemCode.REGION_NOT_ACTIVE, "Another Region is active"
    ),
    errors.Unavailable: Kind(HTTPStatus.SERVICE_UNAVAILABLE, ProblemCode.UNAVAILABLE, "Try again in a moment"),
}


def code_of(name: str) -> str:
    """The code for an error class, given by the class's name. Stored bulk operations count errors by this name."""
    named = {error.__name__: kind.code for error, kind in KINDS.items()}
    return named.get(name, "refused")


def kind_of(error: Exception) -> Kind:
    """The kind of problem for an error."""
    return next((KINDS[base] for base in type(error).__mro__ if base in KINDS), INTERNAL)


def rest_kinds() -> Mapping[type[Exception], Kind]:
    """The problems of REST requests, by error; problems of WebSocket connections are left out."""
    return {error: kind for error, kind in KINDS.items() if error is not errors.SubscriptionsFull}
