"""Requests that name many tasks by a filter: what is small is done at once, the rest by a bulk operation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from duetime.domain.bulk.operation import BulkKind, BulkOperation, BulkProgress, BulkState
from duetime.domain.errors import KeyReused, Unavailable
from duetime.domain.limits import IDEMPOTENCY_KEY_LIFE, MAX_PAGE
from duetime.domain.operating_parameters import BULK_INLINE
from duetime.domain.tasks.content_expiry import unless_referenced
from duetime.domain.tasks.idempotency_keys import Accepted, RememberedKey
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.domain.bulk.filter_action import BulkRequest, FilterAction, FilterResult
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.idempotency_keys import IdempotencyKey
    from duetime.domain.times import Millis
    from duetime.ports.bulk import BulkRequestReader, ScheduleActions
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.bulk.filtered_tasks import FilteredTasks
    from duetime.services.bulk.manage import BulkOperations

REQUEST = "request"
"""What is called so of an operation's contents: the body it came with."""


@dataclass(frozen=True, slots=True)
class BulkRequests:
    """Takes requests, and does what is left of them later.

    Attributes:
        filtered_schedules: pauses and resumes schedules.
        read_request: makes a request of its stored body.
    """

    operations: BulkOperations
    filtered_tasks: FilteredTasks
    filtered_schedules: ScheduleActions
    stores: Stores
    runtime: Runtime
    read_request: BulkRequestReader

    def piece(self, owner: str, request: BulkRequest) -> FilterResult:
        """Do one piece of it, and nothing later."""
        return self._piece(owner, request, replace(request.action, budget=BULK_INLINE), request.by)

    def take(self, owner: str, request: BulkRequest, key: IdempotencyKey | None) -> Accepted[BulkOperation]:
        """Do what is requested, if that is soon done; else begin an operation.

        Returns:
            With the operation: it has ended, or goes on. Without a key, one that has ended is stored nowhere.

        Raises:
            FieldInvalid: the first of the tasks cannot be changed so; none was.
            KeyReused: its idempotency key came with another body before.
            Unavailable: the store did not answer; nothing was done, or the request has to be repeated.
        """
        operation = self.operations.new(owner, request.kind)
        operation = replace(operation, progress=BulkProgress(after=request.action.after), actor=request.by.name)
        if key is not None:
            operation, known = self._remembered(operation, key)
            if known is not None:
                return Accepted(known, is_replay=True)
        progress = self._done_at_once(operation, request)
        operation = replace(operation, progress=progress)
        if not progress.is_complete:
            # Never taken away: no operation goes on for so long.
            expiry = unless_referenced(self.runtime.now())
            content = self.stores.contents.keep(operation.id, REQUEST, request.text, expiry)
            return Accepted(self.operations.start(replace(operation, request=content)))
        operation = operation.ended(BulkState.SUCCEEDED, self.runtime.now())
        if key is None or self.stores.bulk.save(operation, self.runtime.nonce()):
            return Accepted(operation)
        # Somebody else is repeating the same request just now, and stored its end first.
        return Accepted(self.stores.bulk.read(operation.id) or operation, is_replay=True)

    def step(self, operation: BulkOperation, until: Millis) -> BulkProgress:
        """Do one more step of an operation."""
        content = operation.request
        text = b"" if content is None else self.stores.contents.fetch(operation.id, content)
        request = self.read_request(operation.kind, text)
        return self._go_on(operation, request, max(0, until - self.runtime.now()))

    def _done_at_once(self, operation: BulkOperation, request: BulkRequest) -> BulkProgress:
        """How far it comes while its user waits for an answer."""
        until = self.runtime.now() + BULK_INLINE
        step = SECOND / request.action.per_second if request.action.per_second else 0
        # Of a slow one, not even the first would leave time for its answer.
        while step < BULK_INLINE and not operation.progress.is_complete:
            try:
                progress = self._go_on(operation, request, max(0, until - self.runtime.now()))
            except Unavailable:
                if not operation.progress.affected:
                    raise
                break
            operation = replace(operation, progress=progress)
            if self.runtime.now() + step >= until:
                break
        return operation.progress

    def _go_on(self, operation: BulkOperation, request: BulkRequest, budget: Millis) -> BulkProgress:
        before = operation.progress
        until = min((each for each in (request.action.until, operation.until) if each is not None), default=None)
        action = replace(request.action, after=before.after, limit=MAX_PAGE, budget=budget, until=until)
        action = replace(action, after_name=before.after_name)
        by = replace(request.by, name=operation.actor, operation=operation.id)
        result = self._piece(operation.owner, request, action, by)
        counted: list[str] = [kind.__name__ for kind, count in result.refused.items() for _ in range(count)]
        after = before.plus(examined=result.examined, matched=result.matched, affected=result.affected, refused=counted)
        is_complete = result.after is None and not result.after_name
        return replace(after, after=result.after or before.after, after_name=result.after_name, is_complete=is_complete)

    def _piece(self, owner: str, request: BulkRequest, action: FilterAction, by: Attribution) -> FilterResult:
        if request.kind.is_of_schedules:
            return self.filtered_schedules.apply(owner, request.kind, action, by)
        if request.kind is BulkKind.CANCEL:
            return self.filtered_tasks.cancel(owner, action, force=request.force, by=by)
        if request.change is not None:
            return self.filtered_tasks.update(owner, action, request.change, by)
        return self.filtered_tasks.retry(owner, action, by)

    def _remembered(self, operation: BulkOperation, key: IdempotencyKey) -> tuple[BulkOperation, BulkOperation | None]:
        """The operation under the id that the key stands for, and what is stored of it already."""
        now = operation.created_at
        wanted = RememberedKey(operation.id, now, now, key.body_hash, expires_at=now + IDEMPOTENCY_KEY_LIFE)
        known = self.stores.keys.remember(operation.owner, key.text, wanted, now)
        if known.body_hash != key.body_hash:
            raise KeyReused
        if known.task_id == operation.id:
            return operation, None
        # What was created since the first request is not meant by it.
        since = known.created_at
        operation = replace(operation, id=known.task_id, created_at=since, until=since)
        return operation, self.stores.bulk.read(operation.id)
