"""The day-of-month field of a cron expression: days from the beginning or the end of the month, and working days."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.cron_fields import DAY, FIELD, items_of, ranged

_NEAREST = re.compile(r"(?P<day>[0-9]{1,2})w")
_FROM_END = re.compile(r"l(?:-(?P<before>[0-9]{1,2}))?(?P<nearest>w)?")
_MOST_BEFORE = 30
"""Days before the last one of a month of 31."""


@dataclass(slots=True)
class DaysOfMonth:
    """What a day-of-month field means.

    Attributes:
        plain: values, ranges and steps, as croniter may be given them.
        from_end: days before the last one of the month: 0 for the last day itself.
        nearest: days for which the nearest of Monday to Friday is meant.
        nearest_from_end: the same for days before the last one.
    """

    plain: list[str] = field(default_factory=list)
    from_end: set[int] = field(default_factory=set)
    nearest: set[int] = field(default_factory=set)
    nearest_from_end: set[int] = field(default_factory=set)

    @property
    def for_croniter(self) -> str:
        """The field for croniter; `*` if no plain value is in it."""
        return ",".join(self.plain) or "*"

    @property
    def has_others(self) -> bool:
        """Whether anything but plain values is in it."""
        return bool(self.from_end or self.nearest or self.nearest_from_end)


def read_days(text: str) -> DaysOfMonth:
    """Read the day-of-month field: values, `15W`, `L`, `L-3`, `LW` and `L-3W`.

    Raises:
        FieldInvalid: it is none; says why.
    """
    found = DaysOfMonth()
    if text == "?":
        return found
    for item in items_of(text, DAY):
        if near := _NEAREST.fullmatch(item):
            found.nearest.add(DAY.value(near["day"]))
        elif end := _FROM_END.fullmatch(item):
            before = int(end["before"] or 0)
            if before > _MOST_BEFORE:
                raise FieldInvalid(FIELD, f"has L-{before} in the day-of-month field, which is in no month")
            (found.nearest_from_end if end["nearest"] else found.from_end).add(before)
        else:
            found.plain.append(ranged(item, DAY))
    if found.has_others and found.plain == ["*"]:
        raise FieldInvalid(FIELD, "has * beside other values in the day-of-month field")
    return found
