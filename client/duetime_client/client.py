"""The client: a method for each operation of the API."""

from __future__ import annotations

import random
import time
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Self, Unpack
from uuid import uuid4

from duetime_client.authentication import OWNER_HEADER
from duetime_client.calendars import Calendars
from duetime_client.dead_letters import DeadLetters
from duetime_client.explanations import Explanations
from duetime_client.leases import Leases
from duetime_client.live_connection import WebSocketConnection
from duetime_client.live_updates import MINE, LiveUpdates, new_ticket, read_subject
from duetime_client.lock_admin import Locks
from duetime_client.polling import pause_after, utc_now
from duetime_client.resources import (
    BulkOperationResource,
    CalendarResource,
    DeadLetterResource,
    LeaseResource,
    LockResource,
    ScheduleResource,
    SwitchResource,
    TaskResource,
    TopologyResource,
)
from duetime_client.responses import batch_results, page_of, task_of
from duetime_client.schedules import Schedules
from duetime_client.settings import SettingsReader
from duetime_client.summary import Summaries
from duetime_client.switches import Switches
from duetime_client.task_control import TASKS, TaskControl, path_of, reason_body
from duetime_client.task_fields import NewTask, TaskFields, TaskFilter, body_of, query_of
from duetime_client.topology_runs import Topologies
from duetime_client.transport import IDEMPOTENCY_KEY, Transport, guard
from duetime_client.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from types import TracebackType

    import httpx

    from duetime_client.errors import ApiError
    from duetime_client.live_connection import Connect, LiveConnection
    from duetime_client.retries import Retries
    from duetime_client.task import Task
    from duetime_client.watching import Change

MAX_BATCH = 100
"""The API takes this many tasks in one request."""


