"""Parses cron expressions.

Croniter expands the fields after this module has rejected expressions that croniter would misinterpret. An expression
is rejected if it is invalid, or if different crons interpret it differently; in the latter case, the error lists the
options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_EXPRESSION_LENGTH
from duetime.domain.schedules.cron import LAST_OF_MONTH, Cron
from duetime.domain.schedules.cron_dialects import RULES, Days, Dialect, DialectRules
from duetime.domain.schedules.time_zones import LAST_YEAR
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


FIELD = "cron"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_RANGE = re.compile(r"(?:\*|(?P<low>[0-9]{1,4}|[a-z]{3})(?:-(?P<high>[0-9]{1,4}|[a-z]{3}))?)(?:/(?P<step>[0-9]{1,4}))?")
_HASHED = re.compile(r"h(?P<range>\(.*\))?(?:/(?P<step>[0-9]{1,3}))?|h.*")
_RANDOM = re.compile(r"r(?:\(.*\))?(?:/.*)?|[0-9]*~[0-9]*(?:/.*)?")
_SPREADS = {"minute": 60, "hour": 3_600}
"""Length of one value in seconds, for each field in which a spread can replace `H`."""
_SUNDAY_TOO = 7


@frozen
class Field:
    """One field of a cron expression.

    Attributes:
        name: name as used in errors.
        low: its smallest value.
        high: its largest value.
        names: names of values, starting with the name of `low`.
        sunday_first: whether weekdays are numbered from 1 for Sunday to 7 for Saturday, instead of with 0 or 7 for
            Sunday.
    """

    name: str
    low: int
    high: int
    names: Sequence[str] = ()
    sunday_first: bool = False

    def value(self, text: str) -> int:
        """Parses a number or a name.

        Raises:
            FieldInvalid: the text is not a value of this field.
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
        FieldInvalid: an item is empty, contains `H`, is random, or is combined with `*`; the error suggests a
            replacement.
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
    """Rejects `H`, which in Jenkins stands for a value derived from the job's name, and suggests a spread."""
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
    """Converts one value, range or step to numbers that croniter interprets in the same way as every other cron.

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
    """Formats a range for croniter, which, unlike other crons, interprets `5-5` as all values."""
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
            FIELD, f"has a step of {step} in the {column.name} field, which restarts after {size}: use rate instead"
        )


def years_of(field: str) -> tuple[int, ...]:
    """Parses the year field, because croniter supports years up to 2099, but EventBridge up to 2199."""
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
"""Maximum number of days that can be counted back from a month's last day, in a month with 31 days."""


@dataclass(slots=True)
class DaysOfMonth:
    """A parsed day-of-month field.

    Attributes:
        plain: values, ranges and steps in croniter's format.
        from_end: days counted backward from the last day of the month, which is 0.
        nearest: days of the month; for each of them, the nearest weekday (Monday to Friday) matches.
        nearest_from_end: like `nearest`, for days counted from the last day of the month.
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
        """Whether the field contains anything except plain values."""
        return bool(self.from_end or self.nearest or self.nearest_from_end)


def read_days(text: str) -> DaysOfMonth:
    """Parses the day-of-month field: values, `15W`, `L`, `L-3`, `LW` and `L-3W`.

    Raises:
        FieldInvalid: the field is invalid; the message gives the reason.
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
_NOT_TIMED = {
    "@reboot": "is @reboot, which is not supported; create a task to run now",
    "@once": "is @once, which is not a schedule: create a task",
    "@continuous": "is @continuous: write permanent, which runs again after each end",
}
_ZONED = re.compile(r"(?:CRON_)?TZ=(?P<zone>\S*)(?: (?P<rest>.*))?", re.IGNORECASE)
_ZONE = re.compile(r"[a-z_]{3,}(?:/[a-z_][a-z0-9_+-]*)+")
_ZONES = frozenset({"utc", "gmt", "etc/utc"})
_SYSTEMD = re.compile(r"\*-\*|[a-z0-9]\.\.[a-z0-9]|[0-9]:[0-9]")
_EVERY_DAY = frozenset({"*", "?"})
_FIELDS_WITH_SECONDS = 6
_FIELDS_WITH_YEAR = 7


