from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.operating_parameters import MAX_ROLL_DAYS
from duetime.domain.schedules.calendars import Calendar, CalendarMode, Span, Window
from duetime.domain.schedules.definition import OnExcluded
from duetime.domain.schedules.occurrences import count_between, following, may_mean, preceding
from duetime.domain.schedules.recurrences import UTC_CLOCK, Clock
from duetime.domain.schedules.schedule import check
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.schedules.timings import Permanent, parse_excluded_dates, parse_timing
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis, from_datetime, to_datetime
from tests.domain.schedules import reference
from tests.domain.schedules.times import at, changed, clock, scheduled

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.schedules.occurrences import Occurrence
    from duetime.domain.schedules.schedule import Schedule

LONDON = zone_named("Europe/London")
LONDON_CLOCK = clock("Europe/London")
WEEKENDS = Calendar("weekends", zone=LONDON, weekdays=frozenset({5, 6}))
_NEAR = 2 * DAY
ROLLS = [OnExcluded.PREVIOUS_DAY, OnExcluded.NEXT_DAY]


def rolled(
    timing: str, roll: OnExcluded, *calendars: Calendar, where: Clock = LONDON_CLOCK, **changes: object
) -> Schedule:
    """A schedule with a cron expression that rolls excluded occurrences."""
    return changed(scheduled(timing, where), calendars=calendars or (WEEKENDS,), on_excluded=roll, **changes)


def times(schedule: Schedule, after: str, count: int) -> list[str]:
    """The local times of the schedule's next runs."""
    found = following(schedule, at(after) - 1, count)
    assert all(each.at == each.nominal for each in found)
    return [each.key[:16] for each in found if each.runs]


def test_a_month_end_run_is_rolled_back_to_the_last_working_day() -> None:
    """If a month ends on a weekend or a holiday, its run is on the working day before, at the same time of day."""
    holidays = Calendar("holidays", zone=LONDON, dates={date(2026, 12, 31): "New Year's Eve"})
    schedule = rolled("0 18 L * *", OnExcluded.PREVIOUS_DAY, WEEKENDS, holidays)
    expected = ["2026-10-30T18:00", "2026-11-30T18:00", "2026-12-30T18:00", "2027-01-29T18:00"]
    assert times(schedule, "2026-10-01", 4) == expected
    october, _, december, _ = following(schedule, at("2026-10-01"), 4)
    assert october.note == "instead of 2026-10-31T18:00:00+00:00 (weekends: Saturday)"
    assert december.note == "instead of 2026-12-31T18:00:00+00:00 (holidays: 2026-12-31 (New Year's Eve))"


def test_occurrences_rolled_forward_keep_their_times_of_day() -> None:
    """Saturday occurrences move to the same times on Monday, where occurrences at the same time run only once."""
    twice_on_saturdays = rolled("0 9,17 * * sat", OnExcluded.NEXT_DAY)
    assert times(twice_on_saturdays, "2026-11-21", 2) == ["2026-11-23T09:00", "2026-11-23T17:00"]
    daily = rolled("0 9 * * *", OnExcluded.NEXT_DAY)
    assert times(daily, "2026-11-20", 3) == ["2026-11-20T09:00", "2026-11-23T09:00", "2026-11-24T09:00"]
    monday = following(daily, at("2026-11-20T12:00"), 1)[0]
    sunday, saturday = "2026-11-22T09:00:00+00:00 (weekends: Sunday)", "2026-11-21T09:00:00+00:00 (weekends: Saturday)"
    assert monday.note == f"instead of {sunday}, {saturday}"


def test_only_a_window_over_the_time_of_day_closes_a_day() -> None:
    """A day is closed to an occurrence only if a window covers its time of day."""
    nights = Calendar("fridays", zone=LONDON, windows=(Window(18 * HOUR, 20 * HOUR, frozenset({4})),))
    assert times(rolled("30 18 * * sat", OnExcluded.PREVIOUS_DAY, WEEKENDS, nights), "2026-11-16", 1) == [
        "2026-11-19T18:30"
    ]
    assert times(rolled("30 17 * * sat", OnExcluded.PREVIOUS_DAY, WEEKENDS, nights), "2026-11-16", 1) == [
        "2026-11-20T17:30"
    ]


