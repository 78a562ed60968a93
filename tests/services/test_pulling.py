"""Pull workers in virtual time: leases that are lost, queues without workers, and what becomes of messages."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from duetime.domain.conditional_writes import ConditionFailed
from duetime.domain.errors import AttemptOverdue, FenceMismatch, LockLost, Unavailable
from duetime.domain.limits import LEASE_RETURN_MARGIN, MAX_CLOCK_DIFFERENCE, RECOVERY_SCAN_BACKLOG
from duetime.domain.tasks.attempt_outcomes import Stopped, Succeeded, Yielded, failure
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import AttemptOutcome, HandlerTarget, LockSpec, PullTarget, TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.virtual.pulling import PullingWorld
from tests.virtual.world import LEASE, OWNER, PULLED, START

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import Write
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work
    from duetime.services.pull.lease import Leased

RECOVERY = 3 * MINUTE
BIG = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(5_000)) + b'"'
"""JSON that does not fit into a record."""


@pytest.fixture
def world() -> PullingWorld:
    """A world without pull workers yet."""
    return PullingWorld()


def lease_one(world: PullingWorld) -> Leased:
    """Lease the one task that is due."""
    (lease,) = world.lease_service.lease(OWNER, world.wanted(wait=0))
    return lease


def pulled(**fields: object) -> TaskSpec:
    """What a client asks for, of the pulled type."""
    return replace(TaskSpec(PULLED), **fields)  # type: ignore[arg-type] # fields of TaskSpec


def test_a_pulled_task_is_done_by_a_pull_worker_on_time(world: PullingWorld) -> None:
    """Through the trigger, its queue and a lease, it starts on the millisecond, and no worker function sees it."""
    world.start_puller("w1")
    task = world.create(pulled(delay=12 * MINUTE))
    world.pass_time(13 * MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, done.lease_holder) == (State.SUCCEEDED, 1, "w1")
    assert [effect.at for effect in world.effects] == [task.due_at]
    assert not world.workers


def test_a_worker_killed_in_mid_task_is_replaced_right_after_its_lease(world: PullingWorld) -> None:
    """Not before the lease is over and clocks may differ, and within seconds after."""
    world.behave = lambda work: world.hang(work, attempts=1)
    world.start_puller("dies")
    task = world.create(pulled())
    world.pass_time(5 * SECOND)
    lease_ends_at = world.get(task).lease_ends_at or 0
    world.kill_pullers()
    world.start_puller("takes over")
    world.pass_time(LEASE + RECOVERY)
    first, second = world.effects
    assert lease_ends_at + MAX_CLOCK_DIFFERENCE <= second.at <= lease_ends_at + LEASE_RETURN_MARGIN + 4 * SECOND
    assert second.fence > first.fence
    # The message stayed away all the while: nobody was sent off in vain.
    assert world.facts.counts["refused"] == 0
    done = world.get(task)
    assert (done.state, done.attempt, done.lease_holder) == (State.SUCCEEDED, 2, "takes over")
    assert [line.outcome for line in done.attempt_history] == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]


def test_a_long_task_keeps_its_lease(world: PullingWorld) -> None:
    """Five minutes of work under a lease of 30 s, with another worker waiting: nobody takes it over."""
    world.behave = lambda _work: world.take(5 * MINUTE)
    world.start_puller()
    world.start_puller()
    task = world.create(pulled(timeout_seconds=600))
    world.pass_time(10 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 1)


def test_a_stuck_worker_loses_its_task_at_the_timeout(world: PullingWorld) -> None:
    """It goes on with its heartbeats, but after the timeout they are refused, and another attempt begins."""
    world.behave = lambda work: world.hang(work, attempts=1)
    world.start_puller()
    task = world.create(pulled(timeout_seconds=70))
    world.start_puller()
    world.pass_time(2 * MINUTE)
    first, second = world.effects
    assert 70 * SECOND + MAX_CLOCK_DIFFERENCE <= second.at - first.at <= 70 * SECOND + LEASE_RETURN_MARGIN + LEASE
    assert world.get(task).state is State.SUCCEEDED


def test_an_overdue_attempt_is_told_so(world: PullingWorld) -> None:
    """The refusal says that the time is over, not that the lease is another's."""
    world.create(pulled(timeout_seconds=10))
    lease = lease_one(world)
    world.pass_time(10 * SECOND)
    with pytest.raises(AttemptOverdue):
        world.lease_reports.heartbeat(OWNER, lease.key, None)


