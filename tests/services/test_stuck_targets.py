"""Targets that do not end, and what may begin when their process has."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import StateConflict
from duetime.domain.limits import OVERDUE_GRACE, PROCESS_END_TIME
from duetime.domain.tasks.attempt_outcomes import Succeeded
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import LockSpec, Phase, TaskSpec
from duetime.domain.times import MINUTE, SECOND, Millis
from tests.virtual.world import LEASE, OWNER, START, World

if TYPE_CHECKING:
    from tests.virtual.time import Strand

TIMEOUT = 5
OVERDUE = START + TIMEOUT * SECOND
ONE_ATTEMPT = RetryPolicy(max_attempts=1)


class SlowWorld(World):
    """A world in which the first target hangs, and the queue hangs for the process that it is in.

    Attributes:
        gone_at: when the first target's process was gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.gone_at: Millis | None = None
        self.behave = lambda _work: Succeeded(b"1") if len(self.effects) > 1 else self._hang()
        self.queues.refuses = self._stall
        self._stuck: Strand | None = None

    def _hang(self) -> Succeeded:
        self._stuck = self.time.process()
        try:
            self.time.sleep_until(START + 9 * MINUTE)
        finally:
            self.gone_at = self.time.now()
        return Succeeded(b"1")

    def _stall(self) -> bool:
        if self.time.now() > OVERDUE and self.time.process() is self._stuck:
            self.time.sleep_until(self.time.now() + 20 * SECOND)
        return False


@pytest.fixture
def world() -> SlowWorld:
    """A world whose first target hangs."""
    return SlowWorld()


def test_a_target_that_does_not_end_is_ended_with_its_process() -> None:
    """A thread cannot be stopped: the timeout is written down, the process ends, and the task is tried again."""
    world = World()
    world.behave = lambda work: world.hang(work, attempts=1)
    task = world.create(TaskSpec("report", timeout_seconds=5))
    world.pass_time(MINUTE)
    done = world.get(task)
    assert world.crashes == 1
    assert (done.state, done.attempt) == (State.SUCCEEDED, 2)
    assert world.effects[1].at - world.effects[0].at >= 5 * SECOND


def test_the_batch_of_a_stuck_target_may_end_first() -> None:
    """Others in the same batch finish before their process ends; none is run twice."""
    world = World()
    stuck = world.create(TaskSpec("stuck", delay=10 * SECOND, timeout_seconds=5))
    others = [world.create(TaskSpec("other", delay=10 * SECOND)) for _ in range(5)]
    world.behave = lambda work: world.hang(work, attempts=1) if work.task.type == "stuck" else world.take(9 * SECOND)
    world.pass_time(2 * MINUTE)
    assert world.crashes == 1
    assert [world.get(task).attempt for task in [stuck, *others]] == [2, 1, 1, 1, 1, 1]
    assert world.states() == {State.SUCCEEDED: 6}


def test_the_next_attempt_waits_for_the_process_of_a_stuck_one(world: SlowWorld) -> None:
    """Its retry is written down, but sending it takes long: the process ends nevertheless, and first."""
    task = world.create(TaskSpec("report", timeout_seconds=TIMEOUT, retry=RetryPolicy(initial_seconds=0)))
    world.pass_time(5 * MINUTE)
    assert world.gone_at is not None
    assert world.gone_at <= OVERDUE + OVERDUE_GRACE + PROCESS_END_TIME + SECOND
    assert world.effects[1].at > world.gone_at
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 2)


@pytest.mark.parametrize("spent", [False, True])
def test_nobody_hurries_what_a_dying_process_still_does(world: SlowWorld, spent: bool) -> None:  # noqa: FBT001 - a case
    """Run now and retry, asked for each 100 ms, begin nothing before the stuck process is gone."""
    retry = ONE_ATTEMPT if spent else RetryPolicy(initial_seconds=0)
    task = world.create(TaskSpec("report", timeout_seconds=TIMEOUT, retry=retry))

    def hurry() -> None:
        with suppress(StateConflict):
            (world.task_control.retry if spent else world.task_control.run_now)(OWNER, task.id)

    while world.time.now() < OVERDUE + 20 * SECOND:
        world.time.start_process(hurry)
        world.pass_time(100)
    world.pass_time(5 * MINUTE)
    assert world.gone_at is not None
    assert world.effects[1].at > world.gone_at
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 2)


def test_a_stuck_target_is_undone_when_its_process_is_gone(world: SlowWorld) -> None:
    """The rollback that follows a last attempt does not begin beside it."""
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    task = world.create(TaskSpec("report", timeout_seconds=TIMEOUT, retry=ONE_ATTEMPT, rollback=True))
    world.pass_time(5 * MINUTE)
    assert world.gone_at is not None
    assert [effect.phase for effect in world.effects] == [Phase.RUN, Phase.ROLLBACK]
    assert world.effects[1].at > world.gone_at
    assert world.get(task).state is State.ROLLED_BACK


def test_the_lock_of_a_stuck_target_is_free_when_its_process_is_gone(world: SlowWorld) -> None:
    """Who waits for the lock does not begin beside it, and does not wait for its lease either."""
    task = world.create(TaskSpec("report", timeout_seconds=TIMEOUT, retry=ONE_ATTEMPT, lock=LockSpec("key")))
    second = world.create(TaskSpec("report", delay=SECOND, lock=LockSpec("key")))
    world.pass_time(5 * MINUTE)
    assert world.gone_at is not None
    assert world.gone_at < world.effects[1].at < OVERDUE + LEASE
    assert (world.get(task).state, world.get(second).state) == (State.FAILED, State.SUCCEEDED)
    assert world.get(task).finished_at is not None


def test_a_stuck_target_is_told_as_failed_at_once(world: SlowWorld) -> None:
    """Its outcome is there for all to read before its process is gone; only what follows it waits."""
    task = world.create(TaskSpec("report", timeout_seconds=TIMEOUT, retry=ONE_ATTEMPT))
    world.pass_time(TIMEOUT * SECOND + 2 * SECOND)
    seen = world.get(task)
    assert (seen.state, seen.error and seen.error.kind) == (State.FAILED, "Timeout")
