"""Instants and minutes.

Every instant in the domain is a whole number of milliseconds since the Unix epoch (`Millis`), so that comparisons,
additions and storage are exact. Milliseconds are the resolution that duetime promises.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

Millis: TypeAlias = int
"""Milliseconds since the Unix epoch, or a duration in milliseconds."""

SECOND: Millis = 1_000
MINUTE: Millis = 60_000
HOUR: Millis = 3_600_000
DAY: Millis = 86_400_000

LAST_INSTANT: Millis = 253_402_300_799_999
"""The end of the year 9999, which is the latest time in RFC 3339."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def minute_of(at: Millis) -> int:
    """The number of the minute (since the epoch) that contains an instant."""
    return at // MINUTE


def start_of(minute: int) -> Millis:
    """The first instant of a minute."""
    return minute * MINUTE


@lru_cache(maxsize=64)  # the trigger asks for the same minute with every page
def label_of(minute: int) -> str:
    """A minute as shown in the table: `2026-11-21T02:33`, in UTC."""
    return to_datetime(start_of(minute)).isoformat(timespec="minutes").removesuffix("+00:00")


def to_datetime(at: Millis) -> datetime:
    """Converts an instant to an aware datetime in UTC."""
    return _EPOCH + at * _MILLISECOND


def from_datetime(moment: datetime) -> Millis:
    """Converts an aware datetime to an instant, rounded up to the millisecond so that nothing runs early."""
    return -((_EPOCH - moment) // _MILLISECOND)


def to_iso(at: Millis) -> str:
    """Formats an instant as RFC 3339 with milliseconds: `2026-11-21T02:33:07.250Z`."""
    return to_datetime(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
