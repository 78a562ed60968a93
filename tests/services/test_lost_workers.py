"""Workers that die, hang or are cut off, and the leases that outlive them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.conditional_writes import ConditionFailed
from duetime.domain.errors import Unavailable
from duetime.domain.limits import LEASE_RETURN_MARGIN, MAX_CLOCK_DIFFERENCE
from duetime.domain.tasks.attempt_outcomes import Succeeded, failure
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import AttemptOutcome, Progress, TaskSpec
from duetime.domain.times import MINUTE, SECOND, Millis
from tests.virtual.world import LEASE, START, World

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import Write
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work

RECOVERY = 3 * MINUTE
"""After a fault a task is late by no more than this, plus the lease."""


def test_a_worker_killed_in_mid_task_is_replaced_after_its_lease() -> None:
    """The message comes back by itself, and no second run starts while the first may live."""
    world = World()
    world.behave = lambda work: world.hang(work, attempts=1)
    task = world.create()
    world.pass_time(5 * SECOND)
    world.kill_workers()
    world.pass_time(LEASE + RECOVERY)
    first, second = world.effects
    assert second.at - first.at >= LEASE + MAX_CLOCK_DIFFERENCE
    assert second.at - first.at <= LEASE + LEASE_RETURN_MARGIN + 5 * SECOND
    assert second.fence > first.fence
    done = world.get(task)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 2)
    assert [line.outcome for line in done.attempt_history] == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]


def test_a_worker_and_its_message_lost_together_are_made_good_by_a_patrol() -> None:
    """Nothing is left but the record with a lease that is over: a patrol sends it again."""
    world = World()
    world.behave = lambda work: world.hang(work, attempts=1)
    task = world.create()
    world.pass_time(5 * SECOND)
    world.kill_workers()
    world.lose_messages()
    world.pass_time(LEASE + RECOVERY)
    assert world.get(task).state is State.SUCCEEDED


def test_a_worker_killed_before_its_claim_costs_no_attempt() -> None:
    """The message was received but nothing was claimed: it runs once, as its first attempt."""
    world = World()
    task = world.create(TaskSpec("report", delay=10 * SECOND))
    world.pass_time(9_500)
    world.kill_workers()
    world.pass_time(RECOVERY)
    done = world.get(task)
    assert (done.state, done.attempt, len(world.effects)) == (State.SUCCEEDED, 1, 1)


def test_the_last_attempt_lost_fails_the_task() -> None:
    """A crash counts as an attempt: with one allowed, nothing runs again and the record says why."""
    world = World()
    world.behave = lambda work: world.hang(work, attempts=9)
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=1)))
    world.pass_time(5 * SECOND)
    world.kill_workers()
    world.pass_time(LEASE + RECOVERY)
    done = world.get(task)
    assert (done.state, done.attempt, len(world.effects)) == (State.FAILED, 1, 1)
    assert done.error is not None
    assert done.error.kind == "WorkerLost"
    assert [line.outcome for line in done.attempt_history] == [AttemptOutcome.LOST]


def test_a_long_task_keeps_its_lease() -> None:
    """Ten minutes of work under a lease of 30 s: heartbeats renew it and hide its message, and nobody else sees it."""
    world = World()
    world.behave = lambda _work: world.take(10 * MINUTE)
    task = world.create(TaskSpec("report", timeout_seconds=800))
    world.pass_time(15 * MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, len(world.effects)) == (State.SUCCEEDED, 1, 1)
    assert world.facts.counts["refused"] == 0
    assert len(world.workers) == 1


def test_a_short_task_costs_no_heartbeat() -> None:
    """What ends within a third of its lease is written three times: created, claimed, finished."""
    world = World()
    world.behave = lambda _work: world.take(LEASE // 3 - SECOND)
    task = world.create()
    world.pass_time(MINUTE)
    assert world.get(task).version == 3


def test_progress_is_written_with_a_heartbeat() -> None:
    """What the target tells can be read while it runs."""
    world = World()

    def half_way(work: Work) -> Ending:
        work.report(Progress(50, "half way"))
        work.report(None)
        return world.take(MINUTE)

    world.behave = half_way
    task = world.create(TaskSpec("report", timeout_seconds=100))
    world.pass_time(5 * SECOND)
    progress = world.get(task).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (50, "half way")


def test_the_last_progress_is_written_with_the_outcome() -> None:
    """What was told after the last heartbeat is not lost."""
    world = World()

    def tell(work: Work) -> Ending:
        work.report(Progress(100, "all done"))
        return world.take(0)

    world.behave = tell
    task = world.create()
    world.pass_time(SECOND)
    assert world.get(task).progress == Progress(100, "all done")


@pytest.mark.parametrize(
    "ending",
    [Succeeded(b'"first"'), failure("Boom", "first"), failure("Boom", "first", retriable=False)],
    ids=["success", "retry", "failure"],
)
def test_a_zombies_outcome_is_refused(ending: Ending) -> None:
    """An end that is under way for so long that another attempt runs when it arrives changes nothing of that one's."""
    world = World()

    def behave(work: Work) -> Ending:
        if work.task.attempt == 1:
            return ending
        world.take(10 * MINUTE)
        return Succeeded(b'"second"')

    world.behave = behave
    task = world.create(TaskSpec("report", timeout_seconds=800))
    arrived: list[Millis] = []

    def under_way(write: Write) -> None:
        if write.move in {Move.SUCCEED, Move.RETRY, Move.FAIL} and not arrived:
            arrived.append(START + 5 * MINUTE)
            world.time.sleep_until(arrived[0])

    world.tasks.before_write = under_way
    world.pass_time(5 * MINUTE + SECOND)
    assert arrived
    running = world.get(task)
    assert (running.state, running.attempt, running.fence) == (State.RUNNING, 2, 2)
    world.pass_time(10 * MINUTE)
    done = world.get(task)
    assert (done.state, done.fence, done.result and done.result.data) == (State.SUCCEEDED, 2, b'"second"')
    assert len(world.effects) == 2


