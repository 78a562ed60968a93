"""Every operation of the API, and which of them a request asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contract import health, locks, summary, switches
from duetime.contract.bulk import operations as bulk
from duetime.contract.explanations import operations as explanations
from duetime.contract.http.operation import Operation
from duetime.contract.http.request_errors import MethodUnsupported, PathNotFound
from duetime.contract.live_updates import operations as live_updates
from duetime.contract.pull import operations as leases
from duetime.contract.schedules import operations as schedules
from duetime.contract.tasks import operations as tasks
from duetime.contract.topologies import operations as topologies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_DECLARED_IN = (
    tasks,
    explanations,
    bulk,
    locks,
    leases,
    switches,
    schedules,
    topologies,
    summary,
    live_updates,
    health,
)
_ALLOW_ORDER = ("GET", "POST", "PUT", "PATCH", "DELETE")

# Whatever a module declares is an operation of the API: none can be left out of a list of them.
OPERATIONS: Sequence[Operation[Any]] = tuple(
    value for module in _DECLARED_IN for value in vars(module).values() if isinstance(value, Operation)
)


def _by_path() -> Mapping[str, Mapping[str, Operation[Any]]]:
    """The operations of each path by their methods; fixed paths come before patterns that they would match too."""
    found: dict[str, dict[str, Operation[Any]]] = {}
    for operation in sorted(OPERATIONS, key=lambda one: "{" in one.path):
        found.setdefault(operation.path, {})[operation.method] = operation
    return found


_BY_PATH = _by_path()
_ENDS_WITH_SLASHES = frozenset({switches.PUT.path})
"""Paths whose last parameter may hold slashes, as types and owners do: the gateway hands paths on decoded."""


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
    for operations, _ in _matches(path):
        return sorted(operations, key=_ALLOW_ORDER.index)
    raise PathNotFound


def _matches(path: str) -> Iterator[tuple[Mapping[str, Operation[Any]], Mapping[str, str]]]:
    for pattern, operations in _BY_PATH.items():
        wanted = pattern.split("/")
        # A slash at the end is taken: it cannot mean anything else, but in a name that may have slashes.
        is_open = pattern in _ENDS_WITH_SLASHES
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
