"""Recurring events of an iCalendar file, expanded by dateutil within bounds.

A rule without occurrences would keep dateutil busy until the year 9999. So only the rule parts that calendars of days
use are accepted, all rules of a file share one budget, and the first rule without occurrences rejects the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dateutil.rrule import rrulestr

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_CALENDAR_RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

FIELD = "ics"
_PLAIN = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST"}
_PARTS = {
    "YEARLY": _PLAIN | {"BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"},
    "MONTHLY": _PLAIN | {"BYMONTH", "BYMONTHDAY", "BYDAY", "BYSETPOS"},
    "WEEKLY": _PLAIN | {"BYDAY"},
    "DAILY": _PLAIN,
}
"""Allowed parts of a rule, by its frequency (Source: RFC 5545, section 3.3.10)."""
_MAX_RECURRENCES = 20_000
"""Maximum recurrences of all rules of a file, including those long past."""
_MAX_LIST = 100
"""Maximum values of one part of a rule."""


@dataclass(slots=True)
class Budget:
    """The number of a file's recurrences that have been expanded."""

    rules: int = 0
    recurrences: int = 0

    def spend_rule(self) -> None:
        """Count a rule.

        Raises:
            FieldInvalid: there are too many.
        """
        self.rules += 1
        if self.rules > MAX_CALENDAR_RULES:
            raise FieldInvalid(FIELD, f"has more than {MAX_CALENDAR_RULES} recurring events", FaultCode.TOO_LONG)

    def spend_recurrence(self) -> None:
        """Count a recurrence.

        Raises:
            FieldInvalid: there are too many.
        """
        self.recurrences += 1
        if self.recurrences > _MAX_RECURRENCES:
            raise FieldInvalid(
                FIELD, f"has events that recur more than {_MAX_RECURRENCES} times in all", FaultCode.TOO_LONG
            )


def starts(
    rule: Mapping[str, Sequence[object]], text: str, start: datetime, until: datetime, budget: Budget
) -> Iterator[datetime]:
    """Naive local starts of a recurring event up to `until` and the next one, including the first.

    Args:
        rule: the rule's parts.
        text: the rule itself, with a naive local `UNTIL`.
        start: the event's first start.
        until: end of the expansion.
        budget: budget of the whole file.

    Raises:
        FieldInvalid: the rule is not supported, has no occurrences, or exceeds the budget.
    """
    budget.spend_rule()
    _check(rule)
    yield start
    try:
        expansion = rrulestr(text, dtstart=start)
    except (ValueError, TypeError, OverflowError, KeyError, AttributeError) as refusal:
        raise FieldInvalid(FIELD, f"has a recurrence rule that cannot be read: {text[:60]}") from refusal
    comes = False
    for moment in _counted(expansion, text):
        comes = True
        budget.spend_recurrence()
        if moment != start:
            yield moment
        if moment > until:
            return
    if not comes:
        raise FieldInvalid(FIELD, f"has a recurrence rule that never occurs: {text[:60]}", FaultCode.OUT_OF_RANGE)


def _counted(expansion: Iterable[datetime], text: str) -> Iterator[datetime]:
    """The starts as dateutil yields them; dateutil accepts some rules that it cannot expand."""
    try:
        yield from expansion
    except (ValueError, IndexError, TypeError, OverflowError) as refusal:
        raise FieldInvalid(FIELD, f"has a recurrence rule that cannot be applied: {text[:60]}") from refusal


def _check(rule: Mapping[str, Sequence[object]]) -> None:
    frequency = str(next(iter(rule.get("FREQ", ())), ""))
    if frequency not in _PARTS:
        raise FieldInvalid(FIELD, "has a recurrence rule other than YEARLY, MONTHLY, WEEKLY or DAILY")
    extra = sorted(set(rule) - _PARTS[frequency])
    if extra:
        raise FieldInvalid(FIELD, f"has a {frequency} recurrence rule with {extra[0][:20]}, which is not supported")
    for interval in rule.get("INTERVAL", ()):
        if not isinstance(interval, int) or interval < 1:
            raise FieldInvalid(FIELD, f"has a recurrence rule with an interval of {str(interval)[:20]}")
    if 0 in rule.get("BYMONTHDAY", ()):
        # dateutil treats it as absent, and therefore as every day.
        raise FieldInvalid(FIELD, "has a recurrence rule with the day 0 of a month")
    if any(len(values) > _MAX_LIST for values in rule.values()):
        raise FieldInvalid(FIELD, "has a recurrence rule with a very long list")
