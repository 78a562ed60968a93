"""Bulk operations and their requests.

One request covers many tasks, which one lease holder at a time processes page by page. A purge removes as much as
possible of the data that is stored for some tasks or an owner, and its result is a receipt.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import BULK_RETENTION, MAX_PAGE, PURGE_RETENTION, SIGNAL_LIFE
from duetime.domain.operating_parameters import (
    BULK_LEASE,
    BULK_STEP,
    DELETION_MARKER_LIFE,
    EVENT_WAITER_KEPT,
    MAX_CLOCK_DIFFERENCE,
    RATE_LIFE,
)
from duetime.domain.tasks.action_history import BY_SYSTEM
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.times import DAY
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.errors import RequestError
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.creation import IdempotencyKey, TaskUpdate
    from duetime.domain.tasks.event_waits import Signal
    from duetime.domain.tasks.task import Content, Task
    from duetime.domain.times import Millis

OPERATION = "operation"
"""Field of the function's event that contains the operation's id."""
BACKUP_RETENTION = 35 * DAY
"""How long a table can be restored to a point in time (Source: DynamoDB Developer Guide, "Point-in-time recovery")."""
STREAM_RETENTION = DAY
"""How long a removed record can wait to be archived (Source: DynamoDB Developer Guide, "DynamoDB Streams")."""


class BulkKind(StrEnum):
    """The action on each task.

    Attributes:
        END: cancels, stops or rolls back the open nodes of a topology that has failed or ended.
        DELETE: erases the ended tasks that match a filter, or the nodes of a deleted topology.
        SIGNAL: wakes the tasks that wait for an event.
        PURGE: removes all data that is stored for some tasks or an owner.
    """

    CANCEL = "cancel"
    UPDATE = "update"
    RETRY = "retry"
    PAUSE = "pause"
    RESUME = "resume"
    END = "end"
    DELETE = "delete"
    SIGNAL = "signal"
    PURGE = "purge"

    @property
    def is_of_schedules(self) -> bool:
        """Whether an operation of this kind with a filter acts on schedules.

        Filters for tasks do not support these kinds.
        """
        return self in {BulkKind.PAUSE, BulkKind.RESUME}


class BulkState(StrEnum):
    """The state of a bulk operation."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"


@frozen
class BulkProgress:
    """Progress of an operation.

    Attributes:
        after: the last examined task; processing continues after this task.
        after_name: the last examined schedule, for operations on schedules; for a purge, the last examined archive
            object.
        examined: number of tasks that were read.
        matched: number of examined tasks that match.
        affected: number of matched tasks that were changed, cancelled, paused and so on.
        refused: number of matched tasks that could not be changed, by name of the error.
        next_at: the earliest time of the next step.
        is_complete: whether all tasks are processed.
        stage: stage of a purge; empty before the first stage.
        removed: how much data a purge has removed, by kind.
    """

    after: TaskId | None = None
    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    next_at: Millis = 0
    is_complete: bool = False
    after_name: str = ""
    stage: str = ""
    removed: Mapping[str, int] = field(default_factory=dict)

    def plus(self, *, examined: int = 0, matched: int = 0, affected: int = 0, refused: list[str]) -> BulkProgress:
        """Adds to the counts."""
        return replace(
            self,
            examined=self.examined + examined,
            matched=self.matched + matched,
            affected=self.affected + affected,
            refused=Counter(self.refused) + Counter(refused),
        )


