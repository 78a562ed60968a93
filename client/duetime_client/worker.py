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
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

from duetime_client.attempt_errors import (
    AttemptCancelled,
    AttemptPaused,
    CheckpointInvalid,
    LeaseLost,
    StepInvalid,
    Unavailable,
)
from duetime_client.errors import ClientError
from duetime_client.pull_attempt import Attempt, Unretriable, acknowledge_within, may_pass
from duetime_client.run_context import AsyncContext, ClientMissing, Context
from duetime_client.stop_signals import stopped_by_signals
from duetime_client.task_batches import BatchFunction
from duetime_client.worker_events import DuplicateHandler, WorkerEvent, WorkerIdle
from duetime_client.worker_functions import TaskFunction
from duetime_common.handler_batches import Batch, check_batch
from duetime_common.handler_batches import BatchItem as _BatchItem
from duetime_common.handler_retries import HANDLER_DEFINITION, RetryIn, RetryRule
from duetime_common.secret_variables import SecretMissing, variable_of
from duetime_common.soft_timeouts import SoftTimeout, soft_timeout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime_client.client import Client
    from duetime_client.leases import LeasedTask
    from duetime_common.handler_retries import Classes


__all__ = [
    "AsyncContext",
    "AttemptCancelled",
    "AttemptPaused",
    "Batch",
    "BatchItem",
    "CheckpointInvalid",
    "ClientMissing",
    "Context",
    "DuplicateHandler",
    "LeaseLost",
    "RetryIn",
    "SecretMissing",
    "SoftTimeout",
    "StepInvalid",
    "Unavailable",
    "Unretriable",
    "Worker",
    "WorkerEvent",
    "WorkerIdle",
    "secret",
    "soft_timeout",
]
P = TypeVar("P")
R = TypeVar("R")
X = TypeVar("X", Context, AsyncContext)
BatchItem: TypeAlias = _BatchItem[Context, P]
"""One task of a batch, with its `context` and `payload`; `fail(error)` fails only this task's attempt."""
MOST_AT_ONCE = 10
"""The API leases at most this many tasks in one request."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_UNWAITED_PAUSE = 2.0
"""Pause, in seconds, after a request that the API answered without waiting for tasks."""
_NAME_LENGTH = 40
_REPORTING = 1.0
"""The number of seconds at the end of a stop that are reserved for reporting unfinished tasks."""


class Registration(Protocol):
    """Registers a function whose payload is plain JSON."""

    def __call__(self, function: Callable[[X, P], R], /) -> TaskFunction[P, R]:
        """Register it."""
        ...


class TypedRegistration(Protocol[P]):
    """Registers a function whose payload is a value of a class."""

    def __call__(self, function: Callable[[X, P], R], /) -> TaskFunction[P, R]:
        """Register it."""
        ...


class BatchRegistration(Protocol):
    """Registers a function for batches of tasks whose payloads are plain JSON."""

    def __call__(self, function: Callable[[Sequence[BatchItem[P]]], Any], /) -> BatchFunction[P]:
        """Register it."""
        ...


class PythonHandler(Protocol):
    """A function registered by `duetime.handlers.handler`."""

    @property
    def task_type(self) -> str:
        """The task type for which the function is registered."""
        ...

    @property
    def payload_model(self) -> type[Any] | None:
        """The class of the function's payload, or `None`."""
        ...

    @property
    def retry_rule(self) -> RetryRule:
        """Which of the function's exceptions are retried."""
        ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - a context and a payload, or items
        """Call the function."""
        ...


def _definition_of(handler: Any) -> PythonHandler:  # noqa: ANN401 - a function or a class, whatever type checkers say
    """Return the definition that `@handler` created for a function or a class.

    Raises:
        TypeError: a pull worker cannot run the handler.
    """
    is_class = isinstance(handler, type)
    definition: Any = vars(handler).get(HANDLER_DEFINITION) if is_class else handler
    name = getattr(handler, "__name__", repr(handler))
    if not hasattr(definition, "retry_rule"):
        raise TypeError(
            f"{name} is not a handler: decorate it with @handler(...) of duetime.handlers, or use @worker.task"
        )
    others = [phase for phase in ("prepare", "clean", "rollback") if is_class and hasattr(handler, phase)]
    if others:
        raise TypeError(f"{name} has {' and '.join(others)}, but a pull worker has only the phase run")
    found: PythonHandler = definition
    return found


