"""Locks: at most so many hold one, the others come in the order of their due times, and the dead let go."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import LockLost, LockNotFound, Unavailable
from duetime.domain.limits import LOCK_CHECK_INTERVAL, MAX_CLOCK_DIFFERENCE
from duetime.domain.tasks.attempt_outcomes import Deferred, Ending, Succeeded, failure
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import LockScope, LockSpec, Phase, TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from tests.virtual.world import LEASE, OWNER, START, World

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import Write
    from duetime.domain.locks import Holder, Lock
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work

KEY = "db-17"


def locked(
    due: Millis = START, limit: int = 1, scope: LockScope = LockScope.TASK, retry: RetryPolicy | None = None
) -> TaskSpec:
    """A task that needs the lock."""
    return TaskSpec("report", due_at=due, lock=LockSpec(KEY, limit, scope), retry=retry or RetryPolicy())


class Crowd(World):
    """A world that watches how many calls of targets run at once, and in which order they begin."""

    def __init__(self, took: Millis = 5 * SECOND) -> None:
        super().__init__()
        self.took = took
        self.now_running: Counter[Phase] = Counter()
        self.most = 0
        self.order: list[Task] = []
        self.behave = self.work

    def work(self, work: Work) -> Ending:
        """Take some time, under the eyes of the counter."""
        self.now_running[work.phase] += 1
        self.most = max(self.most, self.now_running[Phase.RUN])
        self.order.append(work.task)
        self.time.sleep_until(self.time.now() + self.took)
        self.now_running[work.phase] -= 1
        return Succeeded(b'"done"')

    @property
    def dues(self) -> list[Millis]:
        """The due times of the tasks in the order in which they ran, in seconds after the start."""
        return [(task.due_at - START) // SECOND for task in self.order]


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_than_the_limit_hold_a_lock(limit: int) -> None:
    """Of twelve tasks due at once, as many run at a time as the lock allows: no more, and no fewer."""
    world = Crowd()
    tasks = [world.create(locked(limit=limit)) for _ in range(12)]
    world.pass_time(12 // limit * 5 * SECOND + 20 * SECOND)
    assert world.most == limit
    assert {world.get(task).state for task in tasks} == {State.SUCCEEDED}
    assert len(world.order) == len(tasks)


def test_a_lock_of_one_is_an_ordering_key() -> None:
    """Those who wait are let in in the order of their due times, in whatever order they came."""
    world = Crowd(took=20 * SECOND)
    world.create(locked())
    for second in (7, 3, 9, 5, 1):
        world.create(locked(START + second * SECOND))
    world.pass_time(3 * MINUTE)
    assert world.dues == [0, 1, 3, 5, 7, 9]


def test_nobody_overtakes_the_line() -> None:
    """A task that comes by just when a lock is given back does not get in before those who wait."""
    world = Crowd(took=10 * SECOND)
    for second in range(10):
        world.create(locked(START + second * SECOND))
    world.create(locked(START + 10 * SECOND))
    world.create(locked(START + 20 * SECOND))
    world.pass_time(3 * MINUTE)
    assert world.dues == sorted(world.dues)
    assert len(world.dues) == 12


def test_a_lock_is_handed_on_at_once() -> None:
    """The next of the line starts as soon as its message is there, not at the next look of its own."""
    world = Crowd()
    world.create(locked())
    second = world.create(locked())
    world.pass_time(4 * SECOND)
    assert world.get(second).state is State.POSTPONED
    world.pass_time(2 * SECOND)
    assert world.get(second).run_at == START + 5 * SECOND


def test_a_lock_given_back_while_the_next_is_still_being_put_back_is_not_missed() -> None:
    """A slow worker has joined the line, but not yet put its task back, when the lock is given back."""
    world = Crowd()

    def stall(write: Write) -> None:
        if write.move is Move.POSTPONE:
            world.take(3 * SECOND)

    world.tasks.before_write = stall
    world.create(locked())
    second = world.create(locked(START + 4 * SECOND))
    world.pass_time(10 * SECOND)
    assert world.get(second).run_at == START + 7 * SECOND


def test_waiting_is_no_attempt_and_says_why() -> None:
    """A task that waits for a lock has spent no attempt, has started nothing, and tells what it waits for."""
    world = Crowd()
    world.create(locked())
    second = world.create(locked(retry=RetryPolicy(max_attempts=1)))
    world.pass_time(2 * SECOND)
    waiting = world.get(second)
    assert (waiting.attempt, waiting.started_at, waiting.waits_for, waiting.attempt_history) == (
        0,
        None,
        f"lock {KEY}",
        (),
    )
    world.pass_time(MINUTE)
    done = world.get(second)
    assert (done.state, done.attempt, done.waits_for, len(done.attempt_history)) == (State.SUCCEEDED, 1, None, 1)
    assert done.started_at == START + 5 * SECOND


def test_locks_of_other_keys_and_owners_are_other_locks() -> None:
    """A key is its owner's own, and every key is a lock of its own."""
    world = Crowd()
    world.create(locked())
    world.create(TaskSpec("report", lock=LockSpec("other")))
    other = world.task_creator.create("you", world.order_of(locked()))
    world.pass_time(SECOND)
    assert world.most == 3
    with pytest.raises(LockNotFound):
        world.lock_admin.get("them", KEY)
    assert [holder.task_id for holder in world.lock_admin.get("you", KEY)[0].holders] == [other.id]


