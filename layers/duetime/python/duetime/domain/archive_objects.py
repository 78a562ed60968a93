"""Which objects of the archive the records of ended tasks are written to.

An object holds tasks that ended on one day. Its name depends on nothing but which tasks it holds, so that a batch that
is delivered again is written to the same object. A batch that is delivered again in other parts is written to other
objects: whoever reads the archive takes each task, by its id and version, once.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

TASKS_PREFIX = "archive/"
"""What the keys of objects with tasks begin with."""
UNREADABLE_PREFIX = "unreadable/"
"""What the keys of objects with unreadable records begin with."""
_DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class RemovedTask:
    """A record that TTL removed.

    Attributes:
        task: the record, as it was last.
        removed_at: when it was removed, in whole seconds.
    """

    task: Task
    removed_at: Millis

    @property
    def day(self) -> str:
        """The day on which the task ended, in UTC; that of its removal if what follows its end was never done."""
        return to_iso(self.task.finished_at or self.removed_at)[:10]


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A removed record that this code cannot read, as JSON text, as the stream delivered it."""

    text: str

    @property
    def key(self) -> str:
        """The key of the object that keeps it, so that later code may read it."""
        return f"{UNREADABLE_PREFIX}{_digest([self.text])}.jsonl.gz"


@dataclass(frozen=True, slots=True)
class RemovedBatch:
    """What one delivery of the stream tells of removed records."""

    tasks: Sequence[RemovedTask] = ()
    unreadable: Sequence[UnreadableRecord] = ()


@dataclass(frozen=True, slots=True)
class ArchiveObject:
    """One object of the archive.

    Attributes:
        day: on which its tasks ended, in UTC.
        tasks: at least one, in the order in which they were removed.
    """

    day: str
    tasks: Sequence[Task]

    @property
    def key(self) -> str:
        """Its key in the bucket."""
        digest = _digest(f"{task.id} {task.version}" for task in self.tasks)
        return f"{TASKS_PREFIX}day={self.day}/{self.tasks[0].id}-{digest}.jsonl.gz"


def objects_of(removed: Iterable[RemovedTask]) -> list[ArchiveObject]:
    """The objects that removed records are written to. A task that its user deleted is in none."""
    by_day: dict[str, list[Task]] = defaultdict(list)
    for each in removed:
        if not each.task.erased:
            by_day[each.day].append(each.task)
    return [ArchiveObject(day, tasks) for day, tasks in sorted(by_day.items())]


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        digest.update(f"{text}\n".encode())
    return digest.hexdigest()
