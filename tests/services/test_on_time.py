from __future__ import annotations

import pytest

from duetime.domain.dispatch.shards import GROUP_SIZE
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_DUE_AHEAD
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Priority, TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.virtual.world import START, World


@pytest.mark.parametrize("delay", [0, 300, 1 * SECOND, 90 * SECOND, 4 * MINUTE, 20 * MINUTE, 3 * HOUR, 2 * DAY])
def test_a_task_runs_at_its_due_time_and_not_before(delay: int) -> None:
    """From 300 ms to days ahead, through the direct path or the trigger: on the millisecond, never early."""
    world = World()
    task = world.create(TaskSpec("report", delay=delay))
    world.pass_time(delay + 2 * SECOND)
    due = START + delay
    assert [effect.task_id for effect in world.effects] == [task.id]
    assert due <= world.effects[0].at <= due + 20
    done = world.get(task)
    assert (done.state, done.attempt, done.fence, done.finished_at) == (State.SUCCEEDED, 1, 1, world.effects[0].at)
    assert done.lateness == world.effects[0].at - due


def test_a_task_due_in_the_past_runs_now_and_is_marked_late() -> None:
    """A due time an hour ago is accepted; the record tells how late it was."""
    world = World()
    task = world.create(TaskSpec("report", due_at=START - HOUR))
    world.pass_time(SECOND)
    done = world.get(task)
    assert done.state is State.SUCCEEDED
    assert done.lateness == HOUR + (world.effects[0].at - START)


def test_a_task_too_far_ahead_is_refused_by_its_field() -> None:
    """More than ten years ahead is a mistake, and names the field that was used."""
    world = World()
    with pytest.raises(FieldInvalid, match="delay_seconds"):
        world.create(TaskSpec("report", delay=MAX_DUE_AHEAD + 1))
    with pytest.raises(FieldInvalid, match="at:"):
        world.create(TaskSpec("report", due_at=START + MAX_DUE_AHEAD + 1))
    assert not world.states()


def test_many_tasks_spread_over_minutes_all_run_once_on_time() -> None:
    """A thousand tasks over ten minutes, on all queues: each once, none early, none late."""
    world = World()
    tasks = [
        world.create(TaskSpec("report", delay=index * 600, priority=list(Priority)[index % 3])) for index in range(1000)
    ]
    world.pass_time(11 * MINUTE)
    assert sorted(effect.task_id for effect in world.effects) == sorted(task.id for task in tasks)
    lateness = [effect.at - effect.task_id.home for effect in world.effects]
    assert min(lateness) >= 0
    assert max(lateness) <= 20


def test_a_task_the_trigger_finds_costs_one_message() -> None:
    """A task beyond the look-ahead is sent once: by the trigger's first reading, not again by the next."""
    world = World()
    world.create(TaskSpec("report", delay=10 * MINUTE))
    world.pass_time(15 * MINUTE)
    assert len(world.queues.sent) == 1


def test_a_task_sent_directly_is_not_sent_again_by_the_trigger() -> None:
    """The record says that its message is on its way."""
    world = World()
    world.create(TaskSpec("report", delay=150 * SECOND))
    world.pass_time(10 * MINUTE)
    assert len(world.queues.sent) == 1


def test_missed_ticks_are_caught_up() -> None:
    """After ten minutes without a trigger, everything that fell due meanwhile runs at once."""
    world = World()
    world.pass_time(MINUTE)
    tasks = [world.create(TaskSpec("report", delay=(5 + minute) * MINUTE)) for minute in range(10)]
    world.ticking = False
    world.pass_time(20 * MINUTE)
    assert not world.effects
    world.ticking = True
    world.pass_time(2 * MINUTE)
    assert sorted(effect.task_id for effect in world.effects) == sorted(task.id for task in tasks)


def test_after_missed_ticks_what_is_still_to_come_is_on_time() -> None:
    """The tick that comes again reads on from its cursor: no minute ahead is left to the patrols, which are late."""
    world = World()
    tasks = [world.create(TaskSpec("report", delay=(20 + minute) * MINUTE)) for minute in range(5)]
    world.pass_time(MINUTE)
    world.ticking = False
    world.pass_time(18 * MINUTE)
    world.ticking = True
    world.pass_time(7 * MINUTE)
    lateness = [world.get(task).lateness for task in tasks]
    assert [late is not None and late < SECOND for late in lateness] == [True] * 5


def test_many_shards_are_read_by_invocations_of_their_own() -> None:
    """Forty shards are three groups; tasks in all of them run."""
    world = World(shards=40)
    for index in range(200):
        world.create(TaskSpec("report", delay=10 * MINUTE + index))
    world.pass_time(12 * MINUTE)
    assert len(world.effects) == 200
    assert {effect.task_id.shard // GROUP_SIZE for effect in world.effects} == {0, 1, 2}
