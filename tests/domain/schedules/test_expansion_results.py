"""An expansion writes a schedule's record and its occurrences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.ids import TaskId
from duetime.domain.schedules.backfill import requested
from duetime.domain.schedules.calendars import Calendar
from duetime.domain.schedules.definition import ChangedOccurrence, ScheduleSpec, Written
from duetime.domain.schedules.expansion import decide_missed, expand_backfill, expand_timing
from duetime.domain.schedules.run_history import BackfillRun
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_record import StoredSchedule
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.domain.schedules.times import at

NOW = at("2027-01-01T00:00:30")
DELAY = 90 * SECOND
STORED = StoredSchedule(
    owner="me",
    uid=TaskId.of(NOW, 0, 1),
    shards=4,
    spec=ScheduleSpec(Written(cron="* * * * *"), TaskSpec("report"), "nightly"),
    payload=Content(ContentPlace.RECORD, "payload", b""),
    created_at=NOW,
    updated_at=NOW,
    done=NOW,
)


def test_an_expansion_places_occurrences_up_to_the_horizon() -> None:
    """After an expansion, the schedule is done up to the horizon, and records the last of its three occurrences."""
    horizon = NOW + 3 * MINUTE
    found = expand_timing(STORED, STORED.schedule(), horizon, horizon, NOW, DELAY)
    assert [each.nominal for each in found.runs] == [NOW - 30 * SECOND + n * MINUTE for n in (1, 2, 3)]
    assert (found.after.done, found.after.runs_started, found.after.runs_skipped, found.more) == (horizon, 3, 0, False)
    assert found.next_at == NOW + 3 * MINUTE + 30 * SECOND
    assert found.after.last_run is not None
    assert found.after.last_run.task_id == STORED.id_of(found.runs[-1])


def test_a_missed_occurrence_to_catch_up_is_placed_first_and_once() -> None:
    """A missed occurrence that is to be made up is placed before the others.

    It counts as placed, and is removed from the record.
    """
    schedule = STORED.schedule()
    decided, found = decide_missed(replace(STORED, done=NOW - HOUR, remaining_runs=9), schedule, NOW, NOW)
    assert found.run is not None
    assert (decided.owed, decided.done, decided.remaining_runs) == (found.run, NOW, 8)
    assert decided.runs_skipped == found.skipped == 59
    assert decided.log[-1].note == found.note
    expansion = expand_timing(decided, decided.schedule(), NOW + MINUTE, NOW + MINUTE, NOW, DELAY)
    assert expansion.runs[0] == found.run
    assert (expansion.after.owed, expansion.after.runs_started, expansion.after.remaining_runs) == (None, 2, 7)


@pytest.mark.parametrize(
    ("catch_up_seconds", "changes", "first"),
    [
        (3600, (), "2026-12-31T23:57:00+00:00"),
        (3600, (ChangedOccurrence(NOW - 3 * MINUTE - 30 * SECOND),), "2026-12-31T23:58:00+00:00"),
        (0, (), "2026-12-31T23:57:00+00:00"),
    ],
    ids=["latest runs", "first skipped by its user", "none runs"],
)
def test_the_remark_about_missed_occurrences_names_the_first_that_does_not_run(
    catch_up_seconds: int, changes: tuple[ChangedOccurrence, ...], first: str
) -> None:
    """The remark about several missed occurrences, which becomes an event, names the first that does not run."""
    spec = replace(STORED.spec, catch_up_seconds=catch_up_seconds, changed_occurrences=changes)
    stored = replace(STORED, done=NOW - 4 * MINUTE, spec=spec)
    decided, found = decide_missed(stored, stored.schedule(), NOW, NOW)
    assert (decided.log[-1].key, decided.log[-1].note) == (first, found.note)


def test_the_remark_about_one_missed_occurrence_that_runs_names_no_skipped_occurrence() -> None:
    """If the only missed occurrence runs, the remark names no occurrence, because none is skipped."""
    decided, found = decide_missed(replace(STORED, done=NOW - MINUTE), STORED.schedule(), NOW, NOW)
    assert (found.missed, decided.runs_skipped, decided.log[-1].key) == (1, 0, "")


def test_a_skipped_occurrence_in_an_outage_is_counted_and_named_by_its_own_reason() -> None:
    """An occurrence that its user skipped and that lies in an outage is counted as skipped, with its own remark."""
    skipped = NOW - 30 * MINUTE - 30 * SECOND
    stored = replace(
        STORED, done=NOW - HOUR, spec=replace(STORED.spec, changed_occurrences=(ChangedOccurrence(skipped),))
    )
    decided, found = decide_missed(stored, stored.schedule(), NOW, NOW)
    assert (found.missed, decided.runs_skipped) == (59, 59)
    assert [each.note for each in decided.log] == ["skipped by a user", found.note]
    assert decided.log[0].key == "2026-12-31T23:30:00+00:00"


def test_a_schedule_ends_only_after_its_last_occurrence_was_due() -> None:
    """A schedule stays active until its last run is due, is then expanded once more, and ends."""
    last = replace(STORED, spec=replace(STORED.spec, end_at=NOW + MINUTE))
    found = expand_timing(last, last.schedule(), NOW + HOUR, NOW + HOUR, NOW, DELAY)
    due_at = found.runs[-1].due_at
    assert (found.after.state, found.next_at) == (ScheduleState.ACTIVE, due_at + DELAY + MINUTE)
    later = due_at + HOUR
    found = expand_timing(found.after, found.after.schedule(), later, later, later, DELAY)
    assert (found.runs, found.after.state, found.next_at) == ((), ScheduleState.ENDED, None)


def test_a_schedule_with_open_placed_runs_is_checked_less_and_less_often() -> None:
    """A schedule is checked after a minute, and then less and less often while placed runs are open."""
    last = replace(STORED, remaining_runs=1, runs_limit=1)
    found = expand_timing(last, last.schedule(), NOW + HOUR, NOW + HOUR, NOW, DELAY)
    assert (found.after.state, found.next_at) == (ScheduleState.ACTIVE, NOW + MINUTE)
    assert found.after.done == found.runs[-1].nominal
    placed, later = found.after, found.runs[-1].due_at + HOUR
    found = expand_timing(placed, placed.schedule(), later, later, later, DELAY, has_open_runs=True)
    assert (found.runs, found.after.state, found.next_at) == ((), ScheduleState.ACTIVE, later + HOUR)
    found = expand_timing(placed, placed.schedule(), later, later, later, DELAY)
    assert (found.after.state, found.next_at) == (ScheduleState.ENDED, None)


def test_excluded_occurrences_leave_one_remark_with_their_number_for_each_reason() -> None:
    """Three minutes that a calendar excludes leave one remark with their number."""
    schedule = replace(STORED.schedule(), calendars=(Calendar("closed", weekdays=frozenset(range(7))),))
    found = expand_timing(STORED, schedule, NOW + 3 * MINUTE, NOW + 3 * MINUTE, NOW, DELAY)
    assert (found.runs, found.after.runs_started, found.after.runs_skipped) == ((), 0, 3)
    assert len(found.after.log) == 1
    assert "(and 2 more)" in found.after.log[0].note


def test_a_backfill_is_placed_in_limited_steps_and_ends_once() -> None:
    """With a limit of four, ten occurrences are placed in passes of four, four and two; then the end is recorded."""
    backfill = requested(NOW - DAY, NOW - DAY + 10 * MINUTE - 1, 60, NOW)
    run, placed, parts = BackfillRun("b", backfill, 10), [], []
    schedule = STORED.schedule()
    for _ in range(3):
        part = expand_backfill(schedule, run, NOW + HOUR, NOW, 4)
        run = part.after
        placed += [each.nominal for each in part.occurrences]
        parts.append((len(part.occurrences), part.more))
    assert parts == [(4, True), (4, True), (2, False)]
    assert placed == sorted(set(placed))
    assert (len(placed), run.finished_at) == (10, NOW)


def test_a_backfill_places_nothing_beyond_the_horizon() -> None:
    """At one occurrence per minute, a pass places only the two occurrences within a horizon of ninety seconds."""
    run = BackfillRun("b", requested(NOW - DAY, NOW - DAY + HOUR, 1, NOW), 60)
    part = expand_backfill(STORED.schedule(), run, NOW + 90 * SECOND, NOW, 1000)
    assert (len(part.occurrences), part.more, part.after.finished_at) == (2, False, None)
