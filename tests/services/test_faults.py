"""The ways to lose a task, or to run it twice, and what stands against each."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from duetime.domain.creation import TaskChange
from duetime.domain.dispatch import Wake
from duetime.domain.errors import Unavailable
from duetime.domain.limits import LEASE_RETURN_MARGIN, MAX_CLOCK_DIFFERENCE, PATROL_BACKLOG
from duetime.domain.retry import RetryPolicy
from duetime.domain.shards import first_cursors
from duetime.domain.states import State
from duetime.domain.task import AttemptOutcome, ContentPlace, Priority, Progress, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.ports.queues import Outgoing
from duetime.services.creating import IdempotencyKey, Order
from duetime.services.placing import message_for
from tests.virtual.world import LEASE, OWNER, RETENTION, START, World

if TYPE_CHECKING:
    from duetime.domain.attempts import Ending
    from duetime.domain.writes import Write
    from duetime.ports.targets import Work

RECOVERY = 3 * MINUTE
"""After a fault a task is late by no more than this, plus the lease."""
BIG = b'"' + random.Random(7).randbytes(3000).hex().encode() + b'"'  # noqa: S311 - the same bytes in every run
"""A payload that does not fit into a record."""


def test_a_message_that_was_never_sent_is_made_good_by_the_first_patrol() -> None:
    """The API dies between record and message: the record says it was sent, and the patrol finds it unclaimed."""
    world = World()
    task = world.create(TaskSpec("report", delay=10 * SECOND))
    world.lose_messages()
    world.pass_time(10 * SECOND + RECOVERY)
    assert world.get(task).state is State.SUCCEEDED
    assert len(world.effects) == 1


def test_a_message_of_the_trigger_that_is_lost_is_made_good_too() -> None:
    """A task that the trigger had sent is found by the first patrol of its minute."""
    world = World()
    task = world.create(TaskSpec("report", delay=10 * MINUTE))
    world.pass_time(9 * MINUTE)
    world.lose_messages()
    world.pass_time(MINUTE + RECOVERY)
    assert world.get(task).state is State.SUCCEEDED


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
    assert [line.outcome for line in done.ledger] == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]


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
    assert [line.outcome for line in done.ledger] == [AttemptOutcome.LOST]


def test_duplicate_messages_run_a_task_once() -> None:
    """Ten copies of a message: one claim, nine refusals, and no message stays behind."""
    world = World()
    world.behave = lambda _work: world.take(2 * SECOND)
    task = world.create(TaskSpec("report", delay=5 * SECOND))
    world.queues.send([Outgoing(message_for(world.get(task)), 0)] * 9)
    world.pass_time(5 * MINUTE)
    assert len(world.effects) == 1
    assert world.queues.next_visible_at() is None


def test_a_message_of_an_older_turn_runs_nothing() -> None:
    """After a change of its due time the old message is let go, and the task runs at the new time only."""
    world = World()
    task = world.create(TaskSpec("report", delay=10 * SECOND))
    changed = world.changing.change(OWNER, task.id, TaskChange({}, delay=10 * MINUTE), None)
    world.pass_time(12 * MINUTE)
    assert [effect.at for effect in world.effects] == pytest.approx([changed.due_at], abs=20)


def test_a_due_time_changed_forth_and_back_runs_once() -> None:
    """Ten minutes later, then an hour, then back to a minute: one run, at the last word."""
    world = World()
    task = world.create(TaskSpec("report", delay=5 * MINUTE))
    for delay in (15 * MINUTE, HOUR, MINUTE):
        changed = world.changing.change(OWNER, task.id, TaskChange({}, delay=delay), None)
    world.pass_time(2 * HOUR)
    assert [effect.at for effect in world.effects] == pytest.approx([changed.due_at], abs=20)


def test_a_wake_without_its_record_change_does_no_harm() -> None:
    """A change that dies after the wake leaves the task at its old due time: it runs once, then."""
    world = World()
    task = world.create(TaskSpec("report", delay=30 * MINUTE))
    world.tasks.add_wake(Wake(task.id, 1, START + 10 * MINUTE, Priority.NORMAL, OWNER))
    world.pass_time(HOUR)
    assert [effect.at for effect in world.effects] == pytest.approx([task.due_at], abs=20)


def test_a_priority_change_moves_the_task_to_the_other_queue() -> None:
    """The message on the old queue is of an older turn."""
    world = World()
    task = world.create(TaskSpec("report", delay=MINUTE))
    world.changing.change(OWNER, task.id, TaskChange({"priority": Priority.HIGH}), None)
    world.pass_time(2 * MINUTE)
    assert len(world.effects) == 1
    assert world.queues.sent[-1].message.priority is Priority.HIGH


def test_a_retry_waits_and_runs_again() -> None:
    """A failing target is tried again after a jittered wait, under a new fence, and the ledger tells all."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=2)
    task = world.create()
    world.pass_time(MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, done.fence, done.error) == (State.SUCCEEDED, 3, 3, None)
    assert [line.outcome.value for line in done.ledger] == ["retried", "retried", "succeeded"]


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


