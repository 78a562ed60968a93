"""Purges: everything that is stored of some tasks, or of an owner, is removed as far as it can be, with a receipt."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import SIGNAL_LIFE
from duetime.domain.operating_parameters import DELETION_MARKER_LIFE, EVENT_WAITER_KEPT
from duetime.domain.tasks.action_history import BY_SYSTEM
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.times import DAY
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.times import Millis

BACKUP_RETENTION = 35 * DAY
"""How long a table can be restored to a point in time (Source: DynamoDB Developer Guide, "Point-in-time recovery")."""
STREAM_RETENTION = DAY
"""How long a removed record may wait for its archiving (Source: DynamoDB Developer Guide, "DynamoDB Streams")."""


class PurgeStage(StrEnum):
    """A stage of a purge, in order.

    Attributes:
        RESOURCES: schedules, calendars, topology definitions, defaults of types, the switch and the set rates of an
            owner.
        TASKS: the first pass over the tasks.
        REMAINDER: a further pass over tasks that could not be erased in the one before.
        ARCHIVE: rows of the archive.
    """

    RESOURCES = "resources"
    TASKS = "tasks"
    REMAINDER = "remainder"
    ARCHIVE = "archive"


class Removed(StrEnum):
    """A kind of removed data in the receipt of a purge."""

    TASKS = "tasks"
    SCHEDULES = "schedules"
    CALENDARS = "calendars"
    DEFINITIONS = "topology_definitions"
    GROUPS = "groups"
    TYPE_DEFAULTS = "type_defaults"
    SWITCHES = "switches"
    RATES = "rates"
    ARCHIVE_ROWS = "archive_rows"


@frozen
class PurgeRequest:
    """Selects what is purged.

    Attributes:
        owner: owner of the tasks.
        task_ids: the tasks; empty for all that match the filter.
        wanted: the filter; one without conditions matches every task.
        is_whole: whether the owner's schedules and other resources are removed, too.
        cancels: whether open tasks are cancelled first; otherwise they are refused.
        per_second: maximum number of tasks per second; `None` for no limit.
        by: who requested it, and why.
    """

    owner: str
    task_ids: tuple[TaskId, ...] = ()
    wanted: TaskFilter = field(default_factory=TaskFilter)
    is_whole: bool = False
    cancels: bool = False
    per_second: float | None = None
    by: Attribution = BY_SYSTEM

    @property
    def first_stage(self) -> PurgeStage:
        """The stage that it begins with."""
        return PurgeStage.RESOURCES if self.is_whole else PurgeStage.TASKS


class LeftData(StrEnum):
    """A kind of data that a purge cannot remove at once.

    Attributes:
        RECORDS: records of purged tasks without their users' data: id, owner, type, state and times. They keep a late
            request, event or attempt from creating the task again.
        KEYS: idempotency keys with a hash of the request's body; unique and ordered keys, which TTL removes within
            days.
        SIGNALS: signals with their payloads, and the keys of events that tasks have waited for.
        NAMES: deletion markers with the names of schedules, calendars and topology definitions.
        STREAM: records that had expired, and were not archived yet; another purge after that time removes their rows.
        BACKUPS: the table's backups for point-in-time recovery.
    """

    RECORDS = "records"
    KEYS = "keys"
    SIGNALS = "signals"
    NAMES = "names"
    STREAM = "stream"
    BACKUPS = "backups"


@frozen
class Leftover:
    """Data that is left after a purge, and the latest time until which it is."""

    kind: LeftData
    until: Millis


def leftovers(ended_at: Millis, retention: Millis, *, is_archived: bool) -> tuple[Leftover, ...]:
    """The data that is left after a purge.

    Args:
        ended_at: when the purge ended.
        retention: how long ended tasks are kept, which is the longest life of an idempotency key, in milliseconds.
        is_archived: whether the deployment has an archive.
    """
    lives = {
        LeftData.RECORDS: retention,
        LeftData.KEYS: retention,
        LeftData.SIGNALS: SIGNAL_LIFE + EVENT_WAITER_KEPT,
        LeftData.NAMES: DELETION_MARKER_LIFE,
        **({LeftData.STREAM: STREAM_RETENTION} if is_archived else {}),
        LeftData.BACKUPS: BACKUP_RETENTION,
    }
    return tuple(Leftover(kind, ended_at + life) for kind, life in lives.items())