@frozen
class BulkOperation:
    """A bulk operation as stored.

    Attributes:
        id: an id in the form of a task id; the id's shard also contains the operation's timers.
        topology: the topology whose nodes are processed; `None` for an operation with a filter.
        request: the original request; `None` for a topology.
        holder: the process that runs the operation; empty before the first holder.
        epoch: number of holders so far.
        leased_until: when the holder's lease ends unless the holder saves progress before then.
        not_complete_before: earliest time at which this operation can be complete; until then, an operation that it
            replaces may still change tasks.
        reason: why the operation was cancelled, unless its user cancelled it.
        actor: name of the requester, if not the owner.
        subject: owner whose data a purge removes, if not the requester.
        until: excludes tasks that were created or ended after this time; `None` for no limit. If a request is repeated
            with its idempotency key before the operation was stored, the time of the first request applies.
        version: number of writes; 0 before the first write.
    """

    id: TaskId
    owner: str
    kind: BulkKind
    created_at: Millis
    topology: TaskId | None = None
    request: Content | None = None
    progress: BulkProgress = field(default_factory=BulkProgress)
    state: BulkState = BulkState.RUNNING
    holder: str = ""
    epoch: int = 0
    leased_until: Millis = 0
    not_complete_before: Millis = 0
    finished_at: Millis | None = None
    reason: str = ""
    actor: str = ""
    subject: str = ""
    until: Millis | None = None
    version: int = 0

    @property
    def is_running(self) -> bool:
        """Whether the operation is still running."""
        return self.state is BulkState.RUNNING

    @property
    def expires_at(self) -> Millis | None:
        """When the operation expires; `None` while it runs."""
        kept = PURGE_RETENTION if self.kind is BulkKind.PURGE else BULK_RETENTION
        return None if self.finished_at is None else self.finished_at + kept

    def is_free(self, now: Millis) -> bool:
        """Whether another process may take the operation over, because the lease has ended by every process's clock."""
        return self.is_running and self.leased_until + MAX_CLOCK_DIFFERENCE <= now

    def taken(self, holder: str, now: Millis) -> BulkOperation:
        """A copy with a new holder."""
        return replace(self, holder=holder, epoch=self.epoch + 1, leased_until=now + BULK_LEASE)

    def renewed(self, progress: BulkProgress, now: Millis) -> BulkOperation:
        """A copy with new progress and a renewed lease."""
        return replace(self, progress=progress, leased_until=now + BULK_LEASE)

    def released(self, now: Millis) -> BulkOperation:
        """A copy without a lease, which any process may take over at once."""
        return replace(self, leased_until=min(self.leased_until, now - MAX_CLOCK_DIFFERENCE))

    def ended(self, state: BulkState, now: Millis, reason: str = "") -> BulkOperation:
        """A copy in its final state; a purge's selection is also removed."""
        request = None if self.kind is BulkKind.PURGE else self.request
        return replace(self, state=state, finished_at=now, reason=reason, request=request)


@frozen
class Latest:
    """The latest operation that was started on a topology.

    Attributes:
        operation_id: the operation's id; `None` if there was no operation.
        version: number of writes of this record; 0 before the first write.
    """

    topology: TaskId
    operation_id: TaskId | None = None
    version: int = 0


@frozen
class FilterAction:
    """Selects an owner's tasks, and limits how many tasks are processed in one piece.

    Attributes:
        after: id of the last examined task; the bulk operation continues after this task.
        after_name: name of the last examined schedule, if the operation is on schedules.
        limit: maximum number of matched tasks that are processed, including tasks that turn out to be unchangeable.
        per_second: maximum number of these tasks per second; `None` for no limit.
        is_dry: whether to only count tasks and change nothing.
        until: exclude tasks that were created or ended after this time; `None` for no limit.
        budget: maximum duration of one piece.
    """

    wanted: TaskFilter
    after: TaskId | None = None
    descending: bool = True
    limit: int = MAX_PAGE
    per_second: float | None = None
    is_dry: bool = False
    until: Millis | None = None
    budget: Millis = BULK_STEP
    after_name: str = ""

    def means(self, task: Task) -> bool:
        """Whether a task matches the filter; an ended task matches only if the filter names its state."""
        is_asked_for = not task.is_terminal or task.state in self.wanted.states
        return is_asked_for and self.wanted.matches(task) and self._was_there(task)

    def _was_there(self, task: Task) -> bool:
        """Whether a dry run at `until` could have counted the task, because it existed then and has not ended since."""
        if self.until is None:
            return True
        return task.created_at <= self.until and (task.finished_at is None or task.finished_at <= self.until)


