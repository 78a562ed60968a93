from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import TypeAdapter

from duetime.contract.tasks.history import attempts
from duetime.contract.tasks.responses import AttemptList
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord, TaskError
from duetime.domain.tasks.costs import ASSUMED, WORKER_GIGABYTES, cost_of, dollars_of
from duetime.domain.tasks.states import State
from tests.domain.factories import NOW, task

FIRST = AttemptRecord(1, 1, "worker 1", NOW + 12, 12, 480, AttemptOutcome.RETRIED, function_version="17")
LOST = AttemptRecord(2, 2, "", 0, 0, 0, AttemptOutcome.LOST)
LAST = AttemptRecord(3, 3, "worker 2", NOW + 9_000, 0, 1_000, AttemptOutcome.SUCCEEDED)


def test_attempts_are_listed_once_and_in_order() -> None:
    """Attempts stored outside the record are listed first, and an attempt stored in both places is listed once."""
    answer = attempts(task(state=State.SUCCEEDED, attempt_history=(LOST, LAST)), [LOST, FIRST])
    assert [attempt["fence"] for attempt in answer["attempts"]] == [1, 2, 3]
    assert TypeAdapter(AttemptList).validate_python(answer)


def test_an_attempt_shows_its_worker_times_and_outcome() -> None:
    """An attempt's planned start is its actual start minus its lateness."""
    (attempt,) = attempts(task(state=State.WAITING, attempt_history=(FIRST,)), [])["attempts"]
    assert attempt == {
        "attempt": 1,
        "fence": 1,
        "worker": "worker 1",
        "function_version": "17",
        "planned_at": "2026-11-21T02:33:07.250Z",
        "started_at": "2026-11-21T02:33:07.262Z",
        "lateness_ms": 12,
        "duration_ms": 480,
        "outcome": "retried",
        "error": None,
        "cost_dollars": attempt["cost_dollars"],
    }


def test_unknown_values_of_a_lost_attempt_are_null() -> None:
    """If a lost attempt's values are unknown, they are null and not zero."""
    (attempt,) = attempts(task(state=State.FAILED, attempt_history=(LOST,)), [])["attempts"]
    known = {field for field, value in attempt.items() if value is not None}
    assert known == {"attempt", "fence", "outcome"}


def test_the_last_failed_attempt_has_the_error_of_the_record() -> None:
    """The last failed attempt has the record's error, earlier ones have separate errors, and a success has no error."""
    early, late = TaskError("Boom", "first"), TaskError("Boom", "x" * 256)
    lines = (replace(FIRST, error=early), replace(FIRST, attempt=2, fence=2))
    waiting = task(state=State.WAITING, attempt_history=lines, error=late)
    told = [attempt["error"] for attempt in attempts(waiting, [])["attempts"]]
    assert told == [
        {"type": "Boom", "message": "first", "traceback": None},
        {"type": "Boom", "message": "x" * 256, "traceback": None},
    ]
    ran = replace(waiting, state=State.RUNNING, fence=3, attempt=3, lease_expires_at=NOW + 30_000)
    assert [attempt["error"] for attempt in attempts(ran, [])["attempts"]] == told
    done = task(state=State.SUCCEEDED, attempt_history=(*lines[:1], LAST))
    assert [attempt["error"] for attempt in attempts(done, [])["attempts"]] == [told[0], None]


def test_the_error_of_a_record_is_listed_only_with_its_attempt() -> None:
    """After a pause, the record's error is still listed with the attempt that failed."""
    paused = replace(FIRST, attempt=2, fence=2, outcome=AttemptOutcome.PAUSED)
    error = TaskError("Boom", "first")
    told = attempts(task(state=State.PAUSED, attempt_history=(replace(FIRST, error=error), paused), error=error), [])
    assert [attempt["error"] is None for attempt in told["attempts"]] == [False, True]


def test_a_lost_attempt_is_listed_after_the_next_has_started() -> None:
    """A gap in the fences is listed as a lost attempt; the running attempt is not listed."""
    running = task(state=State.RUNNING, attempt_history=(FIRST,), fence=3, attempt=3, lease_expires_at=NOW + 30_000)
    assert [attempt["outcome"] for attempt in attempts(running, [])["attempts"]] == ["retried", "lost"]
    assert attempts(replace(running, fence=1, attempt=1, attempt_history=()), [])["attempts"] == []


def test_an_attempt_costs_its_writes_and_its_time() -> None:
    """An attempt costs two write units and the worker's memory for the attempt's duration."""
    assert dollars_of(0) == pytest.approx(2 * 0.625e-6)
    assert dollars_of(60_000) - dollars_of(0) == pytest.approx(60 * WORKER_GIGABYTES * 0.0000133334)


def test_waiting_for_a_notification_does_not_count_as_worker_time() -> None:
    """An attempt that a notification ends a day later costs at most as much as the task's whole timeout."""
    day = replace(LAST, took=86_400_000)
    (attempt,) = attempts(task(state=State.SUCCEEDED, attempt_history=(day,), timeout_seconds=60), [])["attempts"]
    assert attempt["cost_dollars"] == dollars_of(60_000)


def test_a_task_costs_its_creation_and_its_known_attempts() -> None:
    """A task costs two write units plus its known attempts; a lost attempt's cost is unknown."""
    created = 2 * ASSUMED.write_unit
    assert cost_of(task()) == created
    ran = task(state=State.SUCCEEDED, attempt_history=(FIRST, LOST, LAST))
    assert cost_of(ran) == pytest.approx(created + dollars_of(FIRST.took) + dollars_of(LAST.took), abs=1e-12)
