"""The limits, as the code has them."""

from __future__ import annotations

import re

from docs.sections.markdown import code, documented, table
from duetime.domain import limits
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"), (1, "millisecond"))
_TIMES = frozenset(
    """
    MAX_DUE_AHEAD IDEMPOTENCY_KEY_LIFE MAX_CLOCK_DIFFERENCE DIRECT_SLACK MAX_DELAY MAX_HOLD CLAIM_LEAD OVERDUE_GRACE
    LEASE_RETURN_MARGIN WAKE_LIFE PATROL_DELAYS TICK_BUDGET GROUP_HOLD CURSOR_SAVE_INTERVAL
    """.split()
)
"""Names of those that are lengths of time: their values are plain milliseconds, so the code does not tell."""


def limit_table() -> str:
    """Each limit with its value and meaning."""
    names = {name: text for name, text in documented(limits).items() if name.isupper()}
    rows = [(code(name), _value(name), text or _plain_meaning(name)) for name, text in names.items()]
    return table(("limit", "value", "meaning"), rows)


def _value(name: str) -> str:
    value = getattr(limits, name)
    if name in _TIMES:
        return ", ".join(_length(each) for each in (value if isinstance(value, tuple) else (value,)))
    return f"{value:,}".replace(",", " ")


def _length(milliseconds: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if milliseconds % size == 0)
    number = milliseconds // size
    return f"{number:,} {unit}{'' if number == 1 else 's'}".replace(",", " ")


def _plain_meaning(name: str) -> str:
    """What a name says that needs no sentence in the code: `MAX_TAG_KEY_LENGTH`, `MAX_TAGS`."""
    if length := re.fullmatch(r"MAX_(\w+)_LENGTH", name):
        return f"Characters of one {length[1].lower().replace('_', ' ')}."
    return f"{name.removeprefix('MAX_').capitalize().replace('_', ' ')} of one task."
