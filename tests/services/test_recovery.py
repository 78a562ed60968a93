"""Recovery scans: each queue is judged by itself, and none holds up another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import Unavailable
from duetime.domain.limits import RECOVERY_SCAN_BACKLOG, RECOVERY_SCAN_DELAYS
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Priority, PullTarget, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from duetime.services.tasks.create import IdempotencyKey, Order
from tests.virtual.world import OWNER, PULLED, START, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

LONG = TaskSpec("bulk", priority=Priority.LOW)
LOST = TaskSpec("urgent", priority=Priority.HIGH)
LONG_PULLED = TaskSpec(PULLED, target=PullTarget())


def _backlog(world: World, spec: TaskSpec) -> Task:
    """A queue that nobody takes from, longer than a scan may add to."""
    receive = world.queues.receive_batch
    world.queues.receive_batch = (  # type: ignore[method-assign]  # low workers are all busy
        lambda priority, limit=10: [] if priority is Priority.LOW else receive(priority, limit)
    )
    world.queues.next_visible_at = lambda: world.time.now() + 10 * SECOND  # type: ignore[method-assign]
    task = world.create(spec)
    world.queues.send([Outgoing(message_for(task), 0)] * (RECOVERY_SCAN_BACKLOG + 1))
    return task


def _lose(world: World, spec: TaskSpec, until: Millis) -> Task:
    """A task whose messages are all lost until some time: the queue acknowledges them, and has them no more."""
    send = world.queues.send

    def lose(outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        kept = [each for each in outgoing if each.message.priority is not spec.priority or world.time.now() >= until]
        return send(kept)

    world.queues.send = lose  # type: ignore[method-assign]
    return world.create(spec)


@pytest.mark.parametrize("long", [LONG, LONG_PULLED])
@pytest.mark.parametrize("scan", [0, 1])
def test_a_long_queue_holds_up_the_recovery_of_no_other(long: TaskSpec, scan: int) -> None:
    """A task whose messages were lost runs after the next scan, though another queue has been long since before."""
    world = World()
    _backlog(world, long)
    world.pass_time(2 * MINUTE)
    lost_until = world.time.now() + RECOVERY_SCAN_DELAYS[scan] - MINUTE
    task = _lose(world, LOST, lost_until)
    world.time.run_until(lost_until)
    world.pass_time(4 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED


def test_what_waits_for_a_long_queue_is_recovered_when_it_is_short() -> None:
    """Its scan goes on from where it was left, however far the others have come by then."""
    world = World()
    receive = world.queues.receive_batch
    _backlog(world, LONG)
    world.queues.refuses = lambda: True
    task = world.create(LONG)
    world.queues.refuses = lambda: False
    world.pass_time(2 * HOUR)
    assert world.get(task).state is State.SCHEDULED
    assert world.facts.counts["patrols_waiting"] > 0
    world.queues.receive_batch = receive  # type: ignore[method-assign]
    world.pass_time(5 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED
    assert not world.cursors.take(0, "test", world.time.now(), world.time.now(), None).lagging  # type: ignore[arg-type,union-attr]


def test_a_queue_that_takes_no_messages_holds_up_no_other() -> None:
    """Tasks of other queues are dispatched meanwhile; its own are when it takes messages again."""
    world = World()
    send = world.queues.send

    def refuse(outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        low = [each for each in outgoing if each.message.priority is Priority.LOW]
        return low + send([each for each in outgoing if each not in low])

    world.queues.send = refuse  # type: ignore[method-assign]
    low = [world.create(TaskSpec("bulk", delay=delay * MINUTE, priority=Priority.LOW)) for delay in (6, 9)]
    others = [world.create(TaskSpec("report", delay=delay * MINUTE)) for delay in (6, 9, 20)]
    world.pass_time(22 * MINUTE)
    assert [world.get(task).lateness for task in others] == [0, 0, 0]
    assert [world.get(task).state for task in low] == [State.SCHEDULED] * 2
    world.queues.send = send  # type: ignore[method-assign]
    world.pass_time(3 * MINUTE)
    assert [world.get(task).state for task in low] == [State.SUCCEEDED] * 2


def test_a_scan_sends_nothing_that_was_not_dispatched_yet() -> None:
    """While a queue's tasks wait for their first reading, no recovery scan sends them a second time."""
    world = World()
    tasks = [world.create(TaskSpec("report", delay=6 * MINUTE)) for _ in range(30)]
    world.queues.refuses = lambda: world.time.now() < tasks[0].next_at + 10 * MINUTE
    world.pass_time(20 * MINUTE)
    assert {world.get(task).state for task in tasks} == {State.SUCCEEDED}
    assert len(world.queues.sent) == len(tasks)


def test_a_scan_that_cannot_send_does_not_move_on() -> None:
    """What a recovery scan finds while its queue takes no messages is sent by the same scan as soon as it does."""
    world = World()
    world.queues.refuses = lambda: world.time.now() < START + 20 * MINUTE
    task = world.create(LOST)
    world.time.run_until(START + 23 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED


def test_a_creation_that_comes_after_its_own_minute_is_not_lost() -> None:
    """A repeated request makes the record long after the minute in its id: a timer lies where somebody still looks."""
    world = World()
    world.pass_time(MINUTE)
    order = Order(LOST, key=IdempotencyKey("once", "hash"))
    world.tasks.creatable = False
    with pytest.raises(Unavailable):
        world.task_creator.create(OWNER, order)
    world.tasks.creatable = True
    world.pass_time(20 * MINUTE)
    world.queues.refuses = lambda: True
    task = world.task_creator.create(OWNER, order)
    world.queues.refuses = lambda: False
    world.pass_time(4 * MINUTE)
    assert world.get(task).state is State.SUCCEEDED
