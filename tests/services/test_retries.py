"""Attempts that fail, and those that follow them."""

from __future__ import annotations

from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import TaskSpec
from duetime.domain.times import HOUR, MINUTE
from tests.virtual.world import World

RECOVERY = 3 * MINUTE
"""After a fault a task is late by no more than this, plus the lease."""


def test_a_retry_waits_and_runs_again() -> None:
    """A failing target is tried again after a jittered wait, under a new fence, and the ledger tells all."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=2)
    task = world.create()
    world.pass_time(MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, done.fence, done.error) == (State.SUCCEEDED, 3, 3, None)
    assert [line.outcome.value for line in done.attempt_history] == ["retried", "retried", "succeeded"]


def test_a_lost_retry_message_is_made_good_by_the_home_minutes_patrol() -> None:
    """A quick retry has no wake: the first patrol of its home minute stands in for it."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=1)
    task = world.create(TaskSpec("report", retry=RetryPolicy(initial_seconds=60)))
    world.pass_time(500)
    assert world.get(task).state is State.POSTPONED
    world.lose_messages()
    world.pass_time(MINUTE + RECOVERY)
    assert world.get(task).state is State.SUCCEEDED


def test_a_far_retry_is_found_by_the_trigger() -> None:
    """A retry hours ahead leaves a wake in its minute and no message on a queue."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=1, wait=2 * HOUR)
    task = world.create()
    world.pass_time(HOUR)
    assert world.queues.next_visible_at() is None
    world.pass_time(90 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED
    assert world.effects[1].at - world.effects[0].at >= 2 * HOUR


def test_spent_attempts_fail_the_task_with_its_last_error() -> None:
    """Five attempts by default, then `failed`, with class and message."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=99)
    task = world.create()
    world.pass_time(5 * MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, len(world.effects)) == (State.FAILED, 5, 5)
    assert done.error is not None
    assert (done.error.kind, done.error.message) == ("Boom", "attempt 5")
    assert done.finished_at is not None


def test_an_unretriable_error_is_not_retried() -> None:
    """One attempt, and the task has failed."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=99, retriable=False)
    task = world.create()
    world.pass_time(5 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.FAILED, 1)