@lru_cache(maxsize=512)
def parse_cron(text: str, dialect: Dialect = Dialect.CRON) -> Cron:
    """Parses an expression in the fields of its dialect, or a macro such as `@daily`.

    Raises:
        FieldInvalid: the expression is invalid, never matches, or has several interpretations; the message gives the
            reason.
    """
    written = _bounded(text)
    lowered = written.lower()
    _reject_foreign(written, dialect)
    if lowered.startswith("@"):
        lowered = _macro(lowered, dialect)
    columns = _columns(lowered.split(" "), dialect)
    if dialect is Dialect.CRON:
        _reject_ambiguous_days(columns)
        _reject_ambiguous_numbers(columns)
        _reject_ambiguous_order(columns)
    return _cron(f"cron({written})" if dialect is Dialect.EVENTBRIDGE else written, columns, RULES[dialect])


@frozen
class _Columns:
    """The strings of the fields, in a fixed order.

    Attributes:
        has_seconds: whether the expression contains seconds.
    """

    second: str
    minute: str
    hour: str
    day: str
    month: str
    weekday: str
    year: str = "*"
    has_seconds: bool = False


def _columns(fields: Sequence[str], dialect: Dialect) -> _Columns:
    rules, count = RULES[dialect], len(fields)
    if fields[-1] in _ZONES or _ZONE.fullmatch(fields[-1]):
        raise FieldInvalid(FIELD, "ends with a time zone: use timezone instead", FaultCode.UNSUPPORTED)
    if dialect is Dialect.CRON and count == _FIELDS_WITH_SECONDS and "?" in {fields[2], fields[4]}:
        raise FieldInvalid(
            FIELD, "has ? in the field for hours or months; if the sixth field is a year, set dialect: eventbridge"
        )
    if count not in rules.fields:
        hint = ": if the last is a year, as in Quartz, set dialect: quartz" if count == _FIELDS_WITH_YEAR else ""
        raise FieldInvalid(FIELD, f"should have {rules.words}; it has {count}{hint}", FaultCode.PATTERN)
    *rest, year = fields if rules.has_year and count == rules.fields[-1] else [*fields, "*"]
    has_seconds = len(rest) == _FIELDS_WITH_SECONDS
    second, minute, hour, day, month, weekday = rest if has_seconds else ["0", *rest]
    columns = _Columns(second, minute, hour, day, month, weekday, year, has_seconds)
    if rules.days is Days.ONE:
        if (columns.day == "?") == (columns.weekday == "?"):
            raise FieldInvalid(FIELD, "should have ? in exactly one of day-of-month and day-of-week")
        if columns.weekday == "l":
            columns = replace(columns, weekday="7")
    return columns


def _bounded(text: str) -> str:
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise FieldInvalid(FIELD, f"should have at most {MAX_EXPRESSION_LENGTH} characters", FaultCode.TOO_LONG)
    if not text.isascii() or not text.replace("\t", " ").isprintable():
        raise FieldInvalid(FIELD, "should have plain printable characters only", FaultCode.PATTERN)
    return " ".join(text.split())


def _reject_foreign(written: str, dialect: Dialect) -> None:
    """Rejects other programs' syntax, and names the duetime dialect or field that replaces it."""
    lowered = written.lower()
    if dialect is not Dialect.EVENTBRIDGE and lowered.startswith(("cron(", "rate(", "at(")):
        raise FieldInvalid(FIELD, "uses EventBridge's syntax: set dialect: eventbridge")
    if zoned := _ZONED.fullmatch(written):
        rest = f" and cron: {zoned['rest']}" if zoned["rest"] else ""
        raise FieldInvalid(
            FIELD, f"begins with a time zone: write timezone: {zoned['zone']}{rest}", FaultCode.UNSUPPORTED
        )
    if _SYSTEMD.search(lowered):
        raise FieldInvalid(
            FIELD, "is written as systemd's OnCalendar: write it as cron, such as 0 10 * * mon-fri", FaultCode.PATTERN
        )


