"""The one place where use cases meet their adapters.

The use cases are composed by subject, a module and a class each: `composed(TaskServices).creator`. Each is made when it
is first asked for, once a process, and a function imports only the subjects that it uses. `use` exchanges what all of
it runs on (clock, randomness, threads, AWS clients): so tests and the simulation run the unmodified functions.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar, overload

from duetime.adapters.runtime import garbage_collection

garbage_collection.postpone()  # before AWS's library and the use cases are imported

from duetime.composition.root import Composition, Part, Platform  # noqa: E402 - see the line above

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Composition", "Part", "Platform", "composed", "use", "use_by_process"]

P = TypeVar("P", bound=Part)

_platform: Platform | None = None


def use(platform: Platform | None) -> None:
    """Exchange what a process runs on; `None` goes back to the real one. What was composed before is forgotten."""
    global _platform  # noqa: PLW0603 - a Lambda function's process has exactly one
    _platform = platform
    _only.cache_clear()


def use_by_process(find: Callable[[], Composition | None]) -> None:
    """Let `find` say which composition the caller has: a simulation has many processes in one.

    Whoever it answers `None` to has the composition of the real process.
    """
    global _find  # noqa: PLW0603 - same
    _find = find


@overload
def composed() -> Composition: ...


@overload
def composed(part: type[P]) -> P: ...


def composed(part: type[P] | None = None) -> Composition | P:
    """The composition of this process, or one part of it."""
    composition = _find() or _only()
    return composition if part is None else composition.part(part)


@cache
def _only() -> Composition:
    garbage_collection.resume()
    return Composition(_platform or Platform())


_find: Callable[[], Composition | None] = _only
