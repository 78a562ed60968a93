"""Routing: finds the operation of a request, and builds references between responses.

The API does not know the path prefix under which it is reached: an API stage, a custom domain with a base path, the
local stack or a proxy may add one. So prefixes of request paths are ignored, and references are relative.

Modules that declare operations are imported when a request first needs them: requests for tasks should not wait for the
models of schedules, graphs and bulk operations.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from duetime.contract.http.operation import Operation
from duetime.contract.http.request_errors import MethodUnsupported, PathNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


CONTRACT_VERSION = "1.0.0"
"""Independent of the version of the package, which may change while the contract does not."""
TASKS = "duetime.contract.tasks.operations"
_BULK = "duetime.contract.bulk.operations"
_EXPLANATIONS = "duetime.contract.explanations.operations"
_HEALTH = "duetime.contract.health_and_openapi"
_LINKS = "duetime.contract.links"
_SCHEDULES = "duetime.contract.schedules.operations"
_TOPOLOGIES = "duetime.contract.topologies"
DECLARED_IN: Mapping[str, Sequence[str]] = {
    "tasks": (TASKS, _EXPLANATIONS, _BULK, _LINKS),
    "links": (_LINKS,),
    "uploads": ("duetime.contract.uploads",),
    "bulk-operations": (_BULK,),
    "purges": ("duetime.contract.bulk.purges",),
    "locks": ("duetime.contract.locks",),
    "groups": ("duetime.contract.groups",),
    "rates": ("duetime.contract.rates",),
    "unique-keys": ("duetime.contract.unique_keys",),
    "ordered-keys": ("duetime.contract.ordered_keys",),
    "leases": ("duetime.contract.leases",),
    "types": ("duetime.contract.task_types",),
    "switches": ("duetime.contract.switches",),
    "intake-rules": ("duetime.contract.intake_rules",),
    "signals": ("duetime.contract.signals",),
    "quotas": ("duetime.contract.quotas",),
    "schedules": (_SCHEDULES, _EXPLANATIONS),
    "calendars": (_SCHEDULES,),
    "forecast": ("duetime.contract.schedules.forecast",),
    "topologies": (f"{_TOPOLOGIES}.definitions", f"{_TOPOLOGIES}.operations"),
    "summary": ("duetime.contract.summary",),
    "settings": ("duetime.contract.deployment_settings",),
    "dispatch": ("duetime.contract.dispatch_status",),
    "watch-tickets": ("duetime.contract.live_updates.operations",),
    "signing-secrets": ("duetime.contract.signing_secrets",),
    "keys": ("duetime.contract.api_keys",),
    "signing-keys": ("duetime.contract.signing_secrets",),
    "": (_HEALTH,),
    "health": (_HEALTH,),
    "openapi.json": (_HEALTH,),
}
"""The modules that declare the operations whose paths start with `/v1/` and this part. Modules in frequent use come
first, but fixed paths come before patterns that match them too."""
_VERSION = "v1"
_ALLOW_ORDER = ("GET", "POST", "PUT", "PATCH", "DELETE")


def operations_of(module: str) -> Sequence[Operation[Any]]:
    """All operations that a module declares, so that no list of operations can be incomplete."""
    return tuple(value for value in vars(import_module(module)).values() if isinstance(value, Operation))


def subject_of(path: str) -> str:
    """The part of a path after the version, which is a key of `DECLARED_IN`."""
    return path.partition("/v1")[2].removeprefix("/").partition("/")[0]


def path_within(path: str) -> str:
    """The part of a request's path from the API's version on.

    An API stage and the base path of a custom domain precede it (Source: API Gateway Developer Guide, "Create AWS
    Lambda proxy integrations for HTTP APIs").
    """
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part == _VERSION and (parts[index + 1] if index + 1 < len(parts) else "") in DECLARED_IN:
            return "/" + "/".join(parts[index:])
    return path


def reference_to(path: str, request_path: str) -> str:
    """A path relative to the path of the request, for responses; works with any prefix.

    Args:
        path: the path to refer to, such as `/v1/tasks/ID`.
        request_path: the path of the request.

    Source: RFC 3986, 4.2 and 5.2; RFC 9110, 10.2.2.
    """
    there, here = path.split("/")[1:], path_within(request_path).split("/")[1:-1]
    same = 0
    while same < min(len(here), len(there) - 1) and here[same] == there[same]:
        same += 1
    reference = "/".join([".."] * (len(here) - same) + there[same:])
    # Text before a colon would be interpreted as a scheme.
    return f"./{reference}" if ":" in reference.partition("/")[0] else reference


def operation_at(method: str, path: str) -> tuple[Operation[Any], Mapping[str, str]]:
    """The operation of a request, with its path parameters.

    Raises:
        PathNotFound: the path does not exist.
        MethodUnsupported: the path does not support the method.
    """
    found: set[str] = set()
    for pattern, operations, parameters in _matches(path):
        if method in operations and not any(_is_fixed_where(other, pattern) for other in found):
            return operations[method], parameters
        found.add(pattern)
    raise MethodUnsupported(methods_at(path))


def methods_at(path: str) -> Sequence[str]:
    """The declared methods of a path, in the usual order.

    Raises:
        PathNotFound: the path does not exist.
    """
    # Fixed paths take precedence over patterns that match them too.
    found = sorted(_matches(path), key=lambda match: len(match[2]))
    if not found:
        raise PathNotFound
    return sorted(found[0][1], key=_ALLOW_ORDER.index)


def _is_fixed_where(one: str, other: str) -> bool:
    """Whether a pattern has a fixed part where another first has a parameter: fixed parts are not taken for names."""
    places = zip(one.split("/"), other.split("/"), strict=False)
    differing = next(
        ((mine, others) for mine, others in places if mine.startswith("{") != others.startswith("{")), None
    )
    return differing is not None and differing[1].startswith("{")


@cache
def _by_path(module: str) -> Mapping[str, Mapping[str, Operation[Any]]]:
    """The operations of each path by method; fixed paths come before patterns that match them too."""
    found: dict[str, dict[str, Operation[Any]]] = {}
    for operation in sorted(operations_of(module), key=lambda one: "{" in one.path):
        found.setdefault(operation.path, {})[operation.method] = operation
    return found


def _matches(path: str) -> Iterator[tuple[str, Mapping[str, Operation[Any]], Mapping[str, str]]]:
    for module in DECLARED_IN.get(subject_of(path), ()):
        for pattern, operations in _by_path(module).items():
            wanted = pattern.split("/")
            # A trailing slash is accepted, except in a name that may contain slashes, where it could be part of the
            # name.
            is_open = any(each.has_open_path for each in operations.values())
            parts = path.split("/", len(wanted) - 1) if is_open else path.removesuffix("/").split("/")
            parameters = _parameters(wanted, parts)
            if parameters is not None:
                yield pattern, operations, parameters


def _parameters(pattern: Sequence[str], parts: Sequence[str]) -> Mapping[str, str] | None:
    """The path parameters; `None` if the path does not match."""
    if len(pattern) != len(parts):
        return None
    found: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{") and part:
            found[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return found
