"""What pausing, resuming and stopping change in a record, as it was last read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import StateConflict
from duetime.domain.tasks.task import RequestedAction

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis


def stronger(action: RequestedAction, task: Task) -> TaskChanges:
    """Of what is requested now and what was requested before, what prevails: a pause does not replace a cancel."""
    return {"requested_action": RequestedAction.CANCEL if task.requested_action is RequestedAction.CANCEL else action}


def pause_taken_back(task: Task) -> TaskChanges:
    """What is asked no more; somebody else may have taken it back meanwhile, or have asked the attempt to stop."""
    if task.requested_action is not RequestedAction.PAUSE:
        raise StateConflict(task, "resumed")
    return {"requested_action": None}


def goes_on_at(task: Task) -> Millis:
    """When a paused task goes on."""
    return task.next_at if task.waiting_for is None else task.due_at


def no_pause(task: Task) -> TaskChanges:
    """What a task that is paused or goes on need not be asked any more; what is to stop for good still is."""
    return {"requested_action": None} if task.requested_action is RequestedAction.PAUSE else {}
