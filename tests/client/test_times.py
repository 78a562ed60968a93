"""Tests how times and durations are parsed from, and printed in, the forms that people write."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime_client.commands.times import distance, full_moment, moment_of, seconds_of_span, short_moment
from tests.client.deployment import NOW


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("5m", 300), ("1h30m", 5_400), ("250ms", 0.25), ("2d12h", 216_000), ("1w", 604_800)],
)
def test_durations_with_any_units_are_parsed(text: str, seconds: float) -> None:
    """Plain seconds and all units, alone or combined, are parsed."""
    assert seconds_of_span(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-5m", "5 minutes", "m", "5x", "1e3", "5m-", "nan"])
def test_an_invalid_duration_is_rejected(text: str) -> None:
    """An invalid duration is refused and never guessed."""
    with pytest.raises(ValueError, match="is not a duration"):
        seconds_of_span(text)


@given(st.text(max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    """Any text is either parsed as a duration, which is never negative, or raises a `ValueError`."""
    try:
        assert seconds_of_span(text) >= 0
    except ValueError as error:
        assert "is not a duration" in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("away", "shown"),
    [
        (timedelta(milliseconds=400), "now"),
        (timedelta(seconds=59), "in 59 s"),
        (timedelta(minutes=5), "in 5 min"),
        (timedelta(hours=1, seconds=5), "in 1 h"),
        (timedelta(days=2, hours=3, minutes=4), "in 2 d 3 h"),
        (-timedelta(minutes=1, seconds=30), "1 min 30 s ago"),
    ],
)
def test_a_time_distance_is_shown_in_two_units(away: timedelta, shown: str) -> None:
    """The time until or since an instant is shown in two units."""
    assert distance(NOW + away, NOW) == shown


def test_milliseconds_are_shown_only_if_not_zero() -> None:
    """A due time on a full second is shown without a fraction, and other due times are not rounded."""
    assert full_moment(NOW) == "2026-11-21 12:00:00 UTC"
    assert full_moment(NOW + timedelta(milliseconds=50)) == "2026-11-21 12:00:00.050 UTC"


@pytest.mark.parametrize(
    ("away", "shown"),
    [
        (timedelta(hours=1), "13:00:00"),
        (timedelta(days=1), "22 Nov 12:00"),
        (timedelta(days=60), "20 Jan 2027"),
    ],
)
def test_a_short_time_omits_the_current_date_or_year(away: timedelta, shown: str) -> None:
    """A table omits today's date and the current year."""
    assert short_moment(NOW + away, NOW) == shown


@pytest.mark.parametrize("text", ["tomorrow", "", "2026-13-01", "12:00"])
def test_the_error_for_an_invalid_time_shows_an_example(text: str) -> None:
    """The error for an invalid time shows an example of a valid time."""
    with pytest.raises(ValueError, match="is not a time such as"):
        moment_of(text)
