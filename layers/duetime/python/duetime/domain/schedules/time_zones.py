"""Maps wall times in time zones to instants, including skipped and repeated wall times.

The time zone rules come from the package `tzdata`, never from the machine, so that a laptop and a Lambda function
compute the same times, and the version of the rules can be stored with computed times.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeAlias
from zoneinfo import ZoneInfo

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_ZONE_LENGTH
from duetime.domain.times import DAY, MINUTE, SECOND, Millis, from_datetime, to_datetime
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator


Wall: TypeAlias = int
"""Milliseconds since 1970-01-01T00:00 local time."""

LAST_YEAR = 2199
"""Last year in which schedules can run (Source: EventBridge Scheduler User Guide, values of the year field)."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LocalTimePattern(Protocol):
    """Wall times in order, computed without enumerating them. A zone's clock may skip or repeat some of these times."""

    @property
    def follows_clock(self) -> bool:
        """Whether a wall time runs whenever the clock shows it: twice if repeated, and not at all if skipped."""
        ...

    def next(self, at: Wall) -> Wall | None:
        """The first wall time of the pattern from `at` on."""
        ...

    def previous(self, at: Wall) -> Wall | None:
        """The last wall time of the pattern up to and including `at`."""
        ...

    def count(self, start: Wall, end: Wall) -> int:
        """Number of wall times of the pattern in [start, end)."""
        ...


def wall_of(day: date, time_of_day: Millis = 0) -> Wall:
    """The wall time of a day and a time since midnight."""
    return (day.toordinal() - _EPOCH_DAY) * DAY + time_of_day


def day_of(at: Wall) -> date:
    """The day of a wall time."""
    return date.fromordinal(at // DAY + _EPOCH_DAY)


def wall_from(moment: datetime) -> Wall:
    """Converts a naive datetime to a wall time, rounded up to the millisecond."""
    return -((_EPOCH - moment.replace(tzinfo=UTC)) // timedelta(milliseconds=1))


def datetime_of(at: Wall) -> datetime:
    """Converts a wall time to a naive datetime."""
    return (_EPOCH + timedelta(milliseconds=at)).replace(tzinfo=None)


def clock_text(at: Wall) -> str:
    """The time of day as text: `02:30`, or with seconds if they are not zero."""
    seconds = at // SECOND
    minutes = f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}"
    return minutes if at % MINUTE == 0 else f"{minutes}:{seconds % 60:02d}"


LAST_WALL: Wall = wall_of(date(LAST_YEAR + 1, 1, 1)) - 1


FIELD = "timezone"
FIRST_YEAR = 1970
_MILLISECOND = timedelta(milliseconds=1)
_LOOK = 3 * DAY
"""Sampling interval in the search for clock changes. The closest two changes of any zone since 1970 are a week
apart."""
_END_YEAR = LAST_YEAR + 5
"""Zones are also computed for some time after the last year of schedules, because occurrences can move to a later
working moment."""
_NEAR = 2 * DAY
"""A clock change this close to a year's end is assigned to the next year; no zone has two changes within this time."""


class Gap(StrEnum):
    """What happens to a local time that the clock skips when it is set forward.

    Attributes:
        SKIP: there is no occurrence.
        SHIFT_FORWARD: the occurrence is at the first moment after the gap; several occurrences in a gap are merged.
    """

    SKIP = "skip"
    SHIFT_FORWARD = "shift_forward"


class Fold(StrEnum):
    """What happens to a local time that occurs twice because the clock is set back.

    Attributes:
        FIRST: there is one occurrence, at the first time.
        BOTH: there are two occurrences.
    """

    FIRST = "first"
    BOTH = "both"


@frozen
class UtcOffsetPeriod:
    """A period with a constant UTC offset; a zone's year consists of one or a few such periods.

    Attributes:
        start: its first instant.
        end: the first instant after the period.
        offset: how far the clock is ahead of UTC, in milliseconds.
        before: the offset before `start`.
    """

    start: Millis
    end: Millis
    offset: Millis
    before: Millis

    @property
    def gap(self) -> tuple[Wall, Wall] | None:
        """The wall times [from, to) that the clock skipped at `start`."""
        return (self.start + self.before, self.start + self.offset) if self.offset > self.before else None

    @property
    def fold(self) -> tuple[Wall, Wall] | None:
        """The wall times [from, to) that the clock repeats from `start` on."""
        return (self.start + self.offset, self.start + self.before) if self.offset < self.before else None


@frozen
class Zone:
    """A time zone in the IANA database, created by `zone_named`."""

    name: str

    def periods_from(self, at: Millis) -> Iterator[UtcOffsetPeriod]:
        """The period that contains an instant, followed by later periods."""
        for year in range(_year_of(at), _END_YEAR):
            for period in _periods(self.name, year):
                if period.end > at:
                    yield period

    def periods_until(self, at: Millis) -> Iterator[UtcOffsetPeriod]:
        """The period that contains an instant, followed by earlier periods in reverse order."""
        for year in range(_year_of(at + _NEAR), FIRST_YEAR - 1, -1):
            for period in reversed(_periods(self.name, year)):
                if period.start <= at:
                    yield period

    def period_at(self, at: Millis) -> UtcOffsetPeriod:
        """The period that contains an instant."""
        return next(self.periods_from(at))

    def wall_at(self, at: Millis) -> Wall:
        """The wall time at an instant."""
        return at + self.period_at(at).offset

    def text_at(self, at: Millis) -> str:
        """An instant in local time with its offset: `2026-11-21T02:33:00+00:00`, which is unambiguous."""
        moment = to_datetime(at).astimezone(_zone_info(self.name))
        return moment.isoformat(timespec="milliseconds" if at % SECOND else "seconds")

    def even_offset(self, start: Wall, end: Wall) -> Millis | None:
        """The UTC offset in [start, end]; `None` unless it is constant from two days before to two days after."""
        period = self.period_at(max(0, start - 2 * DAY))
        from_start, to_end = start - period.offset - period.start, period.end + period.offset - end
        return period.offset if from_start >= 2 * DAY and to_end >= 2 * DAY else None

    def instants_of(self, wall: Wall) -> tuple[Millis, ...]:
        """The instants of a wall time: usually one, none in a gap, and two in a fold."""
        return tuple(
            wall - period.offset for period in self._around(wall) if period.start <= wall - period.offset < period.end
        )

    def instant_after_gap(self, wall: Wall) -> Millis:
        """The first instant at which the clock shows or has skipped this wall time."""
        for period in self._around(wall):
            if wall - period.offset < period.start:
                return period.start
            if wall - period.offset < period.end:
                return wall - period.offset
        raise AssertionError(wall)

    def _around(self, wall: Wall) -> Iterator[UtcOffsetPeriod]:
        """The periods that may contain a wall time, given that UTC offsets and clock changes are at most a day."""
        for period in self.periods_from(max(0, wall - 2 * DAY)):
            if period.start > wall + 2 * DAY:
                return
            yield period


UTC_ZONE = Zone("UTC")


def zone_named(name: str) -> Zone:
    """Finds a zone by its IANA name.

    Raises:
        FieldInvalid: the zone does not exist; paths, POSIX rules and offsets are not accepted.
    """
    if len(name) > MAX_ZONE_LENGTH:
        raise FieldInvalid(FIELD, f"should have at most {MAX_ZONE_LENGTH} characters", FaultCode.TOO_LONG)
    if name in _names():
        return Zone(name)
    meant = next((each for each in sorted(_names()) if each.lower() == name.lower()), None)
    hint = f"; did you mean {meant}?" if meant else ""
    raise FieldInvalid(FIELD, f"should be an IANA time zone such as Europe/London{hint}", FaultCode.PATTERN)


@lru_cache(maxsize=1)
def tzdata_version() -> str:
    """Version of the time zone rules, such as `2026a`."""
    with resources.files("tzdata").joinpath("zoneinfo", "tzdata.zi").open(encoding="ascii") as rules:
        return rules.readline().removeprefix("# version").strip()


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split()) - {"Factory"}


