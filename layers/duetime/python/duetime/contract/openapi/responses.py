"""Responses of operations: successes, and errors of the API and of the gateway before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contract.http import problems
from duetime.contract.http.operations import OPERATIONS
from duetime.contract.openapi.rest_problems import rest_kinds
from duetime.contract.openapi.schemas import reference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.operation import Operation, Returns

Schema = dict[str, Any]
_COMPONENT = "#/components/responses/{name}"
_OF_THE_GATEWAY = {
    "401": "The API gateway does not accept the credentials.",
    "403": "The API gateway does not allow the caller this request.",
    "413": "The API gateway does not accept a body of this size.",
    "429": "Too many requests: repeat it later, with exponential backoff.",
    "500": "The request failed with an internal error; it can be repeated.",
    "503": "The API did not respond; the request can be repeated.",
    "504": "The API did not respond in time; the request may have taken effect.",
}
"""Statuses that the gateway also returns by itself: see `ApiError`."""
_OF_A_CALLER = ("401", "403")
_OF_ITS_END = {
    "Deprecation": "Since when the operation is deprecated.",
    "Sunset": "When the operation will be removed.",
}
_RETRY_AFTER: Schema = {
    "Retry-After": {
        "description": "Seconds to wait before the request is repeated. The gateway's own responses do not have it.",
        "schema": {"type": "string"},
    }
}
_WITH_RETRY_AFTER = frozenset({"429", "503"})
_SHARED = {"429": "TooManyRequests", "500": "InternalError", "default": "OtherRefusal"}


def shared_responses() -> dict[str, Schema]:
    """The responses that are common to all operations."""
    kinds = {"500": [problems.INTERNAL], "default": _of_no_operation()}
    return {name: _refusal(status, kinds.get(status, [])) for status, name in _SHARED.items()}


def _of_no_operation() -> list[problems.Kind]:
    """The problems of requests that match no operation, for example with an unknown path."""
    codes = {problems.KINDS[error].code for operation in OPERATIONS for error in operation.all_errors}
    return [kind for kind in rest_kinds().values() if kind.code not in codes]


def responses(operation: Operation) -> dict[str, Schema]:
    """All responses of an operation, by status."""
    return {**_successes(operation), **_refusals(operation)}


def _successes(operation: Operation) -> dict[str, Schema]:
    ends = {name: _OF_ITS_END[name] for name in operation.deprecation_headers}
    found = {str(success.status): _success(success, ends) for success in operation.successes}
    if operation.method == "GET":
        found["304"] = {
            "description": "Not modified: the copy that `If-None-Match` names is current.",
            "headers": _described(operation.successes[0].headers),
        }
    return found


def _success(success: Returns, more_headers: Mapping[str, str]) -> Schema:
    described: Schema = {"description": success.description}
    if success.model is not None:
        schema: Schema = {"type": "object"} if success.model is dict else reference(success.model)
        described["content"] = {"application/json": {"schema": schema}}
    headers = {**success.headers, **more_headers}
    return described | ({"headers": _described(headers)} if headers else {})


def _described(headers: Mapping[str, str]) -> Schema:
    return {name: {"description": text, "schema": {"type": "string"}} for name, text in headers.items()}


def _refusals(operation: Operation) -> dict[str, Schema]:
    kinds: dict[str, list[problems.Kind]] = {} if operation.is_public else {status: [] for status in _OF_A_CALLER}
    for error in operation.all_errors:
        kinds.setdefault(str(problems.KINDS[error].status.value), []).append(problems.KINDS[error])
    own = {status: _refusal(status, same) for status, same in kinds.items()}
    shared = {status: {"$ref": _COMPONENT.format(name=name)} for status, name in _SHARED.items()}
    return dict(sorted({**shared, **own}.items()))


def _refusal(status: str, kinds: list[problems.Kind]) -> Schema:
    by_code: dict[str, problems.Kind] = {kind.code: kind for kind in kinds}
    words = "; ".join(f"`{kind.code}`: {kind.title}" for kind in by_code.values())
    if status == "default":
        words = f"Any other error. {words}".strip()
    gateway = _OF_THE_GATEWAY.get(status)
    described: Schema = {
        "description": " ".join(part for part in (f"{words}." if words and gateway else words, gateway) if part),
        "content": _content(by_code, may_be_the_gateways=gateway is not None or status == "default"),
    }
    return described | ({"headers": _RETRY_AFTER} if status in _WITH_RETRY_AFTER else {})


def _content(by_code: Mapping[str, problems.Kind], *, may_be_the_gateways: bool) -> Schema:
    """The content of an error response.

    If the gateway may also respond, both media types have both schemas: generated clients parse responses by the first
    media type of the document, whatever the `Content-Type` is.
    """
    examples = {code: {"$ref": f"#/components/examples/{code}"} for code in by_code}
    problem: Schema = {"schema": reference("ApiError" if may_be_the_gateways else "Problem")}
    content: Schema = {problems.MEDIA_TYPE: problem | ({"examples": examples} if examples else {})}
    if may_be_the_gateways:
        content["application/json"] = {"schema": reference("ApiError")}
    return content
