"""Each task tells clients when they should read it again."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.domain.tasks.poll_interval import LONGEST, SHORTEST, poll_interval
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.task import Progress
from duetime.domain.times import HOUR, MINUTE, SECOND
from tests.domain.factories import NOW, task

RUNNING = {"state": State.RUNNING, "run_at": NOW - 2 * MINUTE}


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_an_ended_task_needs_no_other_poll(state: State) -> None:
    """A task that has ended need not be polled again."""
    assert poll_interval(task(state=state), NOW) is None


@pytest.mark.parametrize(
    ("changes", "wait"),
    [
        ({"next_at": NOW + 12 * SECOND}, 12 * SECOND),
        ({"next_at": NOW + 1}, SHORTEST),
        ({"next_at": NOW + HOUR}, LONGEST),
        ({"state": State.WAITING, "next_at": NOW + 7 * SECOND}, 7 * SECOND),
        ({"next_at": NOW - 50 * SECOND}, 5 * SECOND),
        (RUNNING, 12 * SECOND),
        ({"state": State.RUNNING, "run_at": NOW + SECOND}, SHORTEST),
        ({"state": State.RUNNING, "run_at": NOW - HOUR}, LONGEST),
        ({**RUNNING, "progress": Progress(0)}, 12 * SECOND),
        ({**RUNNING, "progress": Progress(10)}, 12 * SECOND),
        ({**RUNNING, "progress": Progress(96)}, 5 * SECOND),
        ({**RUNNING, "progress": Progress(100)}, SHORTEST),
        ({"state": State.PAUSED, "created_at": NOW - HOUR, "next_at": NOW + HOUR}, LONGEST),
        ({"state": State.BLOCKED, "created_at": NOW - 40 * SECOND}, 4 * SECOND),
    ],
)
def test_the_poll_interval_depends_on_the_due_time_and_run_time(changes: dict[str, Any], wait: int) -> None:
    """Before the due time, the interval is the time until then; afterwards, it is at most a tenth of the run so far."""
    assert poll_interval(task(**changes), NOW) == wait
