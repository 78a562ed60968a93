"""Reads expressions once, and copies items without `copy.deepcopy`.

MiniStack 1.5.33 splits each expression into tokens letter by letter for each request, and copies an item five times for
each write: a third of the time of a write to a small record.

Run by the emulator's own Python, so it imports the standard library only.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

_EXPRESSIONS = 1_000
"""Expressions that are kept: duetime has some hundred, other users' may have names without end."""


def speed_up(engine: Any) -> None:  # noqa: ANN401 - a module of the emulator
    """Let the emulator's module of DynamoDB do both."""
    split = lru_cache(_EXPRESSIONS)(lambda text: tuple(tokenize(text)))
    tokenize = engine._tokenize  # noqa: SLF001 - it has no hook for this
    # A list for each caller, which may change it.
    engine._tokenize = lambda text: list(split(text))  # noqa: SLF001 - same
    engine.copy = SimpleNamespace(deepcopy=copied)


def copied(value: Any) -> Any:  # noqa: ANN401 - any value
    """A deep copy of a value of JSON; the parts of others are copied by `copy.deepcopy`."""
    kind = type(value)
    if kind is dict:
        return {name: copied(each) for name, each in value.items()}
    if kind is list:
        return [copied(each) for each in value]
    return value if kind in _UNCHANGEABLE else copy.deepcopy(value)


_UNCHANGEABLE = frozenset({str, int, float, bool, type(None)})
