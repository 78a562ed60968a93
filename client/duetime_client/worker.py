"""A pull worker: leases due tasks, runs their handlers, and finishes running tasks before it stops.

```python
from duetime_client import Client
from duetime_client.worker import Context, Worker

worker = Worker(concurrency=8)

@worker.task("resize")
def resize(context: Context, payload: dict) -> object:
    context.progress(50, "half way")
    return {"bytes": 17}

if __name__ == "__main__":
    with Client("https://tasks.example.org") as client:
        worker.run(client)
```
"""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from duetime_client.errors import ClientError
from duetime_client.pull_attempt import (
    Attempt,
    AttemptCancelled,
    AttemptPaused,
    Context,
    LeaseLost,
    Unretriable,
    may_pass,
)
from duetime_client.stop_signals import stopped_by_signals
from duetime_client.task_definitions import TaskFunction
from duetime_client.worker_events import DuplicateHandler, WorkerEvent, WorkerIdle

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client.client import Client
    from duetime_client.leases import LeasedTask


__all__ = [
    "AttemptCancelled",
    "AttemptPaused",
    "Context",
    "DuplicateHandler",
    "LeaseLost",
    "Unretriable",
    "Worker",
    "WorkerEvent",
    "WorkerIdle",
]
P = TypeVar("P")
R = TypeVar("R")
MOST_AT_ONCE = 10
"""The API leases at most this many tasks in one request."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_UNWAITED_PAUSE = 2.0
"""Between two requests for which the API did not wait."""
_NAME_LENGTH = 40


class Registration(Protocol):
    """Registers a function whose payload is plain JSON."""

    def __call__(self, function: Callable[[Context, P], R], /) -> TaskFunction[P, R]:
        """Register it."""
        ...


class PythonHandler(Protocol):
    """What `duetime.handlers.handler` makes of a function."""

    @property
    def task_type(self) -> str:
        """The type that it is registered for."""
        ...

    @property
    def payload_model(self) -> type[Any] | None:
        """The class of its payload, or `None`."""
        ...

    def __call__(self, context: Any, payload: Any, /) -> Any:  # noqa: ANN401 - a context and a payload of any kind
        """Call the function."""
        ...


def _name() -> str:
    return f"{socket.gethostname()[: _NAME_LENGTH - 8]}-{os.getpid()}"


class Worker:
    """Leases tasks of pulled types and runs the function that is registered for each type."""

    def __init__(
        self,
        client: Client | None = None,
        *,
        concurrency: int = 4,
        lease_seconds: int = 30,
        wait_seconds: int = 20,
        pause_seconds: float = 0.0,
        name: str = "",
        on_event: Callable[[WorkerEvent], object] = lambda _event: None,
    ) -> None:
        """Create a worker.

        Args:
            client: of the deployment; may also be given to `run`.
            concurrency: how many tasks run at a time, each in a thread.
            lease_seconds: duration of a lease, after which another worker gets the task; renewed every third of it.
            wait_seconds: how long a request waits for a task; longer waits start tasks sooner and cost more.
            pause_seconds: pause after a response without tasks.
            name: for the attempt history; host and process by default.
            on_event: called with each event of the worker.
        """
        self.concurrency = 0
        self._free = threading.Semaphore(0)
        self.with_concurrency(concurrency)
        self.lease_seconds = lease_seconds
        self.wait_seconds = wait_seconds
        self.pause_seconds = pause_seconds
        self.name = (name or _name())[:_NAME_LENGTH]
        self.on_event = on_event
        self._client = client
        self._handlers: dict[str, TaskFunction[Any, Any]] = {}
        self._stopping = threading.Event()

    def with_concurrency(self, concurrency: int) -> Worker:
        """Set how many tasks run at a time, at least one; call it before `run`."""
        self.concurrency = max(1, concurrency)
        self._free = threading.Semaphore(self.concurrency)
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """The types that it leases."""
        return tuple(self._handlers)

    @overload
    def task(self, task_type: str) -> Registration: ...

    @overload
    def task(
        self, task_type: str, *, payload: type[P]
    ) -> Callable[[Callable[[Context, P], R]], TaskFunction[P, R]]: ...

    def task(self, task_type: str, *, payload: type | None = None) -> Any:
        """Register the decorated function for a type: it takes a `Context` and the payload, and returns the result.

        An exception fails the attempt, which is retried according to the task's policy unless it is `Unretriable`.
        The function may be a coroutine: each attempt has an event loop of its own, in its thread.

        Args:
            task_type: The type.
            payload: The class of the payload, a pydantic model or a dataclass; a task with another one fails at once.

        Raises:
            DuplicateHandler: the type already has a function.
            TypeError: It is used without a type: `@worker.task`.
        """
        # Whatever type checkers say: a decorator without its parentheses is an easy mistake.
        if not isinstance(task_type, str) or not task_type:
            name = getattr(task_type, "__name__", None) or "report"
            raise TypeError(f'@worker.task needs the type of the tasks: write @worker.task("{name}")')

        def register(function: Callable[[Context, Any], R]) -> TaskFunction[Any, R]:
            if task_type in self._handlers:
                raise DuplicateHandler(task_type)
            self._handlers[task_type] = registered = TaskFunction(task_type, function, payload)
            return registered

        return register

    def add_handler(self, handler: PythonHandler) -> None:
        """Run a function that `duetime.handlers` has registered for the worker functions: for work that takes longer.

        It is given a `Context` of this module, which has no `deadline` and no `defer`; an error whose class is called
        `Unretriable` fails the task at once, whichever package it is of.

        Raises:
            DuplicateHandler: its type already has a function.
        """
        register: Any = self.task
        register(handler.task_type, payload=handler.payload_model)(handler)

    def stop(self) -> None:
        """Lease no more tasks, finish the running ones, and return from `run`."""
        if not self._stopping.is_set():
            self._stopping.set()
            self.on_event(WorkerEvent("stopping"))

    def run(self, client: Client | None = None) -> None:
        """Run tasks until `stop`, SIGTERM or SIGINT; the first signal finishes running tasks, a second exits at once.

        Raises:
            WorkerIdle: no function is registered, or there is no client.
            ClientError: the API rejected a request, and a retry would not help.
        """
        client = client or self._client
        if client is None or not self._handlers:
            raise WorkerIdle("a worker needs a client, and a function for at least one type: @worker.task(...)")
        with stopped_by_signals(self.stop), ThreadPoolExecutor(self.concurrency, "duetime") as pool:
            pause = _FIRST_PAUSE
            while not self._stopping.is_set():
                requested_at = time.monotonic()
                try:
                    leases = self._lease(client)
                except ClientError as error:
                    if not may_pass(error):
                        self.stop()
                        raise
                    self.on_event(WorkerEvent("unreachable", seconds=pause, why=str(error)))
                    self._stopping.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    continue
                pause = _FIRST_PAUSE
                for leased in leases:
                    self._begin(client, leased, pool)
                if not leases:
                    self._stopping.wait(self._pause(time.monotonic() - requested_at))

    def _pause(self, took: float) -> float:
        """The pause after a response without tasks that took so long.

        A response that came early did not wait: as many requests wait already as the API allows.
        """
        is_soon = took < self.wait_seconds / 2
        return max(self.pause_seconds, _UNWAITED_PAUSE) if is_soon else self.pause_seconds

    def _lease(self, client: Client) -> list[LeasedTask]:
        """Lease as many tasks as there are free threads, at least one."""
        free = 0
        while not free and not self._stopping.is_set():
            free = int(self._free.acquire(timeout=0.5))
        while free and free < MOST_AT_ONCE and self._free.acquire(blocking=False):
            free += 1
        leases: list[LeasedTask] = []
        try:
            if free and not self._stopping.is_set():
                leases = client.leases.acquire(
                    self.types,
                    max_tasks=free,
                    wait_seconds=self.wait_seconds,
                    lease_seconds=self.lease_seconds,
                    worker=self.name,
                )
        finally:
            for _ in range(free - len(leases)):
                self._free.release()
        return leases

    def _begin(self, client: Client, leased: LeasedTask, pool: ThreadPoolExecutor) -> None:
        attempt = Attempt(client, leased, self.lease_seconds)
        task = leased.task
        if self._stopping.is_set() or task.type not in self._handlers:
            # It was leased while the worker was stopping.
            self._free.release()
            attempt.release()
            self.on_event(WorkerEvent("released", task.id, task.type, task.attempt))
            return
        self.on_event(WorkerEvent("leased", task.id, task.type, task.attempt))
        pool.submit(self._run, attempt)

    def _run(self, attempt: Attempt) -> None:
        task = attempt.leased.task
        began = time.monotonic()
        why = ""
        try:
            ended = attempt.run(self._handlers[task.type].run)
        except ClientError as error:
            ended, why = "lost", str(error)
        finally:
            self._free.release()
        self.on_event(WorkerEvent(ended, task.id, task.type, task.attempt, time.monotonic() - began, why))
