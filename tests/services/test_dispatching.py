"""The trigger: what it must not skip, send twice or drown in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from duetime.domain.dispatch.cursors import first_cursors
from duetime.domain.limits import GROUP_HOLD, RECOVERY_SCAN_BACKLOG, RECOVERY_SCAN_DELAYS
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Priority, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis, minute_of, start_of
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from tests.virtual.world import LOOK_AHEAD, START, World


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
    assert world.facts.counts["ticks_failed"] >= 3
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


@pytest.mark.parametrize("stall", [SECOND, 2 * GROUP_HOLD])
def test_overlapping_ticks_run_nothing_twice(stall: Millis) -> None:
    """Of five at once one reads. If it stalls, a later one takes over, and whatever is sent twice is claimed once."""
    world = World()
    world.behave = lambda _work: world.take(10 * SECOND)
    for index in range(20):
        world.create(TaskSpec("report", delay=6 * MINUTE + index))
    # The next tick is the first to read the minute that they are due in.
    world.time.run_until(start_of(minute_of(START + 6 * MINUTE - LOOK_AHEAD)) - 1)
    world.ticking = False
    world.pass_time(1)

    def slow() -> bool:
        world.time.sleep_until(world.time.now() + stall)
        return False

    world.queues.refuses = slow
    for number in range(5):
        world.time.start_process(partial(world.dispatcher.tick, f"tick {number} at once"))
    world.pass_time(GROUP_HOLD)
    assert world.facts.counts["groups_held_elsewhere"] == 4
    world.time.start_process(partial(world.dispatcher.tick, "a later tick"))
    world.pass_time(10 * MINUTE)
    assert world.facts.counts["groups_held_elsewhere"] == 4
    assert len(world.queues.sent) == (20 if stall < GROUP_HOLD else 40)
    assert len(world.effects) == 20


def test_a_patrol_waits_while_the_queue_is_long() -> None:
    """A backlog is not fed with copies of itself: the patrol's cursor stays until the queue is short."""
    world = World()
    world.receiving = False
    task = world.create()
    world.lose_messages()
    spare = world.create(TaskSpec("spare", priority=Priority.NORMAL))
    world.queues.send([Outgoing(message_for(spare), 0)] * (RECOVERY_SCAN_BACKLOG + 1))
    sent = len(world.queues.sent)
    world.pass_time(10 * MINUTE)
    assert len(world.queues.sent) == sent
    assert world.facts.counts["patrols_waiting"] >= 5
    world.receiving = True
    world.pass_time(5 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED


@pytest.mark.parametrize("patrol", range(len(RECOVERY_SCAN_DELAYS)))
def test_no_patrol_skips_a_minute_after_an_outage(patrol: int) -> None:
    """What was sent by those before, and lost again, is found by the next one, though it comes most of an hour late."""
    world = World()
    world.receiving = False
    tasks = [world.create(TaskSpec("report", delay=index * MINUTE)) for index in range(3)]
    world.pass_time(RECOVERY_SCAN_DELAYS[patrol] - MINUTE)
    world.ticking = False
    world.lose_messages()
    world.pass_time(50 * MINUTE)
    world.receiving = world.ticking = True
    world.pass_time(2 * MINUTE)
    assert [world.get(task).state for task in tasks] == [State.SUCCEEDED] * 3


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
    """Its messages of three days are lost, long after the patrols of its minute: the next day's wake still comes."""
    world = World()
    world.behave = lambda work: world.hang(work, attempts=1)
    task = world.create(TaskSpec("report", timeout_seconds=840))
    # It runs on for more than three days, which no worker can: its lease is kept up by hand.
    world.pass_time(SECOND)
    world.receiving = False
    world.lose_messages()
    running = world.tasks.read(task.id)
    assert running is not None
    world.kill_workers()
    world.tasks._put(replace(running, lease_ends_at=START + 74 * HOUR))
    world.pass_time(73 * HOUR)
    world.receiving = True
    world.lose_messages()
    assert world.get(task).state is State.RUNNING
    world.pass_time(26 * HOUR)
    assert world.get(task).state is State.SUCCEEDED