def test_an_attempt_that_is_cut_off_stops_itself_and_is_replaced() -> None:
    """Its worker cannot reach the store any more: the process ends, and after the lease another one takes over."""
    world = World()
    world.behave = lambda work: world.take(5 * MINUTE if work.task.attempt == 1 else SECOND)
    task = world.create(TaskSpec("report", timeout_seconds=800))
    world.pass_time(SECOND)
    (zombie,) = world.workers

    def cut_off(_write: Write) -> None:
        if world.time.process() is zombie:
            raise Unavailable("cut off")

    world.tasks.before_write = cut_off
    world.pass_time(10 * MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, done.fence) == (State.SUCCEEDED, 2, 2)
    assert world.crashes == 1
    first, second = world.effects
    assert second.at - first.at >= LEASE + MAX_CLOCK_DIFFERENCE


def test_a_heartbeat_that_arrives_late_does_not_shorten_the_lease() -> None:
    """The first one is under way for long; those after it have renewed the lease, and it must stay as they left it."""
    world = World()
    world.behave = lambda _work: world.take(3 * LEASE)
    task = world.create(TaskSpec("report", timeout_seconds=800))
    late: list[Write] = []

    def hold_up_the_first(write: Write) -> None:
        if write.move is Move.HEARTBEAT and not late:
            late.append(write)
            raise Unavailable("under way")

    world.tasks.before_write = hold_up_the_first
    world.pass_time(LEASE)
    leased_until = world.get(task).lease_ends_at
    assert isinstance(world.tasks.apply(late[0]), ConditionFailed)
    assert world.get(task).lease_ends_at == leased_until
    world.pass_time(3 * LEASE)
    assert world.get(task).attempt == 1
    assert world.states() == {State.SUCCEEDED: 1}


def test_a_worker_that_is_cut_off_is_gone_before_its_leases_are_over() -> None:
    """Ten tasks run when no call of their worker is answered any more: no task runs again beside its first run."""
    world = World()
    world.behave = lambda work: world.take(5 * MINUTE if work.task.attempt == 1 else SECOND)
    tasks = [world.create(TaskSpec("report", delay=10 * SECOND, timeout_seconds=800)) for _ in range(10)]
    world.pass_time(11 * SECOND)
    (zombie,) = [worker for worker in world.workers if not worker.done]
    ended_at: list[Millis] = []

    def cut_off(_write: Write) -> None:
        if world.time.process() is zombie:
            world.time.sleep_until(world.time.now() + 17 * SECOND)
            raise Unavailable("cut off")

    world.tasks.before_write = cut_off
    while not zombie.done:
        world.pass_time(100)
        ended_at.append(world.time.now())
    assert ended_at[-1] <= START + 10 * SECOND + LEASE
    world.pass_time(10 * MINUTE)
    assert {world.get(task).attempt for task in tasks} == {2}
    assert min(effect.at for effect in world.effects[10:]) > ended_at[-1]
    assert world.states() == {State.SUCCEEDED: 10}


def test_a_late_finisher_whom_nobody_replaced_still_counts() -> None:
    """It can write its end down only when its lease is over, but no other attempt has begun: its outcome is taken."""
    world = World()
    world.behave = lambda _work: world.take(LEASE - 6 * SECOND)
    task = world.create()
    world.pass_time(SECOND)

    def away(_write: Write) -> None:
        if world.time.now() <= START + LEASE:
            raise Unavailable("away")

    world.tasks.before_write = away
    world.pass_time(5 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 1)


def test_a_store_that_is_away_for_a_while_costs_no_outcome() -> None:
    """The end of a run is written again and again while the lease lasts: it is not run twice."""
    world = World()

    def away(_write: Write) -> None:
        if START + SECOND <= world.time.now() < START + 8 * SECOND:
            raise Unavailable("away")

    world.tasks.before_write = away
    world.behave = lambda _work: world.take(2 * SECOND)
    task = world.create()
    world.pass_time(5 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 1)


def test_a_store_that_is_away_at_the_claim_delays_the_task() -> None:
    """A claim that is not answered sends the message back; it is tried again a second later."""
    world = World()

    def away(_write: Write) -> None:
        if world.time.now() < START + 4 * SECOND:
            raise Unavailable("away")

    world.tasks.before_write = away
    task = world.create()
    world.pass_time(10 * SECOND)
    assert (world.get(task).state, world.get(task).attempt) == (State.SUCCEEDED, 1)
