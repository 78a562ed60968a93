"""Changes to the conditions that a task waits for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.tasks import Tasks

LOCK = {"key": "db"}


def waiting(scenario: Tasks, number: int, **fields: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Create a task that holds a lock for ten minutes, then `number` tasks that wait for the lock; return their ids."""
    scenario.faulty = True
    holds = scenario.create(lock=LOCK, timeout_seconds=800)
    long = {holds}

    def behave(_phase: str, context: Any) -> str:  # noqa: ANN401 - a handler gets it
        if context.task_id in long:
            scenario.take(10 * MINUTE)
        return "done"

    scenario.target = behave
    assert scenario.run_until(lambda: scenario.effects)
    ids = []
    for _ in range(number):
        ids.append(scenario.create(lock=LOCK, **fields))
        assert scenario.run_until(lambda: scenario.record(ids[-1]).waiting_for)
    return ids


@pytest.mark.parametrize("change", [{"lock": None}, {"lock": {"key": "other"}}, {"lock": {"max_holders": 2}}])
def test_a_task_starts_at_once_if_it_no_longer_needs_to_wait(change: dict[str, Any]) -> None:
    """A task starts at once if its lock is removed, replaced by a free lock, or given a higher capacity."""
    with Tasks() as scenario:
        [task] = waiting(scenario, 1)
        at = scenario.now
        assert scenario.change(task, **change).status == 200
        assert scenario.run_until(lambda: scenario.effect_times(task))
        assert scenario.effect_times(task)[0] - at < 3 * SECOND


@pytest.mark.parametrize(
    "change", others_slow([{"lock": None, "due_at": "2100-01-01T00:00:00Z"}, {"priority": "high"}])
)
def test_a_changed_task_keeps_its_place_and_its_time(change: dict[str, Any]) -> None:
    """A postponed task does not start early, and a task moved to another queue starts once the lock is free."""
    with Tasks() as scenario:
        [task] = waiting(scenario, 1)
        if "due_at" in change:
            change = {**change, "due_at": None, "delay_seconds": 3 * 3600}
        assert scenario.change(task, **change).status == 200
        at = scenario.now
        if "lock" in change:
            scenario.run(2 * HOUR)
            assert not scenario.effect_times(task)
            return
        holder = scenario.effects[0].task_id
        assert scenario.run_until(lambda: scenario.record(holder).finished_at)
        ended = scenario.record(holder).finished_at
        assert ended is not None
        assert scenario.run_until(lambda: scenario.effect_times(task))
        assert scenario.effect_times(task)[0] - max(ended, at) < 3 * SECOND


def test_the_next_waiter_gets_the_lock_if_the_first_gives_it_up() -> None:
    """If the first waiter no longer needs the lock, the next waiter gets the lock, even if it was reserved."""
    with Tasks() as scenario:
        first, second = waiting(scenario, 2)
        holder = scenario.effects[0].task_id
        # The first waiter's message is lost, so that the waiter cannot take its reservation.
        scenario.receiving = False
        assert scenario.run_until(lambda: scenario.record(holder).finished_at)
        scenario.run(5 * SECOND)
        assert scenario.change(first, lock={"key": "other"}, delay_seconds=3600).status == 200
        scenario.receive_again()
        at = scenario.now
        assert scenario.run_until(lambda: scenario.effect_times(second))
        assert scenario.effect_times(second)[0] - at < 5 * SECOND
