from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.contract.http.timestamps import instant_of as from_iso
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_EXPECT_EVERY_SECONDS, MIN_EXPECT_EVERY_SECONDS
from duetime.domain.schedules.definition import ScheduleSpec, Written
from duetime.domain.schedules.expectations import (
    MAX_OPEN_RUNS,
    OLDEST_WINDOWS,
    Window,
    after_window,
    begun,
    ends_of_successes,
    minutes_of,
    next_window,
    succeeded_in,
    with_runs,
)
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.run_history import ExpectationState
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord
from duetime.domain.tasks.states import State
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, HOUR, SECOND, to_iso
from tests.domain.factories import task

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

SPEC = ScheduleSpec(Written(cron="30 1 * * *"), TaskSpec("report"))
START = from_iso("2026-11-21T12:00:00Z")
STATE = ExpectationState(START, START)
LONDON = Clock(zone_named("Europe/London"))


def ran(ended: int, state: State = State.SUCCEEDED) -> Task:
    """A task whose last attempt ended at the given time."""
    line = AttemptRecord(1, 1, "w", ended - SECOND, 0, SECOND, AttemptOutcome.SUCCEEDED)
    return replace(task(), state=state, attempt_history=(line,))


@pytest.mark.parametrize(
    ("zone", "by", "after", "deadline"),
    [
        ("UTC", "06:00", "2026-11-21T05:59:59Z", "2026-11-21T06:00:00.000Z"),
        ("UTC", "06:00", "2026-11-21T06:00:00Z", "2026-11-22T06:00:00.000Z"),
        ("Europe/London", "06:00", "2026-07-01T00:00:00Z", "2026-07-01T05:00:00.000Z"),
        ("Asia/Kolkata", "00:00", "2026-07-01T00:00:00Z", "2026-07-01T18:30:00.000Z"),
        # The clock jumps from 01:00 to 02:00, so the deadline at 01:30 is at the jump.
        ("Europe/London", "01:30", "2027-03-28T00:00:00Z", "2027-03-28T01:00:00.000Z"),
        # The local time 01:30 occurs twice, and a run has time until its second occurrence.
        ("Europe/London", "01:30", "2026-10-25T00:00:00Z", "2026-10-25T01:30:00.000Z"),
        ("Europe/London", "01:30", "2026-10-25T00:45:00Z", "2026-10-25T01:30:00.000Z"),
        ("Europe/London", "01:30", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00.000Z"),
    ],
)
def test_a_time_of_day_is_a_deadline_in_the_zone_of_the_schedule(zone: str, by: str, after: str, deadline: str) -> None:
    """On days with clock changes, the deadline is at the jump, or at the later of the two times."""
    spec = replace(SPEC, clock=Clock(zone_named(zone)), expect_success_by=by)
    since = from_iso(after)
    window = next_window(spec, ExpectationState(since, since), 0)
    assert window is not None
    assert (window.since, to_iso(window.deadline), window.is_period) == (since, deadline, False)


def test_a_time_of_day_and_a_period_are_checked_separately() -> None:
    """If an expectation has both a time of day and a period, they are checked separately."""
    spec = replace(SPEC, clock=LONDON, expect_success_by="13:00", expect_every_seconds=7200)
    first = next_window(spec, STATE, 0)
    assert first == Window(START, START + HOUR, is_period=False)
    second = next_window(spec, after_window(STATE, first, None, is_planned=False), 0)
    assert second == Window(START, START + 2 * HOUR, is_period=True)
    assert next_window(SPEC, STATE, 0) is None


def test_a_success_counts_after_the_start_of_its_window_up_to_its_deadline() -> None:
    """Only a success within a deadline's window counts."""
    window = Window(START, START + HOUR, is_period=True)
    ends = ends_of_successes([ran(START), ran(START + HOUR + 1), ran(START + 5, State.FAILED), task()])
    assert succeeded_in(ends, window) is None
    assert succeeded_in([*ends, START + 1, START + HOUR], window) == START + HOUR


def test_a_period_counts_from_the_latest_success() -> None:
    """The next period starts at a success or, after a miss, at the deadline."""
    window = Window(START, START + HOUR, is_period=True)
    met = after_window(STATE, window, START + 10, is_planned=True)
    assert met == ExpectationState(START, START + 10, met_at=START + 10)
    missed = after_window(met, Window(START + 10, START + HOUR, is_period=True), None, is_planned=False)
    assert missed == ExpectationState(START, START + HOUR, START + HOUR, START + 10, 1)


def test_a_day_without_an_occurrence_is_not_missed() -> None:
    """A day without a planned occurrence is not missed; a planned occurrence without a success is missed."""
    window = Window(START, START + HOUR, is_period=False)
    assert after_window(STATE, window, None, is_planned=False) == ExpectationState(START + HOUR, START)
    missed = after_window(STATE, window, None, is_planned=True)
    assert (missed.missed_at, missed.misses, missed.by_since) == (START + HOUR, 1, START + HOUR)


def test_a_change_pause_or_resume_restarts_the_windows() -> None:
    """After a change, pause or resume, no earlier success is expected, but earlier misses stay recorded."""
    state = replace(STATE, missed_at=START, misses=3)
    assert begun(None, START, START) == replace(STATE, looked_at=START - 1)
    assert begun(None, START, 0) == replace(STATE, looked_at=START - DAY)
    assert begun(state, START - DAY, 0) == state
    assert begun(state, START + DAY, 0) == ExpectationState(START + DAY, START + DAY, START, None, 3)


@pytest.mark.parametrize("seconds", [MIN_EXPECT_EVERY_SECONDS, 172_800, 181_440, MAX_EXPECT_EVERY_SECONDS])
def test_a_periods_deadline_is_one_period_after_the_latest_success(seconds: int) -> None:
    """A period's deadline is always one period after the latest success."""
    spec = replace(SPEC, expect_every_seconds=seconds)
    length = seconds * SECOND
    for now in range(START, START + length + 1, max(1, length // 7)):
        window = next_window(spec, STATE, now - OLDEST_WINDOWS)
        assert window == Window(START, START + length, is_period=True)


@pytest.mark.parametrize("days", [3, 10, 100])
@pytest.mark.parametrize("seconds", [MIN_EXPECT_EVERY_SECONDS, 86_400, 172_800, MAX_EXPECT_EVERY_SECONDS])
def test_after_a_long_outage_old_deadlines_are_skipped_in_whole_periods(seconds: int, days: int) -> None:
    """After a long outage, deadlines that are too old to check are skipped in full periods."""
    spec, length, oldest = replace(SPEC, expect_every_seconds=seconds), seconds * SECOND, START + days * DAY
    window = next_window(spec, STATE, oldest)
    assert window is not None
    assert (window.deadline - START) % length == 0
    assert window.deadline > oldest
    assert window.deadline - length <= oldest or window.since == START


def test_after_a_long_outage_the_first_checked_window_is_a_full_day() -> None:
    """The window of the first checked deadline is a full day, even if earlier deadlines are skipped."""
    spec = replace(SPEC, expect_success_by="06:00")
    oldest = from_iso("2026-12-24T05:00:00Z")
    window = next_window(spec, STATE, oldest)
    assert window == Window(from_iso("2026-12-23T06:00:00Z"), from_iso("2026-12-24T06:00:00Z"), is_period=False)


def test_the_latest_open_runs_are_read_again_at_the_next_check() -> None:
    """The latest open runs, up to a limit, are read again, and the latest success is remembered."""
    runs = [replace(task(), id=TaskId.of(START + number, 0, 0)) for number in range(MAX_OPEN_RUNS + 5)]
    state = with_runs(STATE, [*runs, ran(START + 7), ran(START + 3)], START + HOUR)
    assert state.open_runs == tuple(each.id for each in runs[5:])
    assert (state.looked_at, state.succeeded_at) == (START + HOUR, START + 7)
    assert with_runs(state, [ran(START + 5)], START + DAY).succeeded_at == START + 7


@pytest.mark.parametrize(
    "text", ["", "6:00", "24:00", "06:60", "06:00:00", "0600", "-6:00", "\u0660\u0666:\u0660\u0660", "06:0a"]
)
def test_an_invalid_time_of_day_is_rejected(text: str) -> None:
    """A time of day is accepted only if hour and minute have two ASCII digits each."""
    with pytest.raises(ValueError, match="time of day"):
        minutes_of(text)
