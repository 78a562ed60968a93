"""The limits, as the code has them."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

from docs.sections.markdown import bullets, code, documented
from duetime.domain import limits, operating_parameters
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime_common import limits as shared_limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"), (1, "millisecond"))
_LIMITS = (shared_limits, limits)
_MODULES = (*_LIMITS, operating_parameters)
_UNIT_NAMES = frozenset({"DAY", "HOUR", "MINUTE", "SECOND"})
_PLAIN_TIMES = frozenset({"CLAIM_LEAD", "LATEST_SEND", "SEND_STEP"})
"""Lengths of time that the code writes as plain milliseconds, without a unit by which they could be known."""
_NOTICED = frozenset({
    "ACTIONS_INLINE", "ATTEMPTS_INLINE", "BULK_INLINE_NODES", "CONTENT_OUTLIVES_RECORD", "INLINE_CONTENT_BYTES",
    "ITEM_CONTENT_BYTES", "MAX_RECORDED_WAITS", "MAX_TRACEBACK_BYTES",
    "CLOCK_TOLERANCE", "HANDLERS_RETRY", "LEASE_RETURN_MARGIN", "LOCK_CHECK_INTERVAL", "LONGEST_CHECK_INTERVAL",
    "LONGEST_JOB_CHECK_INTERVAL", "LONGEST_NOT_SENT_WAIT", "LONGEST_STOP", "MAX_CLOCK_DIFFERENCE", "MAX_HOLD",
    "MISSED_AFTER", "NODE_MARGIN", "ON_TIME", "OVERLAP_CHECK_INTERVAL", "PERMANENT_CHECK_INTERVAL",
    "RECOVERY_SCAN_BACKLOG", "RECOVERY_SCAN_DELAYS", "SWITCHES_LIFE", "TIMER_LIFE", "TOPOLOGY_MARGIN",
})  # fmt: skip
"""What users and operators notice of what records keep, and of the intervals by which duetime works."""
_SOURCE = re.compile(r" ?\(Source: .*?\)(?=[.;]|$)")
_SECOND_SENTENCE = re.compile(r"\. .*$")
_REASON = re.compile(r"(?:\. |; |(?<!`overlap): ).*$")


class LimitUnexplained(LookupError):
    """A limit has no sentence in the code that says what it limits."""


def limit_list() -> str:
    """What requests may hold and what records keep, without the reasons: lengths in a line, then the others."""
    lengths = [
        f"{code(name)} {_value(getattr(module, name), is_time=False)}"
        for module in _LIMITS
        for name in documented(module)
        if _is_length(name)
    ]
    return f"Lengths in characters: {', '.join(lengths)}.\n\n{_list(_LIMITS, _REASON)}"


def interval_list() -> str:
    """The intervals and sizes by which duetime works that users and operators notice."""
    return _list((operating_parameters,), _SECOND_SENTENCE)


def _list(modules: Iterable[ModuleType], rest: re.Pattern[str]) -> str:
    """Each limit with its value and its meaning, without its source and the rest of its text."""
    times = _times()
    rows = [
        (
            code(name),
            _value(getattr(module, name), is_time=name in times),
            rest.sub(".", _SOURCE.sub("", _explained(name, text))),
        )
        for module in modules
        for name, text in documented(module).items()
        if name in vars(module) and name.isupper() and not _is_length(name)
        if module in _LIMITS or name in _NOTICED
    ]
    return bullets(rows)


def _times() -> frozenset[str]:
    """The limits that are lengths of time: written with a unit, or with another of them."""
    found = set(_UNIT_NAMES | _PLAIN_TIMES)
    for node in (node for module in _MODULES for node in ast.parse(inspect.getsource(module)).body):
        if isinstance(node, ast.Assign) and found & {
            one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)
        }:
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _value(value: float | tuple[int, ...], *, is_time: bool) -> str:
    if is_time:
        return ", ".join(_length(each) for each in (value if isinstance(value, tuple) else (value,)))
    return f"{value:,}".replace(",", " ")


def _length(milliseconds: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if milliseconds % size == 0)
    number = milliseconds // size
    return f"{number:,} {unit}{'' if number == 1 else 's'}".replace(",", " ")


def _is_length(name: str) -> bool:
    return name.endswith("_LENGTH")


def _explained(name: str, text: str) -> str:
    """What the code says of a limit.

    Raises:
        LimitUnexplained: the code says nothing.
    """
    if not text:
        raise LimitUnexplained(name)
    return text
