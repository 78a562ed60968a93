"""Binds each operation that the contract declares to the handler that carries it out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from duetime.contract.http.request_errors import allowed
from duetime.contract.http.routes import OPERATIONS, methods_at, operation_at
from duetime.domain.errors import RequestError

from . import requests
from .responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.contract.http.operation import Operation

    from .requests import Q, Request

_HANDLERS: dict[Operation[Any], Callable[[Request[Any]], Response]] = {}


class BindingWrong(Exception):
    """An operation has no handler or more than one, or is not among those of the API."""


def route(
    operation: Operation[Q],
) -> Callable[[Callable[[Request[Q]], Response]], Callable[[Request[Q]], Response]]:
    """Bind a handler to an operation.

    Raises:
        BindingWrong: it has one already.
    """

    def bind(handler: Callable[[Request[Q]], Response]) -> Callable[[Request[Q]], Response]:
        if operation in _HANDLERS:
            raise BindingWrong(f"{operation.id} has two handlers")
        _HANDLERS[operation] = handler
        return handler

    return bind


def require_all_bound() -> None:
    """Refuse to start if an operation was forgotten.

    Raises:
        BindingWrong: an operation of the API has no handler, or a handler's operation is not of the API.
    """
    if wrong := {operation.id for operation in _HANDLERS.keys() ^ set(OPERATIONS)}:
        raise BindingWrong(f"declared and bound operations differ: {', '.join(sorted(wrong))}")


def respond(event: Mapping[str, Any]) -> Response:
    """Carry out what a request asks for."""
    method = event["requestContext"]["http"]["method"].upper()
    if method == "OPTIONS":
        # Where browsers may call, the gateway adds what they ask for.
        return Response(HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(allowed(methods_at(_path(event))))})
    # Its body is left out when it leaves.
    operation, parameters = operation_at("GET" if method == "HEAD" else method, _path(event))
    return _HANDLERS[operation](requests.read(event, operation, parameters))


def with_deprecation(response: Response, event: Mapping[str, Any]) -> Response:
    """A response, success or refusal, that says if the operation that was asked for is to go."""
    if not any(operation.deprecated or operation.sunset for operation in OPERATIONS):
        return response
    method = event["requestContext"]["http"]["method"].upper()
    with suppress(RequestError):
        operation, _ = operation_at("GET" if method == "HEAD" else method, _path(event))
        return replace(response, headers={**response.headers, **operation.deprecation_headers})
    return response


def _path(event: Mapping[str, Any]) -> str:
    """The path of a request without its stage, which the gateway puts before it unless it is the default one."""
    path: str = event["rawPath"]
    stage = event["requestContext"]["stage"]
    return path if stage == "$default" else path.removeprefix(f"/{stage}")