@pytest.mark.parametrize("roll", ROLLS)
def test_an_occurrence_is_skipped_if_the_31st_day_is_closed(roll: OnExcluded) -> None:
    """If the 31st day is also closed, the occurrence is skipped, and is listed at its own time with the reason."""
    start = at("2027-03-15")

    def only(days: int) -> Occurrence:
        span = (start, start + days * DAY) if roll is OnExcluded.NEXT_DAY else (start - (days - 1) * DAY, start + DAY)
        schedule = rolled("0 6 15 3 *", roll, Calendar("closed", spans=(Span(*span),)), where=UTC_CLOCK)
        return following(schedule, at("2027-01-01"), 1)[0]

    assert only(MAX_ROLL_DAYS).runs
    assert abs(only(MAX_ROLL_DAYS).nominal - start - 6 * HOUR) == MAX_ROLL_DAYS * DAY
    skipped = only(MAX_ROLL_DAYS + 1)
    assert (skipped.nominal, skipped.runs) == (start + 6 * HOUR, False)
    assert skipped.note == "closed: skipped because no day within 31 days has that time free"


def test_a_rolled_time_in_a_clock_gap_follows_dst_gap() -> None:
    """Depending on `dst_gap`, a time that is rolled into a gap runs at the gap's end, or rolls on to another day."""
    closed = Calendar("closed", zone=LONDON, dates={date(2027, 3, 27): ""})
    for gap, expected in ((Gap.SHIFT_FORWARD, "2027-03-28T02:00"), (Gap.SKIP, "2027-03-29T01:30")):
        where = clock("Europe/London", gap)
        assert times(rolled("30 1 27 3 *", OnExcluded.NEXT_DAY, closed, where=where), "2027-03-01", 1) == [expected]


def test_excluded_dates_are_neither_rolled_nor_rolled_to() -> None:
    """`excluded_dates` are neither rolled nor rolled to, while added dates are rolled."""
    saturday, friday = "2026-11-21", "2026-11-20"
    left_out = rolled("0 9 * * sat", OnExcluded.PREVIOUS_DAY, excluded_dates=(saturday,))
    assert times(left_out, "2026-11-16", 1) == []
    assert following(left_out, at("2026-11-16"), 1)[0].note == "in excluded_dates: skipped"
    passed_over = rolled("0 9 * * sat", OnExcluded.PREVIOUS_DAY, excluded_dates=(friday,))
    assert times(passed_over, "2026-11-16", 1) == ["2026-11-19T09:00"]
    added = rolled("0 9 1 1 *", OnExcluded.NEXT_DAY, extra_dates=("2026-11-21T10:00:00",))
    assert times(added, "2026-11-16", 1) == ["2026-11-23T10:00"]


def test_start_end_and_remaining_runs_apply_to_rolled_times() -> None:
    """An occurrence runs if it rolls from after the end to before the end, but not if it rolls past the end."""
    bounds: dict[str, Any] = {"start_at": at("2026-11-20"), "end_at": at("2026-11-22T08:00")}
    assert times(rolled("0 9 * * sun", OnExcluded.PREVIOUS_DAY, **bounds), "2026-11-01", 9) == ["2026-11-20T09:00"]
    assert times(rolled("0 9 * * sat", OnExcluded.NEXT_DAY, **bounds), "2026-11-01", 9) == []
    limited = rolled("0 9 * * *", OnExcluded.NEXT_DAY, remaining_runs=2)
    assert times(limited, "2026-11-20", 9) == ["2026-11-20T09:00", "2026-11-23T09:00"]


