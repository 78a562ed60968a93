"""`client.dead_letters`: tasks that failed after all retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from duetime_client.filter_actions import retry_by_filter
from duetime_client.pages import pages
from duetime_client.resource import AsyncResource, Resource, Stream, SyncResource
from duetime_client.responses import task_in
from duetime_client.task_actions import TASKS
from duetime_client.task_request_fields import BulkOptions, DeadLetterFilter, ListedDeadLetters, query_of

if TYPE_CHECKING:
    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.io_operations import Items
    from duetime_client.task import Task


class DeadLetterOperations(Resource):
    """Tasks that have failed and are not retried automatically."""

    @Stream
    def list(self, *, page_size: int | None = None, **filters: Unpack[ListedDeadLetters]) -> Items[Task]:
        """List all failed tasks that match the filters; pages are fetched as needed."""
        query = list(query_of({"state": "failed", **filters}, page_size))
        return pages(self._session, TASKS, "tasks", task_in, query)

    @Stream
    def retry(
        self, wanted: DeadLetterFilter, *, next_token: str | None = None, **options: Unpack[BulkOptions]
    ) -> Items[FilterActionResult]:
        """Rerun every failed task that matches a filter; works like `tasks.cancel_by_filter`.

        For a single task, use `tasks.retry`.
        """
        return retry_by_filter(self._session, wanted, options, next_token)


class DeadLetters(DeadLetterOperations, SyncResource):
    """`client.dead_letters` of `Client`."""


class AsyncDeadLetters(DeadLetterOperations, AsyncResource):
    """`client.dead_letters` of `AsyncClient`."""