@frozen
class BulkRequest:
    """A user's request.

    Attributes:
        text: the original body in UTF-8, which is decoded again for each later piece.
        force: for a cancellation, whether to stop running tasks.
        update: for an update, the new values.
        signal: the signal to send, if any; if there is a signal, the filter is not used.
        by: who sent the request, and why.
    """

    kind: BulkKind
    action: FilterAction
    text: bytes = b""
    force: bool = False
    update: TaskUpdate | None = None
    by: Attribution = BY_SYSTEM
    signal: Signal | None = None


@frozen
class EventRequest:
    """An event's request to cancel tasks, or to wake tasks that wait for the event.

    Attributes:
        request: selects the tasks.
        key: identifies repeated deliveries.
    """

    request: BulkRequest
    key: IdempotencyKey


@frozen
class FilterResult:
    """The result of one piece of a bulk operation.

    Attributes:
        examined: number of tasks that were checked.
        matched: number of examined tasks that match the filter; an ended task matches only if the filter names its
            state.
        affected: number of matched tasks that were cancelled, asked to stop, updated, retried, or erased.
        refused: number of matched tasks that could not be changed, by error.
        after: the id after which to continue; `None` at the end.
        after_name: the name of the schedule after which to continue; empty at the end, or for tasks.
    """

    examined: int
    matched: int
    affected: int
    refused: Mapping[type[RequestError], int]
    after: TaskId | None
    after_name: str = ""


class PurgeStage(StrEnum):
    """A stage of a purge, in order.

    Attributes:
        RESOURCES: an owner's schedules, calendars, topology definitions, groups, type defaults, switch, and the rates
            that the owner has set.
        TASKS: the first pass over the tasks.
        REMAINDER: another pass over the tasks that the previous pass could not erase.
        ARCHIVE: rows in the archive.
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
    """Selects the data to purge.

    Attributes:
        owner: owner of the tasks.
        task_ids: the tasks; empty for all tasks that match the filter.
        wanted: the filter; without conditions, the filter matches every task.
        is_whole: whether the owner's schedules and other resources are also removed.
        cancels: whether open tasks are cancelled first and then purged; otherwise, open tasks are not purged.
        per_second: maximum number of tasks per second; `None` for no limit.
        by: who sent the request, and why.
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
        """The first stage of the purge."""
        return PurgeStage.RESOURCES if self.is_whole else PurgeStage.TASKS


class LeftData(StrEnum):
    """A kind of data that a purge cannot remove at once.

    Attributes:
        RECORDS: records of purged tasks, which contain no user data, only id, owner, type, state and times. These
            records keep a late request, event or attempt from creating the task again.
        KEYS: idempotency keys with a hash of the request's body; unique and ordered keys, which TTL removes within
            days; keys of locks and rates, which TTL removes after they are no longer used.
        SIGNALS: signals with their payloads, and the keys of events that tasks have waited for.
        NAMES: deletion markers with the names of schedules, calendars and topology definitions.
        STREAM: records that had expired but were not archived yet; to remove their archive rows, run another purge
            after the given time.
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
    """One kind of data that is left after a purge, and the latest time at which it is removed."""

    kind: LeftData
    until: Millis


def leftovers(ended_at: Millis, retention: Millis, *, is_archived: bool) -> tuple[Leftover, ...]:
    """Returns the data that is left after a purge.

    Args:
        ended_at: when the purge ended.
        retention: how long ended tasks are kept, which is the longest life of an idempotency key, in milliseconds.
        is_archived: whether the deployment has an archive.
    """
    lives = {
        LeftData.RECORDS: retention,
        LeftData.KEYS: max(retention, RATE_LIFE),
        LeftData.SIGNALS: SIGNAL_LIFE + EVENT_WAITER_KEPT,
        LeftData.NAMES: DELETION_MARKER_LIFE,
        **({LeftData.STREAM: STREAM_RETENTION} if is_archived else {}),
        LeftData.BACKUPS: BACKUP_RETENTION,
    }
    return tuple(Leftover(kind, ended_at + life) for kind, life in lives.items())