def _macro(lowered: str, dialect: Dialect) -> str:
    if not RULES[dialect].has_macros:
        raise FieldInvalid(FIELD, f"is a macro, and the dialect {dialect} has no macros", FaultCode.PATTERN)
    if lowered.startswith("@every"):
        length = lowered.partition(" ")[2] or "5 minutes"
        raise FieldInvalid(FIELD, f"is an interval: write it as rate, such as rate: {length}")
    if reason := _NOT_TIMED.get(lowered):
        raise FieldInvalid(FIELD, reason, FaultCode.NOT_ALLOWED)
    try:
        fields = _NICKNAMES[lowered]
        return fields if len(fields.split()) in RULES[dialect].fields else f"0 {fields}"
    except KeyError:
        raise FieldInvalid(
            FIELD, f"should be a cron expression, or one of {', '.join(_NICKNAMES)}", FaultCode.PATTERN
        ) from None


def _reject_ambiguous_days(columns: _Columns) -> None:
    """Rejects two day fields if both fields must match in some crons, but only one of them in other crons."""
    if columns.day in _EVERY_DAY or columns.weekday in _EVERY_DAY:
        return
    if columns.has_seconds:
        raise FieldInvalid(
            FIELD,
            "has six fields, of which two are days: Spring and NCRONTAB run on days that match both, robfig/cron on "
            "days that match either; set dialect: spring for both, dialect: kubernetes for either",
        )
    for column, text in ((DAY, columns.day), (WEEKDAY, columns.weekday)):
        item = next((each for each in text.split(",") if each.startswith("*")), None)
        if item == "*/1":
            raise FieldInvalid(
                FIELD,
                f"has */1 in the {column.name} field beside another day: Vixie cron and Kubernetes read it as *, "
                "Airflow as every day besides the other; write *",
            )
        if item is not None:
            whole = f"{column.low}-{column.high - (column is WEEKDAY)}{item[1:]}"
            raise FieldInvalid(
                FIELD,
                f"has {item[:20]} in the {column.name} field beside another day: Vixie cron (Debian, cronie) runs on "
                "days that match both, Kubernetes, Airflow and GitLab on days that match either; set dialect: vixie "
                f"for both, or write {whole[:20]} for either",
            )


def _reject_ambiguous_numbers(columns: _Columns) -> None:
    """Rejects numeric weekdays with `?` if Quartz, which counts weekdays from 1, would interpret them differently."""
    if columns.day != "?" or not (columns.has_seconds or set(columns.weekday) & set("#l")):
        return
    from_zero = _cron("", columns, RULES[Dialect.SPRING])
    try:
        from_one = _cron("", columns, RULES[Dialect.QUARTZ])
    except FieldInvalid:
        return
    if from_one != from_zero:
        # Imported here because it is needed only for rejections.
        from duetime.domain.schedules.cron_description import weekdays_in_words  # noqa: PLC0415 - see the line above

        either = ", or set dialect: quartz or dialect: spring" if columns.has_seconds else ""
        raise FieldInvalid(
            FIELD,
            f"has {columns.weekday[:20]} in the day-of-week field beside ?, which is {weekdays_in_words(from_one)} in "
            f"Quartz, where Sunday is 1, and {weekdays_in_words(from_zero)} in Spring and crons, where it is 0: "
            f"write names of days{either}",
        )