def test_a_dead_holder_lets_go_by_itself() -> None:
    """A lock whose holder's worker was killed is free when its lease is over by every clock, and not before."""
    world = Crowd(took=HOUR)
    world.create(locked(retry=RetryPolicy(max_attempts=1)))
    world.pass_time(2 * SECOND)
    world.took = 5 * SECOND
    second = world.create(locked(START + SECOND))
    world.pass_time(2 * SECOND)
    world.kill_workers()
    world.pass_time(2 * MINUTE)
    done = world.get(second)
    assert done.state is State.SUCCEEDED
    freed_at = START + LEASE + MAX_CLOCK_DIFFERENCE
    assert done.run_at is not None
    assert freed_at <= done.run_at <= freed_at + 15 * SECOND


def test_a_holder_keeps_its_lock_with_its_heartbeats() -> None:
    """A holder that runs for many lease lengths is alone all the while."""
    world = Crowd(took=10 * MINUTE)
    world.create(TaskSpec("report", timeout_seconds=700, lock=LockSpec(KEY)))
    world.create(TaskSpec("report", timeout_seconds=700, lock=LockSpec(KEY)))
    world.pass_time(25 * MINUTE)
    assert world.most == 1
    assert len(world.order) == 2


def test_a_lock_of_the_run_is_not_held_while_it_is_prepared() -> None:
    """With the scope `run`, tasks prepare at once and run one after the other."""
    world = Crowd()
    world.offered = frozenset(Phase)
    tasks = [world.create(locked(scope=LockScope.RUN)) for _ in range(3)]
    world.pass_time(2 * SECOND)
    assert world.now_running[Phase.PREPARE] == 3
    world.pass_time(3 * MINUTE)
    assert world.most == 1
    assert {world.get(task).state for task in tasks} == {State.SUCCEEDED}


def test_a_lock_of_the_task_is_held_until_it_is_cleaned_up() -> None:
    """With the scope `task`, nobody prepares before the one before has cleaned up."""
    world = Crowd()
    world.offered = frozenset(Phase)
    for _ in range(3):
        world.create(locked())
    world.pass_time(2 * MINUTE)
    assert [effect.phase for effect in world.effects] == [Phase.PREPARE, Phase.RUN, Phase.CLEAN] * 3


def test_a_failed_attempt_gives_its_lock_back() -> None:
    """While one task waits for its next attempt another may run."""
    world = Crowd()

    def behave(work: Work) -> Ending:
        return failure("Boom", "no", wait_at_least=MINUTE) if work.task.due_at == START else world.work(work)

    world.behave = behave
    first = world.create(locked())
    second = world.create(locked(START + SECOND))
    world.pass_time(10 * SECOND)
    assert world.get(second).state is State.SUCCEEDED
    assert world.get(first).state is State.POSTPONED


def test_a_rollback_needs_the_lock_too() -> None:
    """What a task did under a lock is undone under it."""
    world = Crowd()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    first = world.create(locked())
    world.pass_time(10 * SECOND)
    second = world.create(locked(START + 10 * SECOND))
    world.pass_time(SECOND)
    world.task_control.roll_back(OWNER, first.id)
    world.pass_time(2 * SECOND)
    assert world.get(first).state is State.ROLLING_BACK
    assert [effect.phase for effect in world.effects] == [Phase.RUN, Phase.RUN]
    world.pass_time(MINUTE)
    assert world.get(first).state is State.ROLLED_BACK
    assert world.get(second).state is State.SUCCEEDED


def test_a_deferred_task_keeps_its_lock_until_it_is_notified_of() -> None:
    """The lock of a task whose target works elsewhere is held until the notification, then handed on at once."""
    world = Crowd()
    world.behave = lambda work: Deferred() if work.task.due_at == START else world.work(work)
    first = world.create(locked())
    second = world.create(locked(START + SECOND))
    world.pass_time(10 * MINUTE)
    assert world.get(second).state is State.POSTPONED
    world.task_control.heartbeat(OWNER, first.id, world.get(first).fence, None)
    world.task_control.notify(OWNER, first.id, world.get(first).fence, Succeeded(b"1"))
    now = world.time.now()
    world.pass_time(MINUTE)
    assert world.get(second).run_at == now


