"""The parts of a task's life follow each other without a gap, so that they sum to the total time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.explanations.gate import Facts, GateName, GateState, span
from duetime.domain.explanations.task_explanation import explain, timeline
from duetime.domain.limits import MAX_RECORDED_WAITS
from duetime.domain.tasks.attempt_records import FORGOTTEN, PAUSED, AttemptOutcome, AttemptRecord, Wait
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import LockSpec
from duetime.domain.tasks.waits import waiting_for_locks_since, waits_with
from duetime.domain.times import HOUR, MINUTE, SECOND
from tests.adapters.strategies import INSTANTS, LINES, TASKS
from tests.domain.factories import NOW, task

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

NEAR = st.integers(NOW - HOUR, NOW + HOUR)
OUTCOMES = st.sampled_from(AttemptOutcome)


@st.composite
def plausible(draw: st.DrawFn) -> Task:
    """Plausible records with close times, consecutive attempts and any state."""
    at = draw(NEAR)
    lines = []
    for fence in range(1, 1 + draw(st.integers(0, 4))):
        outcome = draw(OUTCOMES)
        late, took = draw(st.integers(0, 90_000)), draw(st.integers(0, 90_000))
        at += draw(st.integers(0, 90_000))
        lost = outcome is AttemptOutcome.LOST
        lines.append(AttemptRecord(fence, fence, "w", 0 if lost else at, late, took, outcome))
        at += took
    waits = draw(st.lists(st.builds(Wait, NEAR, st.sampled_from(["lock a", PAUSED, FORGOTTEN, "all is stopped"]))))
    return task(
        state=draw(st.sampled_from(State)),
        due_at=draw(NEAR),
        created_at=draw(NEAR),
        next_at=draw(NEAR),
        run_at=draw(st.none() | NEAR),
        started_at=draw(st.none() | NEAR),
        lease_expires_at=draw(st.none() | NEAR),
        lease_worker="w",
        finished_at=draw(st.none() | NEAR),
        fence=len(lines),
        attempt=len(lines),
        attempt_history=tuple(lines),
        waits=tuple(sorted(waits, key=lambda wait: wait.since)),
    )


@given(TASKS | plausible(), st.lists(LINES, max_size=3), INSTANTS | NEAR)
def test_the_parts_of_a_record_sum_to_the_total_time(record: Task, older: list[AttemptRecord], now: int) -> None:
    """The parts of any record are consecutive from beginning to end, and sum to the total time."""
    begin = min(record.created_at, record.due_at)
    end = max(begin, now if record.finished_at is None else record.finished_at)
    parts = timeline(record, older, now)
    assert (parts[0].since, parts[-1].until) == (begin, end)
    assert all(before.until == after.since for before, after in pairwise(parts))
    assert all(part.duration >= 0 for part in parts)
    assert sum(part.duration for part in parts) == end - begin


@given(TASKS | plausible(), INSTANTS | NEAR)
def test_the_gates_of_an_explanation_sum_to_the_total_time(record: Task, now: int) -> None:
    """An explanation's gates sum to the total time; an open task waits at one gate, and an ended task at no gate."""
    explanation = explain(record, Facts(now=now, lease=30 * SECOND))
    been = [gate for gate in explanation.gates if gate.duration is not None]
    assert sum(gate.duration or 0 for gate in been) == explanation.total
    waiting = [gate for gate in explanation.gates if gate.state is GateState.WAITING]
    assert len(waiting) == (record.finished_at is None)
    assert explanation.text


def test_no_part_of_a_punctual_tasks_time_is_unknown() -> None:
    """If a task is on time, no part of its time is unknown."""
    line = AttemptRecord(1, 1, "w", NOW + 20, 20, 500, AttemptOutcome.SUCCEEDED)
    ended = task(state=State.SUCCEEDED, finished_at=NOW + 520, attempt_history=(line,), fence=1, attempt=1)
    parts = timeline(ended, (), NOW + HOUR)
    assert [(part.gate, part.duration) for part in parts] == [
        (GateName.DUE, 1000),
        (GateName.DISPATCH, 20),
        (GateName.RUN, 500),
    ]


