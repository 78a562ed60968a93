"""Batches of a pull worker, in which attempts that run at the same time share one call of their function."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from duetime_client.attempt_errors import AttemptCancelled, AttemptPaused, LeaseLost
from duetime_client.worker_functions import TaskFunction, json_result, returned_by
from duetime_common.handler_batches import BatchItem, batch_outcomes, error_of
from duetime_common.handler_retries import RETRY_ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from duetime_client.run_context import Context
    from duetime_client.task import Task
    from duetime_common.handler_batches import Batch
    from duetime_common.handler_retries import RetryRule

P = TypeVar("P")


class BatchStopped(Exception):
    """A batch was stopped because of a pause or cancellation of another task in the batch."""


@dataclass(eq=False, slots=True)
class _Group:
    """Tasks of one call; once the call has ended, `outcomes` has the result or exception of each task."""

    items: list[BatchItem[Context, Any]] = field(default_factory=list)
    outcomes: Sequence[object] | None = None


class BatchFunction(TaskFunction[P, Any]):
    """A function registered for batches of a task type; calling this object calls the function.

    Args:
        concurrency: how many attempts the worker runs at a time, which also limits the size of a batch.
    """

    def __init__(
        self,
        task_type: str,
        function: Callable[[Sequence[BatchItem[Context, P]]], Any],
        payload: type[P] | None,
        retry_rule: RetryRule = RETRY_ALL,
        *,
        batch: Batch,
        concurrency: Callable[[], int],
    ) -> None:
        super().__init__(task_type, function, payload, retry_rule)  # type: ignore[arg-type]  # the function takes items
        self.batch = batch
        self._concurrency = concurrency
        self._open: dict[Hashable, _Group] = {}
        self._changed = threading.Condition()

    def __call__(self, items: Sequence[BatchItem[Context, P]]) -> Any:  # type: ignore[override]  # noqa: ANN401 - a function can return any value
        """Call the function, as in a test."""
        return self.function(items)  # type: ignore[call-arg, arg-type]  # the function takes items

    def runner(self, task: Task) -> Callable[[Context, Any], object]:
        """Return the method that runs an attempt in a batch; the last of several attempts runs in a separate call.

        The separate call keeps a task from failing permanently because of another task.
        """
        attempts = (task.retry or {}).get("max_attempts")
        is_alone = isinstance(attempts, int) and 1 < attempts <= task.attempt
        return self._run_alone if is_alone else self.run

    def run(self, context: Context, document: object) -> object:
        """Call the function once for this attempt and others, and return the result of this attempt.

        Raises:
            PayloadInvalid: The payload is not valid.
            ResultNotJson: The result cannot be converted to JSON.
        """
        item = BatchItem(context, self.decode(document))
        key = self.batch.key_of(item.payload)
        with self._changed:
            group = self._open.setdefault(key, _Group())
            number = len(group.items)
            group.items.append(item)
            if len(group.items) >= min(self.batch.max_size, self._concurrency()):
                self._close(key, group)
            if number == 0:
                self._changed.wait_for(lambda: self._open.get(key) is not group, self.batch.max_wait_seconds)
                self._close(key, group)
            else:
                self._changed.wait_for(lambda: group.outcomes is not None)
        if number == 0:
            outcomes = self._outcomes(group.items)
            with self._changed:
                group.outcomes = outcomes
                self._changed.notify_all()
        return _result((group.outcomes or ())[number])

    def _run_alone(self, context: Context, document: object) -> object:
        (outcome,) = self._outcomes([BatchItem(context, self.decode(document))])
        return _result(outcome)

    def _close(self, key: Hashable, group: _Group) -> None:
        """Close a group, so that no more attempts join."""
        if self._open.get(key) is group:
            del self._open[key]
            self._changed.notify_all()

    def _outcomes(self, items: Sequence[BatchItem[Context, Any]]) -> list[object]:
        """Call the function for the items that may still start, and return the outcome of each item."""
        reasons = [_why_not(item.context) for item in items]
        called = [item for item, reason in zip(items, reasons, strict=True) if reason is None]
        try:
            found = batch_outcomes(called, returned_by(self.function(called))) if called else []  # type: ignore[call-arg, arg-type]  # the function takes items
        except BaseException as error:  # noqa: BLE001 - a handler can raise any exception
            found = [_error_for(item.context, error) for item in called]
        outcomes = iter(found)
        return [next(outcomes) if reason is None else reason for reason in reasons]


def _why_not(context: Context) -> Exception | None:
    """Why an attempt must not start although its batch is ready; `None` if it may start."""
    if context.lost:
        return LeaseLost()
    return AttemptCancelled() if context.requested_action == "cancel" else None


def _error_for(context: Context, error: BaseException) -> BaseException:
    """The error to report for one attempt after the call of its batch has raised an exception."""
    if isinstance(error, AttemptPaused | AttemptCancelled) and context.requested_action is None:
        return BatchStopped("the function stopped the batch because of a request to another task in the batch")
    return error


def _result(outcome: object) -> object:
    if (error := error_of(outcome)) is not None:
        raise error
    return json_result(outcome)