def test_a_deferred_task_that_ended_holds_nothing_even_if_its_lock_was_not_given_back() -> None:
    """Should whoever was notified die before it gives the lock back, the next in line finds that the task has ended."""
    world = Crowd()
    world.behave = lambda work: Deferred() if work.task.due_at == START else world.work(work)
    first = world.create(locked(scope=LockScope.RUN))
    second = world.create(locked(START + SECOND, scope=LockScope.RUN))
    world.pass_time(10 * SECOND)
    save = world.locks.save

    def lost(lock: Lock, nonce: str, expires_at: Millis, taker: Holder | None = None) -> bool:
        raise Unavailable(f"away: {lock} {nonce} {expires_at} {taker}")

    world.locks.save = lost  # type: ignore[method-assign] # the store is away for a moment
    with pytest.raises(Unavailable):
        world.task_control.notify(OWNER, first.id, world.get(first).fence, Succeeded(b"1"))
    world.locks.save = save  # type: ignore[method-assign] # and back
    world.pass_time(LOCK_CHECK_INTERVAL + MINUTE)
    assert world.get(second).state is State.SUCCEEDED


def test_those_who_left_the_line_hold_nobody_up() -> None:
    """A task that is cancelled, paused or changed while it waits is passed over when the lock is handed on."""
    world = Crowd(took=20 * SECOND)
    world.create(locked())
    gone = [world.create(locked(START + second * SECOND)) for second in (1, 2, 3)]
    last = world.create(locked(START + 4 * SECOND))
    world.pass_time(10 * SECOND)
    world.task_updater.cancel(OWNER, gone[0].id, None)
    world.task_control.pause(OWNER, gone[1].id)
    world.task_updater.change(OWNER, gone[2].id, TaskChange({}, due_at=START + DAY), None)
    world.pass_time(15 * SECOND)
    assert world.get(last).run_at == START + 20 * SECOND


def test_a_task_that_was_paused_in_the_line_looks_at_once_when_it_is_resumed() -> None:
    """It has lost its place, so nobody places it: the lock is free by then, and it takes it."""
    world = Crowd(took=20 * SECOND)
    world.create(locked())
    world.create(locked(START + SECOND))
    last = world.create(locked(START + 2 * SECOND))
    world.pass_time(10 * SECOND)
    world.task_control.pause(OWNER, last.id)
    world.pass_time(MINUTE)
    world.task_control.resume(OWNER, last.id)
    world.pass_time(SECOND)
    assert (world.get(last).state, world.get(last).run_at) == (State.RUNNING, START + 70 * SECOND)


def test_a_reservation_that_nobody_takes_up_ends() -> None:
    """If the one that was let in never comes, the rest of the line is not stuck."""
    world = Crowd(took=20 * SECOND)
    world.create(locked())
    second, third = world.create(locked(START + SECOND)), world.create(locked(START + 2 * SECOND))
    world.pass_time(19 * SECOND)
    world.receiving = False
    world.pass_time(2 * SECOND)
    assert [holder.fence for holder in world.lock_admin.get(OWNER, KEY)[0].holders] == [0]
    world.task_updater.cancel(OWNER, second.id, None)
    world.receiving = True
    world._look_for_messages()
    world.pass_time(LOCK_CHECK_INTERVAL + MINUTE)
    assert world.get(third).state is State.SUCCEEDED


def test_a_lock_freed_by_force_goes_to_the_next_and_stops_its_holder() -> None:
    """Whoever held it ends its process with its next heartbeat; the next in line runs at once."""
    world = Crowd(took=HOUR)
    first = world.create(TaskSpec("report", timeout_seconds=800, lock=LockSpec(KEY)))
    world.pass_time(SECOND)
    second = world.create(locked(START + SECOND))
    world.pass_time(3 * SECOND)
    world.took = 5 * SECOND
    world.lock_admin.free(OWNER, KEY)
    world.pass_time(SECOND)
    assert world.get(second).state is State.RUNNING
    world.pass_time(20 * SECOND)
    assert world.crashes == 1
    world.pass_time(3 * MINUTE)
    assert world.get(first).state is State.SUCCEEDED
    assert world.get(second).state is State.SUCCEEDED


def test_a_deferred_task_learns_from_its_heartbeat_that_its_lock_is_gone() -> None:
    """A target elsewhere is told that it should stop."""
    world = Crowd()
    world.behave = lambda _work: Deferred()
    task = world.create(locked())
    world.pass_time(SECOND)
    world.lock_admin.free(OWNER, KEY)
    with pytest.raises(LockLost):
        world.task_control.heartbeat(OWNER, task.id, world.get(task).fence, None)


def test_locks_are_listed_by_their_keys() -> None:
    """An owner sees its locks, page by page, with their holders."""
    world = Crowd()
    for number in range(5):
        world.create(TaskSpec("report", lock=LockSpec(f"lock-{number}")))
    world.pass_time(SECOND)
    page, last = world.lock_admin.list(OWNER, "", 3)
    rest, end = world.lock_admin.list(OWNER, last or "", 3)
    assert [lock.name.key for lock in (*page, *rest)] == [f"lock-{number}" for number in range(5)]
    assert {len(lock.holders) for lock in page} == {1}
    assert end is None
