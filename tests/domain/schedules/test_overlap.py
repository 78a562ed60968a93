"""Whether an occurrence may begin beside the others of its schedule, and whether its outcome pauses the schedule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import OVERLAP_CHECK_INTERVAL
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.overlap import pauses_schedule, skipped, start_decision
from duetime.domain.schedules.run_history import Activity
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_results import Postponed, Skipped
from duetime.domain.tasks.parent_references import Cause, ScheduleRef
from duetime.domain.tasks.states import State
from tests.clocks import NOW
from tests.domain.factories import task
from tests.domain.schedules.test_expansion_results import STORED

REF = ScheduleRef("nightly", 1, NOW, Cause.SCHEDULE, STORED.mark, reports=True)
FIRST, SECOND, THIRD = (replace(task(schedule_ref=REF), id=TaskId.of(NOW, 0, n)) for n in (1, 2, 3))
SEEN = Activity(STORED.uid, FIRST.id, SECOND.id, 5)
SKIPS = replace(STORED, spec=replace(STORED.spec, overlap=Overlap.SKIP))
BUFFERS = replace(STORED, spec=replace(STORED.spec, overlap=Overlap.BUFFER_ONE))


def test_an_occurrence_begins_when_nothing_runs_and_nothing_waits() -> None:
    """It is remembered as the active one, and what waited before is forgotten."""
    decision = start_decision(SKIPS, THIRD, SEEN, None, None, NOW)
    assert (decision.verdict, decision.activity) == (None, replace(SEEN, active=THIRD.id, buffered=None))


def test_without_a_buffer_an_occurrence_is_skipped_while_another_runs() -> None:
    """The reason names the occurrence that still runs; nothing is remembered."""
    decision = start_decision(SKIPS, THIRD, SEEN, FIRST, None, NOW)
    assert isinstance(decision.verdict, Skipped)
    assert "is still going" in decision.verdict.reason
    assert decision.activity == SEEN


def test_with_a_buffer_one_occurrence_waits_and_the_next_is_skipped() -> None:
    """The one that waits is looked at again; with the buffer taken there is no place for a third."""
    waits = start_decision(BUFFERS, SECOND, replace(SEEN, buffered=None), FIRST, None, NOW)
    assert isinstance(waits.verdict, Postponed)
    assert waits.verdict.until == NOW + OVERLAP_CHECK_INTERVAL
    assert waits.activity == replace(SEEN, buffered=SECOND.id)
    skipped = start_decision(BUFFERS, THIRD, SEEN, FIRST, SECOND, NOW)
    assert isinstance(skipped.verdict, Skipped)
    assert skipped.activity == SEEN


def test_the_buffered_occurrence_goes_before_a_later_one() -> None:
    """When the active one has ended, the one that waits becomes active, and the later one takes its buffer."""
    decision = start_decision(BUFFERS, THIRD, SEEN, None, SECOND, NOW)
    assert isinstance(decision.verdict, Postponed)
    assert decision.activity == replace(SEEN, active=SECOND.id, buffered=THIRD.id)


def test_an_occurrence_of_a_paused_or_changed_schedule_is_skipped_but_not_a_triggered_one() -> None:
    """What its owner triggered runs whatever the timing is; what the timing placed runs only under its revision."""
    paused = replace(STORED, state=ScheduleState.PAUSED)
    changed = replace(STORED, revision=2)
    assert skipped(STORED, REF) is None
    assert skipped(paused, REF) is not None
    assert skipped(changed, REF) is not None
    assert skipped(paused, replace(REF, cause=Cause.BACKFILL)) is None


@pytest.mark.parametrize(
    ("state", "cause", "expected"),
    [
        (State.FAILED, Cause.SCHEDULE, True),
        (State.FAILED, Cause.BACKFILL, False),
        (State.SUCCEEDED, Cause.SCHEDULE, False),
        (State.CANCELLED, Cause.SCHEDULE, False),
    ],
)
def test_only_a_failure_of_its_own_timing_pauses_a_schedule(state: State, cause: Cause, *, expected: bool) -> None:
    """A backfill's failure, a success and a cancel do not; and nothing does unless the schedule says so."""
    ended = task(state=state, schedule_ref=replace(REF, cause=cause))
    pausing = replace(STORED, spec=replace(STORED.spec, pause_on_failure=True))
    assert pauses_schedule(pausing, ended) is expected
    assert pauses_schedule(STORED, ended) is False
