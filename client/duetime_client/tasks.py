"""`client.tasks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, overload

from duetime_client.changes import MINE, watch
from duetime_client.errors import WaitTimeout
from duetime_client.explanations import StartPreview, TaskExplanation
from duetime_client.filter_actions import FilterActions
from duetime_client.io_operations import Item, Pause, Request
from duetime_client.pages import pages
from duetime_client.polling import pause_after
from duetime_client.resource import AsyncResource, Operation, Stream, SyncResource
from duetime_client.responses import attempts_of, count_of, nothing, one, polled_task, several, task_in, task_of
from duetime_client.session import guard, key_or_random
from duetime_client.task import TaskHistory, TaskStep
from duetime_client.task_actions import TASKS, TaskActions, path_of
from duetime_client.task_creation import create_task, create_tasks, creation_headers, wait_query
from duetime_client.task_request_fields import NewTask, TaskFields, TaskFilter, body_of, query_of
from duetime_client.typed_tasks import AsyncTypedTasks, TypedTasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime_client.changes import Change
    from duetime_client.io_operations import Items, Steps
    from duetime_client.task import Attempt, Task, TaskCount
    from duetime_client.task_creation import Results
    from duetime_client.task_definitions import TaskDefinition

P = TypeVar("P")
Attempts: TypeAlias = list["Attempt"]
TaskSteps: TypeAlias = list[TaskStep]


class TaskOperations(TaskActions, FilterActions):
    """Tasks."""

    @Operation
    def create(
        self,
        task_type: str,
        /,
        *,
        idempotency_key: str | None = None,
        idempotency_key_seconds: int | None = None,
        traceparent: str | None = None,
        wait_seconds: int = 0,
        estimate: bool = False,
        **fields: Unpack[TaskFields],
    ) -> Request[Task] | Steps[Task]:
        """Create a task, which is due now unless `due_at` or `delay_seconds` is given.

        A `payload` of bytes (a `Binary` has a content type, too) may have up to 5 MB; above 1 MiB, the payload is
        uploaded to S3 first.

        A retried request never creates a second task, because it carries an idempotency key (random by default), which
        is kept for a day unless `idempotency_key_seconds` is given. With `unique` or `debounce`, the returned task may
        be an existing one; `on_conflict` is then set. With `wait_seconds`, the API responds once the outcome is known
        or the time has passed. `traceparent` (W3C Trace Context) is passed on to the handler or target, and to the
        callback. With `estimate`, the returned task includes its estimated cost (`task.estimate`).
        """
        headers = creation_headers(idempotency_key, traceparent, idempotency_key_seconds)
        return create_task(self._session, task_type, fields, headers, wait_seconds, estimate=estimate)

    @Operation
    def preview(self, task_type: str, /, **fields: Unpack[TaskFields]) -> Request[StartPreview]:
        """Preview when a task with these fields would start, and why; nothing is created."""
        body = {"type": task_type, **body_of(fields)}
        return Request("POST", f"{TASKS}/preview", one(StartPreview), body=body, repeatable=True)

    @Operation
    def create_batch(
        self, tasks: Iterable[NewTask], *, idempotency_key: str | None = None, traceparent: str | None = None
    ) -> Steps[Results]:
        """Create many tasks in requests as large as the API accepts, and return a result for each task, in order.

        If a request fails, the tasks of the earlier requests exist. Another call with the same key and the same tasks
        creates only the missing tasks.
        """
        return create_tasks(self._session, tasks, idempotency_key, traceparent)

    @Operation
    def get(self, task_id: str, *, wait_seconds: int = 0) -> Request[Task]:
        """Get a task; with `wait_seconds`, wait until its outcome is known or the time has passed."""
        return Request("GET", path_of(task_id), task_of, query=wait_query(wait_seconds))

    @Operation
    def create_upload(self, payload: bytes, *, idempotency_key: str | None = None) -> Steps[Any]:
        """Upload a payload of up to 5 MB, and return a reference for the `payload` of a task, such as in a batch.

        The same bytes with the same key give the same upload.
        """
        from duetime_client.uploads import sent_payload, uploaded  # noqa: PLC0415 - only a few payloads need it

        sent: Any = sent_payload(self._session.codec, {"payload": payload})
        return uploaded(self._session, sent, payload, key_or_random(idempotency_key))

    @Operation
    def download_payload(self, task: Task) -> Steps[Any]:
        """Get the payload (JSON or bytes) of a task that was just read; an uploaded payload is fetched from S3."""
        from duetime_client.uploads import downloaded  # noqa: PLC0415 - for binary payloads only

        return downloaded(self._session, task.payload)

    @Stream
    def list(self, *, page_size: int | None = None, **filters: Unpack[TaskFilter]) -> Items[Task]:
        """List all tasks that match the filters; pages are fetched as needed."""
        return pages(self._session, TASKS, "tasks", task_in, list(query_of(filters, page_size)))

    @Operation
    def count(self, **filters: Unpack[TaskFilter]) -> Request[TaskCount]:
        """Count the tasks that match the filters, with their cost; `is_exact` may be false above a thousand tasks."""
        query = [*query_of(filters, 1), ("count", "true")]
        return Request("GET", TASKS, count_of, query=query)

    @Operation
    def update(
        self, task_id: str, /, *, if_match: str | None = None, reason: str = "", **changes: Unpack[TaskFields]
    ) -> Request[Task]:
        """Update a task that has not started; with `if_match`, only if it still has that `etag`.

        The changes are a merge patch (RFC 7396): `tags`, `retry`, `lock`, `rate` and a `target` of the same kind are
        merged, and `None` removes a value; `payload` is replaced completely. The reason is recorded with the task.
        """
        query = [("reason", reason)] if reason else []
        return Request("PATCH", path_of(task_id), task_of, query=query, body=body_of(changes), headers=guard(if_match))

    @Operation
    def delete(self, task_id: str, *, if_match: str | None = None) -> Request[None]:
        """Delete a task with its payload, its result and its attempts; a task that has not started is cancelled first.

        A topology is deleted with all of its nodes; neither a single node nor a running task can be deleted.
        """
        return Request("DELETE", path_of(task_id), nothing, headers=guard(if_match))

    @Operation
    def list_attempts(self, task_id: str) -> Request[Attempts]:
        """List the ended attempts of a task, oldest first."""
        return Request("GET", f"{path_of(task_id)}/attempts", attempts_of)

    @Operation
    def list_steps(self, task_id: str) -> Request[TaskSteps]:
        """List the steps that the task's handler has completed, in the order in which they ended."""
        return Request("GET", f"{path_of(task_id)}/steps", several(TaskStep, "steps"))

    @Operation
    def list_events(self, task_id: str) -> Request[TaskHistory]:
        """Get the history of a task, oldest event first: actions with actor and reason, attempts, and the end."""
        return Request("GET", f"{path_of(task_id)}/events", one(TaskHistory))

    @Operation
    def explain(self, task_id: str) -> Request[TaskExplanation]:
        """Explain why a task waits, or where its time went."""
        return Request("GET", f"{path_of(task_id)}/explain", one(TaskExplanation))

    @Stream
    def follow(self, task_id: str) -> Items[Task]:
        """Yield the task at each poll until its outcome is known."""
        pause = 0.0
        while True:
            task = yield from TaskOperations.get.steps(self, task_id)
            yield Item(task)
            if task.is_terminal:
                return
            pause = pause_after(task, pause, self._session.now())
            yield Pause(pause)

    @Operation
    def wait(self, task_id: str, *, timeout: float | None = None) -> Steps[Task]:
        """Poll a task as often as the API suggests, and return it once its outcome is known.

        Raises:
            WaitTimeout: The outcome is not known after `timeout` seconds.
        """
        pause, now = 0.0, self._session.now
        began = now()
        while True:
            task, suggested = yield from self._session.send(Request("GET", path_of(task_id), polled_task))
            if task.is_terminal:
                return task
            pause = pause_after(task, pause, now(), suggested)
            if timeout is not None:
                remaining = timeout - (now() - began).total_seconds()
                if remaining <= 0:
                    raise WaitTimeout(task_id, task.state, timeout)
                pause = min(pause, remaining)
            yield Pause(pause)

    @Stream
    def watch(self, task_id: str | None = None, /, **filters: Unpack[TaskFilter]) -> Items[Change]:
        """Yield changes to one task, or to all of the caller's tasks, over a WebSocket as they happen.

        Without an id, only changes from now on are yielded, and filters select the tasks. With an id, the task's
        current state comes first, and the iteration ends when the task ends. Lost connections are reopened; without the
        package `websockets` (`duetime-client[live]`), or where a WebSocket cannot be opened, the API is polled.
        """
        return watch(self._session, MINE if task_id is None else f"task:{task_id}", filters)


class Tasks(TaskOperations, SyncResource):
    """`client.tasks` of `Client`."""

    @overload
    def of(self, definition: TaskDefinition[P]) -> TypedTasks[P]: ...

    @overload
    def of(self, definition: type[Any]) -> TypedTasks[Any]: ...

    def of(self, definition: TaskDefinition[Any] | type[Any]) -> TypedTasks[Any]:
        """The tasks of one type: `client.tasks.of(charge).create(Charge(id=7))`.

        Args:
            definition: a `TaskType`, or the registered function or class of a handler.
        """
        return TypedTasks(self._runner, definition)


class AsyncTasks(TaskOperations, AsyncResource):
    """`client.tasks` of `AsyncClient`."""

    @overload
    def of(self, definition: TaskDefinition[P]) -> AsyncTypedTasks[P]: ...

    @overload
    def of(self, definition: type[Any]) -> AsyncTypedTasks[Any]: ...

    def of(self, definition: TaskDefinition[Any] | type[Any]) -> AsyncTypedTasks[Any]:
        """The tasks of one type: `await client.tasks.of(charge).create(Charge(id=7))`.

        Args:
            definition: a `TaskType`, or the registered function or class of a handler.
        """
        return AsyncTypedTasks(self._runner, definition)
