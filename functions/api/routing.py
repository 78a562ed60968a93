"""Binds each operation of the contract to its handler."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.contract.http.operation import methods_at, operation_at, path_within, subject_of
from duetime.contract.http.request_errors import allowed
from duetime.domain.callers import Role
from duetime.domain.errors import RequestError

from . import requests
from .responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.contract.http.operation import Operation

    from .requests import Q, Request

_HANDLED_IN: Mapping[str, Sequence[str]] = {
    "tasks": ("tasks", "task_control", "filter_actions", "explanations", "links"),
    "links": ("links",),
    "uploads": ("uploads",),
    "bulk-operations": ("bulk_operations",),
    "purges": ("purges",),
    "locks": ("locks",),
    "groups": ("groups",),
    "rates": ("rates",),
    "unique-keys": ("unique_keys",),
    "ordered-keys": ("ordered_keys",),
    "leases": ("leases",),
    "types": ("task_types",),
    "switches": ("switches",),
    "intake-rules": ("intake_rules",),
    "signals": ("signals",),
    "quotas": ("quotas",),
    "schedules": ("schedules", "explanations"),
    "calendars": ("calendars",),
    "forecast": ("forecast",),
    "topologies": ("topologies", "topology_definitions"),
    "summary": ("summary",),
    "settings": ("deployment_settings",),
    "dispatch": ("dispatch_status",),
    "watch-tickets": ("watch_tickets",),
    "signing-secrets": ("signing_secrets",),
    "keys": ("api_keys",),
    "signing-keys": ("signing_secrets",),
    "": ("health_and_openapi",),
    "health": ("health_and_openapi",),
    "openapi.json": ("health_and_openapi",),
}
"""The modules with the handlers for each subject of a path. They are imported in this order until the requested
operation has a handler."""
_READS = frozenset({"GET", "HEAD"})
_REPORTS = frozenset({"notify", "heartbeat", "progress", "complete", "fail", "release"})
"""Last parts of the paths to which attempts send reports."""
_HANDLERS: dict[Operation[Any], Callable[[Request[Any]], Response]] = {}


class BindingWrong(Exception):
    """An operation has more than one handler."""


def route(
    operation: Operation[Q],
) -> Callable[[Callable[[Request[Q]], Response]], Callable[[Request[Q]], Response]]:
    """Bind a handler to an operation.

    Raises:
        BindingWrong: the operation already has a handler.
    """

    def bind(handler: Callable[[Request[Q]], Response]) -> Callable[[Request[Q]], Response]:
        if operation in _HANDLERS:
            raise BindingWrong(f"{operation.id} has two handlers")
        _HANDLERS[operation] = handler
        return handler

    return bind


def bound() -> Mapping[Operation[Any], Callable[[Request[Any]], Response]]:
    """The handlers of all operations."""
    for name in dict.fromkeys(chain(*_HANDLED_IN.values())):
        import_module(f".{name}", __package__)
    return _HANDLERS


def _handler_of(operation: Operation[Any], path: str) -> Callable[[Request[Any]], Response]:
    for name in _HANDLED_IN[subject_of(path)]:
        if operation in _HANDLERS:
            break
        import_module(f".{name}", __package__)
    return _HANDLERS[operation]


def respond(event: Mapping[str, Any]) -> Response:
    """Carry out a request."""
    method = event["requestContext"]["http"]["method"].upper()
    if method == "OPTIONS":
        # If browsers may call the API, the gateway adds the CORS headers to this response.
        return Response(HTTPStatus.NO_CONTENT, headers={"Allow": ", ".join(allowed(methods_at(_path(event))))})
    # For HEAD, which has the operation of GET, the body is removed before the response is sent.
    operation, parameters = operation_at(method, _path(event))
    request = requests.read(event, operation, parameters)
    if method not in _READS and (region := composed().region) is not None:
        region.check(is_report=event["rawPath"].rpartition("/")[2] in _REPORTS)
    requests.admit_read(request)
    return _shown_to(request, _handler_of(operation, _path(event))(request))


def _shown_to(request: Request[Any], response: Response) -> Response:
    """A response without the values that a read-only caller must not see."""
    caller, is_public = request.caller, request.operation.is_public
    if is_public or caller.has(Role.WRITER) or caller.has(Role.WORKER) or not composed().settings.redact:
        return response
    # Few callers can only read, and few deployments redact anything, so the module is imported only for them.
    from .redaction import redacted  # noqa: PLC0415 - see the line above

    return redacted(response)


def with_deprecation(response: Response, event: Mapping[str, Any]) -> Response:
    """Add the operation's deprecation headers, if any, to a response or error."""
    method = event["requestContext"]["http"]["method"].upper()
    with suppress(RequestError):
        operation, _ = operation_at(method, _path(event))
        if ends := operation.deprecation_headers:
            return replace(response, headers={**response.headers, **ends})
    return response


def _path(event: Mapping[str, Any]) -> str:
    return path_within(event["rawPath"])
