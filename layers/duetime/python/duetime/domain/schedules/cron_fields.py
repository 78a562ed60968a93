"""The fields of a cron expression: their values and syntax."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.schedules.time_zones import LAST_YEAR

if TYPE_CHECKING:
    from collections.abc import Sequence


FIELD = "cron"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGE = re.compile(r"(?:\*|(?P<low>[0-9]{1,4}|[a-z]{3})(?:-(?P<high>[0-9]{1,4}|[a-z]{3}))?)(?:/(?P<step>[0-9]{1,4}))?")
_HASHED = re.compile(r"h(?P<range>\(.*\))?(?:/(?P<step>[0-9]{1,3}))?|h.*")
_RANDOM = re.compile(r"r(?:\(.*\))?(?:/.*)?|[0-9]*~[0-9]*(?:/.*)?")
_SPREADS = {"minute": 60, "hour": 3_600}
"""Seconds per value of the fields in which a spread can replace `H`."""
_SUNDAY_TOO = 7


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a cron expression.

    Attributes:
        name: as used in errors.
        low: its smallest value.
        high: its largest value.
        names: names of values, starting with that of `low`.
        sunday_first: whether weekdays are 1 for Sunday to 7 for Saturday, not 0 or 7 for Sunday.
    """

    name: str
    low: int
    high: int
    names: Sequence[str] = ()
    sunday_first: bool = False

    def value(self, text: str) -> int:
        """Parses a number or a name.

        Raises:
            FieldInvalid: it is not a value of this field.
        """
        if text.isdigit():
            number = int(text)
        elif text in self.names:
            number = self.names.index(text) + self.low
        else:
            raise FieldInvalid(
                FIELD,
                f"has '{text}' in the {self.name} field, where {self._allowed()} is allowed",
                FaultCode.OUT_OF_RANGE,
            )
        if not self.low <= number <= self.high:
            raise FieldInvalid(
                FIELD,
                f"has {number} in the {self.name} field, where {self._allowed()} is allowed",
                FaultCode.OUT_OF_RANGE,
            )
        return number

    def _allowed(self) -> str:
        names = f" or {self.names[0].upper()} to {self.names[-1].upper()}" if self.names else ""
        return f"{self.low} to {self.high}{names}"


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day-of-month", 1, 31)
MONTH = Field("month", 1, 12, _MONTHS)
WEEKDAY = Field("day-of-week", 0, 7, _WEEKDAYS)
WEEKDAY_FROM_ONE = Field("day-of-week", 1, 7, _WEEKDAYS, sunday_first=True)
YEAR = Field("year", 1970, LAST_YEAR)


def items_of(field: str, column: Field) -> list[str]:
    """Splits a field into values, ranges and steps.

    Raises:
        FieldInvalid: an item is empty, hashed, random, or combined with `*`; the error suggests a replacement.
    """
    items = field.split(",")
    if "" in items:
        raise FieldInvalid(FIELD, f"has an empty value in the {column.name} field", FaultCode.PATTERN)
    if "*" in items and len(items) > 1:
        raise FieldInvalid(FIELD, f"has * beside other values in the {column.name} field")
    for item in items:
        if _RANDOM.fullmatch(item):
            raise FieldInvalid(
                FIELD,
                f"has '{item[:20]}' in the {column.name} field, which is random: write a value, and jitter_seconds or "
                "spread_seconds",
                FaultCode.NOT_ALLOWED,
            )
        if not item.isalpha() or item == "h":
            _reject_hashed(item, column)
    return items


def _reject_hashed(item: str, column: Field) -> None:
    """Rejects Jenkins' `H`, a value derived from the job's name, and suggests a spread."""
    found = _HASHED.fullmatch(item)
    if found is None:
        return
    spread, step = _SPREADS.get(column.name), int(found["step"] or 0)
    if spread and not found["range"] and item[:2] in {"h", "h/"} and step <= column.high:
        written = f"*/{step}" if step else "0"
        use = f"write {written}, and spread_seconds: {spread * (step or column.high + 1)}"
    else:
        use = "write a value, and spread_seconds"
    raise FieldInvalid(
        FIELD, f"has H, which Jenkins replaces by a value of the job's own: {use}", FaultCode.NOT_ALLOWED
    )