def _name() -> str:
    return f"{socket.gethostname()[: _NAME_LENGTH - 8]}-{os.getpid()}"


def secret(name: str, *, fresh: bool = False) -> str:  # noqa: ARG001 - the same call as in a worker function
    """Return a secret from its environment variable; `secret("stripe")` reads `DUETIME_SECRET_STRIPE`.

    The function of this name in `duetime.handlers` reads the same variable in a pull worker.

    Args:
        name: name of the secret.
        fresh: no effect here; a worker function reads the secret again.

    Raises:
        SecretMissing: the variable is not set.
    """
    value = os.environ.get(variable_of(name))
    if value is None:
        raise SecretMissing(name)
    return value


class Worker:
    """Leases tasks of pulled types and runs the function that is registered for each type."""

    def __init__(  # noqa: PLR0913 - its settings
        self,
        client: Client | None = None,
        *,
        concurrency: int = 4,
        lease_seconds: int = 30,
        wait_seconds: int = 7,
        pause_seconds: float = 0.0,
        stop_seconds: float = 9.0,
        name: str = "",
        on_event: Callable[[WorkerEvent], object] = lambda _event: None,
    ) -> None:
        """Create a worker.

        Args:
            client: client of the deployment; may also be given to `run`.
            concurrency: how many tasks run at a time, each in a thread.
            lease_seconds: duration of a lease, after which another worker gets the task; the lease is renewed after
                each third of this time.
            wait_seconds: how long a request waits for a task; if this is shorter than `stop_seconds`, a stopped worker
                releases the tasks of the last request.
            pause_seconds: pause after a response without tasks.
            stop_seconds: how long `stop` may take; must be less than the time after which the process is killed.
            name: worker name in the attempt history; host and process by default.
            on_event: called with each event of the worker.
        """
        self.concurrency = 0
        self._free = threading.Semaphore(0)
        self.with_concurrency(concurrency)
        self.lease_seconds = lease_seconds
        self.wait_seconds = wait_seconds
        self.pause_seconds = pause_seconds
        self.stop_seconds = stop_seconds
        self.name = (name or _name())[:_NAME_LENGTH]
        self.on_event = on_event
        self._client = client
        self._handlers: dict[str, TaskFunction[Any, Any]] = {}
        self._stopping = threading.Event()
        self._stopped_at = 0.0
        self._running: list[Attempt] = []
        self._reports: list[threading.Thread] = []
        self._changed = threading.Condition()

    def with_concurrency(self, concurrency: int) -> Worker:
        """Set how many tasks run at a time, at least one; call it before `run`."""
        self.concurrency = max(1, concurrency)
        self._free = threading.Semaphore(self.concurrency)
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """The task types that the worker leases."""
        return tuple(self._handlers)

    @overload
    def task(
        self, task_type: str, *, batch: Batch, retry_on: Classes | None = None, no_retry_on: Classes = ()
    ) -> BatchRegistration: ...

    @overload
    def task(
        self,
        task_type: str,
        *,
        payload: type[P],
        batch: Batch,
        retry_on: Classes | None = None,
        no_retry_on: Classes = (),
    ) -> Callable[[Callable[[Sequence[BatchItem[P]]], Any]], BatchFunction[P]]: ...

    @overload
    def task(self, task_type: str, *, retry_on: Classes | None = None, no_retry_on: Classes = ()) -> Registration: ...

    @overload
    def task(
        self, task_type: str, *, payload: type[P], retry_on: Classes | None = None, no_retry_on: Classes = ()
    ) -> TypedRegistration[P]: ...

    def task(
        self,
        task_type: str,
        *,
        payload: type | None = None,
        batch: Batch | None = None,
        retry_on: Classes | None = None,
        no_retry_on: Classes = (),
    ) -> Any:
        """Register the decorated function for a type: it takes a `Context` and the payload, and returns the result.

        An exception fails the attempt, which is retried according to the task's policy unless it is `Unretriable` or
        excluded by `retry_on` or `no_retry_on`. `RetryIn` sets the wait before the next attempt. The function
        may be a coroutine; each attempt has its own event loop in its thread.

        Args:
            task_type: The type.
            payload: The class of the payload, a pydantic model or a dataclass; a task with an invalid payload fails at
            once.
            batch: The function is called with a list of `BatchItem`, one for each task, and with at most as many tasks
                as the worker's `concurrency`. The function returns `None`, or a list with the result or the exception
                of each task. An exception that the function raises fails all tasks.
            retry_on: Only these exceptions, and `RetryIn`, are retried; other exceptions fail the task at once.
            no_retry_on: These exceptions fail the task at once, even if `retry_on` includes them.

        Raises:
            DuplicateHandler: the type already has a function.
            TypeError: The decorator is used without a type (`@worker.task`) or for a class, or a keyword has a wrong
                value.
        """
        # The type is checked at run time, because a decorator without parentheses is an easy mistake.
        if not isinstance(task_type, str) or not task_type:
            name = getattr(task_type, "__name__", None) or "report"
            raise TypeError(f'@worker.task needs the type of the tasks: write @worker.task("{name}")')
        if payload is not None:
            from duetime_common.payload_models import check_model  # noqa: PLC0415 - only types with a class need it

            check_model(payload)
        check_batch(batch)
        rule = RetryRule(retry_on, no_retry_on)

        def register(function: Callable[..., Any]) -> TaskFunction[Any, Any]:
            if isinstance(function, type):
                raise TypeError(f"@worker.task takes functions: {function.__name__} is a class; see worker.add_handler")
            if task_type in self._handlers:
                raise DuplicateHandler(task_type)
            registered: TaskFunction[Any, Any] = TaskFunction(task_type, function, payload, rule)
            if batch is not None:
                registered = BatchFunction(
                    task_type, function, payload, rule, batch=batch, concurrency=lambda: self.concurrency
                )
            self._handlers[task_type] = registered
            return registered

        return register

    def add_handler(self, handler: PythonHandler | type[Any]) -> None:
        """Run a handler that `@handler` of `duetime.handlers` registered: a function, or a class with only `run`.

        This is for work that takes longer than a worker function allows. The handler gets a `Context` of this module,
        which has no `deadline` and no `defer`; an error whose class is named `Unretriable` fails the task at once,
        whatever the package of the class. The options that the handler sets for its tasks, such as `retry`, apply only
        if the package that registers the handler is also deployed.

        Raises:
            DuplicateHandler: the handler's type already has a function.
            TypeError: the handler is not decorated with `@handler`, or is a class with phases other than `run`.
        """
        definition = _definition_of(handler)
        register: Any = self.task
        rule = definition.retry_rule
        register(
            definition.task_type,
            payload=definition.payload_model,
            batch=getattr(definition, "batch", None),
            retry_on=rule.retry_on,
            no_retry_on=rule.no_retry_on,
        )(definition)

    def stop(self) -> None:
        """Lease no more tasks, and return from `run` within `stop_seconds`.

        Running tasks can use all but the last second of this time. Then their leases are released, or reported as
        failed if the task allows one attempt, and `context.lost` is true.
        """
        if not self._stopping.is_set():
            self._stopped_at = time.monotonic()
            self._stopping.set()
            with self._changed:
                self._changed.notify_all()
            self.on_event(WorkerEvent("stopping"))

    def run(self, client: Client | None = None) -> None:
        """Run tasks until `stop` is called or SIGTERM or SIGINT arrives; a second signal exits at once.

        Handler threads that are still running then do not keep the process alive.

        Raises:
            WorkerIdle: no function is registered, or there is no client.
            ClientError: the API rejected a request, and a retry would not help.
        """
        client = client or self._client
        if client is None or not self._handlers:
            raise WorkerIdle("a worker needs a client, and a function for at least one type: @worker.task(...)")
        with stopped_by_signals(self.stop):
            try:
                self._work(client)
            except Exception:
                self.stop()
                self._end_attempts()
                raise
            self._end_attempts()

    def _work(self, client: Client) -> None:
        """Lease and start tasks until the worker is stopped."""
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            poll = _Poll(partial(self._lease, client), self._changed)
            try:
                leases = poll.answer(self._stopping.is_set, self._time_to_wait)
            except ClientError as error:
                if not may_pass(error):
                    raise
                self.on_event(WorkerEvent("unreachable", seconds=pause, why=str(error)))
                self._stopping.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            for leased in leases:
                self._begin(client, leased)
            if not leases:
                self._stopping.wait(self._pause(poll.took))

    def _end_attempts(self) -> None:
        """Let running attempts end in time, and give up the attempts that do not."""
        ends_at = self._stopped_at + self.stop_seconds
        with self._changed:
            self._changed.wait_for(lambda: not self._running, self._time_to_wait())
            left = [*self._running]
        for attempt in left:
            self._report(attempt, attempt.interrupt)
        for report in self._reports:
            report.join(max(0.0, ends_at - time.monotonic()))

    def _time_to_wait(self) -> float:
        """Seconds that a stopped worker may still wait for running attempts."""
        reports_at = self._stopped_at + self.stop_seconds - min(_REPORTING, self.stop_seconds / 2)
        return max(0.0, reports_at - time.monotonic())

    def _report(self, attempt: Attempt, give_up: Callable[[], str]) -> None:
        """Give up a task without waiting for the response, which may never come."""
        task = attempt.leased.task

        def report() -> None:
            ended = give_up()
            self.on_event(WorkerEvent(ended, task.id, task.type, task.attempt, why="the worker was stopped"))

        thread = threading.Thread(target=report, name=f"duetime {task.id} given up", daemon=True)
        self._reports.append(thread)
        thread.start()

    def _pause(self, took: float) -> float:
        """The pause after a response without tasks, given how long the request took.

        An early response means that the API did not wait, because too many requests are already waiting.
        """
        is_soon = took < self.wait_seconds / 2
        return max(self.pause_seconds, _UNWAITED_PAUSE) if is_soon else self.pause_seconds

    def _lease(self, client: Client) -> list[LeasedTask]:
        """Wait for a free thread, and lease as many tasks as there are free threads."""
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
                    acknowledge_within_seconds=acknowledge_within(self.lease_seconds),
                    worker=self.name,
                )
        finally:
            for _ in range(free - len(leases)):
                self._free.release()
        return leases

    def _begin(self, client: Client, leased: LeasedTask) -> None:
        attempt = Attempt(client, leased, self.lease_seconds)
        task = leased.task
        if self._stopping.is_set() or task.type not in self._handlers:
            # The task was leased while the worker was stopping.
            self._free.release()
            self._report(attempt, attempt.release)
            return
        self.on_event(WorkerEvent("leased", task.id, task.type, task.attempt))
        with self._changed:
            self._running.append(attempt)
        # Daemon threads are used, because the threads of an executor would keep the process from ending.
        threading.Thread(target=self._run, args=(attempt,), name=f"duetime {task.id}", daemon=True).start()

    def _run(self, attempt: Attempt) -> None:
        task = attempt.leased.task
        began = time.monotonic()
        why = ""
        try:
            try:
                function = self._handlers[task.type]
                run = function.runner(task) if isinstance(function, BatchFunction) else function.run
                ended = attempt.run(run, function.retry_rule)
            except ClientError as error:
                ended, why = "lost", str(error)
            finally:
                self._free.release()
            self.on_event(WorkerEvent(ended, task.id, task.type, task.attempt, time.monotonic() - began, why))
        finally:
            # The process may end as soon as the attempt is removed.
            with self._changed:
                self._running.remove(attempt)
                self._changed.notify_all()