@lru_cache(maxsize=1024)
def _zone_info(name: str) -> ZoneInfo:
    if name not in _names():
        # The name becomes part of a path, so only known names are accepted.
        raise FieldInvalid(FIELD, "should be an IANA time zone", FaultCode.PATTERN)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def _year_of(at: Millis) -> int:
    return min(_END_YEAR, max(FIRST_YEAR, to_datetime(at).year))


@lru_cache(maxsize=8192)
def _periods(name: str, year: int) -> tuple[UtcOffsetPeriod, ...]:
    """A zone's periods in a UTC year, found by sampling and binary search for clock changes."""
    info = _zone_info(name)
    start, end = _bound(info, year), _bound(info, year + 1)
    looks = [start - SECOND, *range(start + _LOOK - SECOND, end, _LOOK), end - SECOND]
    offsets = [_offset(info, look) for look in looks]
    jumps = [
        _jump(info, early, late)
        for (early, late), (before, after) in zip(pairwise(looks), pairwise(offsets), strict=True)
        if before != after
    ]
    bounds = [start, *(jump for jump in jumps if jump > start), end]
    return tuple(
        UtcOffsetPeriod(first, last, _offset(info, first), _offset(info, first - SECOND))
        for first, last in pairwise(bounds)
    )


def _bound(info: ZoneInfo, year: int) -> Millis:
    """Start of a year's periods.

    If there is a clock change just before the year, the periods start at that change, so that a fold is not split.
    """
    start = _start_of(year)
    if _offset(info, start - _NEAR) == _offset(info, start - SECOND):
        return start
    return _jump(info, start - _NEAR, start - SECOND)


def _jump(info: ZoneInfo, early: Millis, late: Millis) -> Millis:
    """The first instant, to the second, with the same offset as at `late`."""
    after = _offset(info, late)
    while late - early > SECOND:
        middle = (early + late) // 2 // SECOND * SECOND
        early, late = (early, middle) if _offset(info, middle) == after else (middle, late)
    return late


def _offset(info: ZoneInfo, at: Millis) -> Millis:
    offset = to_datetime(at).astimezone(info).utcoffset()
    return 0 if offset is None else offset // _MILLISECOND


def _start_of(year: int) -> Millis:
    return from_datetime(datetime(year, 1, 1, tzinfo=UTC))