def ranged(item: str, column: Field) -> str:
    """Converts one value, range or step to numbers that croniter interprets like every other cron.

    Raises:
        FieldInvalid: the item is invalid, or crons interpret it differently.
    """
    found = _RANGE.fullmatch(item)
    if found is None:
        raise FieldInvalid(
            FIELD,
            f"has '{item[:20]}' in the {column.name} field, which is not a value, range or step",
            FaultCode.PATTERN,
        )
    step = found["step"]
    if step is not None:
        _check_step(int(step), column)
    if found["low"] is None:
        return item
    low = column.value(found["low"])
    high = None if found["high"] is None else column.value(found["high"])
    if column is WEEKDAY and high is None and step:
        raise FieldInvalid(FIELD, f"has '{item}' in the day-of-week field, which ends at 6 or 7: write the whole range")
    if column is WEEKDAY and high is not None and low == _SUNDAY_TOO:
        raise FieldInvalid(FIELD, f"has '{item}' in the day-of-week field: write 0 for a Sunday that begins a range")
    if step and high is not None and high < low:
        raise FieldInvalid(FIELD, f"has a step over a range that wraps round ('{item}'): write it as two ranges")
    return _written(low, high, step, column)


def _written(low: int, high: int | None, step: str | None, column: Field) -> str:
    """Formats a range for croniter, which interprets `5-5` as all values, unlike others."""
    shift = column.sunday_first
    stepping = f"/{step}" if step else ""
    if high is None:
        return f"{low - shift}{stepping}"
    return f"{low - shift}" if low == high else f"{low - shift}-{high - shift}{stepping}"


def _check_step(step: int, column: Field) -> None:
    size = 7 if column.name == WEEKDAY.name else column.high - column.low + 1
    if step == 0:
        raise FieldInvalid(FIELD, f"has a step of 0 in the {column.name} field")
    if step > size:
        raise FieldInvalid(
            FIELD, f"has a step of {step} in the {column.name} field, which starts anew after {size}: use rate instead"
        )


def years_of(field: str) -> tuple[int, ...]:
    """Parses the year field: croniter's years end at 2099, a hundred years before EventBridge's."""
    if field == "*":
        return ()
    found: set[int] = set()
    for item in items_of(field, YEAR):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise FieldInvalid(
                FIELD, f"has '{item[:20]}' in the year field, which is not a value, range or step", FaultCode.PATTERN
            )
        low = YEAR.value(match["low"] or str(YEAR.low))
        open_end = match["low"] is None or match["step"] is not None
        high = YEAR.value(match["high"]) if match["high"] else YEAR.high if open_end else low
        step = int(match["step"] or 1)
        if step == 0 or high < low:
            raise FieldInvalid(FIELD, f"has '{item[:20]}' in the year field, which matches no year")
        found.update(range(low, high + 1, step))
    return tuple(sorted(found))


_NEAREST = re.compile(r"(?P<day>[0-9]{1,2})w")
_FROM_END = re.compile(r"l(?:-(?P<before>[0-9]{1,2}))?(?P<nearest>w)?")
_MOST_BEFORE = 30
"""Maximum number of days before the last one, in a month of 31."""


@dataclass(slots=True)
class DaysOfMonth:
    """A parsed day-of-month field.

    Attributes:
        plain: values, ranges and steps in croniter's format.
        from_end: days counted from the last day of the month: 0 is the last day itself.
        nearest: days for which the nearest weekday (Monday to Friday) matches.
        nearest_from_end: the same for days counted from the last one.
    """

    plain: list[str] = field(default_factory=list)
    from_end: set[int] = field(default_factory=set)
    nearest: set[int] = field(default_factory=set)
    nearest_from_end: set[int] = field(default_factory=set)

    @property
    def for_croniter(self) -> str:
        """The field in croniter's format; `*` if it has no plain values."""
        return ",".join(self.plain) or "*"

    @property
    def has_others(self) -> bool:
        """Whether it contains anything except plain values."""
        return bool(self.from_end or self.nearest or self.nearest_from_end)


def read_days(text: str) -> DaysOfMonth:
    """Parses the day-of-month field: values, `15W`, `L`, `L-3`, `LW` and `L-3W`.

    Raises:
        FieldInvalid: the field is invalid; gives the reason.
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
