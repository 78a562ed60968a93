"""The number of shards changes while tasks are made: no task is late for it, whichever function is deployed first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from duetime.domain.tasks.creation import Origin
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis
from duetime.services.tasks.create import Order
from tests.virtual.world import OWNER, START, World

NUMBERS = [(4, 16), (16, 24), (16, 32), (24, 32), (4, 40)]


def _deploy_api(world: World, shards: int) -> None:
    """The API makes ids with another number from now on; the trigger has still the number that it had."""
    world.task_creator = replace(world.task_creator, shards=replace(world.shards, configured=shards))


def _deploy_trigger(world: World, shards: int) -> None:
    world.dispatcher = replace(world.dispatcher, shards=replace(world.shards, configured=shards))


@pytest.mark.parametrize(("before", "after"), NUMBERS)
@pytest.mark.parametrize("gap", [MINUTE, 15 * MINUTE, HOUR])
def test_shards_grow_while_the_trigger_has_still_the_old_number(before: int, after: int, gap: Millis) -> None:
    """Tasks of new shards run on time from the first on, however long the trigger's deploy takes."""
    world = World(shards=before)
    world.pass_time(10 * MINUTE)
    _deploy_api(world, after)
    tasks = [world.create(TaskSpec("report", delay=(120 + 60 * number) * SECOND)) for number in range(60)]
    world.pass_time(gap)
    _deploy_trigger(world, after)
    world.pass_time(70 * MINUTE - gap)
    assert max(task.id.shard for task in tasks) >= before
    assert max(world.get(task).lateness or 0 for task in tasks) < SECOND
    assert {world.get(task).state for task in tasks} == {State.SUCCEEDED}


@pytest.mark.parametrize(("after", "before"), NUMBERS)
def test_a_lower_number_strands_nothing(before: int, after: int) -> None:
    """A deploy that is rolled back, or a number that is lowered: what lies in the other shards runs on time."""
    world = World(shards=before)
    tasks = [world.create(TaskSpec("report", delay=20 * MINUTE)) for _ in range(80)]
    _deploy_api(world, after)
    _deploy_trigger(world, after)
    tasks += [world.create(TaskSpec("report", delay=21 * MINUTE)) for _ in range(20)]
    world.pass_time(25 * MINUTE)
    assert max(task.id.shard for task in tasks) >= after
    assert {world.get(task).lateness for task in tasks} == {0}


@pytest.mark.parametrize("late", [30 * MINUTE, 3 * HOUR, 2 * DAY])
def test_the_first_tick_of_a_stack_reads_everything_before_it(late: Millis) -> None:
    """However long the trigger of a new stack does not tick: what was made before runs with its first ticks."""
    world = World()
    world.ticking = False
    world.cursors._holds.clear()
    tasks = [world.create(TaskSpec("report", delay=delay * MINUTE)) for delay in (1, 5, 12, 20)]
    world.queues.refuses = lambda: True
    tasks.append(world.create(TaskSpec("report")))
    world.queues.refuses = lambda: False
    world.pass_time(late)
    world.ticking = True
    world.pass_time(3 * MINUTE)
    assert {world.get(task).state for task in tasks} == {State.SUCCEEDED}


def test_an_event_is_one_task_while_shards_grow() -> None:
    """Delivered before a deploy and again after it, by a process that knows more shards, it makes the same task."""
    world = World(shards=16)
    origins = [Origin("com.example.orders", f"order-{number}", START) for number in range(20)]
    first = [world.task_creator.create(OWNER, Order(TaskSpec("report"), origin=origin)) for origin in origins]
    for _ in range(8):
        world.pass_time(15 * MINUTE)
        _deploy_api(world, 48)
        again = [world.task_creator.create(OWNER, Order(TaskSpec("report"), origin=origin)) for origin in origins]
        assert [task.id for task in again] == [task.id for task in first]
    later = Origin("com.example.orders", "later", world.time.now())
    orders = [Order(TaskSpec("report"), origin=replace(later, id=str(number))) for number in range(60)]
    assert max(world.task_creator.create(OWNER, order).id.shard for order in orders) >= 16
