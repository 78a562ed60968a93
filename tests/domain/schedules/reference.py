"""Finds a cron expression's times by checking every minute, which is slow but shares no code with the domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

MINUTE = timedelta(minutes=1)
ZONES = (
    "UTC",
    "America/New_York",
    "Europe/London",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "America/Caracas",
)


@dataclass(frozen=True)
class Column:
    """A column of an expression, with the values that the column means."""

    text: str
    values: frozenset[int] = field(repr=False)

    @property
    def starred(self) -> bool:
        """Whether the column is a wildcard, which cron implementations recognize by its first character."""
        return self.text.startswith(("*", "?"))


@dataclass(frozen=True)
class Expression:
    """An expression's five columns."""

    minute: Column
    hour: Column
    day: Column
    month: Column
    weekday: Column

    @property
    def follows_clock(self) -> bool:
        """Whether the hour is a wildcard, not a single fixed hour such as `*/24`."""
        return self.hour.starred and len(self.hour.values) > 1

    def __str__(self) -> str:
        return " ".join(each.text for each in (self.minute, self.hour, self.day, self.month, self.weekday))

    def matches(self, wall: datetime) -> bool:
        """Whether a local time matches."""
        by_date = wall.day in self.day.values
        by_weekday = wall.isoweekday() % 7 in self.weekday.values
        both = self.day.starred or self.weekday.starred
        return (
            wall.minute in self.minute.values
            and wall.hour in self.hour.values
            and wall.month in self.month.values
            and (by_date and by_weekday if both else by_date or by_weekday)
        )


@st.composite
def columns(draw: st.DrawFn, low: int, high: int, kinds: str = "* */ list range range/ from/") -> Column:
    """A random column with values from low to high."""
    whole = range(low, high + 1)
    match draw(st.sampled_from(kinds.split())):
        case "*":
            return Column("*", frozenset(whole))
        case "*/":
            step = draw(st.integers(1, len(whole)))
            return Column(f"*/{step}", frozenset(whole[::step]))
        case "list":
            values = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
            return Column(",".join(map(str, values)), frozenset(values))
        case "from/":
            first, step = draw(st.integers(low, high)), draw(st.integers(1, len(whole)))
            return Column(f"{first}/{step}", frozenset(range(first, high + 1, step)))
        case kind:
            first, last = sorted(draw(st.tuples(st.integers(low, high), st.integers(low, high))))
            # Some crons do not read a step over a single value as a range; separate tests cover this form.
            stepped = kind == "range/" and first < last
            step = draw(st.integers(1, len(whole))) if stepped else 1
            suffix = f"/{step}" if stepped else ""
            return Column(f"{first}-{last}{suffix}", frozenset(range(first, last + 1, step)))


_IN_EVERY_MONTH = 28
_OF_WEEKDAYS = "* */ list range range/"
"""Cron implementations disagree on where `1/2` ends in a week, so this form is refused."""
EXPRESSIONS = st.builds(
    Expression, columns(0, 59), columns(0, 23), columns(1, 31), columns(1, 12), columns(0, 6, _OF_WEEKDAYS)
).filter(lambda each: min(each.day.values) <= _IN_EVERY_MONTH)
"""Expressions that match at least one time; expressions that never match are refused."""


def walk(
    expression: Expression, zone: str, start: datetime, end: datetime, *, shift: bool = False, both: bool = False
) -> list[datetime]:
    """Every instant in [start, end) that matches the expression, in UTC."""
    twice = both or expression.follows_clock
    found = {
        instant
        for instant, wall, fold in _minutes(zone, start, end)
        if (twice or not fold) and expression.matches(wall)
    }
    if shift and not expression.follows_clock:
        found |= {instant for wall, instant in _left_out(zone, start, end) if expression.matches(wall)}
    return sorted(found)


@lru_cache(maxsize=64)
def zone_info(name: str) -> ZoneInfo:
    """The rules from the pinned package, which do not depend on this machine."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=256)
def _minutes(zone: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime, int]]:
    """Each minute in [start, end), with its local time, and 1 if the clock shows that time for the second time."""
    info = zone_info(zone)
    found = []
    instant = start
    while instant < end:
        local = instant.astimezone(info)
        found.append((instant, local.replace(tzinfo=None, fold=0), local.fold))
        instant += MINUTE
    return found


@lru_cache(maxsize=256)
def _left_out(zone: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """Each skipped local time with the first instant after it, if that instant is in [start, end)."""
    info = zone_info(zone)
    wall = start.astimezone(info).replace(tzinfo=None) - timedelta(days=1)
    last = end.astimezone(info).replace(tzinfo=None) + timedelta(days=1)
    found = []
    while wall < last:
        later = wall
        while not exists(later, info):
            later += MINUTE
        instant = later.replace(tzinfo=info).astimezone(UTC)
        if later != wall and start <= instant < end:
            found.append((wall, instant))
        wall += MINUTE
    return found


def exists(wall: datetime, info: ZoneInfo) -> bool:
    """Whether a zone's clock ever shows a given local time."""
    local = wall.replace(tzinfo=info)
    return local.astimezone(UTC).astimezone(info).replace(tzinfo=None, fold=0) == wall