def test_a_heartbeat_of_a_lease_that_arrives_late_does_not_shorten_it(world: PullingWorld) -> None:
    """It was under way while a later one renewed the lease; the lease stays as that one has left it."""
    task = world.create(pulled(timeout_seconds=600))
    lease = lease_one(world)
    late: list[Write] = []

    def hold_up_the_first(write: Write) -> None:
        if write.move is Move.HEARTBEAT and not late:
            late.append(write)
            raise Unavailable("under way")

    world.tasks.before_write = hold_up_the_first
    with pytest.raises(Unavailable):
        world.lease_reports.heartbeat(OWNER, lease.key, None)
    world.pass_time(10 * SECOND)
    leased_until = world.lease_reports.heartbeat(OWNER, lease.key, None).lease_ends_at
    assert isinstance(world.tasks.apply(late[0]), ConditionFailed)
    assert world.get(task).lease_ends_at == leased_until


def test_the_last_attempt_lost_fails_the_task(world: PullingWorld) -> None:
    """With one attempt allowed nobody is handed the task again, and the record says why."""
    world.behave = lambda work: world.hang(work, attempts=9)
    world.start_puller()
    task = world.create(pulled(retry=RetryPolicy(max_attempts=1)))
    world.pass_time(5 * SECOND)
    world.kill_pullers()
    world.start_puller()
    world.pass_time(LEASE + RECOVERY)
    done = world.get(task)
    assert (done.state, done.attempt, len(world.effects)) == (State.FAILED, 1, 1)
    assert done.error is not None
    assert done.error.kind == "WorkerLost"


def test_a_task_that_nobody_pulls_waits_and_is_not_lost(world: PullingWorld) -> None:
    """After two days without a worker, and with its message lost, the first one that comes does it."""
    task = world.create(pulled())
    world.pass_time(MINUTE)
    world.lose_messages()
    world.pass_time(2 * DAY)
    assert world.get(task).state is State.SCHEDULED
    world.start_puller()
    world.pass_time(RECOVERY)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 1)


def test_a_lost_message_of_a_pulled_task_is_sent_again_to_its_queue(world: PullingWorld) -> None:
    """A patrol puts it where pull workers find it."""
    world.start_puller()
    world.queues.refuses = lambda: True
    task = world.create(pulled())
    world.queues.refuses = lambda: False
    world.pass_time(RECOVERY + MINUTE)
    assert world.get(task).state is State.SUCCEEDED


def test_a_long_queue_of_a_pulled_type_does_not_hold_up_the_patrol_of_others(world: PullingWorld) -> None:
    """Many wait for workers that are away; a lost task of another type is found, and the long queue grows no longer."""
    for _ in range(RECOVERY_SCAN_BACKLOG + 1):
        world.create(pulled())
    world.queues.refuses = lambda: True
    task = world.create()
    world.queues.refuses = lambda: False
    world.pass_time(RECOVERY + MINUTE)
    assert world.get(task).state is State.SUCCEEDED
    assert world.queues.backlog(task.priority, PULLED) == RECOVERY_SCAN_BACKLOG + 1