class Client(
    TaskControl,
    Explanations,
    Locks,
    DeadLetters,
    Switches,
    Schedules,
    Calendars,
    Leases,
    Topologies,
    Summaries,
    SettingsReader,
    LiveUpdates,
):
    """The tasks of one deployment. Close it, or use it as a context manager; threads may share it."""

    def __init__(  # noqa: PLR0913 - what it runs on, for tests to exchange
        self,
        url: str,
        *,
        auth: httpx.Auth | None = None,
        owner: str | None = None,
        retries: Retries | None = None,
        sleep: Callable[[float], object] = time.sleep,
        random_source: Callable[[], float] = random.random,
        now: Callable[[], datetime] = utc_now,
        connect: Connect = WebSocketConnection,
        http_transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {OWNER_HEADER: owner} if owner else {}
        self._transport = Transport(
            url,
            auth=auth,
            headers=headers,
            retries=retries,
            sleep=sleep,
            random_source=random_source,
            http_transport=http_transport,
        )
        self._sleep = sleep
        self._now = now
        self._random = random_source
        self._connect = connect

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connections."""
        self._transport.close()

    @cached_property
    def tasks(self) -> TaskResource:
        """Tasks."""
        return TaskResource(self)

    @cached_property
    def schedules(self) -> ScheduleResource:
        """Schedules, their runs and their backfills."""
        return ScheduleResource(self)

    @cached_property
    def topologies(self) -> TopologyResource:
        """Topologies: graphs of tasks."""
        return TopologyResource(self)

    @cached_property
    def calendars(self) -> CalendarResource:
        """Calendars."""
        return CalendarResource(self)

    @cached_property
    def locks(self) -> LockResource:
        """Locks: who holds them, and who waits."""
        return LockResource(self)

    @cached_property
    def leases(self) -> LeaseResource:
        """Leases of tasks that a pull worker runs."""
        return LeaseResource(self)

    @cached_property
    def switches(self) -> SwitchResource:
        """Switches that stop or limit dispatch."""
        return SwitchResource(self)

    @cached_property
    def bulk_operations(self) -> BulkOperationResource:
        """Operations on all tasks that match a filter."""
        return BulkOperationResource(self)

    @cached_property
    def dead_letters(self) -> DeadLetterResource:
        """Tasks that failed after all their attempts."""
        return DeadLetterResource(self)

    def create_task(
        self,
        task_type: str,
        /,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        wait_seconds: int = 0,
        **fields: Unpack[TaskFields],
    ) -> Task:
        """Create a task, which is due now unless `due_at` or `delay_seconds` says otherwise.

        A retried request never creates a second task: it carries an idempotency key, by default a random one.
        With `wait_seconds`, the API responds when the outcome is known, or with the task as it is by then.
        `traceparent` (W3C Trace Context) is handed on to the handler or target, and to the callback.
        """
        response = self._transport.request(
            "POST",
            TASKS,
            query=[("wait_seconds", str(wait_seconds))] if wait_seconds else [],
            body={"type": task_type, **body_of(fields)},
            headers={IDEMPOTENCY_KEY: idempotency_key or str(uuid4()), **_trace_of(traceparent)},
        )
        return task_of(response)

    def create_task_batch(
        self, tasks: Iterable[NewTask], *, idempotency_key: str | None = None, traceparent: str | None = None
    ) -> list[Task | ApiError]:
        """Create many tasks, in requests as large as the API accepts; each has its own result, in the given order.

        If a later request fails, the tasks of the earlier ones exist. Calling again with the same key and the
        same tasks creates only what is missing.
        """
        key = idempotency_key or str(uuid4())
        remaining = iter(tasks)
        results: list[Task | ApiError] = []
        while chunk := list(islice(remaining, MAX_BATCH)):
            response = self._transport.request(
                "POST",
                f"{TASKS}/batch",
                body={"tasks": [body_of(task) for task in chunk]},
                headers={IDEMPOTENCY_KEY: f"{key}-{len(results)}", **_trace_of(traceparent)},
            )
            results.extend(batch_results(response, len(chunk)))
        return results

    def get_task(self, task_id: str, *, wait_seconds: int = 0) -> Task:
        """The task as it is now, or, with `wait_seconds`, once its outcome is known or that time is over."""
        query = [("wait_seconds", str(wait_seconds))] if wait_seconds else []
        return task_of(self._transport.request("GET", path_of(task_id), query=query))

    def list_tasks(self, *, page_size: int | None = None, **filters: Unpack[TaskFilter]) -> Iterator[Task]:
        """All tasks that match the filters, fetched page by page as they are needed."""
        query = list(query_of(filters, page_size))
        token: str | None = None
        while True:
            page = [*query, ("next_token", token)] if token else query
            response = self._transport.request("GET", TASKS, query=page)
            tasks, token = page_of(response)
            yield from tasks
            if token is None:
                return

    def update_task(
        self, task_id: str, /, *, if_match: str | None = None, reason: str = "", **changes: Unpack[TaskFields]
    ) -> Task:
        """Update a task that has not started; with `if_match`, only if it still has that `etag`.

        The changes are a merge patch (RFC 7396): `tags`, `retry`, `lock` and a `target` of the same kind are merged,
        and None removes; `payload` is replaced completely. The reason is recorded with the task.
        """
        headers = guard(if_match)
        query = [("reason", reason)] if reason else []
        body = body_of(changes)
        return task_of(self._transport.request("PATCH", path_of(task_id), query=query, body=body, headers=headers))

    def cancel_task(self, task_id: str, *, force: bool = False, reason: str = "", if_match: str | None = None) -> Task:
        """Cancel a task that has not started; with `force`, also request a running one to stop."""
        body: dict[str, object] = {**({"force": True} if force else {}), **(reason_body(reason) or {})}
        headers = guard(if_match)
        return task_of(self._transport.request("POST", f"{path_of(task_id)}/cancel", body=body, headers=headers))

    def delete_task(self, task_id: str, *, if_match: str | None = None) -> None:
        """Delete a task with its payload, its result and its attempts; one that has not started is cancelled first.

        A topology is deleted with all of its nodes, and a node only so. A task that runs cannot be deleted.
        """
        self._transport.request("DELETE", path_of(task_id), headers=guard(if_match))

    def watch(self, topic: str = MINE, /, **filters: Unpack[TaskFilter]) -> Iterator[Change]:
        """Changes as they happen, over a WebSocket: of `task:ID`, `topology:ID`, `schedule:NAME`, or of all tasks.

        Filters go with `mine`, all tasks of the caller, of which only changes from now on are told. A task or topology
        is told of at once, and to its end. Lost connections are opened again; without the package `websockets`
        (`duetime-client[live]`), or where a WebSocket cannot be opened, the API is polled.
        """

        def connected() -> LiveConnection:
            return self._connect(new_ticket(self).address)

        subscription = {"filter": body_of(filters)} if filters else {}
        return Watch(
            topic=topic,
            subscription=subscription,
            open=connected,
            read=lambda: read_subject(self, topic, filters),
            sleep=self._sleep,
            now=self._now,
            jitter=self._random,
        ).changes()

    def follow_task(self, task_id: str) -> Iterator[Task]:
        """The task as it is now, and again each time it is polled, until its outcome is known."""
        pause = 0.0
        while True:
            task = self.get_task(task_id)
            yield task
            if task.is_terminal:
                return
            pause = pause_after(task, pause, self._now())
            self._sleep(pause)


def _trace_of(traceparent: str | None) -> dict[str, str]:
    return {} if traceparent is None else {"traceparent": traceparent}