def test_time_without_recorded_waits_is_reported_as_unknown() -> None:
    """If no waits were recorded, the time between the due time and the first check is reported as unknown."""
    line = AttemptRecord(1, 1, "w", NOW + MINUTE, 50, 500, AttemptOutcome.SUCCEEDED)
    ended = task(state=State.SUCCEEDED, finished_at=NOW + MINUTE + 500, attempt_history=(line,), fence=1, attempt=1)
    explanation = explain(ended, Facts(now=NOW + HOUR))
    assert [(gate.name, gate.state) for gate in explanation.gates] == [
        (GateName.DUE, GateState.PASSED),
        (GateName.NOT_RECORDED, GateState.UNKNOWN),
        (GateName.DISPATCH, GateState.PASSED),
        (GateName.RUN, GateState.PASSED),
    ]


def test_the_time_before_a_late_tasks_creation_is_a_separate_part() -> None:
    """The time before a task's creation is separate from the time after the creation."""
    late = task(created_at=NOW + MINUTE, next_at=NOW + MINUTE)
    parts = timeline(late, (), NOW + MINUTE + 5)
    assert [(part.gate, part.duration) for part in parts] == [(GateName.CREATION, MINUTE), (GateName.DISPATCH, 5)]


def test_repeated_waits_for_the_same_reason_count_from_the_first() -> None:
    """Repeated waits for the same reason count from the first of them, but an attempt begins a new wait."""
    waiting = task(lock=LockSpec("a"))
    waiting = replace(waiting, waits=waits_with(waiting, "lock a", NOW))
    assert waits_with(waiting, "lock a", NOW + MINUTE) == (Wait(NOW, "lock a"),)
    line = AttemptRecord(1, 1, "w", NOW + 5, 0, 5, AttemptOutcome.RETRIED)
    ran = replace(waiting, attempt_history=(line,))
    assert waits_with(ran, "lock a", NOW + MINUTE) == (Wait(NOW, "lock a"), Wait(NOW + MINUTE, "lock a"))


def test_a_record_keeps_a_limited_number_of_waits() -> None:
    """A record keeps a limited number of waits, and older waits are reported as not recorded."""
    record = task()
    for number in range(10):
        record = replace(record, waits=waits_with(record, f"lock {number}", NOW + number * SECOND))
    assert len(record.waits) == MAX_RECORDED_WAITS
    assert record.waits[0] == Wait(NOW, FORGOTTEN)
    kept = range(11 - MAX_RECORDED_WAITS, 10)
    assert [wait.reason for wait in record.waits[1:]] == [f"lock {number}" for number in kept]
    parts = timeline(replace(record, state=State.WAITING, waiting_for="lock 9", next_at=NOW + HOUR), (), NOW + MINUTE)
    assert [part.gate for part in parts if part.since >= NOW] == [GateName.NOT_RECORDED, *[GateName.LOCK] * len(kept)]


def test_a_locks_time_limit_counts_from_the_first_wait_for_the_lock() -> None:
    """A lock's time limit counts from the first wait for it, however often the task then waits for something else."""
    record = task(lock=LockSpec("db-17", wait_seconds=3600))
    for number in range(20):
        reason = "lock db-17" if number % 2 else "lock type/report"
        record = replace(record, waits=waits_with(record, reason, NOW + number * MINUTE))
    assert waiting_for_locks_since(record) == NOW + MINUTE
    assert [wait.reason for wait in record.waits] == [
        "lock type/report",
        "lock db-17",
        FORGOTTEN,
        "lock db-17",
        "lock type/report",
        "lock db-17",
    ]
    assert record.waits[2].since == NOW + 2 * MINUTE
    parts = timeline(replace(record, state=State.WAITING, waiting_for="lock db-17", next_at=NOW + HOUR), (), NOW + HOUR)
    assert [(part.gate, part.since) for part in parts if part.since >= NOW][:4] == [
        (GateName.CONCURRENCY_LIMIT, NOW),
        (GateName.LOCK, NOW + MINUTE),
        (GateName.NOT_RECORDED, NOW + 2 * MINUTE),
        (GateName.LOCK, NOW + 17 * MINUTE),
    ]


LENGTHS = {
    0: "0 ms",
    999: "999 ms",
    42_900: "43 s",
    HOUR - 5: "1 h",
    2 * HOUR + 5 * MINUTE + 7: "2 h 5 min",
    25 * HOUR: "1 d 1 h",
}


@pytest.mark.parametrize(("length", "text"), LENGTHS.items())
def test_a_duration_is_given_in_its_two_largest_units(length: int, text: str) -> None:
    """A duration is given in its two largest units, so that it fits into a sentence."""
    assert span(length) == text
