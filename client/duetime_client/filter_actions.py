"""Cancels, updates, reruns or deletes all tasks that match a filter, and reports progress until completion."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from http import HTTPStatus
from typing import TYPE_CHECKING, Unpack

from pydantic import Field

from duetime_client.bulk_operations import FIRST_PAUSE, GROWTH, LONGEST_PAUSE, BulkOperation, get_bulk_operation
from duetime_client.io_operations import Item, Pause, Request
from duetime_client.problems import document_of
from duetime_client.resource import Resource, Stream
from duetime_client.responses import read
from duetime_client.session import IDEMPOTENCY_KEY, key_or_random
from duetime_client.task import ResponseModel
from duetime_client.task_actions import TASKS
from duetime_client.task_request_fields import BulkOptions, body_of

if TYPE_CHECKING:
    import httpx

    from duetime_client.io_operations import Items
    from duetime_client.session import Session
    from duetime_client.task_request_fields import BulkFilter, DeadLetterFilter, EndedTaskFilter, TaskFields

_COUNTS = ("examined", "matched", "affected")


class FilterActionResult(ResponseModel):
    """Progress since the previous result: the number of tasks scanned, matched, changed and rejected.

    `operation_id` and `state` identify the running bulk operation; both are `None` if no bulk operation runs.
    `confirmation_token` is returned by a dry run.
    """

    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Mapping[str, int] = Field(default_factory=dict)
    next_token: str | None = None
    confirmation_token: str | None = None
    operation_id: str | None = None
    state: str | None = None


class FilterActions(Resource):
    """Actions on all tasks that match a filter."""

    @Stream
    def cancel_by_filter(
        self,
        wanted: BulkFilter,
        *,
        force: bool = False,
        next_token: str | None = None,
        **options: Unpack[BulkOptions],
    ) -> Items[FilterActionResult]:
        """Cancel every task that matches a filter; with `force`, also ask running tasks to stop.

        Nothing is sent before the first result is requested from the iterator. For many tasks, the API starts a bulk
        operation, which continues even if the iteration stops; each result covers the time since the previous result.
        An empty filter needs `all=True`.

        With `dry_run=True`, the tasks are only counted. Pass the `confirmation_token` of the results to the real
        request, which then leaves tasks created after the dry run unchanged.
        """
        body = {**filter_action_body(wanted, options), "force": force}
        return filter_action_results(self._session, f"{TASKS}/cancel", body, next_token)

    @Stream
    def update_by_filter(
        self,
        wanted: BulkFilter,
        changes: TaskFields,
        *,
        next_token: str | None = None,
        **options: Unpack[BulkOptions],
    ) -> Items[FilterActionResult]:
        """Update every task that matches a filter and has not started; works like `cancel_by_filter`."""
        body = {**filter_action_body(wanted, options), "update": body_of(changes)}
        return filter_action_results(self._session, f"{TASKS}/update", body, next_token)

    @Stream
    def retry_by_filter(
        self, wanted: DeadLetterFilter, *, next_token: str | None = None, **options: Unpack[BulkOptions]
    ) -> Items[FilterActionResult]:
        """Rerun every failed task that matches a filter; works like `cancel_by_filter`."""
        return retry_by_filter(self._session, wanted, options, next_token)

    @Stream
    def delete_by_filter(
        self, wanted: EndedTaskFilter, *, next_token: str | None = None, **options: Unpack[BulkOptions]
    ) -> Items[FilterActionResult]:
        """Permanently delete every ended task that matches a filter; works like `cancel_by_filter`.

        Without `state`, tasks in every final state match.
        """
        return filter_action_results(self._session, f"{TASKS}/delete", filter_action_body(wanted, options), next_token)


def retry_by_filter(
    session: Session, wanted: DeadLetterFilter, options: BulkOptions, next_token: str | None
) -> Items[FilterActionResult]:
    """Rerun every failed task that matches a filter."""
    return filter_action_results(session, f"{TASKS}/retry", filter_action_body(wanted, options), next_token)


def filter_action_results(
    session: Session, path: str, body: dict[str, object], token: str | None = None
) -> Items[FilterActionResult]:
    """Send a request with a filter, and yield its progress until it is complete."""
    while True:
        request = {**body, "next_token": token} if token else body
        # A retry with the same key does not start a second operation.
        key = {IDEMPOTENCY_KEY: key_or_random(None)}
        result = yield from session.send(
            Request("POST", path, _result_or_operation, body=request, headers=key, repeatable=True)
        )
        if isinstance(result, BulkOperation):
            yield from _followed(session, result)
            return
        yield Item(result)
        token = result.next_token
        if result.confirmation_token is not None:
            # All pages of a dry run count the tasks that existed at the same moment.
            body = {**body, "confirmation_token": result.confirmation_token}
        if token is None:
            return


def _result_or_operation(response: httpx.Response) -> FilterActionResult | BulkOperation:
    document = document_of(response)
    if response.status_code == HTTPStatus.ACCEPTED:
        return read(BulkOperation, response, document)
    return read(FilterActionResult, response, document)


def _followed(session: Session, operation: BulkOperation) -> Items[FilterActionResult]:
    """Yield an operation's progress so far, and then each increment until the operation has ended."""
    yield Item(_since(None, operation))
    pause = FIRST_PAUSE
    while True:
        seen = yield from session.send(get_bulk_operation(operation.id))
        yield Item(_since(operation, seen))
        operation = seen
        if not operation.is_running:
            return
        yield Pause(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE)


def _since(before: BulkOperation | None, now: BulkOperation) -> FilterActionResult:
    """The progress between two readings of an operation."""
    counts = {name: getattr(now, name) - (getattr(before, name) if before else 0) for name in _COUNTS}
    known = before.refused if before else {}
    refused = {code: count - known.get(code, 0) for code, count in now.refused.items()}
    more = {"operation_id": now.id, "state": now.state, "refused": {code: n for code, n in refused.items() if n}}
    return FilterActionResult.model_validate({**counts, **more})


def filter_action_body(
    wanted: BulkFilter | DeadLetterFilter | EndedTaskFilter, options: BulkOptions
) -> dict[str, object]:
    """The fields of every request with a filter."""
    return {"filter": body_of(wanted), **options}
