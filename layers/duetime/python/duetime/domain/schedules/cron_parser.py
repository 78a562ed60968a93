"""Reads cron expressions: croniter expands the fields, after this module has rejected what it would read wrongly.

What is rejected is either no cron expression, or one that different crons read differently; the error names the choice.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_EXPRESSION_LENGTH
from duetime.domain.schedules.cron import LAST_OF_MONTH, Cron
from duetime.domain.schedules.cron_fields import (
    DAY,
    FIELD,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAY,
    WEEKDAY_FROM_ONE,
    Field,
    items_of,
    ranged,
    years_of,
)
from duetime.domain.schedules.days_of_month import read_days

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_NTH = re.compile(r"(?P<day>[0-9]|[a-z]{3})#(?P<nth>[1-5])")
_LAST_WEEKDAY = re.compile(r"(?:(?P<before>[0-9]|[a-z]{3})l|l(?P<after>[0-9]))")
_FIELDS = 5
_FIELDS_WITH_SECONDS = 6


@lru_cache(maxsize=256)
def parse_cron(text: str) -> Cron:
    """Read 5 fields, 6 with seconds first, or a nickname such as `@daily`.

    Raises:
        FieldInvalid: it is none, never comes, or is read differently by different crons; says why.
    """
    written = _bounded(text)
    lowered = written.lower()
    if lowered.startswith("@"):
        lowered = _nickname(lowered)
    if lowered.startswith(("cron(", "rate(", "at(")):
        raise FieldInvalid(FIELD, "is written as EventBridge does; say so with dialect: eventbridge")
    fields = lowered.split(" ")
    if len(fields) == _FIELDS:
        fields = ["0", *fields]
    if len(fields) != _FIELDS_WITH_SECONDS:
        raise FieldInvalid(
            FIELD, f"should have 5 fields, or 6 with seconds first; it has {len(fields)}", FaultCode.PATTERN
        )
    if "?" in fields[4]:
        raise FieldInvalid(FIELD, "has ? in the month field; if the sixth field is a year, say dialect: eventbridge")
    return _cron(written, fields, "*", WEEKDAY)


@lru_cache(maxsize=256)
def parse_eventbridge_cron(text: str) -> Cron:
    """Read the six fields that EventBridge writes within `cron(...)`: the last one is a year, Sunday is 1.

    Source: EventBridge Scheduler User Guide, "Cron-based schedules".

    Raises:
        FieldInvalid: it is none, or never comes; says why.
    """
    written = _bounded(text)
    fields = written.lower().split(" ")
    if len(fields) != _FIELDS_WITH_SECONDS:
        raise FieldInvalid(
            FIELD, f"should have EventBridge's 6 fields, the last a year; it has {len(fields)}", FaultCode.PATTERN
        )
    if (fields[2] == "?") == (fields[4] == "?"):
        raise FieldInvalid(FIELD, "should have ? in one of day-of-month and day-of-week, and only in one")
    if fields[4] == "l":
        fields[4] = "7"
    return _cron(f"cron({written})", ["0", *fields[:5]], fields[5], WEEKDAY_FROM_ONE)


def _bounded(text: str) -> str:
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise FieldInvalid(FIELD, f"should have at most {MAX_EXPRESSION_LENGTH} characters", FaultCode.TOO_LONG)
    if not text.isascii() or not text.replace("\t", " ").isprintable():
        raise FieldInvalid(FIELD, "should have plain printable characters only", FaultCode.PATTERN)
    return " ".join(text.split())


def _nickname(lowered: str) -> str:
    if lowered == "@reboot":
        raise FieldInvalid(
            FIELD, "is @reboot, but nothing here is booted; create a task to run now", FaultCode.NOT_ALLOWED
        )
    if lowered.startswith("@every"):
        raise FieldInvalid(FIELD, "is an interval; write it as rate, such as rate: 5 minutes")
    try:
        return _NICKNAMES[lowered]
    except KeyError:
        raise FieldInvalid(
            FIELD, f"should be a cron expression, or one of {', '.join(_NICKNAMES)}", FaultCode.PATTERN
        ) from None


def _cron(text: str, fields: Sequence[str], year: str, weekday: Field) -> Cron:
    second, minute, hour, day, month, day_of_week = fields
    days = read_days(day)
    columns = (
        _plain(minute, MINUTE), _plain(hour, HOUR), days.for_croniter, _plain(month, MONTH),
        _weekdays(day_of_week, weekday), _plain(second, SECOND),
    )  # fmt: skip
    expanded, nth = _expanded(" ".join(columns))
    cron = Cron(
        text=text,
        seconds=_values(expanded[5], SECOND),
        minutes=_values(expanded[0], MINUTE),
        hours=_values(expanded[1], HOUR),
        days=_values(expanded[2], DAY) if days.plain or not days.has_others else (),
        months=_values(expanded[3], MONTH),
        weekdays=tuple(sorted({(each - 1) % 7 for each in _values(expanded[4], WEEKDAY) if each not in nth})),
        from_end=tuple(sorted(days.from_end)),
        nearest=tuple(sorted(days.nearest)),
        nearest_from_end=tuple(sorted(days.nearest_from_end)),
        nth=tuple(
            sorted(
                ((day - 1) % 7, LAST_OF_MONTH if which == "l" else int(which))
                for day, each in nth.items()
                for which in each
            )
        ),
        either_day=not any(each.startswith(("*", "?")) for each in (day, day_of_week)),
        years=years_of(year),
        follows_clock=hour.startswith("*"),
    )
    if not cron.ever_fires():
        raise FieldInvalid(FIELD, "never comes: there is no such day", FaultCode.OUT_OF_RANGE)
    return cron


def _plain(field: str, column: Field) -> str:
    """A field of ranges only, as croniter may be given it."""
    if field == "?":
        raise FieldInvalid(FIELD, f"has ? in the {column.name} field; it may stand for a day-of-month or day-of-week")
    return ",".join(ranged(item, column) for item in items_of(field, column))


def _weekdays(field: str, column: Field) -> str:
    """The day-of-week field for croniter, for which 0 is Sunday."""
    if field == "?":
        return "*"
    items = items_of(field, column)
    special = [_special(item, column) for item in items]
    if any(special) and not all(special):
        raise FieldInvalid(FIELD, "mixes weekdays of the month (#, L) with weekdays of any week; make it two timings")
    return ",".join(each or ranged(item, column) for each, item in zip(special, items, strict=True))


def _special(item: str, column: Field) -> str | None:
    """`fri#2`, `6#2`, `5l`, `fril` or `l5` as croniter writes it; `None` for any other item."""
    if item == "l":
        raise FieldInvalid(FIELD, "has L alone in the day-of-week field: write SAT for each Saturday, 6L for the last")
    if found := _NTH.fullmatch(item):
        return f"{_weekday_number(found['day'], column)}#{found['nth']}"
    if found := _LAST_WEEKDAY.fullmatch(item):
        return f"l{_weekday_number(found['before'] or found['after'], column)}"
    return None


def _weekday_number(text: str, column: Field) -> int:
    return (column.value(text) - column.sunday_first) % 7


def _expanded(expression: str) -> tuple[Sequence[Sequence[int | str]], Mapping[int, set[int | str]]]:
    """Lists of values by croniter: minute, hour, day, month, weekday from Sunday, second; and weekdays of the month."""
    # Its import takes 0.1 s, which only who reads a cron expression shall wait for.
    from croniter import croniter  # noqa: PLC0415

    try:
        expanded, nth = croniter.expand(expression)
    except ValueError as refusal:
        raise FieldInvalid(FIELD, "is not a cron expression", FaultCode.PATTERN) from refusal
    return expanded, cast("Mapping[int, set[int | str]]", nth)


def _values(expanded: Sequence[int | str], column: Field) -> tuple[int, ...]:
    if "*" in expanded:
        return tuple(range(column.low, column.high + (column is not WEEKDAY)))
    return tuple(sorted(each for each in expanded if isinstance(each, int)))
