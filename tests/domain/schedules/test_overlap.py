"""Tests whether an occurrence may begin beside others, and whether its outcome pauses the schedule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_WAITING_RUNS
from duetime.domain.operating_parameters import OVERLAP_CHECK_INTERVAL
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.overlap import OtherRuns, StartDecision, pauses_schedule, skipped, start_decision
from duetime.domain.schedules.run_history import Activity
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.tasks.attempt_results import Postponed, Skipped
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause, ScheduleRef
from duetime.domain.times import MINUTE, to_iso
from tests.clocks import NOW
from tests.domain.factories import task
from tests.domain.schedules.test_expansion_results import STORED

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task

REF = ScheduleRef("nightly", 1, NOW, Cause.SCHEDULE, STORED.mark, reports=True)
FIRST, SECOND, THIRD = (replace(task(schedule_ref=REF), id=TaskId.of(NOW, 0, n)) for n in (1, 2, 3))
SEEN = Activity(STORED.uid, FIRST.id, (SECOND.id,), 5)


def with_overlap(policy: Overlap) -> StoredSchedule:
    """The schedule with a different overlap policy."""
    return replace(STORED, spec=replace(STORED.spec, overlap=policy))


SKIPS, BUFFERS = with_overlap(Overlap.SKIP), with_overlap(Overlap.BUFFER_ONE)


def at_minute(number: int) -> Task:
    """The run for an occurrence this many minutes later."""
    nominal = NOW + number * MINUTE
    return replace(task(schedule_ref=replace(REF, nominal=nominal)), id=TaskId.of(nominal, 0, number))


def test_an_occurrence_starts_if_no_run_is_active_or_waiting() -> None:
    """If no run is active or waiting, an occurrence becomes the active run."""
    decision = start_decision(SKIPS, THIRD, SEEN, OtherRuns(), NOW)
    assert (decision.verdict, decision.activity) == (None, replace(SEEN.with_begun(THIRD, NOW), waiting=()))


def test_a_backfill_run_is_not_skipped_if_the_buffer_is_full() -> None:
    """If a hundred runs wait, a regular run is skipped, but a backfill's run checks again later."""
    full = replace(SEEN, waiting=tuple(TaskId.of(NOW, 1, number) for number in range(MAX_WAITING_RUNS)))
    filled = replace(THIRD, schedule_ref=replace(REF, cause=Cause.BACKFILL, is_buffered=True))
    for run, verdict in ((THIRD, Skipped), (filled, Postponed)):
        decision = start_decision(with_overlap(Overlap.BUFFER_ALL), run, full, OtherRuns(FIRST), NOW)
        assert (type(decision.verdict), decision.activity) == (verdict, full)


def test_without_a_buffer_an_occurrence_is_skipped_while_another_runs() -> None:
    """Without a buffer, an occurrence is skipped while another run is active, and the reason names that run."""
    decision = start_decision(SKIPS, THIRD, SEEN, OtherRuns(FIRST), NOW)
    assert isinstance(decision.verdict, Skipped)
    assert decision.verdict.reason == f"the run of {to_iso(NOW)} is still running"
    assert decision.activity == SEEN


def test_with_a_buffer_one_occurrence_waits_and_the_next_is_skipped() -> None:
    """With a buffer, one occurrence waits and is checked again, and the next occurrence is skipped."""
    waits = start_decision(BUFFERS, SECOND, replace(SEEN, waiting=()), OtherRuns(FIRST), NOW)
    assert isinstance(waits.verdict, Postponed)
    assert waits.verdict.until == NOW + OVERLAP_CHECK_INTERVAL
    assert waits.activity == SEEN
    skipped = start_decision(BUFFERS, THIRD, SEEN, OtherRuns(FIRST), NOW)
    assert isinstance(skipped.verdict, Skipped)
    assert skipped.activity == SEEN


def test_a_run_at_the_head_of_the_queue_counts_when_it_starts() -> None:
    """The run at the head of the queue keeps its place when another run arrives, and counts only when it starts."""
    policy, queue = with_overlap(Overlap.BUFFER_ALL), replace(SEEN, active=None, waiting=(SECOND.id,))
    waits = start_decision(policy, THIRD, queue, OtherRuns(SECOND), NOW).activity
    assert (waits.active, waits.waiting) == (None, (SECOND.id, THIRD.id))
    assert not waits.has_counted(SECOND.id)
    begins = start_decision(policy, SECOND, waits, OtherRuns(), NOW).activity
    assert (begins.active, begins.waiting, begins.number_of_runs) == (SECOND.id, (THIRD.id,), SEEN.number_of_runs + 1)


