"""Dead letters: tasks that failed after all retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from duetime_client.filter_actions import FilterActions, filter_action_body
from duetime_client.responses import page_of
from duetime_client.task_control import TASKS
from duetime_client.task_fields import query_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.task import Task
    from duetime_client.task_fields import BulkOptions, DeadLetterFilter, ListedDeadLetters


class DeadLetters(FilterActions):
    """The client's methods for tasks that failed and are not retried automatically."""

    def list_dead_letters(
        self, *, page_size: int | None = None, **filters: Unpack[ListedDeadLetters]
    ) -> Iterator[Task]:
        """All failed tasks that match the filters, fetched page by page as they are needed."""
        query = list(query_of({"state": "failed", **filters}, page_size))
        token: str | None = None
        while True:
            page = [*query, ("next_token", token)] if token else query
            tasks, token = page_of(self._transport.request("GET", TASKS, query=page))
            yield from tasks
            if token is None:
                return

    def retry_tasks_by_filter(
        self, wanted: DeadLetterFilter, *, next_token: str | None = None, **options: Unpack[BulkOptions]
    ) -> Iterator[FilterActionResult]:
        """Run every failed task that matches a filter again; works like `cancel_tasks_by_filter`.

        For a single task, use `retry_task`.
        """
        return self._change_many(f"{TASKS}/retry", filter_action_body(wanted, options), next_token)
