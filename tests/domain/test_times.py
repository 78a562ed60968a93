from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.times import from_datetime, label_of, minute_of, start_of, to_datetime, to_iso

instants = st.integers(-62_135_596_800_000, 253_402_300_799_999)


@given(instants)
def test_an_instant_converts_to_a_datetime_and_back_exactly(at: int) -> None:
    """Every millisecond from year 1 to year 9999 converts exactly, in both directions."""
    assert from_datetime(to_datetime(at)) == at


def test_microseconds_are_rounded_up() -> None:
    """A due time between two milliseconds becomes the later millisecond, so that a task never starts early."""
    moment = datetime(2026, 11, 21, 2, 33, 7, 250_001, tzinfo=UTC)
    assert to_iso(from_datetime(moment)) == "2026-11-21T02:33:07.251Z"


def test_a_time_with_an_offset_is_converted_to_utc() -> None:
    """09:00 in Tokyo is midnight in UTC."""
    tokyo = datetime(2026, 12, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    assert to_iso(from_datetime(tokyo)) == "2026-12-01T00:00:00.000Z"


@given(instants)
def test_an_instant_lies_in_its_minute(at: int) -> None:
    """Each instant is within its minute, even before 1970."""
    assert start_of(minute_of(at)) <= at < start_of(minute_of(at) + 1)


def test_a_minutes_label_is_a_readable_utc_time() -> None:
    """A minute's label is a readable time in UTC."""
    assert label_of(minute_of(0)) == "1970-01-01T00:00"
