"""Cancelling and updating many tasks by a filter: one request, followed until it is complete."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from http import HTTPStatus
from typing import TYPE_CHECKING, Unpack
from uuid import uuid4

from pydantic import Field

from duetime_client.bulk_operations import BulkOperation, BulkOperations
from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel
from duetime_client.task_control import TASKS
from duetime_client.task_fields import BulkOptions, body_of
from duetime_client.transport import IDEMPOTENCY_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.task_fields import BulkFilter, DeadLetterFilter, TaskFields
    from duetime_client.transport import Transport

_COUNTS = ("examined", "matched", "affected")


class FilterActionResult(ResponseModel):
    """What was done since the previous result: tasks that were scanned, that matched, and of those changed or rejected.

    `operation_id` names the bulk operation that is running, and `state` is its state; both are `None` if there is none.
    `confirmation_token` is that of a dry run.
    """

    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Mapping[str, int] = Field(default_factory=dict)
    next_token: str | None = None
    confirmation_token: str | None = None
    operation_id: str | None = None
    state: str | None = None


class FilterActions(BulkOperations):
    """The client's methods for many tasks."""

    _transport: Transport

    def cancel_tasks_by_filter(
        self,
        wanted: BulkFilter,
        *,
        force: bool = False,
        next_token: str | None = None,
        **options: Unpack[BulkOptions],
    ) -> Iterator[FilterActionResult]:
        """Cancel every task that matches a filter; with `force`, request running ones to stop.

        Nothing is sent before the first result is requested from the iterator. For many tasks, the API starts a bulk
        operation, which continues whether or not the iterator does: each result says what was done since the previous
        one. An empty filter needs `all=True`.

        With `dry_run=True`, the tasks are only counted. Pass the `confirmation_token` of its results to the real
        request: it then changes no task that was created since.
        """
        return self._change_many(f"{TASKS}/cancel", {**filter_action_body(wanted, options), "force": force}, next_token)

    def update_tasks_by_filter(
        self,
        wanted: BulkFilter,
        changes: TaskFields,
        *,
        next_token: str | None = None,
        **options: Unpack[BulkOptions],
    ) -> Iterator[FilterActionResult]:
        """Update every task that a filter means and that has not started, as `cancel_tasks_by_filter` goes."""
        return self._change_many(
            f"{TASKS}/update", {**filter_action_body(wanted, options), "update": body_of(changes)}, next_token
        )

    def _change_many(self, path: str, body: dict[str, object], token: str | None) -> Iterator[FilterActionResult]:
        while True:
            request = {**body, "next_token": token} if token else body
            # A retry with the same key starts no second operation.
            key = {IDEMPOTENCY_KEY: str(uuid4())}
            response = self._transport.request("POST", path, body=request, headers=key, repeatable=True)
            if response.status_code == HTTPStatus.ACCEPTED:
                yield from self._followed(read(BulkOperation, response, document_of(response)))
                return
            result = read(FilterActionResult, response, document_of(response))
            yield result
            token = result.next_token
            if result.confirmation_token is not None:
                # All pages of a dry run count the tasks of the same moment.
                body = {**body, "confirmation_token": result.confirmation_token}
            if token is None:
                return

    def _followed(self, operation: BulkOperation) -> Iterator[FilterActionResult]:
        """What an operation has done, and then repeatedly what it has done since."""
        yield _since(None, operation)
        for seen in self.follow_bulk_operation(operation.id):
            yield _since(operation, seen)
            operation = seen


def _since(before: BulkOperation | None, now: BulkOperation) -> FilterActionResult:
    """What was done between two readings of an operation."""
    counts = {name: getattr(now, name) - (getattr(before, name) if before else 0) for name in _COUNTS}
    known = before.refused if before else {}
    refused = {code: count - known.get(code, 0) for code, count in now.refused.items()}
    more = {"operation_id": now.id, "state": now.state, "refused": {code: n for code, n in refused.items() if n}}
    return FilterActionResult.model_validate({**counts, **more})


def filter_action_body(wanted: BulkFilter | DeadLetterFilter, options: BulkOptions) -> dict[str, object]:
    """The fields of every request by filter."""
    return {"filter": body_of(wanted), **options}
