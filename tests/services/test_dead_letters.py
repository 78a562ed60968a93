from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Task, TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime.services.enqueue import message_for
from tests.virtual.world import START, World


def _world(**changes: object) -> tuple[World, Task]:
    """A world with one task in a given situation, and no message anywhere."""
    world = World()
    world.receiving = world.ticking = False
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=2)))
    world.lose_messages()
    stored = world.tasks.read(task.id)
    assert stored is not None
    return world, world.tasks._put(replace(stored, **changes))  # type: ignore[arg-type]  # fields of Task


def test_a_waiting_task_is_placed_again() -> None:
    """Its message was received a thousand times, yet attempts are left: a new turn, a new message, and it runs."""
    world, task = _world()
    assert world.dead_letters.bury(message_for(task))
    world.receiving = True
    world._look_for_messages()
    world.pass_time(5 * SECOND)
    assert (world.get(task).state, world.get(task).generation) == (State.SUCCEEDED, 1)


def test_a_task_with_a_live_lease_gets_a_fresh_lifeline() -> None:
    """Somebody runs it: a message is sent that comes after the lease, and the record is left alone."""
    world, task = _world(state=State.RUNNING, attempt=2, lease_ends_at=START + 30 * SECOND)
    assert world.dead_letters.bury(message_for(task))
    assert world.tasks.read(task.id) == task
    next_at = world.queues.next_visible_at()
    assert next_at is not None
    assert next_at >= START + 35 * SECOND


def test_a_lost_task_with_spent_attempts_is_failed_with_the_reason() -> None:
    """No live lease, this turn, no attempt left: only then does a dead letter fail its task."""
    world, task = _world(state=State.RUNNING, attempt=2, lease_ends_at=START - MINUTE)
    assert world.dead_letters.bury(message_for(task))
    failed = world.get(task)
    assert (failed.state, failed.finished_at) == (State.FAILED, None)
    assert failed.error is not None
    assert failed.error.kind == "WorkerLost"
    assert failed.expires_at is not None


def test_a_lost_task_with_attempts_left_is_run_again() -> None:
    """The fresh message takes it over."""
    world, task = _world(state=State.RUNNING, attempt=1, fence=1, lease_ends_at=START - MINUTE)
    assert world.dead_letters.bury(message_for(task))
    world.receiving = True
    world._look_for_messages()
    world.pass_time(MINUTE)
    assert (world.get(task).state, world.get(task).attempt) == (State.SUCCEEDED, 2)


@pytest.mark.parametrize(
    "changes", [{"generation": 3}, {"state": State.PAUSED}, {"state": State.CANCELLED, "finished_at": START}]
)
def test_a_letter_that_concerns_nobody_is_let_go(changes: dict[str, object]) -> None:
    """Another turn, a paused or a finished task: nothing is written and nothing sent."""
    world, task = _world(**changes)
    assert world.dead_letters.bury(replace(message_for(task), generation=0))
    assert world.queues.next_visible_at() is None
    assert world.tasks.read(task.id) == task


def test_an_unfinished_outcome_is_finished_by_a_worker() -> None:
    """What follows the outcome is left to a worker, by a fresh message."""
    world, task = _world(state=State.SUCCEEDED)
    assert world.dead_letters.bury(message_for(task))
    world.receiving = True
    world._look_for_messages()
    world.pass_time(SECOND)
    assert world.get(task).finished_at is not None


def test_a_letter_whose_fresh_message_is_refused_comes_again() -> None:
    """While the queue acknowledges nothing, the dead letter is kept."""
    world, task = _world(state=State.RUNNING, attempt=1, lease_ends_at=START + 30 * SECOND)
    world.queues.refuses = lambda: True
    assert not world.dead_letters.bury(message_for(task))
