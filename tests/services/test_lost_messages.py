"""Messages that are lost, doubled or out of date."""

from __future__ import annotations

import pytest

from duetime.domain.dispatch.timers import Timer
from duetime.domain.errors import Unavailable
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Priority, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from tests.virtual.world import OWNER, START, World

RECOVERY = 3 * MINUTE
"""After a fault a task is late by no more than this, plus the lease."""


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
    changed = world.task_updater.change(OWNER, task.id, TaskChange({}, delay=10 * MINUTE), None)
    world.pass_time(MINUTE)
    assert world.get(task) == changed
    assert world.queues.next_visible_at() is None
    world.pass_time(11 * MINUTE)
    assert [effect.at for effect in world.effects] == pytest.approx([changed.due_at], abs=20)


def test_a_due_time_changed_forth_and_back_runs_once() -> None:
    """Ten minutes later, then an hour, then back to a minute: one run, at the last word."""
    world = World()
    task = world.create(TaskSpec("report", delay=5 * MINUTE))
    for delay in (15 * MINUTE, HOUR, MINUTE):
        changed = world.task_updater.change(OWNER, task.id, TaskChange({}, delay=delay), None)
    world.pass_time(2 * HOUR)
    assert [effect.at for effect in world.effects] == pytest.approx([changed.due_at], abs=20)


def test_a_wake_without_its_record_change_does_no_harm() -> None:
    """A change that dies after the wake leaves the task at its old due time: it runs once, then."""
    world = World()
    task = world.create(TaskSpec("report", delay=30 * MINUTE))
    world.tasks.add_timer(Timer(task.id, 1, START + 10 * MINUTE, Priority.NORMAL, OWNER))
    world.pass_time(HOUR)
    assert [effect.at for effect in world.effects] == pytest.approx([task.due_at], abs=20)


def test_a_change_that_cannot_be_reminded_of_is_not_made() -> None:
    """The reminder is written before the record: else a change that dies between the two would leave it to nobody."""
    world = World()
    task = world.create(TaskSpec("report", delay=30 * MINUTE))
    before = world.get(task)

    def away(timer: Timer) -> None:
        raise Unavailable(f"away at {timer.at}")

    world.tasks.add_timer = away  # type: ignore[method-assign]  # no reminder can be written
    with pytest.raises(Unavailable):
        world.task_updater.change(OWNER, task.id, TaskChange({}, delay=10 * MINUTE), None)
    assert world.get(task) == before


def test_a_priority_change_moves_the_task_to_the_other_queue() -> None:
    """The message on the old queue is of an older turn."""
    world = World()
    task = world.create(TaskSpec("report", delay=MINUTE))
    world.task_updater.change(OWNER, task.id, TaskChange({"priority": Priority.HIGH}), None)
    world.pass_time(2 * MINUTE)
    assert len(world.effects) == 1
    assert world.queues.sent[-1].message.priority is Priority.HIGH
