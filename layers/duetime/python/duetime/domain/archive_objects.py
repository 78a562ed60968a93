"""Groups the records of ended tasks into archive objects.

An object holds tasks that ended on the same day and are kept for the same time. An object's name depends only on its
tasks, so a redelivered batch is written to the same object. If the stream redelivers records in different batches, the
records are also written to other objects, and readers of the archive deduplicate tasks by id and version.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from duetime.domain.times import DAY, to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import RetentionPolicy

TASKS_PREFIX = "archive/"
"""Key prefix of objects that hold tasks."""
UNREADABLE_PREFIX = "unreadable/"
"""Key prefix of objects that hold unreadable records."""
KEPT_DAYS_TAG = "kept-days"
"""Tag of objects that a lifecycle rule removes earlier than other objects; the tag's value is the number of days for
which an object is kept."""
_DIGEST_BYTES = 12
_KEPT = re.compile(r"-([0-9]+)d\.jsonl\.gz$")


@frozen
class RemovedTask:
    """A record that TTL removed.

    Attributes:
        task: the last version of the record.
        removed_at: when TTL removed the record, in whole seconds.
    """

    task: Task
    removed_at: Millis

    @property
    def day(self) -> str:
        """The UTC day when the task ended or, if its follow-ups never completed, when its record was removed."""
        return to_iso(self.task.finished_at or self.removed_at)[:10]


@frozen
class UnreadableRecord:
    """A removed record that this code cannot read, as the JSON text that the stream delivered."""

    text: str

    @property
    def key(self) -> str:
        """The object key under which the record is stored, because later code may be able to read it."""
        return f"{UNREADABLE_PREFIX}{_digest([self.text])}.jsonl.gz"


@frozen
class RemovedBatch:
    """The removed records in one delivery from the stream."""

    tasks: Sequence[RemovedTask] = ()
    unreadable: Sequence[UnreadableRecord] = ()


@frozen
class ArchiveObject:
    """One archive object.

    Attributes:
        day: the UTC day on which its tasks ended.
        tasks: at least one task, in order of removal.
        kept_days: how many days the object is kept; `None` for the archive's general period.
    """

    day: str
    tasks: Sequence[Task]
    kept_days: int | None = None

    @property
    def key(self) -> str:
        """The object's key in the bucket."""
        digest = _digest(f"{task.id} {task.version}" for task in self.tasks)
        kept = "" if self.kept_days is None else f"-{self.kept_days}d"
        return f"{TASKS_PREFIX}day={self.day}/{self.tasks[0].id}-{digest}{kept}.jsonl.gz"


def kept_days_of(key: str) -> int | None:
    """How many days the object with a key is kept; `None` for the archive's general period."""
    found = _KEPT.search(key)
    return None if found is None else int(found[1])


def objects_of(removed: Iterable[RemovedTask], policy: RetentionPolicy) -> list[ArchiveObject]:
    """Groups removed records into archive objects.

    Tasks that their user deleted, and tasks whose types are not archived, are left out.

    Args:
        removed: the records.
        policy: how long the archive keeps tasks, by type.
    """
    groups: dict[tuple[str, int], list[Task]] = defaultdict(list)
    for each in removed:
        days = policy.of(each.task.type) // DAY
        if days and not each.task.erased:
            groups[each.day, days].append(each.task)
    longest = policy.longest // DAY
    return [
        ArchiveObject(day, tasks, days if days < longest else None) for (day, days), tasks in sorted(groups.items())
    ]


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        digest.update(f"{text}\n".encode())
    return digest.hexdigest()
