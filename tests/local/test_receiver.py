from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from duetime_local.demo_receiver import Receiver, receiving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Return a new receiver."""
    with receiving() as started:
        yield started


def call(receiver: Receiver, attempt: int, fail_times: int) -> httpx.Response:
    """Call the receiver as a worker calls an HTTP target."""
    return httpx.put(
        receiver.run_url,
        params={"action": "run"},
        headers={"Idempotency-Key": "task-1", "Duetime-Attempt": str(attempt), "Duetime-Fence": "7"},
        json={"task_id": "task-1", "payload": {"job": "build", "work_ms": 20, "fail_times": fail_times}},
    )


def test_a_call_is_recorded_with_its_start_and_end(receiver: Receiver) -> None:
    """The receiver measures an execution, including the work, with the receiver's clock."""
    assert call(receiver, attempt=1, fail_times=0).json() == {"job": "build"}

    (execution,) = receiver.executions
    assert (execution.task_id, execution.attempt, execution.fence, execution.succeeded) == ("task-1", 1, 7, True)
    assert execution.ended_at_ms - execution.started_at_ms >= 19


def test_a_planned_failure_returns_503_and_the_next_attempt_200(receiver: Receiver) -> None:
    """Only the planned number of attempts fail."""
    statuses = [call(receiver, attempt, fail_times=1).status_code for attempt in (1, 2)]

    assert statuses == [503, 200]
    assert [execution.succeeded for execution in receiver.executions] == [False, True]


def test_a_handlers_report_is_recorded_unchanged(receiver: Receiver) -> None:
    """The times that a Python handler reports are recorded unchanged."""
    report = {
        "task_id": "task-2",
        "attempt": 2,
        "fence": 3,
        "started_at_ms": 100,
        "ended_at_ms": 120,
        "succeeded": False,
    }

    assert httpx.post(receiver.report_url, json=report).status_code == 200

    (execution,) = receiver.executions
    assert (execution.started_at_ms, execution.ended_at_ms, execution.succeeded) == (100, 120, False)
