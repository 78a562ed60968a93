"""Which operation of the API a request asks for.

The module that declares an operation is imported when a request first needs it: no task should wait for the models of
schedules, graphs and bulk operations.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from duetime.contract.http.operation import Operation
from duetime.contract.http.request_errors import MethodUnsupported, PathNotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TASKS = "duetime.contract.tasks.operations"
_BULK = "duetime.contract.bulk.operations"
_EXPLANATIONS = "duetime.contract.explanations.operations"
_HEALTH = "duetime.contract.health_and_openapi"
_SCHEDULES = "duetime.contract.schedules.operations"
_TOPOLOGIES = "duetime.contract.topologies"
DECLARED_IN: Mapping[str, Sequence[str]] = {
    "tasks": (TASKS, _EXPLANATIONS, _BULK),
    "bulk-operations": (_BULK,),
    "locks": ("duetime.contract.locks",),
    "leases": ("duetime.contract.pull.operations",),
    "switches": ("duetime.contract.switches",),
    "schedules": (_SCHEDULES, _EXPLANATIONS),
    "calendars": (_SCHEDULES,),
    "forecast": ("duetime.contract.schedules.forecast",),
    "topologies": (f"{_TOPOLOGIES}.definition_operations", f"{_TOPOLOGIES}.operations"),
    "summary": ("duetime.contract.summary",),
    "settings": ("duetime.contract.deployment_settings",),
    "dispatch": ("duetime.contract.dispatch_status",),
    "watch-tickets": ("duetime.contract.live_updates.operations",),
    "": (_HEALTH,),
    "health": (_HEALTH,),
    "openapi.json": (_HEALTH,),
}
"""The modules that declare the operations whose paths begin with `/v1/` and this part; the most used come first, but
those with a fixed path before those with a pattern that it would match too."""
_ALLOW_ORDER = ("GET", "POST", "PUT", "PATCH", "DELETE")


def operations_of(module: str) -> Sequence[Operation[Any]]:
    """The operations that a module declares: whatever it has is one of the API, and none can be left out of a list."""
    return tuple(value for value in vars(import_module(module)).values() if isinstance(value, Operation))


def subject_of(path: str) -> str:
    """What a path is about: its part after the version, by which `DECLARED_IN` has it."""
    return path.partition("/v1")[2].removeprefix("/").partition("/")[0]


def operation_at(method: str, path: str) -> tuple[Operation[Any], Mapping[str, str]]:
    """The operation that a request asks for, with the parameters in its path.

    Raises:
        PathNotFound: there is nothing at the path.
        MethodUnsupported: the path does not take the method.
    """
    for operations, parameters in _matches(path):
        if method in operations:
            return operations[method], parameters
    raise MethodUnsupported(methods_at(path))


def methods_at(path: str) -> Sequence[str]:
    """The methods that are declared for a path, in the usual order.

    Raises:
        PathNotFound: there is nothing at the path.
    """
    # A fixed path counts before a pattern that it would match too.
    found = sorted(_matches(path), key=lambda match: len(match[1]))
    if not found:
        raise PathNotFound
    return sorted(found[0][0], key=_ALLOW_ORDER.index)


@cache
def _by_path(module: str) -> Mapping[str, Mapping[str, Operation[Any]]]:
    """The operations of each path by their methods; fixed paths come before patterns that they would match too."""
    found: dict[str, dict[str, Operation[Any]]] = {}
    for operation in sorted(operations_of(module), key=lambda one: "{" in one.path):
        found.setdefault(operation.path, {})[operation.method] = operation
    return found


def _matches(path: str) -> Iterator[tuple[Mapping[str, Operation[Any]], Mapping[str, str]]]:
    for module in DECLARED_IN.get(subject_of(path), ()):
        for pattern, operations in _by_path(module).items():
            wanted = pattern.split("/")
            # A slash at the end is taken: it cannot mean anything else, but in a name that may have slashes.
            is_open = any(each.has_open_path for each in operations.values())
            parts = path.split("/", len(wanted) - 1) if is_open else path.removesuffix("/").split("/")
            parameters = _parameters(wanted, parts)
            if parameters is not None:
                yield operations, parameters


def _parameters(pattern: Sequence[str], parts: Sequence[str]) -> Mapping[str, str] | None:
    """What stands in the place of a pattern's parameters; none if a path does not match it."""
    if len(pattern) != len(parts):
        return None
    found: dict[str, str] = {}
    for wanted, part in zip(pattern, parts, strict=True):
        if wanted.startswith("{") and part:
            found[wanted[1:-1]] = part
        elif wanted != part:
            return None
    return found