def test_a_long_task_keeps_its_lease() -> None:
    """Ten minutes of work under a lease of 30 s: heartbeats renew it, and nobody takes it over."""
    world = World()
    world.behave = lambda _work: world.take(10 * MINUTE)
    task = world.create(TaskSpec("report", timeout_seconds=800))
    world.pass_time(15 * MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, len(world.effects)) == (State.SUCCEEDED, 1, 1)


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


def test_a_zombies_outcome_is_refused() -> None:
    """An attempt that was taken over cannot write its end; cut off from the store, it even stops itself."""
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


def test_a_late_finisher_whom_nobody_replaced_still_counts() -> None:
    """Its lease is over by a second, but no other attempt has begun: its outcome is taken."""
    world = World()
    world.behave = lambda _work: world.take(LEASE + SECOND)
    task = world.create()
    world.pass_time(SECOND)

    def away(_write: Write) -> None:
        if world.time.now() < START + LEASE:
            raise Unavailable("away")

    world.tasks.before_write = away
    world.pass_time(5 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 1)


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


def test_a_queue_that_refuses_messages_holds_the_cursor() -> None:
    """The trigger moves on only after every message was acknowledged: the next tick sends them all."""
    world = World()
    task = world.create(TaskSpec("report", delay=11 * MINUTE))
    world.queues.refuses = lambda: world.time.now() < START + 9 * MINUTE
    world.pass_time(12 * MINUTE)
    done = world.get(task)
    assert done.state is State.SUCCEEDED
    assert done.lateness is not None
    assert done.lateness < SECOND


def test_a_minute_that_cannot_be_read_is_read_by_the_next_tick() -> None:
    """While the table throttles, the cursor stands and the group is let go: the next tick goes on at once."""
    world = World()
    task = world.create(TaskSpec("report", delay=6 * MINUTE))
    world.tasks.readable = False
    world.pass_time(4 * MINUTE)
    world.tasks.readable = True
    world.pass_time(3 * MINUTE)
    done = world.get(task)
    assert (done.state, world.facts.counts["groups_held_elsewhere"]) == (State.SUCCEEDED, 0)
    assert done.lateness is not None
    assert done.lateness < SECOND


