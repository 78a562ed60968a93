"""Finds the value in a request that cannot be represented in JSON, and suggests a replacement."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSTEAD: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((date, time), "value.isoformat()"),
    (timedelta, "int(value.total_seconds())"),
    ((set, frozenset), "sorted(value)"),
    ((bytes, bytearray), "base64.b64encode(value).decode()"),
    ((Decimal, UUID), "str(value)"),
    (Enum, "value.value"),
    (Mapping, "dict(value)"),
)
"""Suggested replacements for values of classes that JSON cannot represent."""
_NUMBERS_AND_TEXT = (str, int, float, bool, type(None))


def fault_of(body: object) -> str | None:
    """Return the first value that JSON cannot represent, as `field: reason`; `None` if there is no such value."""
    return next(_faults(body, "", ()), None)


def _faults(value: object, path: str, outer: tuple[int, ...]) -> Iterator[str]:
    if isinstance(value, dict | list | tuple):
        if id(value) in outer:
            yield f"{path}: contains itself"
            return
        for name, each in _entries(value):
            if not isinstance(name, _NUMBERS_AND_TEXT):
                yield f"{path or 'the body'}: a key is not text but {type(name).__name__}"
            else:
                yield from _faults(each, f"{path}.{name}" if path else str(name), (*outer, id(value)))
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: JSON has no NaN and no infinity; leave it out, or write None"
    elif not isinstance(value, _NUMBERS_AND_TEXT):
        yield f"{path}: {type(value).__name__} is not JSON; write {_instead_of(value)}"


def _entries(value: dict[object, object] | list[object] | tuple[object, ...]) -> Iterator[tuple[object, object]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _instead_of(value: object) -> str:
    if is_dataclass(value) or hasattr(value, "model_dump"):
        name = type(value).__name__
        return f"client.tasks.of(TaskType(..., {name})).create(value), or a dict"
    known = (text for classes, text in _INSTEAD if isinstance(value, classes))
    return next(known, "numbers, text, lists and dicts")
