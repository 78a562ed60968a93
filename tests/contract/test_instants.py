from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.contract.http.timestamps import instant_of
from duetime.domain.times import from_datetime, to_iso
from tests.contract.properties import unhurried

OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@unhurried
@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=OFFSETS))  # noqa: DTZ001 - Hypothesis adds zones
def test_every_time_with_an_offset_is_read_and_rounded_up(moment: datetime) -> None:
    """A time that Python writes with an offset is read as the same instant, rounded up to milliseconds."""
    at = instant_of(moment.isoformat())
    assert at == from_datetime(moment)
    assert timedelta(0) <= datetime.fromisoformat(to_iso(at)) - moment < timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01T09:00:00.250+09:00", "2026-12-01T00:00:00.250Z"),
        ("2026-12-01t09:00:00z", "2026-12-01T09:00:00.000Z"),
        ("2026-12-01T09:00:00-00:00", "2026-12-01T09:00:00.000Z"),
        ("2026-12-01T09:00:00.0000000000000001Z", "2026-12-01T09:00:00.001Z"),
        ("2026-12-31T23:59:59.9999Z", "2027-01-01T00:00:00.000Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
        ("2017-01-01T08:59:60.5+09:00", "2017-01-01T00:00:00.500Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("1969-12-31T23:59:59.9995Z", "1970-01-01T00:00:00.000Z"),
    ],
)
def test_every_form_of_rfc_3339_is_read(text: str, expected: str) -> None:
    """Lowercase letters, offsets, fractions of any length, leap seconds and times long past are accepted."""
    assert to_iso(instant_of(text)) == expected


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2026-12-01T09:00:00", "offset"),
        ("2026-12-01", "RFC 3339"),
        ("2026-12-01 09:00:00Z", "RFC 3339"),
        ("2026-W49-2T09:00:00Z", "RFC 3339"),
        ("20261201T090000Z", "RFC 3339"),
        ("2026-12-01T09:00:00,5Z", "RFC 3339"),
        ("٢٠٢٦-12-01T09:00:00Z", "RFC 3339"),
        ("2026-12-01T09:00:00.Z", "RFC 3339"),
        ("2026-12-01T09:00:00." + "1" * 5_000 + "Z", "RFC 3339"),
        ("2026-02-29T09:00:00Z", "does not exist"),
        ("2026-13-01T09:00:00Z", "does not exist"),
        ("2026-12-01T24:00:00Z", "does not exist"),
        ("2026-12-01T09:61:00Z", "does not exist"),
        ("2026-12-01T09:00:61Z", "does not exist"),
        ("2026-12-01T09:00:00+24:00", "does not exist"),
        ("0000-01-01T00:00:00Z", "does not exist"),
        ("2016-12-31T22:59:60Z", "leap second"),
        ("0001-01-01T00:00:00+14:00", "years 1 to 9999"),
        ("9999-12-31T23:59:59.9999Z", "years 1 to 9999"),
        ("9999-12-31T23:59:60Z", "years 1 to 9999"),
        ("9999-12-31T23:59:59-14:00", "years 1 to 9999"),
        (None, "RFC 3339"),
        (True, "RFC 3339"),
        (1_795_228_387, "RFC 3339"),
        (["2026-12-01T09:00:00Z"], "RFC 3339"),
    ],
)
def test_an_invalid_instant_is_rejected_with_the_reason(value: object, reason: str) -> None:
    """A time without offset, in another notation or that does not exist is rejected, and the error says why."""
    with pytest.raises(ValueError, match=reason):
        instant_of(value)


def test_an_instant_is_the_same_in_every_zone() -> None:
    """Equal instants with different offsets are read as the same instant."""
    here = datetime(2026, 12, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    assert instant_of(here.isoformat()) == instant_of(here.astimezone(UTC).isoformat())