def test_a_trigger_that_died_with_the_group_is_taken_over() -> None:
    """Its hold ends by itself: a later tick reads on where it stopped."""
    world = World()
    world.cursors.take(0, "dead", world.time.now(), world.time.now() + 70 * SECOND, first_cursors(world.time.now()))
    task = world.create(TaskSpec("report", delay=5 * MINUTE))
    world.pass_time(6 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED
    assert world.facts.counts["groups_held_elsewhere"] >= 1


def test_overlapping_ticks_run_nothing_twice() -> None:
    """Five ticks at once: one reads, and whatever is sent twice is claimed once."""
    world = World()
    for index in range(20):
        world.create(TaskSpec("report", delay=6 * MINUTE + index))
    world.pass_time(2 * MINUTE)
    for overlap in range(5):
        world.time.start_process(partial(world.dispatching.tick, f"again-{overlap}"))
    world.pass_time(6 * MINUTE)
    assert len(world.effects) == 20


def test_a_patrol_waits_while_the_queue_is_long() -> None:
    """A backlog is not fed with copies of itself: the patrol's cursor stays until the queue is short."""
    world = World()
    world.receiving = False
    task = world.create()
    world.lose_messages()
    spare = world.create(TaskSpec("spare", priority=Priority.NORMAL))
    world.queues.send([Outgoing(message_for(spare), 0)] * (PATROL_BACKLOG + 1))
    sent = len(world.queues.sent)
    world.pass_time(10 * MINUTE)
    assert len(world.queues.sent) == sent
    assert world.facts.counts["patrols_waiting"] >= 5
    world.receiving = True
    world.pass_time(5 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED


def test_an_outage_of_hours_is_patrolled_to_the_end() -> None:
    """Messages lost while the trigger was down for three hours are found: patrols skip no minute."""
    world = World()
    world.pass_time(SECOND)
    tasks = [world.create(TaskSpec("report", delay=index * MINUTE)) for index in range(3)]
    world.lose_messages()
    world.ticking = False
    world.pass_time(3 * HOUR)
    world.ticking = True
    world.pass_time(3 * MINUTE)
    assert [world.get(task).state for task in tasks] == [State.SUCCEEDED] * 3


def test_a_task_that_outlives_its_patrols_is_woken_every_day() -> None:
    """A message lost after the last patrol of its minutes is found a day later."""
    world = World()
    world.behave = lambda work: world.hang(work, attempts=1)
    task = world.create(TaskSpec("report", timeout_seconds=840))
    # It runs on for more than a day, which no worker can: its lease is kept up by hand.
    world.pass_time(SECOND)
    world.receiving = False
    world.lose_messages()
    running = world.tasks.read(task.id)
    assert running is not None
    world.kill_workers()
    world.tasks._put(replace(running, lease_ends_at=START + 26 * HOUR))
    world.pass_time(25 * HOUR)
    world.receiving = True
    world.lose_messages()
    assert world.get(task).state is State.RUNNING
    world.pass_time(26 * HOUR)
    assert world.get(task).state is State.SUCCEEDED


def test_followups_of_an_outcome_are_done_by_whoever_comes_next() -> None:
    """A worker that dies between the outcome and what follows it leaves that to its message."""
    world = World()
    task = world.create(TaskSpec("report", payload=BIG))
    deaths: list[int] = []

    def die_once() -> None:
        if not deaths:
            deaths.append(world.time.now())
            world.time.kill(world.time.process())

    world.contents.before_expiry = die_once
    world.pass_time(SECOND)
    half_done = world.get(task)
    assert (half_done.state, half_done.finished_at) == (State.SUCCEEDED, None)
    world.pass_time(2 * MINUTE)
    done = world.get(task)
    assert done.finished_at is not None
    assert len(world.effects) == 1


def test_a_payload_outside_the_record_is_handed_on_and_expires_with_it() -> None:
    """What does not fit lies outside, reaches the target whole, and is removed when the record is."""
    world = World()
    seen: list[bytes] = []

    def look(work: Work) -> Ending:
        seen.append(work.payload)
        return world.take(0)

    world.behave = look
    task = world.create(TaskSpec("report", payload=BIG))
    world.pass_time(SECOND)
    done = world.get(task)
    assert seen == [BIG]
    assert done.payload.place is not ContentPlace.RECORD
    assert done.expires_at is not None
    assert world.contents.expiries[task.id, "payload"] == done.expires_at
    assert done.expires_at >= START + RETENTION


def test_old_ledger_lines_move_out_of_the_record() -> None:
    """Eight attempts: the record keeps the last five lines, the first three are kept beside it."""
    world = World()
    world.behave = lambda work: world.fail(work, attempts=7)
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=9, initial_seconds=0)))
    world.pass_time(MINUTE)
    done = world.get(task)
    assert [line.attempt for line in done.ledger] == [4, 5, 6, 7, 8]
    assert sorted(attempt for _task, attempt in world.contents.lines) == [1, 2, 3]


def test_a_replayed_request_makes_the_task_that_was_lost_on_the_way() -> None:
    """The API dies between the idempotency key and the record: the same request makes that very task."""
    world = World()
    order = Order(TaskSpec("report", delay=MINUTE), IdempotencyKey("k", "hash"))
    world.tasks.creatable = False
    with pytest.raises(Unavailable):
        world.creating.create(OWNER, order)
    world.tasks.creatable = True
    world.pass_time(10 * SECOND)
    first = world.creating.create(OWNER, order)
    again = world.creating.create(OWNER, order)
    assert first.id == again.id
    assert first.due_at == START + MINUTE
    world.pass_time(5 * MINUTE)
    assert len(world.effects) == 1