@pytest.mark.parametrize("policy", [Overlap.BUFFER_ONE, Overlap.BUFFER_ALL])
def test_the_buffered_occurrence_runs_before_a_later_occurrence(policy: Overlap) -> None:
    """The buffered occurrence runs next, and a later occurrence waits behind it."""
    decision = start_decision(with_overlap(policy), THIRD, SEEN, OtherRuns(SECOND), NOW)
    assert isinstance(decision.verdict, Postponed)
    assert decision.activity == replace(SEEN, waiting=(SECOND.id, THIRD.id))


def test_runs_wait_in_order_up_to_the_limit() -> None:
    """Runs wait in order, later runs are checked less often, and runs above the limit are skipped."""
    policy, activity = with_overlap(Overlap.BUFFER_ALL), replace(SEEN, waiting=())
    runs = [at_minute(number) for number in range(1, MAX_WAITING_RUNS + 2)]
    for number, run in enumerate(runs[:MAX_WAITING_RUNS], 1):
        decision = start_decision(policy, run, activity, OtherRuns(FIRST), NOW)
        assert isinstance(decision.verdict, Postponed)
        assert decision.verdict.until == NOW + min(number, 10) * OVERLAP_CHECK_INTERVAL
        activity = decision.activity
    assert activity.waiting == tuple(run.id for run in runs[:MAX_WAITING_RUNS])
    last = start_decision(policy, runs[-1], activity, OtherRuns(FIRST), NOW)
    assert isinstance(last.verdict, Skipped)
    assert f"and {MAX_WAITING_RUNS} waiting" in last.verdict.reason
    begins = start_decision(policy, runs[0], activity, OtherRuns(), NOW)
    assert (begins.verdict, begins.activity.waiting) == (None, activity.waiting[1:])


def test_the_latest_occurrence_stops_the_previous_occurrence() -> None:
    """With `cancel_other`, a run waits for the previous run's end; with `replace_other`, it begins at once."""
    later = at_minute(5)
    others = OtherRuns(FIRST, SECOND)
    waits = start_decision(with_overlap(Overlap.CANCEL_OTHER), later, SEEN, others, NOW)
    assert isinstance(waits.verdict, Postponed)
    assert (waits.stop, waits.activity) == (FIRST, replace(SEEN, waiting=(later.id,)))
    begins = start_decision(with_overlap(Overlap.REPLACE_OTHER), later, SEEN, others, NOW)
    assert begins == StartDecision(None, replace(SEEN.with_begun(later, NOW), waiting=()), FIRST)


@pytest.mark.parametrize("policy", [Overlap.CANCEL_OTHER, Overlap.REPLACE_OTHER])
def test_a_replaced_occurrence_does_not_run_after_the_later_occurrence(policy: Overlap) -> None:
    """An occurrence does not run after a later occurrence has replaced it, and the reason names its replacement."""
    latest = at_minute(5)
    decision = start_decision(with_overlap(policy), at_minute(4), SEEN, OtherRuns(None, latest), NOW)
    assert isinstance(decision.verdict, Skipped)
    assert decision.verdict.reason == f"the run of {to_iso(NOW + 5 * MINUTE)} replaces it"
    assert (decision.activity, decision.stop) == (SEEN, None)


def test_occurrences_of_a_paused_or_changed_schedule_are_skipped_except_backfills() -> None:
    """Runs of a paused or changed schedule are skipped, but a backfill's runs are not skipped by a pause."""
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
def test_only_a_failed_run_of_the_timing_pauses_a_schedule(state: State, cause: Cause, *, expected: bool) -> None:
    """Failed runs of the timing pause a schedule with `pause_on_failure`, but not a backfill's failed runs."""
    ended = task(state=state, schedule_ref=replace(REF, cause=cause))
    pausing = replace(STORED, spec=replace(STORED.spec, pause_on_failure=True))
    assert pauses_schedule(pausing, ended) is expected
    assert pauses_schedule(STORED, ended) is False