def test_a_changed_target_leaves_the_old_queue(world: PullingWorld) -> None:
    """From pull workers to the handler and back: each time only the last one named gets the task."""
    world.start_puller("w1")
    there = world.create(pulled(delay=MINUTE))
    back = world.create(pulled(delay=MINUTE, target=HandlerTarget()))
    world.task_updater.change(OWNER, there.id, TaskChange({"target": HandlerTarget()}), None)
    world.task_updater.change(OWNER, back.id, TaskChange({"target": PullTarget()}), None)
    world.pass_time(2 * MINUTE)
    assert (world.get(there).lease_holder, world.get(back).lease_holder) == ("worker", "w1")
    assert len(world.effects) == 2


def test_a_wake_of_a_pulled_task_leads_to_its_queue(world: PullingWorld) -> None:
    """A due time moved to another minute is found by its wake, and sent to the pull workers."""
    world.start_puller("w1")
    task = world.create(pulled(delay=20 * MINUTE))
    world.task_updater.change(OWNER, task.id, TaskChange({}, delay=40 * MINUTE), None)
    world.pass_time(41 * MINUTE)
    assert world.get(task).lease_holder == "w1"


def test_a_result_outside_the_record_needs_no_follow_up(world: PullingWorld) -> None:
    """It is written with its expiry: the outcome is the last write."""
    world.create(pulled())
    lease = lease_one(world)
    ended = world.lease_reports.finish(OWNER, lease.key, Succeeded(BIG))
    assert (ended.state, ended.finished_at is None) == (State.SUCCEEDED, False)


def test_a_payload_outside_the_record_is_followed_up_by_the_worker_functions(world: PullingWorld) -> None:
    """What lies outside the record expires after it: that is seen to without any pull worker."""
    world.create(pulled(payload=BIG))
    lease = lease_one(world)
    ended = world.lease_reports.finish(OWNER, lease.key, Succeeded(b"1"))
    assert (ended.state, ended.finished_at) == (State.SUCCEEDED, None)
    world.pass_time(20 * SECOND)
    assert world.tasks._tasks[ended.id].finished_at is not None
    assert [effect.phase for effect in world.effects] == []


def test_a_follow_up_whose_message_was_lost_is_found_by_a_patrol(world: PullingWorld) -> None:
    """Even if the API dies between outcome and message, the task is finished, without any pull worker."""
    world.create(pulled(callback_url="https://example.org/done"))
    lease = lease_one(world)
    world.queues.refuses = lambda: True
    ended = world.lease_reports.finish(OWNER, lease.key, Succeeded(b"1"))
    assert ended.finished_at is None
    world.queues.refuses = lambda: False
    world.pass_time(LEASE + RECOVERY + MINUTE)
    assert world.tasks._tasks[ended.id].finished_at is not None


def test_a_lost_lease_of_a_finished_task_is_let_go(world: PullingWorld) -> None:
    """A message that comes back after the outcome is deleted, not leased and not handed around."""
    task = world.create(pulled())
    lease = lease_one(world)
    ended = replace(lease.key, receipt="another/1")
    world.lease_reports.finish(OWNER, ended, Succeeded(b"1"))
    world.pass_time(LEASE + LEASE_RETURN_MARGIN + SECOND)
    assert world.queues.backlog(task.priority, PULLED) == 1
    assert world.lease_service.lease(OWNER, world.wanted(wait=0)) == []
    world.pass_time(HOUR)
    assert world.queues.backlog(task.priority, PULLED) == 0


ENDINGS: dict[str, tuple[Ending, State]] = {
    "success": (Succeeded(b"1"), State.SUCCEEDED),
    "failure": (failure("Boom", "no"), State.POSTPONED),
    "final failure": (failure("Boom", "no", retriable=False), State.FAILED),
}


@pytest.mark.parametrize(("ending", "state"), ENDINGS.values(), ids=ENDINGS)
def test_an_end_told_twice_is_told_once(world: PullingWorld, ending: Ending, state: State) -> None:
    """A worker whose answer was lost asks again and gets the same answer, and the ledger has one line."""
    task = world.create(pulled(retry=RetryPolicy(initial_seconds=600)))
    lease = lease_one(world)
    for _ in range(2):
        assert world.lease_reports.finish(OWNER, lease.key, ending).state is state
    assert len(world.get(task).attempt_history) == 1


