from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE, SECOND

if TYPE_CHECKING:
    from tests.functions.stack import Stack

TICK = {"version": "0", "source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": "{}"}


def test_a_tick_sends_what_falls_due_within_the_look_ahead(stack: Stack) -> None:
    """A tick sends tasks that fall due within the look-ahead, with a delay. The next tick does not send them again."""
    for index in range(5):
        stack.create(TaskSpec("report", delay=8 * MINUTE + index * SECOND))
    stack.call("trigger", TICK)
    assert stack.waiting(Priority.NORMAL)["delayed"] == 0
    stack.clock.at += 5 * MINUTE
    stack.call("trigger", TICK)
    assert stack.waiting(Priority.NORMAL)["delayed"] == 5
    stack.call("trigger", TICK)
    assert stack.waiting(Priority.NORMAL)["delayed"] == 5


def test_a_tick_for_one_group_sends_only_the_tasks_of_that_group(stack: Stack) -> None:
    """A tick whose event names a group sends only the tasks of that group."""
    stack.create(TaskSpec("report", delay=8 * MINUTE))
    stack.clock.at += 6 * MINUTE
    stack.call("trigger", {"group": 7})
    assert stack.waiting(Priority.NORMAL)["delayed"] == 0
    stack.call("trigger", {"group": 0})
    assert stack.waiting(Priority.NORMAL)["delayed"] == 1


def test_each_priority_has_its_own_queue(stack: Stack) -> None:
    """Tasks of high, normal and low priority have separate queues, so that no priority starves another priority."""
    for priority in Priority:
        stack.create(TaskSpec("report", delay=5 * MINUTE, priority=priority))
    stack.clock.at += 4 * MINUTE
    stack.call("trigger", TICK)
    assert [stack.waiting(priority)["delayed"] for priority in Priority] == [1, 1, 1]
