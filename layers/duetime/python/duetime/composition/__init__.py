"""Connects the use cases with their adapters.

The use cases are composed by subject, with one module and class each: `composed(TaskServices).creator`. Each one is
created at first use, once per process, and a function imports only the subjects that it uses. `use` replaces the
platform (clock, randomness, threads, AWS clients), so that tests and the simulation run the unmodified functions.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar, overload

from duetime.adapters.runtime import garbage_collection

garbage_collection.postpone()  # before the imports of AWS's library and the use cases

from duetime.composition.root import Composition, Part, Platform  # noqa: E402 - see the line above

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Composition", "Part", "Platform", "composed", "use", "use_by_process"]

P = TypeVar("P", bound=Part)

_platform: Platform | None = None


def use(platform: Platform | None) -> None:
    """Replace the platform of a process; `None` restores the real one. Discards everything composed before."""
    global _platform  # noqa: PLW0603 - a Lambda function's process has exactly one
    _platform = platform
    _only.cache_clear()


def use_by_process(find: Callable[[], Composition | None]) -> None:
    """Let `find` return the composition of the caller, for a simulation of several processes in one.

    If it returns `None`, the caller has the composition of the real process.
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
