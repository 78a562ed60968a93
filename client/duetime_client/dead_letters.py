"""The tasks that gave up: seen, and tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from duetime_client.filter_actions import FilterActions, filter_action_body
from duetime_client.responses import page_of
from duetime_client.task_fields import query_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.task import Task
    from duetime_client.task_fields import BulkOptions, DeadLetterFilter, ListedDeadLetters

DEAD_LETTERS = "/v1/dead-letters"


class DeadLetters(FilterActions):
    """The part of the client for tasks that failed and are not tried again by themselves."""

    def list_dead_letters(
        self, *, page_size: int | None = None, **filters: Unpack[ListedDeadLetters]
    ) -> Iterator[Task]:
        """Every task that gave up and that the filters let through, fetched page by page as it is asked for."""
        query = list(query_of(filters, page_size))
        token: str | None = None
        while True:
            page = [*query, ("next_token", token)] if token else query
            tasks, token = page_of(self._transport.request("GET", DEAD_LETTERS, query=page))
            yield from tasks
            if token is None:
                return

    def redrive_dead_letters(
        self, wanted: DeadLetterFilter, *, next_token: str | None = None, **options: Unpack[BulkOptions]
    ) -> Iterator[FilterActionResult]:
        """Have every failed task that a filter means tried again, as `cancel_tasks` goes.

        One task alone is tried again by `retry_task`.
        """
        return self._sweep(f"{DEAD_LETTERS}/redrive", filter_action_body(wanted, options), next_token)
