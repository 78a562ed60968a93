"""The limits, as the code has them."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

from docs.sections.markdown import code, documented, table
from duetime.domain import limits, operating_parameters, rate_parameters, record_limits
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"), (1, "millisecond"))
_MODULES = (limits, record_limits, operating_parameters, rate_parameters)
_UNIT_NAMES = frozenset({"DAY", "HOUR", "MINUTE", "SECOND"})
_PLAIN_TIMES = frozenset({"CLAIM_LEAD", "LATEST_SEND", "SEND_STEP"})
"""Lengths of time that the code writes as plain milliseconds, without a unit by which they could be known."""
_NOTICED = frozenset({
    "BULK_INLINE", "BULK_INLINE_NODES", "CALENDAR_NOTICE", "CALLBACK_ATTEMPTS", "CALLBACK_LONGEST_WAIT",
    "CALLBACK_TIMEOUT", "CHANGED_OCCURRENCE_LIFE", "CIRCUIT_LONGEST_OPEN", "CIRCUIT_OPEN", "CIRCUIT_PATIENCE",
    "CIRCUIT_THRESHOLD", "CLOCK_TOLERANCE", "HANDLERS_RETRY", "HEARTBEATS_PER_LEASE", "JOB_MARGIN", "JOB_SEARCH",
    "LATE_EVENT_AFTER", "LEASE_RETURN_MARGIN", "LOCK_CHECK_INTERVAL", "LONGEST_CHECK_INTERVAL",
    "LONGEST_JOB_CHECK_INTERVAL", "LONGEST_NOT_SENT_WAIT", "LONGEST_STOP", "MAX_CLOCK_DIFFERENCE", "MAX_HOLD",
    "MAX_ROLL_DAYS", "MAX_UNACKNOWLEDGED_LEASES", "MISSED_AFTER", "NODE_MARGIN", "NOTICE_TIMEOUT", "NOTICE_TRIES",
    "ON_TIME", "OVERLAP_CHECK_INTERVAL", "PERMANENT_CHECK_INTERVAL", "RECOVERY_SCAN_BACKLOG", "RECOVERY_SCAN_DELAYS",
    "SWITCHES_LIFE", "SWITCHES_TRUST", "TIMER_LIFE", "TOPOLOGY_MARGIN", "WORKING_MOMENT_HORIZON",
})  # fmt: skip
"""What users and operators notice of the intervals and sizes by which duetime works; the module has the others."""
_SOURCE = re.compile(r" ?\(Source: .*?\)(?=[.;]|$)")
_SECOND_SENTENCE = re.compile(r"\. .*$")
_REASON = re.compile(r"(?:\. |; |(?<!`overlap): ).*$")


class LimitUnexplained(LookupError):
    """A limit has no sentence in the code that says what it limits."""


def limit_table() -> str:
    """What requests may hold and what records keep, without the reasons."""
    return _table((limits, record_limits), _REASON)


def interval_table() -> str:
    """The intervals and sizes by which duetime works that users and operators notice."""
    return _table((module for module in _MODULES if module not in {limits, record_limits}), _SECOND_SENTENCE)


def _table(modules: Iterable[ModuleType], rest: re.Pattern[str]) -> str:
    """Each limit with its value and its meaning, without its source and the rest of its text."""
    times = _times()
    rows = [
        (
            code(name),
            _value(getattr(module, name), is_time=name in times),
            rest.sub(".", _SOURCE.sub("", text)) or _plain_meaning(name),
        )
        for module in modules
        for name, text in documented(module).items()
        if name in vars(module) and name.isupper() and (module is limits or module is record_limits or name in _NOTICED)
    ]
    return table(("limit", "value", "meaning"), rows)


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


def _plain_meaning(name: str) -> str:
    """What the name of a length says, such as `MAX_TAG_KEY_LENGTH`; of any other limit the code has to say it."""
    length = re.fullmatch(r"MAX_(\w+)_LENGTH", name)
    if length is None:
        raise LimitUnexplained(name)
    words = length[1].lower().replace("_", " ").replace("url", "URL").replace("arn", "ARN")
    return f"Characters of a {words}." if words[0] not in "aeio" else f"Characters of an {words}."
