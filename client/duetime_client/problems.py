"""Converts HTTP responses to errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime_client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    InvalidField,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Problem,
    RateLimited,
    ServerError,
    Unauthenticated,
    UnexpectedResponse,
)

if TYPE_CHECKING:
    import httpx

PROBLEM_TYPE = "application/problem+json"
WRONG_ADDRESS = "path_not_found"
"""The code of a 404 response for an unknown route, which means that the API's address is wrong."""
_OTHER_SERVER = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
_LONGEST_WAIT = 86_400.0

ERRORS: Mapping[int, type[ApiError]] = {
    HTTPStatus.BAD_REQUEST: InvalidRequest,
    HTTPStatus.UNAUTHORIZED: Unauthenticated,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.PRECONDITION_FAILED: PreconditionFailed,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: InvalidRequest,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: InvalidRequest,
    HTTPStatus.UNPROCESSABLE_ENTITY: InvalidRequest,
    HTTPStatus.TOO_MANY_REQUESTS: RateLimited,
}


def error_of_response(response: httpx.Response) -> ApiError:
    """The error for a response whose status is not 2xx."""
    retry_after = seconds_of(response.headers.get("Retry-After"), datetime.now(UTC))
    if response.headers.get("Content-Type", "").startswith(PROBLEM_TYPE):
        return error_of_problem(response.status_code, document_of(response), retry_after)
    return foreign_error(response, retry_after)


def error_of_problem(status: int, document: object, retry_after: float | None = None) -> ApiError:
    """The error for an RFC 9457 problem."""
    members = document if isinstance(document, Mapping) else {}
    code = text_of(members.get("code")) or phrase_of(status)
    title = text_of(members.get("title")) or phrase_of(status)
    problem = Problem(
        status=status,
        code=code,
        title=title,
        detail=text_of(members.get("detail")) or title,
        errors=tuple(invalid_fields(members.get("errors"))),
        retry_after=retry_after,
        quota=text_of(members.get("quota")),
    )
    if code == WRONG_ADDRESS:
        return UnexpectedResponse(problem)
    return _error_type(status)(problem)


def foreign_error(response: httpx.Response, retry_after: float | None) -> ApiError:
    """The error for a response that comes from a gateway or another server instead of duetime."""
    status = response.status_code
    document = document_of(response)
    message = text_of(document.get("message")) if isinstance(document, Mapping) else ""
    if status in _OTHER_SERVER or status < HTTPStatus.BAD_REQUEST:
        # A missing route means that the address is wrong, not that a task does not exist.
        return unexpected_response(response, "no duetime API at this address; give its complete URL, with the path")
    phrase = phrase_of(status)
    problem = Problem(status, phrase, phrase, message or phrase, retry_after=retry_after)
    return _error_type(status)(problem)


def _error_type(status: int) -> type[ApiError]:
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ServerError
    return ERRORS.get(status, ApiError)


def unexpected_response(response: httpx.Response, reason: str) -> UnexpectedResponse:
    """The error for a response that does not match the contract."""
    detail = f"{reason}: {response.request.method} {response.request.url}"
    return UnexpectedResponse(Problem(response.status_code, "unexpected_answer", reason, detail))


def document_of(response: httpx.Response) -> object:
    """The JSON of a response, or `None` if the content is not JSON."""
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None


def invalid_fields(errors: object) -> list[InvalidField]:
    """The rejected fields of a problem."""
    entries = errors if isinstance(errors, list) else []
    return [
        InvalidField(text_of(entry.get("field")), text_of(entry.get("reason")), text_of(entry.get("code")))
        for entry in entries
        if isinstance(entry, Mapping)
    ]


def seconds_of(retry_after: str | None, now: datetime) -> float | None:
    """The seconds in a `Retry-After` header, which is a number or an HTTP date; at most a day."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return min(float(retry_after), _LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    # A date in zone "-0000" is parsed without a zone; HTTP dates are always UTC.
    return min(_LONGEST_WAIT, max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds()))


def phrase_of(status: int) -> str:
    """The standard phrase for a status, for responses without a title."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "unknown status"


def text_of(value: object) -> str:
    """The value if it is text, else the empty string."""
    return value if isinstance(value, str) else ""
