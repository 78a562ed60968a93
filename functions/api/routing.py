"""Binds each operation that the contract declares to the handler that carries it out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.contract.http.routes import OPERATIONS, operation_at

from . import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.contract.http.operation import Operation

    from .requests import Q, Request
    from .responses import Response

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
    # Its body is left out when it leaves.
    operation, parameters = operation_at("GET" if method == "HEAD" else method, _path(event))
    response = _HANDLERS[operation](requests.read(event, operation, parameters))
    ends = operation.deprecation_headers
    return replace(response, headers={**response.headers, **ends}) if ends else response


def _path(event: Mapping[str, Any]) -> str:
    """The path of a request without its stage, which the gateway puts before it unless it is the default one."""
    path: str = event["rawPath"]
    stage = event["requestContext"]["stage"]
    return path if stage == "$default" else path.removeprefix(f"/{stage}")