def test_an_end_told_twice_is_known_even_when_the_next_attempt_has_begun(world: PullingWorld) -> None:
    """The first worker's repeat of its failure is no conflict, and does not touch the second's attempt."""
    world.create(pulled(retry=RetryPolicy(initial_seconds=0)))
    first = lease_one(world)
    world.lease_reports.finish(OWNER, first.key, failure("Boom", "no"))
    world.pass_time(2 * SECOND)
    second = lease_one(world)
    assert world.lease_reports.finish(OWNER, first.key, failure("Boom", "no")).fence == second.key.fence


def test_a_pause_while_leased_is_heeded_and_goes_on_with_its_checkpoint(world: PullingWorld) -> None:
    """What the user asked reaches the worker by a heartbeat; the next one starts from what was left."""

    def behave(work: Work) -> Ending:
        if work.checkpoint:
            return Succeeded(work.checkpoint)
        while work.stop_request() is None:
            world.take(SECOND)
        return Yielded(b'{"row":7}')

    world.behave = behave
    world.start_puller()
    task = world.create(pulled(timeout_seconds=300))
    world.pass_time(SECOND)
    world.task_control.pause(OWNER, task.id)
    world.pass_time(LEASE)
    assert world.get(task).state is State.PAUSED
    world.task_control.resume(OWNER, task.id)
    world.pass_time(MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
    assert done.result is not None
    assert done.result.data == b'{"row":7}'


def test_what_was_asked_of_a_lost_attempt_is_heeded_at_the_next_claim(world: PullingWorld) -> None:
    """A cancel that the dead worker never heard ends the task before anybody is handed it."""
    world.behave = lambda work: world.hang(work, attempts=9)
    world.start_puller()
    task = world.create(pulled())
    world.pass_time(SECOND)
    world.task_control.stop(OWNER, task.id)
    world.kill_pullers()
    world.pass_time(LEASE + LEASE_RETURN_MARGIN + SECOND)
    assert world.lease_service.lease(OWNER, world.wanted(wait=0)) == []
    assert world.get(task).state is State.CANCELLED


def test_pulled_tasks_of_one_lock_run_one_after_the_other(world: PullingWorld) -> None:
    """A lock is taken with the lease, kept by heartbeats, and handed on at the end."""
    world.behave = lambda _work: world.take(45 * SECOND)
    for name in ("w1", "w2", "w3"):
        world.start_puller(name)
    tasks = [world.create(pulled(lock=LockSpec("db"), timeout_seconds=120)) for _ in range(3)]
    world.pass_time(10 * MINUTE)
    assert {world.get(task).state for task in tasks} == {State.SUCCEEDED}
    starts = sorted(effect.at for effect in world.effects)
    assert [later - sooner >= 45 * SECOND for sooner, later in pairwise(starts)] == [True, True]
    assert starts[-1] - starts[0] < 2 * 45 * SECOND + 10 * SECOND


def test_a_lock_taken_by_force_is_noticed_by_the_next_heartbeat(world: PullingWorld) -> None:
    """The worker learns that it should stop."""
    world.create(pulled(lock=LockSpec("db")))
    lease = lease_one(world)
    world.lock_admin.free(OWNER, "db")
    with pytest.raises(LockLost):
        world.lease_reports.heartbeat(OWNER, lease.key, None)


def test_a_lease_whose_payload_cannot_be_read_is_put_back(world: PullingWorld) -> None:
    """An attempt that could not begin costs none: it is looked at again in a second."""
    big = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(5_000)) + b'"'
    task = world.create(pulled(payload=big))
    fetch = world.contents.fetch

    def fail(*_args: object) -> bytes:
        raise Unavailable("away")

    world.contents.fetch = fail  # type: ignore[method-assign, assignment] # for a moment
    assert world.lease_service.lease(OWNER, world.wanted(wait=0)) == []
    world.contents.fetch = fetch  # type: ignore[method-assign] # as it was
    assert (world.get(task).state, world.get(task).attempt) == (State.POSTPONED, 0)
    world.pass_time(2 * SECOND)
    assert lease_one(world).task.payload.data == big


