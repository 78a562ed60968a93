"""Runs bulk operations step by step, under a lease."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.bulk import BulkKind, BulkState
from duetime.domain.errors import RequestError, Unavailable
from duetime.domain.operating_parameters import BULK_INVOCATION, BULK_STEP
from duetime.domain.times import SECOND
from duetime.services.bulk.manage import REPLACED
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.bulk import BulkOperation
    from duetime.domain.ids import TaskId
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import BulkSteps, BulkStore

_TRIES = 5


class Replaced(Exception):
    """A later request has replaced this operation."""


@frozen
class BulkExecutor:
    """Runs bulk operations. Two executors may briefly run the same operation, so any step may be run twice.

    Attributes:
        filter_steps: steps of operations on all tasks that match a filter.
        topology_steps: steps of operations on the nodes of a topology.
        purge_steps: returns the steps of purges, which few invocations need.
    """

    store: BulkStore
    runtime: Runtime
    filter_steps: BulkSteps
    topology_steps: BulkSteps
    purge_steps: Callable[[], BulkSteps]

    def carry_out(self, operation_id: TaskId, holder: str) -> None:
        """Run an operation to its end, or until the invocation's time is up; skip it if another executor holds it."""
        until = self.runtime.now() + BULK_INVOCATION
        operation = self._taken(operation_id, holder)
        while (
            operation is not None and operation.is_running and operation.progress.next_at <= self.runtime.now() < until
        ):
            operation = self._advanced(operation)
        if operation is not None and operation.is_running:
            # The next timer resumes the operation within a minute or two.
            self._saved(operation.released(self.runtime.now()))

    def _taken(self, operation_id: TaskId, holder: str) -> BulkOperation | None:
        """The operation, leased by this holder; `None` if the operation has ended or another holder has leased it."""
        for _ in range(_TRIES):
            now = self.runtime.now()
            stored = self.store.read(operation_id)
            if stored is None or not stored.is_free(now):
                return None
            taken = stored.taken(holder, now)
            if self.store.save(taken, self.runtime.nonce()):
                return replace(taken, version=taken.version + 1)
        return None

    def _advanced(self, operation: BulkOperation) -> BulkOperation | None:
        """The operation after one more step; `None` if this holder has lost its lease."""
        now = self.runtime.now()
        try:
            progress = self._steps(operation).step(operation, min(now + BULK_STEP, operation.leased_until))
        except Replaced:
            return self._ended(operation, BulkState.CANCELLED, REPLACED)
        except RequestError as refusal:
            return self._ended(operation, BulkState.CANCELLED, str(refusal))
        except Unavailable as error:
            self.runtime.telemetry.note("a step is tried again", operation=operation.id.text, error=str(error))
            progress = operation.progress
            self.runtime.clock.sleep_until(self.runtime.now() + SECOND)
        now = self.runtime.now()
        if progress.is_complete and now >= operation.not_complete_before:
            return self._ended(replace(operation, progress=progress), BulkState.SUCCEEDED)
        operation = operation.renewed(replace(progress, is_complete=False), now)
        saved = self._saved(operation)
        if saved is not None and progress.is_complete:
            # The replaced operation may still be running, so another pass must begin after that operation's last
            # changes.
            self.runtime.clock.sleep_until(min(now + BULK_STEP, operation.not_complete_before))
        return saved

    def _steps(self, operation: BulkOperation) -> BulkSteps:
        if operation.kind is BulkKind.PURGE:
            return self.purge_steps()
        return self.filter_steps if operation.topology is None else self.topology_steps

    def _ended(self, operation: BulkOperation, state: BulkState, reason: str = "") -> BulkOperation | None:
        return self._saved(operation.ended(state, self.runtime.now(), reason))

    def _saved(self, operation: BulkOperation) -> BulkOperation | None:
        """The stored operation; `None` if this holder has lost its lease, or the store does not answer."""
        try:
            if self.store.save(operation, self.runtime.nonce()):
                return replace(operation, version=operation.version + 1)
            stored = self.store.read(operation.id)
        except Unavailable as error:
            self.runtime.telemetry.note(
                "a bulk operation could not be stored", operation=operation.id.text, error=str(error)
            )
            return None
        if stored is None or not stored.is_running or stored.epoch != operation.epoch:
            return None
        # Another pass was requested.
        return replace(stored, progress=replace(operation.progress, is_complete=False))
