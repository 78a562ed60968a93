"""What authors of Python handlers use: register a handler for a task type, and talk to its running attempt.

    from duetime.handlers import Context, Unretriable, handler

    @handler("report")
    def make_report(context: Context, payload: object) -> object:
        context.progress(50, "half way")
        return {"pages": 3}

A class may offer more phases than `run`, each given the same context and payload:

    @handler("transfer")
    class Transfer:
        def prepare(self, context, payload): ...
        def run(self, context, payload): ...
        def rollback(self, context, payload): ...
        def clean(self, context, payload): ...

A phase may run more than once for a task (a crash, a lost answer): make its effects idempotent with
`context.task_id`, and let a store refuse an older `context.fence` than it has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - a public signature that users inspect at run time
from threading import BoundedSemaphore, Lock
from typing import Any, TypeVar

Handler = Callable[["Context", Any], Any]
F = TypeVar("F", bound=Callable[..., Any])


class Unretriable(Exception):
    """Raise it to fail the task at once: no further attempt would help."""


class AttemptPaused(Exception):
    """Raised by `Context.stop_if_requested` when the user asked for a pause."""

    def __init__(self, checkpoint: object = None) -> None:
        super().__init__("the user asked for a pause")
        self.checkpoint = checkpoint


class AttemptCancelled(Exception):
    """Raised by `Context.stop_if_requested` when the user asked for a cancel."""


class Accepted:
    """What a handler returns that has only accepted the work: `return context.defer()`."""


class DuplicateHandler(ValueError):
    """Two handlers were registered for one task type."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"two handlers are registered for the task type {task_type!r}")


class HandlerIncomplete(TypeError):
    """A handler class does not do the one phase that it must."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"the handler of the task type {task_type!r} has no method `run`")


@dataclass(frozen=True, slots=True)
class Context:
    """The running attempt, as its handler sees it.

    Attributes:
        task_id: stable over all attempts: the idempotency key to hand on.
        type: the task's type.
        attempt: 1 for the first.
        fence: grows with every attempt; a store can refuse writes of an older one.
        deadline: when the phase must have ended, in UTC.
        checkpoint: what an attempt that was paused left for this one; `None` if there is nothing.
        inputs: of a topology's node, the results of the parents that it named in `inputs`, by their names.
        traceparent: the trace in which the task was created (W3C Trace Context), to link spans to; `None` if the
            request named none.
        due_at: when the task was due, in UTC; `None` only in a context that a test has made without it.
    """

    task_id: str
    type: str
    attempt: int
    fence: int
    deadline: datetime
    checkpoint: Any
    report: Callable[[int | None, str], None]
    ask: Callable[[], str | None]
    inputs: Any = None
    traceparent: str | None = None
    due_at: datetime | None = None

    @property
    def requested_action(self) -> str | None:
        """What the user asks of the attempt, as of the last heartbeat."""
        return self.ask()

    def stop_if_requested(self, checkpoint: object = None) -> None:
        """Stop here if the user asked for it: call it where the work can be left and taken up again.

        Args:
            checkpoint: what the attempt that goes on after a pause is given, at most 4 KB of JSON.

        Raises:
            AttemptPaused: let it pass through.
            AttemptCancelled: let it pass through.
        """
        match self.requested_action:
            case "pause":
                raise AttemptPaused(checkpoint)
            case "cancel":
                raise AttemptCancelled

    def defer(self) -> Accepted:
        """Say that the work is only accepted: `return context.defer()`.

        The task stays `running` until `POST /v1/tasks/{id}/notify` tells its end, or its deadline is over.
        """
        return Accepted()

    def progress(self, percent: int, message: str = "") -> None:
        """Tell how far the work has come.

        Args:
            percent: 0 to 100; anything beyond is taken to the nearer end.
            message: a few words.
        """
        self.report(max(0, min(100, percent)), message)

    def heartbeat(self) -> None:
        """Say that the attempt is alive. The worker says so by itself; this only does it now."""
        self.report(None, "")


@dataclass(frozen=True, slots=True)
class Registered:
    """The handler of a task type: what does each of the phases that it offers."""

    phases: Mapping[str, Handler]


_MAKING = Lock()
_PROCESS_LOCKS: dict[str, tuple[BoundedSemaphore, int]] = {}
REGISTRY: dict[str, Registered] = {}
"""The registered handlers by task type."""
PHASES = ("prepare", "run", "clean", "rollback")
"""Names of the methods that a handler class may have; `run` is a must."""


@contextmanager
def process_lock(key: str, limit: int = 1) -> Iterator[None]:
    """Let at most so many handlers of this process into a block at once; it costs no call and no write.

    For what only a process shares: a model in memory, a connection, a file of the machine. What several machines
    share needs a task's `lock`. Waiting counts towards the attempt's timeout; the lease is renewed meanwhile.

    Raises:
        ValueError: the key was used with another limit before, or the limit is not positive.
    """
    if limit < 1:
        raise ValueError(f"the limit of process lock {key!r} should be at least 1")
    with _MAKING:
        places, kept = _PROCESS_LOCKS.setdefault(key, (BoundedSemaphore(limit), limit))
    if kept != limit:
        raise ValueError(f"process lock {key!r} has the limit {kept}, not {limit}")
    with places:
        yield


def handler(task_type: str) -> Callable[[F], F]:
    """Register the decorated function or class as the handler of a task type.

    A function does `run`. A class is made once, without arguments, and its methods do the phases they are named
    after. Each is given a `Context` and the payload (decoded JSON); what `run` returns (JSON) is the result.
    Whatever it raises fails the attempt, which is retried by the task's policy, unless it is `Unretriable`.

    Raises:
        DuplicateHandler: the type has a handler already.
        HandlerIncomplete: a class has no method `run`.
    """

    def register(decorated: F) -> F:
        registered = registered_as(task_type, decorated)
        if task_type in REGISTRY:
            raise DuplicateHandler(task_type)
        REGISTRY[task_type] = registered
        return decorated

    return register


def registered_as(task_type: str, decorated: Callable[..., Any]) -> Registered:
    """What a function or class is registered as.

    Raises:
        HandlerIncomplete: a class has no method `run`.
    """
    if not isinstance(decorated, type):
        return Registered({"run": decorated})
    made = decorated()
    phases = {phase: getattr(made, phase) for phase in PHASES if hasattr(made, phase)}
    if "run" not in phases:
        raise HandlerIncomplete(task_type)
    return Registered(phases)
