"""Groups the records of ended tasks into objects of the archive.

An object holds tasks that ended on the same day. Its name depends only on its tasks, so a redelivered batch is written
to the same object. If the stream redelivers records in different batches, they are written to other objects: readers
of the archive deduplicate tasks by id and version.
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
"""Key prefix of objects that hold tasks."""
UNREADABLE_PREFIX = "unreadable/"
"""Key prefix of objects that hold unreadable records."""
_DIGEST_BYTES = 12


@dataclass(frozen=True, slots=True)
class RemovedTask:
    """A record that TTL removed.

    Attributes:
        task: the last version of the record.
        removed_at: when it was removed, in whole seconds.
    """

    task: Task
    removed_at: Millis

    @property
    def day(self) -> str:
        """The day on which the task ended, in UTC; the day of its removal if its follow-ups never completed."""
        return to_iso(self.task.finished_at or self.removed_at)[:10]


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A removed record that this code cannot read, as JSON text, as the stream delivered it."""

    text: str

    @property
    def key(self) -> str:
        """The object key of the record, which later code may be able to read."""
        return f"{UNREADABLE_PREFIX}{_digest([self.text])}.jsonl.gz"


@dataclass(frozen=True, slots=True)
class RemovedBatch:
    """The removed records in one delivery of the stream."""

    tasks: Sequence[RemovedTask] = ()
    unreadable: Sequence[UnreadableRecord] = ()


@dataclass(frozen=True, slots=True)
class ArchiveObject:
    """One object of the archive.

    Attributes:
        day: when its tasks ended, in UTC.
        tasks: at least one, in order of removal.
    """

    day: str
    tasks: Sequence[Task]

    @property
    def key(self) -> str:
        """Its key in the bucket."""
        digest = _digest(f"{task.id} {task.version}" for task in self.tasks)
        return f"{TASKS_PREFIX}day={self.day}/{self.tasks[0].id}-{digest}.jsonl.gz"


def objects_of(removed: Iterable[RemovedTask]) -> list[ArchiveObject]:
    """Groups removed records into archive objects. Tasks that their user deleted are left out."""
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