def _reject_ambiguous_order(columns: _Columns) -> None:
    """Rejects six fields that are valid in both orders: with seconds first, and with seconds last as in croniter."""
    if (
        not columns.has_seconds
        or columns.hour != "*"
        or columns.day not in _EVERY_DAY
        or not columns.month[0].isdigit()
    ):
        return
    last = _Columns(
        columns.weekday, columns.second, columns.minute, columns.hour, columns.day, columns.month, has_seconds=True
    )
    try:
        second_last = _cron("", last, RULES[Dialect.CRON])
    except FieldInvalid:
        return
    # Imported here because it is needed only for rejections.
    from duetime.domain.schedules.cron_description import describe_cron  # noqa: PLC0415 - see the line above

    first, described = describe_cron(_cron("", columns, RULES[Dialect.CRON])), describe_cron(second_last)
    raise FieldInvalid(
        FIELD,
        f"has six fields: with seconds first it means {first}, with seconds last, as in croniter, "
        f"{described}; for the former write the month by name, for the latter write the seconds first",
    )


def _either_day(columns: _Columns, days: Days) -> bool:
    """Whether a match by date or by weekday is enough."""
    fields = (columns.day, columns.weekday)
    match days:
        case Days.STAR:
            return not any(each.startswith(("*", "?")) for each in fields)
        case Days.EITHER | Days.AGREED:
            return not any(item in {*_EVERY_DAY, "*/1"} for each in fields for item in each.split(","))
        case _:
            return False


def _cron(text: str, columns: _Columns, rules: DialectRules) -> Cron:
    days = read_days(columns.day)
    croniters = (
        _plain(columns.minute, MINUTE), _plain(columns.hour, HOUR), days.for_croniter, _plain(columns.month, MONTH),
        _weekdays(columns.weekday, WEEKDAY_FROM_ONE if rules.sunday_is_one else WEEKDAY),
        _plain(columns.second, SECOND),
    )  # fmt: skip
    expanded, nth = _expanded(" ".join(croniters))
    hours = _values(expanded[1], HOUR)
    cron = Cron(
        text=text,
        seconds=_values(expanded[5], SECOND),
        minutes=_values(expanded[0], MINUTE),
        hours=hours,
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
        either_day=_either_day(columns, rules.days),
        years=years_of(columns.year),
        # A single hour of the day is a fixed time, even if it is written as `*/24`.
        follows_clock=columns.hour.startswith("*") and len(hours) > 1,
    )
    if not cron.ever_fires():
        raise FieldInvalid(FIELD, "never occurs: there is no such day", FaultCode.OUT_OF_RANGE)
    return cron


def _plain(field: str, column: Field) -> str:
    """Converts a field of ranges to croniter's format."""
    if field == "?":
        raise FieldInvalid(
            FIELD, f"has ? in the {column.name} field; it is allowed for day-of-month and day-of-week only"
        )
    return ",".join(ranged(item, column) for item in items_of(field, column))


def _weekdays(field: str, column: Field) -> str:
    """Converts the day-of-week field to croniter's format, in which Sunday is 0."""
    if field == "?":
        return "*"
    items = items_of(field, column)
    special = [_special(item, column) for item in items]
    if any(special) and not all(special):
        raise FieldInvalid(FIELD, "mixes weekdays of the month (#, L) with weekdays of any week; use two timings")
    return ",".join(each or ranged(item, column) for each, item in zip(special, items, strict=True))


def _special(item: str, column: Field) -> str | None:
    """Converts `fri#2`, `6#2`, `5l`, `fril` or `l5` to croniter's format; `None` for any other item."""
    if item == "l":
        raise FieldInvalid(
            FIELD, "has L alone in the day-of-week field: write SAT for each Saturday, SATL for the last"
        )
    if found := _NTH.fullmatch(item):
        return f"{_weekday_number(found['day'], column)}#{found['nth']}"
    if found := _LAST_WEEKDAY.fullmatch(item):
        return f"l{_weekday_number(found['before'] or found['after'], column)}"
    return None


def _weekday_number(text: str, column: Field) -> int:
    return (column.value(text) - column.sunday_first) % 7


def _expanded(expression: str) -> tuple[Sequence[Sequence[int | str]], Mapping[int, set[int | str]]]:
    """Croniter's lists of values (minute, hour, day, month, weekday from Sunday, second), and the nth weekdays."""
    # The import takes 0.1 s, so the module is imported only when a cron expression is parsed.
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
