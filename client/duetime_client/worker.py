"""A pull worker: leases due tasks, has its handlers do them, and stops without leaving anything behind.

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
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from duetime_client.attempt_context import (
    Attempt,
    AttemptCancelled,
    AttemptPaused,
    Context,
    LeaseLost,
    Unretriable,
    may_pass,
)
from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.leases import LeasedTask, Leases

__all__ = [
    "AttemptCancelled",
    "AttemptPaused",
    "Context",
    "DuplicateHandler",
    "LeaseLost",
    "Seen",
    "Unretriable",
    "Worker",
    "WorkerIdle",
]

Handler = Callable[[Context, Any], Any]
H = TypeVar("H", bound=Handler)
MOST_AT_ONCE = 10
"""The API leases this many tasks in one request."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_UNWAITED_PAUSE = 2.0
"""Between two requests that the API did not let wait."""
_NAME_LENGTH = 40


class DuplicateHandler(ValueError):
    """Two handlers were registered for one task type."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"two handlers are registered for the task type {task_type!r}")


class WorkerIdle(ClientError, ValueError):
    """A worker was started that has nothing to do, or nobody to ask."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that a worker did, for whoever looks on.

    Attributes:
        what: `leased`, how an attempt ended, `released`, `stopping`, or `waiting` (the API does not answer).
        seconds: how long the attempt took, or how long it waits.
        why: what is known of it; never a payload or a result.
    """

    what: str
    task_id: str = ""
    type: str = ""
    attempt: int = 0
    seconds: float = 0.0
    why: str = ""


def _name() -> str:
    return f"{socket.gethostname()[: _NAME_LENGTH - 8]}-{os.getpid()}"


class Worker:
    """Does the tasks of some pulled types, each by the function that is registered for it."""

    def __init__(
        self,
        client: Leases | None = None,
        *,
        concurrency: int = 4,
        lease_seconds: int = 30,
        wait_seconds: int = 20,
        pause_seconds: float = 0.0,
        name: str = "",
        look_on: Callable[[Seen], object] = lambda _seen: None,
    ) -> None:
        """Make a worker.

        Args:
            client: of the deployment; may also be given to `run`.
            concurrency: tasks done at once, each in a thread.
            lease_seconds: how long the worker may be silent before another gets its tasks; renewed every third of it.
            wait_seconds: how long one request waits for a task: quick to begin, but paid by the deployment.
            pause_seconds: how long to rest after an answer without tasks.
            name: for the ledger; host and process by default.
            look_on: is told what the worker does.
        """
        self.concurrency = 0
        self._free = threading.Semaphore(0)
        self.with_concurrency(concurrency)
        self.lease_seconds = lease_seconds
        self.wait_seconds = wait_seconds
        self.pause_seconds = pause_seconds
        self.name = (name or _name())[:_NAME_LENGTH]
        self.look_on = look_on
        self._client = client
        self._handlers: dict[str, Handler] = {}
        self._stopping = threading.Event()

    def with_concurrency(self, concurrency: int) -> Worker:
        """Do so many tasks at once, at least one; to be said before it runs."""
        self.concurrency = max(1, concurrency)
        self._free = threading.Semaphore(self.concurrency)
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """The types that it does."""
        return tuple(self._handlers)

    def task(self, task_type: str) -> Callable[[H], H]:
        """Register the decorated function for a type: it is given a `Context` and the payload, and returns the result.

        Whatever it raises fails the attempt, which is retried by the task's policy, unless it is `Unretriable`.

        Raises:
            DuplicateHandler: the type has a function already.
        """

        def register(handler: H) -> H:
            if task_type in self._handlers:
                raise DuplicateHandler(task_type)
            self._handlers[task_type] = handler
            return handler

        return register

    def stop(self) -> None:
        """Lease nothing more, finish what runs, and return from `run`."""
        if not self._stopping.is_set():
            self._stopping.set()
            self.look_on(Seen("stopping"))

    def run(self, client: Leases | None = None) -> None:
        """Do tasks until `stop`, or SIGTERM or SIGINT: the first finishes what runs, a second ends the process.

        Raises:
            WorkerIdle: no function is registered, or there is no client.
            ClientError: the API refused what asking again will not mend.
        """
        client = client or self._client
        if client is None or not self._handlers:
            raise WorkerIdle("a worker needs a client, and a function for at least one type: @worker.task(...)")
        with self._stopped_by_signals(), ThreadPoolExecutor(self.concurrency, "duetime") as pool:
            pause = _FIRST_PAUSE
            while not self._stopping.is_set():
                asked_at = time.monotonic()
                try:
                    leases = self._lease(client)
                except ClientError as error:
                    if not may_pass(error):
                        self.stop()
                        raise
                    self.look_on(Seen("waiting", seconds=pause, why=str(error)))
                    self._stopping.wait(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
                    continue
                pause = _FIRST_PAUSE
                for leased in leases:
                    self._begin(client, leased, pool)
                if not leases:
                    self._stopping.wait(self._rest(time.monotonic() - asked_at))

    def _rest(self, took: float) -> float:
        """How long to rest after an answer without tasks that took so long.

        One that came much sooner than was asked for did not wait: as many requests wait already as may.
        """
        is_soon = took < self.wait_seconds / 2
        return max(self.pause_seconds, _UNWAITED_PAUSE) if is_soon else self.pause_seconds

    def _lease(self, client: Leases) -> list[LeasedTask]:
        """Lease as many tasks as there are hands free, at least one."""
        free = 0
        while not free and not self._stopping.is_set():
            free = int(self._free.acquire(timeout=0.5))
        while free and free < MOST_AT_ONCE and self._free.acquire(blocking=False):
            free += 1
        leases: list[LeasedTask] = []
        try:
            if free and not self._stopping.is_set():
                leases = client.lease_tasks(
                    self.types,
                    max=free,
                    wait_seconds=self.wait_seconds,
                    lease_seconds=self.lease_seconds,
                    worker=self.name,
                )
        finally:
            for _ in range(free - len(leases)):
                self._free.release()
        return leases

    def _begin(self, client: Leases, leased: LeasedTask, pool: ThreadPoolExecutor) -> None:
        attempt = Attempt(client, leased, self.lease_seconds)
        task = leased.task
        if self._stopping.is_set() or task.type not in self._handlers:
            # It came while the worker was asked to stop.
            self._free.release()
            attempt.release()
            self.look_on(Seen("released", task.id, task.type, task.attempt))
            return
        self.look_on(Seen("leased", task.id, task.type, task.attempt))
        pool.submit(self._do, attempt)

    def _do(self, attempt: Attempt) -> None:
        task = attempt.leased.task
        began = time.monotonic()
        why = ""
        try:
            ended = attempt.run(self._handlers[task.type])
        except ClientError as error:
            ended, why = "lost", str(error)
        finally:
            self._free.release()
        self.look_on(Seen(ended, task.id, task.type, task.attempt, time.monotonic() - began, why))

    @contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Stop at the first SIGTERM or SIGINT; only the main thread can hear them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

        def hear(_number: int, _frame: object) -> None:
            # A second one ends the process.
            for number, handler in before.items():
                signal.signal(number, handler)
            # Not here: what it wakes may be what was interrupted.
            threading.Thread(target=self.stop, name="stopping").start()

        for number in before:
            signal.signal(number, hear)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
