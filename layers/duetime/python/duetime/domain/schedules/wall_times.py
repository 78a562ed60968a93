"""Wall times: what a clock on a wall shows, without a zone, and the patterns of wall times that an expression means.

A wall time is written as milliseconds since 1970-01-01T00:00 *by that clock* (`Wall`), so that it adds and compares
exactly. Which instant it is, or that it is none or two, is for the zone to say.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Protocol, TypeAlias

from duetime.domain.times import DAY, MINUTE, SECOND, Millis

Wall: TypeAlias = int
"""Milliseconds since 1970-01-01T00:00 by a local clock."""

LAST_YEAR = 2199
"""Schedules go no further (Source: EventBridge Scheduler User Guide, values of the year field)."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LocalTimePattern(Protocol):
    """Wall times in order, found by arithmetic; each of them may come, or not, by the clock of a zone."""

    @property
    def follows_clock(self) -> bool:
        """Whether it means "whenever the clock shows it": a repeated hour counts twice, a lost one is never made up."""
        ...

    def next(self, at: Wall) -> Wall | None:
        """The first wall time of the pattern that is not before `at`."""
        ...

    def previous(self, at: Wall) -> Wall | None:
        """The last wall time of the pattern that is not after `at`."""
        ...

    def count(self, start: Wall, end: Wall) -> int:
        """How many wall times of the pattern lie in [start, end)."""
        ...


def wall_of(day: date, time_of_day: Millis = 0) -> Wall:
    """The wall time of a day and the time since its midnight."""
    return (day.toordinal() - _EPOCH_DAY) * DAY + time_of_day


def day_of(at: Wall) -> date:
    """The day that a wall time lies in."""
    return date.fromordinal(at // DAY + _EPOCH_DAY)


def wall_from(moment: datetime) -> Wall:
    """A naive datetime as a wall time, a part of a millisecond rounded up."""
    return -((_EPOCH - moment.replace(tzinfo=UTC)) // timedelta(milliseconds=1))


def datetime_of(at: Wall) -> datetime:
    """A wall time as a naive datetime."""
    return (_EPOCH + timedelta(milliseconds=at)).replace(tzinfo=None)


def clock_text(at: Wall) -> str:
    """What the clock shows: `02:30`, with seconds where there are any."""
    seconds = at // SECOND
    minutes = f"{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}"
    return minutes if at % MINUTE == 0 else f"{minutes}:{seconds % 60:02d}"


LAST_WALL: Wall = wall_of(date(LAST_YEAR + 1, 1, 1)) - 1