def test_leases_that_were_had_are_answered_although_the_queue_fails_then(world: PullingWorld) -> None:
    """What is leased must reach its worker."""
    world.create(pulled())
    receive = world.queues.receive
    calls = []

    def once(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) > 1:
            raise Unavailable("away")
        return receive(*arguments)  # type: ignore[arg-type] # handed on as they are

    world.queues.receive = once  # type: ignore[method-assign, assignment] # for this test
    wanted = replace(world.wanted(most=2, wait=0), types=(PULLED,))
    assert len(world.lease_service.lease(OWNER, wanted)) == 1
    with pytest.raises(Unavailable):
        world.lease_service.lease(OWNER, wanted)


def test_a_zombie_commits_nothing(world: PullingWorld) -> None:
    """A worker that was cut off comes back after another has taken over: its result is refused."""
    world.create(pulled())
    first = lease_one(world)
    world.pass_time(LEASE + LEASE_RETURN_MARGIN + SECOND)
    second = lease_one(world)
    with pytest.raises(FenceMismatch):
        world.lease_reports.finish(OWNER, first.key, Succeeded(b'"zombie"'))
    with pytest.raises(FenceMismatch):
        world.lease_reports.heartbeat(OWNER, first.key, None)
    done = world.lease_reports.finish(OWNER, second.key, Succeeded(b'"second"'))
    assert done.result is not None
    assert done.result.data == b'"second"'


def test_an_end_between_read_and_write_is_decided_by_the_fence(world: PullingWorld) -> None:
    """Two ends of one attempt at once: the record takes one, and the other is told."""
    world.create(pulled())
    lease = lease_one(world)

    def interfere(write: Write) -> None:
        if write.move is Move.SUCCEED:
            world.tasks.before_write = lambda _write: None
            world.lease_reports.finish(OWNER, lease.key, failure("Boom", "first", retriable=False))

    world.tasks.before_write = interfere
    with suppress(Exception):
        world.lease_reports.finish(OWNER, lease.key, Succeeded(b"1"))
    assert world.get(lease.task).state is State.FAILED


def test_a_dead_letter_of_a_pulled_task_is_placed_on_its_queue(world: PullingWorld) -> None:
    """Given up by the queue, it is sent again to where pull workers find it."""
    task = world.create(pulled())
    (delivery,) = world.queues.receive(PULLED, 10, 0, 60)
    world.queues.delete([delivery])
    assert world.dead_letters.bury(delivery.message)
    world.start_puller("w1")
    world.pass_time(MINUTE)
    assert world.get(task).lease_holder == "w1"


def test_a_release_lets_another_worker_begin_at_once(world: PullingWorld) -> None:
    """Nobody waits for the end of the lease, and the count of attempts is as before."""
    task = world.create(pulled())
    world.lease_reports.release(OWNER, lease_one(world).key)
    again = lease_one(world)
    assert (again.task.id, again.task.attempt, again.key.fence) == (task.id, 1, 2)
    assert world.time.now() == START


def test_ends_of_a_cancelled_attempt_are_the_same_twice(world: PullingWorld) -> None:
    """A worker that heeded a cancel may say so again."""
    task = world.create(pulled())
    lease = lease_one(world)
    world.task_control.stop(OWNER, task.id)
    for _ in range(2):
        assert world.lease_reports.finish(OWNER, lease.key, Stopped()).state is State.CANCELLED
