"""Tests the number of polls while waiting for one task, as stated on the reference page about costs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from duetime.domain.tasks.poll_interval import poll_interval
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND, Millis, to_datetime
from duetime_client.polling import pause_after
from duetime_client.task import Task
from tests.domain.factories import NOW, task

SEEN: dict[str, Any] = {"id": "X", "state": "running", "type": "report", "created_at": datetime(2026, 1, 1, tzinfo=UTC)}


def polls(due: Millis, runs: Millis, *, is_told: bool) -> int:
    """Return how often `tasks.wait` polls until it reads the outcome of a task that starts when it is due."""
    now, pause, count = NOW, 0.0, 1
    ends = NOW + due + runs
    seen = Task.model_construct(**SEEN, due_at=to_datetime(NOW + due))
    while now < ends:
        state = {"state": State.RUNNING, "run_at": NOW + due} if now >= NOW + due else {"next_at": NOW + due}
        hint = poll_interval(task(**state), now)
        assert hint is not None
        # The Retry-After header contains whole seconds.
        pause = pause_after(seen, pause, to_datetime(now), -(-hint // SECOND) if is_told else None)
        now += round(pause * SECOND)
        count += 1
    return count


@pytest.mark.parametrize(
    ("due", "runs", "before", "after"),
    [
        (0, 2, 6, 6),
        (0, 600, 206, 49),
        (3600, 10, 725, 125),
    ],
)
def test_a_wait_sends_the_documented_number_of_polls(due: int, runs: int, before: int, after: int) -> None:
    """The number of polls is as documented, with and without the API's Retry-After hint."""
    of = (due * SECOND, runs * SECOND)
    assert (polls(*of, is_told=False), polls(*of, is_told=True)) == (before, after)
