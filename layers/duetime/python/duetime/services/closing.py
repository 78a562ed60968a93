"""What follows an outcome. Each step may be done twice: a crash in between has them all done again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.states import Move
from duetime.domain.writes import Guard, Write

if TYPE_CHECKING:
    from duetime.domain.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.stores import ContentStore, TaskStore
    from duetime.ports.surroundings import Chance, Clock


@dataclass(frozen=True, slots=True)
class Closing:
    """Does what follows an outcome, then sets `finished_at`.

    Attributes:
        retention: how long a finished task is kept, in milliseconds.
    """

    tasks: TaskStore
    contents: ContentStore
    clock: Clock
    chance: Chance
    retention: Millis

    def is_needed(self, task: Task) -> bool:
        """Whether anything follows this task's outcome; if not, `finished_at` goes with the outcome itself."""
        return bool(task.contents_outside)

    def close(self, task: Task) -> None:
        """Let what lies outside the record expire with it, then finish the task."""
        now = self.clock.now()
        expires = task.expires_at or now + self.retention
        for content in task.contents_outside:
            self.contents.expire(task.id, content, expires)
        sets = {"finished_at": now}
        self.tasks.apply(Write(task.id, Move.CLOSE, self.chance.nonce(), Guard(fence=task.fence), sets))
