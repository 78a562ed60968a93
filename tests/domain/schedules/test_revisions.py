"""Tests which revision of a schedule an instant belongs to, and which occurrences the schedule's user stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.limits import MAX_REVISION_ENDS, MAX_STOPPED_OCCURRENCES
from duetime.domain.schedules.definition import ScheduleSpec, Written
from duetime.domain.schedules.run_history import LastRun
from duetime.domain.schedules.schedule import (
    NO_REVISION,
    RevisionEnd,
    StoppedOccurrence,
    is_of,
    is_stopped,
    revision_of,
    with_end,
)
from duetime.domain.schedules.schedule_changes import edited, retimed, stopped_since, with_new_timing, with_stopped
from duetime.domain.schedules.schedule_record import StoredSchedule
from duetime.domain.tasks.attempt_records import SKIPPED, TaskError
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from tests.adapters.examples import numbered
from tests.domain import factories

NOON = 1_795_262_400_000
ENDS = (RevisionEnd(100, 3, 3), RevisionEnd(200, 7, 7))
STORED = StoredSchedule(
    owner="o",
    uid=numbered(1),
    shards=16,
    spec=ScheduleSpec(Written(cron="* * * * *"), TaskSpec("report", b""), "nightly"),
    payload=Content(ContentPlace.RECORD, "payload", b"null"),
    created_at=NOON - HOUR,
    updated_at=NOON - HOUR,
    done=NOON + 2 * MINUTE,
    last_run=LastRun(numbered(2), NOON + 2 * MINUTE, 1),
    runs_started=62,
    remaining_runs=5,
)


@pytest.mark.parametrize(("nominal", "revision"), [(50, 3), (100, 3), (101, 7), (200, 7), (201, 9)])
def test_an_instant_belongs_to_the_first_revision_with_a_later_end(nominal: int, revision: int) -> None:
    """An instant after the ends of all earlier revisions belongs to the current revision."""
    assert revision_of(nominal, 9, ENDS) == revision
    assert [each for each in range(11) if is_of(each, nominal, 9, ENDS)] == [revision]


def test_ends_of_revisions_above_the_limit_are_merged_without_dropping_occurrences() -> None:
    """If revisions were merged, an occurrence that any of them placed may still run."""
    ends: tuple[RevisionEnd, ...] = ()
    for number in range(1, MAX_REVISION_ENDS + 50):
        ends = with_end(ends, number * 10, number)
    present = MAX_REVISION_ENDS + 50
    assert len(ends) == MAX_REVISION_ENDS
    assert all(is_of(number, number * 10, present, ends) for number in range(1, present))
    assert not is_of(present - 2, (present - 1) * 10, present, ends)


def test_only_a_revision_with_an_occurrence_leaves_its_end() -> None:
    """If a schedule changes several times between two occurrences, only the first change adds a revision's end."""
    stored = STORED
    for second in range(50):
        stored = edited(stored, NOON + second * SECOND)
    assert stored.revision_ends == (RevisionEnd(NOON, 1, 1),)
    assert stored.revision_of(NOON) == 1
    assert stored.revision_of(NOON + MINUTE) == 51
    after = edited(stored, NOON + MINUTE)
    assert after.revision_ends == (RevisionEnd(NOON, 1, 1), RevisionEnd(NOON + MINUTE, 51, 51))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"state": State.SCHEDULED}, False),
        ({"state": State.WAITING}, False),
        ({"state": State.PAUSED}, True),
        ({"state": State.CANCELLED}, True),
        ({"state": State.CANCELLED, "error": TaskError(SKIPPED, "its schedule was changed")}, False),
        ({"state": State.CANCELLED, "erased": True}, True),
        ({"state": State.RUNNING}, True),
        ({"state": State.SUCCEEDED}, True),
    ],
)
def test_only_occurrences_that_a_user_ended_count_as_stopped(fields: dict[str, object], expected: bool) -> None:  # noqa: FBT001 - a test parameter
    """Occurrences that a user stopped, paused, deleted or ran early count as stopped; skipped occurrences do not."""
    assert is_stopped(factories.task(**fields)) == expected


def test_a_stopped_run_is_not_given_back_to_the_remaining_runs() -> None:
    """If one of two future runs was stopped, only the other run is given back to the remaining runs."""
    one = StoppedOccurrence(NOON + MINUTE, numbered(3), 1)
    after = edited(with_stopped(STORED, [one]), NOON)
    assert (after.remaining_runs, after.runs_started) == (6, 61)
    assert after.revision_of(NOON + MINUTE) == 1
    assert after.revision_of(NOON + 2 * MINUTE) == 2
    late = stopped_since(edited(STORED, NOON), [one])
    assert replace(late, stopped=after.stopped) == after
    assert stopped_since(late, [one]) is late


def test_a_stopped_task_is_not_placed_again_if_an_earlier_timing_returns() -> None:
    """A stopped task belongs to no revision, and is not placed again when the earlier timing returns."""
    one = StoppedOccurrence(NOON + MINUTE, numbered(3), 1)
    after = retimed(with_stopped(STORED, [one]), NOON)
    assert with_new_timing(after) == after
    hourly = with_new_timing(replace(after, spec=replace(after.spec, written=Written(cron="0 * * * *"))))
    assert hourly.stopped == (replace(one, revision=NO_REVISION),)
    assert retimed(hourly, NOON + MINUTE).stopped == ()


def test_a_record_keeps_the_latest_stopped_occurrences_up_to_a_limit() -> None:
    """The record keeps only the latest stopped occurrences, up to a limit."""
    many = [StoppedOccurrence(NOON + number, numbered(number), 1) for number in range(MAX_STOPPED_OCCURRENCES + 5)]
    assert with_stopped(STORED, many).stopped == tuple(many[5:])
