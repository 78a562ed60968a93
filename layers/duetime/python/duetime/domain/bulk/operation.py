"""Bulk operations: one request that concerns many tasks, run page by page by whoever holds its lease."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import BULK_RETENTION
from duetime.domain.operating_parameters import BULK_LEASE, MAX_CLOCK_DIFFERENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.content import Content
    from duetime.domain.times import Millis


OPERATION = "operation"
"""In the event of the function that carries them out: the operation's id."""


class BulkKind(StrEnum):
    """What is done with each task.

    Attributes:
        END: what is left of a topology that has failed or ended is cancelled, stopped or rolled back.
        DELETE: the nodes of a topology that was deleted are erased.
    """

    CANCEL = "cancel"
    UPDATE = "update"
    RETRY = "retry"
    PAUSE = "pause"
    RESUME = "resume"
    END = "end"
    DELETE = "delete"

    @property
    def is_of_schedules(self) -> bool:
        """Whether it is done with schedules where a filter says with which; of tasks, a filter has no such kind."""
        return self in {BulkKind.PAUSE, BulkKind.RESUME}


class BulkState(StrEnum):
    """The state of a bulk operation."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """How far an operation has come.

    Attributes:
        after: the last task that was examined; it goes on behind it.
        after_name: the last schedule that was examined, where schedules are.
        examined: tasks that were read.
        matched: of those, tasks that are meant.
        affected: of those, tasks that were changed, cancelled, paused and so on.
        rejected: of those, tasks that could not be, by the name of what rejected them.
        next_at: when its pace allows the next task.
        is_complete: whether there is nothing left.
    """

    after: TaskId | None = None
    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    next_at: Millis = 0
    is_complete: bool = False
    after_name: str = ""

    def plus(self, *, examined: int = 0, matched: int = 0, affected: int = 0, refused: list[str]) -> BulkProgress:
        """The same with more tasks counted."""
        return replace(
            self,
            examined=self.examined + examined,
            matched=self.matched + matched,
            affected=self.affected + affected,
            refused=Counter(self.refused) + Counter(refused),
        )


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """A bulk operation as it is stored.

    Attributes:
        id: made as a task's id is; its shard says where its timers lie.
        topology: whose nodes are meant; `None` if a filter says which tasks are.
        request: what its user requested, as it was sent; of a topology there is none.
        holder: who carries it out; empty while nobody has begun.
        epoch: counts the holders.
        leased_until: when the holder's lease ends, if it saves nothing before.
        not_complete_before: an operation that this one replaces may still change tasks until then.
        reason: why it was cancelled, if not by its user.
        actor: the name of who requested it, if that is another than the owner.
        until: tasks that were created, or ended, later are not meant; `None` for no such limit. A request that is
            repeated by its key before anything of it was stored means what it meant when it came first.
        version: counts its writes; 0 while it is not stored.
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
    until: Millis | None = None
    version: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.state is BulkState.RUNNING

    @property
    def expires_at(self) -> Millis | None:
        """When it may be forgotten; `None` while it runs."""
        return None if self.finished_at is None else self.finished_at + BULK_RETENTION

    def is_free(self, now: Millis) -> bool:
        """Whether somebody else may take it over: its lease is over, by whoever's clock."""
        return self.is_running and self.leased_until + MAX_CLOCK_DIFFERENCE <= now

    def taken(self, holder: str, now: Millis) -> BulkOperation:
        """The same in the hands of a new holder."""
        return replace(self, holder=holder, epoch=self.epoch + 1, leased_until=now + BULK_LEASE)

    def renewed(self, progress: BulkProgress, now: Millis) -> BulkOperation:
        """The same, further, with the lease begun again."""
        return replace(self, progress=progress, leased_until=now + BULK_LEASE)

    def released(self, now: Millis) -> BulkOperation:
        """The same for anybody to take up at once."""
        return replace(self, leased_until=min(self.leased_until, now - MAX_CLOCK_DIFFERENCE))

    def ended(self, state: BulkState, now: Millis, reason: str = "") -> BulkOperation:
        """The same at its end."""
        return replace(self, state=state, finished_at=now, reason=reason)


@dataclass(frozen=True, slots=True)
class Latest:
    """Which operation was started last on a topology.

    Attributes:
        operation_id: `None` if there was none.
        version: counts the writes of this; 0 while it is not stored.
    """

    topology: TaskId
    operation_id: TaskId | None = None
    version: int = 0
