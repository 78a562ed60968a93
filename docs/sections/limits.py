"""The limits, as the code has them."""

from __future__ import annotations

import ast
import inspect
import re

from docs.sections.markdown import code, documented, table
from duetime.domain import limits, operating_parameters, rate_parameters, record_limits
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"), (1, "millisecond"))
_MODULES = (limits, record_limits, operating_parameters, rate_parameters)
_UNIT_NAMES = frozenset({"DAY", "HOUR", "MINUTE", "SECOND"})
_PLAIN_TIMES = frozenset({"CLAIM_LEAD", "LATEST_SEND", "SEND_STEP"})
"""Lengths of time that the code writes as plain milliseconds, without a unit by which they could be known."""


class LimitUnexplained(LookupError):
    """A limit has no sentence in the code that says what it limits."""


def limit_table() -> str:
    """Each limit with its value and meaning."""
    times = _times()
    rows = [
        (code(name), _value(getattr(module, name), is_time=name in times), text or _plain_meaning(name))
        for module in _MODULES
        for name, text in documented(module).items()
        if name in vars(module) and name.isupper()
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