def test_jitter_never_delays_a_rolled_occurrence_past_the_next() -> None:
    """If calendars bring two occurrences close together, jitter does not delay the first past the second."""
    schedule = rolled("0 9 * * thu,sat", OnExcluded.PREVIOUS_DAY, where=UTC_CLOCK, jitter_seconds=DAY // SECOND)
    closed = Calendar("closed", windows=(Window(8 * HOUR, 10 * HOUR, frozenset({4})),))
    schedule = replace(
        schedule, calendars=(WEEKENDS, closed), spec=replace(schedule.spec, extra_dates=("2026-11-19T09:01:00",))
    )
    first, second = following(schedule, at("2026-11-16"), 2)
    assert (second.nominal - first.nominal, first.note) == (
        MINUTE,
        "instead of 2026-11-21T09:00:00+00:00 (weekends: Saturday)",
    )
    assert first.due_at < second.nominal


def test_a_time_rolled_by_an_earlier_calendar_belongs_to_the_timing() -> None:
    """A time that was rolled under an earlier calendar belongs to the timing; a different time of day does not."""
    schedule = changed(rolled("0 9 * * sat", OnExcluded.PREVIOUS_DAY), calendars=())
    assert may_mean(schedule, at("2026-11-19T09:00"))
    assert not may_mean(schedule, at("2026-11-19T09:01"))
    assert not may_mean(changed(schedule, start_at=at("2026-11-20")), at("2026-11-19T09:00"))
    assert not may_mean(changed(schedule, on_excluded=OnExcluded.SKIP), at("2026-11-19T09:00"))


def test_rolling_is_rejected_for_permanent_schedules() -> None:
    """Rolling is refused for permanent schedules, and the error names `on_excluded`."""
    with pytest.raises(FieldInvalid, match="on_excluded"):
        check(changed(scheduled(Permanent(MINUTE)), on_excluded=OnExcluded.NEXT_DAY))


@pytest.mark.parametrize("roll", ROLLS)
def test_a_weekend_of_seconds_is_skipped_with_few_calendar_calls(roll: OnExcluded) -> None:
    """The seconds of a weekend are skipped and counted with only a few calendar calls."""
    looks = 0

    class Counted(Calendar):
        def covering(self, at: Millis) -> Span | None:
            nonlocal looks
            looks += 1
            return super().covering(at)

    schedule = changed(
        scheduled(parse_timing(rate="1 second")),
        calendars=(Counted("weekends", weekdays=frozenset({5, 6})),),
        on_excluded=roll,
        start_at=at("2026-11-01"),
    )
    friday, monday = at("2026-11-20T23:59:59"), at("2026-11-23")
    assert [each.nominal for each in following(schedule, friday, 2)] == [monday, monday + SECOND]
    assert [each.nominal for each in preceding(schedule, monday + SECOND, 2)] == [monday, friday]
    assert count_between(schedule, friday, monday) == 1
    assert looks < 500


TIMINGS = st.sampled_from(
    [
        *(
            parse_timing(cron=text)
            for text in ("30 1 * * *", "0 18 L * *", "15 2 * * sat,sun", "59 23 29 * *", "0 */5 * * *")
        ),
        *(parse_timing(rate=text) for text in ("7 hours", "95 minutes", "2 days")),
        parse_timing(interval="R12/2027-03-20T02:30:00/P1D"),
        parse_timing(interval="R150/2027-10-30T21:40:00Z/PT7M"),
        parse_timing(dates=["2027-03-27T01:30:00", "2027-10-31T01:30:00", "2027-11-06T02:15:00"]),
    ]
)
CLOCKS = st.builds(Clock, st.sampled_from(reference.ZONES).map(zone_named), st.sampled_from(Gap), st.sampled_from(Fold))


@st.composite
def calendars(draw: st.DrawFn, near: Millis) -> tuple[Calendar, ...]:
    """One or two random calendars with days, windows and spans around an instant, each in its own zone."""

    def one(name: str) -> Calendar:
        start = near + draw(st.integers(-5, 5)) * DAY
        return Calendar(
            name,
            draw(st.sampled_from(CalendarMode)),
            zone_named(draw(st.sampled_from(reference.ZONES))),
            weekdays=draw(st.frozensets(st.integers(0, 6), min_size=1, max_size=3)),
            windows=draw(
                st.sampled_from([(), (Window(HOUR, 3 * HOUR),), (Window(17 * HOUR, 2 * HOUR, frozenset({0, 4})),)])
            ),
            spans=draw(
                st.sampled_from([(), (Span(start, start + 3 * DAY + 7 * HOUR),), (Span(start, start + 40 * DAY),)])
            ),
        )

    return tuple(one(f"calendar {number}") for number in range(draw(st.integers(1, 2))))


@st.composite
def rolled_schedules(draw: st.DrawFn) -> tuple[Schedule, Millis]:
    """A random schedule with rolled occurrences, and an instant that may be near a clock change."""
    near = at(draw(st.sampled_from(["2027-03-14", "2027-03-28", "2027-10-31", "2027-11-07", "2027-06-01"])))
    schedule = changed(
        scheduled(draw(TIMINGS), draw(CLOCKS)),
        calendars=draw(calendars(near)),
        on_excluded=draw(st.sampled_from(ROLLS)),
        start_at=at("2026-11-21T00:40"),
        excluded_dates=draw(st.sampled_from([(), ("2027-03-28", "2027-10-29"), ("2027-06-01T18:00:00Z",)])),
    )
    return schedule, near + draw(st.integers(-2 * DAY, 2 * DAY))


@pytest.mark.parametrize("roll", ROLLS)
@pytest.mark.parametrize("closed", [date(2027, 3, 27), date(2027, 3, 29), date(2027, 10, 30), date(2027, 11, 1)])
def test_rolled_days_around_clock_changes_equal_the_slow_method(closed: date, roll: OnExcluded) -> None:
    """Repeated, skipped and partly repeated times are rolled according to the schedule's rule for clock changes."""
    near = from_datetime(datetime(closed.year, closed.month, closed.day, tzinfo=UTC))
    days = Calendar("closed", zone=LONDON, dates={closed: ""})
    sundays = replace(days, weekdays=frozenset({6}))
    for where in (clock("Europe/London"), clock("Europe/London", Gap.SHIFT_FORWARD, Fold.BOTH)):
        compare(rolled("*/15 0-3 * * sat,mon", roll, days, where=where), near + HOUR)
        compare(rolled("*/15 0-3 26-31,1-3 3,10,11 *", roll, sundays, where=where), near + HOUR)
        every = changed(scheduled(parse_timing(interval="R150/2027-10-29T22:00:00Z/PT23M"), where), on_excluded=roll)
        compare(changed(every, calendars=(sundays,)), near + 5 * HOUR)


def test_a_repeated_clock_time_does_not_hide_an_earlier_rolled_time() -> None:
    """A time that is rolled from the previous day to the first 01:45 is found between 01:36 and the second 01:10."""
    hour = Calendar("hour", zone=LONDON, windows=(Window(100 * MINUTE, 110 * MINUTE, frozenset({5})),))
    dates = parse_timing(dates=["2027-10-31T00:36:00Z", "2027-10-31T01:10:00Z", "2027-10-30T00:45:00Z"])
    schedule = changed(scheduled(dates, clock("Europe/London")), calendars=(hour,), on_excluded=OnExcluded.NEXT_DAY)
    assert times(schedule, "2027-10-30", 3) == ["2027-10-31T01:36", "2027-10-31T01:45", "2027-10-31T01:10"]


@settings(deadline=None, max_examples=8)
@given(rolled_schedules())
def test_rolled_times_equal_those_of_rolling_day_by_day(drawn: tuple[Schedule, Millis]) -> None:
    """Searches forward and backward, counts and explanations give the same times as the slow method."""
    compare(*drawn)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(rolled_schedules())
def test_many_rolled_times_equal_those_of_rolling_day_by_day(drawn: tuple[Schedule, Millis]) -> None:
    """For many more timings, clocks and calendars, the times equal those of the slow method."""
    compare(*drawn)


def compare(schedule: Schedule, start: Millis) -> None:
    """Compare the times around an instant with those of the slow method."""
    end = start + _NEAR
    expected = slowly_rolled(schedule, start - _NEAR, end)
    found = schedule.recurrence
    ahead = [each for each in expected if each > start]
    assert walked(found.after, start, len(ahead)) == ahead
    assert (found.after(ahead[-1] if ahead else start) or end + 1) > end
    behind = [each for each in reversed(expected) if each < start]
    assert walked(found.before, start, len(behind)) == behind
    assert (found.before(behind[-1] if behind else start) or 0) <= start - _NEAR
    assert found.count(start, end) == len(ahead)
    for instant in expected:
        origins = [each for each in expected[instant] if each != instant]
        note = found.note(instant)
        assert ("instead of" in note) == bool(origins), note
        assert all(schedule.spec.clock.zone.text_at(each) in note for each in origins if len(origins) <= 3)
        assert may_mean(changed(schedule, calendars=()), instant)


def walked(step: Callable[[Millis], Millis | None], start: Millis, count: int) -> list[Millis]:
    """The consecutive instants of a recurrence."""
    found: list[Millis] = []
    for _ in range(count):
        following = step(found[-1] if found else start)
        if following is None:
            break
        found.append(following)
    return found


def slowly_rolled(schedule: Schedule, after: Millis, until: Millis) -> dict[Millis, list[Millis]]:
    """The instants in (after, until] in order, each with its replaced times, found by the slow method."""
    margin = (MAX_ROLL_DAYS + 2) * DAY
    inner = changed(schedule, calendars=(), on_excluded=OnExcluded.SKIP).recurrence
    found: dict[Millis, list[Millis]] = {}
    origin = inner.after(after - margin)
    while origin is not None and origin <= until + margin:
        landing = slow_roll(schedule, origin)
        if after < landing <= until:
            found.setdefault(landing, []).append(origin)
        origin = inner.after(origin)
    return {each: found[each] for each in sorted(found)}


def slow_roll(schedule: Schedule, origin: Millis) -> Millis:
    """The rolled instant, according to the documented rules and the standard library's time zones."""
    spec = schedule.spec
    left_out = parse_excluded_dates(spec.excluded_dates)
    if left_out.covers(origin, spec.clock.zone) or not any(each.covering(origin) for each in schedule.calendars):
        return origin
    info = reference.zone_info(spec.clock.zone.name)
    wall = to_datetime(origin).astimezone(info).replace(tzinfo=None, fold=0)
    for days in range(1, MAX_ROLL_DAYS + 1):
        there = wall + timedelta(days=days if spec.on_excluded is OnExcluded.NEXT_DAY else -days)
        while not reference.exists(there, info) and spec.clock.gap is Gap.SHIFT_FORWARD:
            there = there.replace(second=0) + reference.MINUTE
        instant = from_datetime(there.replace(tzinfo=info).astimezone(UTC))
        is_closed = left_out.covers(instant, spec.clock.zone) or any(
            each.covering(instant) for each in schedule.calendars
        )
        if reference.exists(there, info) and not is_closed:
            return instant
    return origin
