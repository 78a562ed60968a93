"""Starts, shows and cancels bulk operations, and ensures that each operation runs to its end.

The order of the writes makes a start safe. The timer is written first, for a minute that the trigger has not read yet.
The operation is written next. The direct invocation comes last, and only saves time. Each timer that the trigger reads
sets the next timer until the operation has ended, so an executor may crash at any time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.bulk import BulkKind, BulkOperation, BulkState, Latest
from duetime.domain.dispatch.enqueue_plan import BulkTimer, first_unread
from duetime.domain.errors import BulkEnded, BulkNotFound, BulkOfTopology, RecordUnreadable, Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.limits import BULK_RETENTION, MAX_BULK_PAGE, MAX_DEADLINE_SECONDS
from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import BulkStarter, Stores
    from duetime.services.enqueue import Shards

_TRIES = 5
_TAIL_BITS = 64
REPLACED = "a later request replaced it"


@frozen
class BulkOperations:
    """Manages bulk operations; `BulkExecutor` runs them.

    Attributes:
        shards: how many shards ids are spread over.
        look_ahead: how far ahead of the clock the trigger reads, in milliseconds.
    """

    stores: Stores
    starter: BulkStarter
    runtime: Runtime
    shards: Shards
    look_ahead: Millis

    def new(self, owner: str, kind: BulkKind, topology: TaskId | None = None) -> BulkOperation:
        """A new operation, not stored yet."""
        now = self.runtime.now()
        operation_id = TaskId.of(
            now, self.runtime.random_source.below(self.shards.count()), self.runtime.random_source.bits(_TAIL_BITS)
        )
        return BulkOperation(operation_id, owner, kind, now, topology)

    def start(self, operation: BulkOperation) -> BulkOperation:
        """Store an operation and start it; an operation with the same id that is already stored stays unchanged."""
        self._set_timer(operation.id)
        if not self.stores.bulk.save(operation, self.runtime.nonce()):
            return self.stores.bulk.read(operation.id) or operation
        self.starter.start(operation.id)
        return replace(operation, version=operation.version + 1)

    def get(self, owner: str, operation_id: TaskId) -> BulkOperation:
        """Read one operation.

        Raises:
            BulkNotFound: the operation does not exist, or belongs to another owner.
        """
        operation = self.stores.bulk.read(operation_id)
        if operation is None or operation.owner != owner:
            raise BulkNotFound(operation_id)
        return operation

    def list(self, owner: str) -> list[BulkOperation]:
        """An owner's latest operations, newest first."""
        return self.stores.bulk.list(owner, MAX_BULK_PAGE)

    def cancel(self, owner: str, operation_id: TaskId) -> BulkOperation:
        """Stop an operation; cancelling it again changes nothing.

        Raises:
            BulkNotFound: the operation does not exist, or belongs to another owner.
            BulkEnded: the operation ended without being cancelled.
            BulkOfTopology: the operation belongs to a topology request; only another request on that topology stops it.
        """
        for _ in range(_TRIES):
            operation = self.get(owner, operation_id)
            if operation.topology is not None:
                raise BulkOfTopology(operation_id)
            if operation.state is BulkState.SUCCEEDED:
                raise BulkEnded(operation_id)
            stopped = self._stopped(operation) if operation.is_running else operation
            if stopped is not None:
                return stopped
        raise Unavailable(f"the operation {operation_id} has too many concurrent writes")

    def resume(self, timers: Sequence[BulkTimer]) -> bool:
        """Start the operations whose timers the trigger has read; returns whether all operations could be started."""
        try:
            for operation_id in sorted({timer.operation for timer in timers}):
                self._resume(operation_id)
        except Unavailable as error:
            self.runtime.telemetry.note("bulk operations could not be started", error=str(error))
            return False
        return True

    def latest_of(self, topology: TaskId) -> BulkOperation | None:
        """The latest operation of a topology; `None` if there was no operation, or its record has expired."""
        operation_id = self.stores.bulk.latest_of(topology).operation_id
        return None if operation_id is None else self.stores.bulk.read(operation_id)

    def is_last_pause(self, topology: TaskId) -> bool:
        """Whether the latest known background operation on the topology is a pause of its nodes."""
        operation_id = self.stores.bulk.latest_of(topology).operation_id
        if operation_id is None:
            return False
        latest = self.stores.bulk.read(operation_id)
        # If the noted operation is missing, its requester may have crashed before storing it.
        return latest is None or latest.kind is BulkKind.PAUSE

    def replace_other(self, topology: TaskId, kind: BulkKind) -> BulkOperation | None:
        """Stop the operation that an earlier request started on a topology, unless the operation is of the given kind.

        Returns:
            The operation that was stopped, or that was asked for another pass and continues; `None` if no operation was
            running.
        """
        for _ in range(_TRIES):
            running = self.latest_of(topology)
            if running is None or not running.is_running or running.kind is BulkKind.END:
                return None
            if running.kind is kind:
                if self.stores.bulk.save(running, self.runtime.nonce()):
                    return running
            elif (stopped := self._stopped(running, REPLACED)) is not None:
                return stopped
        raise Unavailable(f"the operation on {topology} has too many concurrent writes")

    def start_on(self, owner: str, topology: TaskId, kind: BulkKind, after: BulkOperation | None) -> BulkOperation:
        """Start the operation for a request on a topology.

        Args:
            owner: who sent the request.
            topology: the topology.
            kind: the kind of request.
            after: the replaced operation, which may still change nodes until its lease ends.
        """
        not_before = 0 if after is None else after.leased_until + MAX_CLOCK_DIFFERENCE
        operation = replace(self.new(owner, kind, topology), not_complete_before=not_before)
        for _ in range(_TRIES):
            if self._note_latest(self.stores.bulk.latest_of(topology), operation.id):
                return self.start(operation)
        raise Unavailable(f"operations on {topology} have too many concurrent starts")

    def end_topology(self, owner: str, topology: TaskId) -> None:
        """End the rest of a topology in the background; an operation that already does so makes another pass."""
        latest = self.stores.bulk.latest_of(topology)
        running = None if latest.operation_id is None else self.stores.bulk.read(latest.operation_id)
        if running is not None and running.is_running and running.kind is BulkKind.END:
            # This makes the operation's last write fail, so that the operation makes another pass. If this write is
            # rejected while the operation still runs, another request has notified the operation, or the operation has
            # stored a step; in both cases the operation checks every node again before it ends.
            if self.stores.bulk.save(running, self.runtime.nonce()):
                return
            running = self.stores.bulk.read(running.id)
            if running is not None and running.is_running:
                return
            latest = self.stores.bulk.latest_of(topology)
        operation = self.new(owner, BulkKind.END, topology)
        if self._note_latest(latest, operation.id):
            self.start(operation)

    def _note_latest(self, latest: Latest, operation_id: TaskId) -> bool:
        # The note of the latest operation is kept for as long as a topology can run.
        expires_at = self.runtime.now() + MAX_DEADLINE_SECONDS * SECOND + BULK_RETENTION
        return self.stores.bulk.set_latest(replace(latest, operation_id=operation_id), self.runtime.nonce(), expires_at)

    def _stopped(self, operation: BulkOperation, reason: str = "") -> BulkOperation | None:
        """The operation after stopping it; `None` if a concurrent write came first."""
        stopped = operation.ended(BulkState.CANCELLED, self.runtime.now(), reason)
        if not self.stores.bulk.save(stopped, self.runtime.nonce()):
            return None
        return replace(stopped, version=stopped.version + 1)

    def _resume(self, operation_id: TaskId) -> None:
        try:
            operation = self.stores.bulk.read(operation_id)
        except RecordUnreadable as error:
            self.runtime.telemetry.note("a bulk operation cannot be read", error=str(error))
            return
        if operation is None or not operation.is_running:
            return
        self._set_timer(operation_id)
        if operation.is_free(self.runtime.now()):
            self.starter.start(operation_id)

    def _set_timer(self, operation_id: TaskId) -> None:
        at = first_unread(self.runtime.now(), self.look_ahead)
        self.stores.tasks.add_bulk_timer(BulkTimer(operation_id, at))
