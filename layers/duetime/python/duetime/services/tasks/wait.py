"""Waiting for the outcome of a task, for a client that would rather block than ask again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import TaskNotFound
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock
    from duetime.ports.tasks import TaskStore
    from duetime.services.long_poll_limit import LongPolls

FIRST_PAUSE: Millis = 100
LONGEST_PAUSE: Millis = SECOND
"""Each read of the record costs: pauses double from the first to the longest."""


@dataclass(frozen=True, slots=True)
class OutcomeWaiter:
    """Waits for outcomes."""

    tasks: TaskStore
    clock: Clock
    long_polls: LongPolls

    def wait(self, task: Task, limit: Millis) -> Task:
        """Check a task again and again until it has an outcome, or so many milliseconds are over.

        Where as many requests wait already as may, it does not.

        Returns:
            The task as it was seen last, with its outcome or without.

        Raises:
            TaskNotFound: it was deleted meanwhile.
        """
        if task.is_terminal:
            return task
        with self.long_polls.place(limit) as may_wait:
            return self._seen(task, limit) if may_wait else task

    def _seen(self, task: Task, limit: Millis) -> Task:
        until = self.clock.now() + limit
        pause = FIRST_PAUSE
        while not task.is_terminal and (now := self.clock.now()) < until:
            self.clock.sleep_until(min(now + pause, until))
            task = self.tasks.read(task.id) or task
            pause = min(2 * pause, LONGEST_PAUSE)
        if task.erased:
            raise TaskNotFound(task.id)
        return task