class _Poll:
    """A request for leases that runs in its own thread, so that a stopped worker need not wait for the response.

    Attributes:
        took: how long the request took, in seconds, including the wait for a free thread.
    """

    def __init__(self, lease: Callable[[], list[LeasedTask]], changed: threading.Condition) -> None:
        self.took = 0.0
        self._lease = lease
        self._changed = changed
        self._leases: list[LeasedTask] | None = None
        self._error: Exception | None = None
        threading.Thread(target=self._run, name="duetime poll", daemon=True).start()

    def answer(self, is_stopping: Callable[[], bool], time_to_wait: Callable[[], float]) -> list[LeasedTask]:
        """Return the leases; empty if the worker is stopped and no response arrives in time.

        Leases that arrive later get no heartbeat and expire soon without counting as attempts.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or is_stopping())
            self._changed.wait_for(lambda: self._has_ended, time_to_wait() if is_stopping() else None)
        if self._error is not None:
            raise self._error
        return self._leases or []

    @property
    def _has_ended(self) -> bool:
        return self._leases is not None or self._error is not None

    def _run(self) -> None:
        began = time.monotonic()
        try:
            leases, error = self._lease(), None
        except Exception as raised:  # noqa: BLE001 - raised where the answer is waited for
            leases, error = None, raised
        with self._changed:
            self.took = time.monotonic() - began
            self._leases, self._error = leases, error
            self._changed.notify_all()
