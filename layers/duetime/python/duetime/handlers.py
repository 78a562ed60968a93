"""What authors of Python handlers use: register a handler for a task type, and talk to its running attempt.

    from duetime.handlers import Context, Unretriable, handler

    @handler("report")
    def make_report(context: Context, payload: object) -> object:
        context.progress(50, "half way")
        return {"pages": 3}

A handler may be a coroutine (`async def`). With `payload=`, a pydantic model or a dataclass, it is given a value of
that class, and a task with another payload fails:

    @handler("charge", payload=Charge)
    async def charge(context: Context, payload: Charge) -> Receipt:
        return Receipt(await bank.charge(payload.amount, idempotency_key=context.task_id))

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

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar, overload

from duetime.process_locks import process_lock
from duetime.task_handlers import (
    PHASES,
    HandlerIncomplete,
    HandlerTimeout,
    PayloadInvalid,
    Registered,
    TaskHandler,
    Unretriable,
    registered_as,
)

__all__ = [
    "PHASES",
    "REGISTRY",
    "Accepted",
    "AttemptCancelled",
    "AttemptPaused",
    "Context",
    "DuplicateHandler",
    "Handler",
    "HandlerIncomplete",
    "HandlerTimeout",
    "PayloadInvalid",
    "Registered",
    "TaskHandler",
    "Unretriable",
    "handler",
    "process_lock",
    "registered_as",
]
Handler = Callable[["Context", Any], Any]
C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")
_NEVER = datetime.max.replace(tzinfo=UTC)


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

    @classmethod
    def for_test(  # noqa: PLR0913 - the attributes that a handler may look at
        cls,
        task_type: str = "test",
        *,
        task_id: str = "01KAJ0000000000000000TEST0",
        attempt: int = 1,
        fence: int | None = None,
        deadline: datetime = _NEVER,
        checkpoint: Any = None,  # noqa: ANN401 - any JSON
        inputs: Any = None,  # noqa: ANN401 - any JSON
        due_at: datetime | None = None,
        requested_action: str | None = None,
        report: Callable[[int | None, str], None] = lambda _percent, _message: None,
    ) -> Context:
        """A context for a unit test, which calls the handler itself: `charge(Context.for_test(), payload)`.

        `requested_action` is `pause` or `cancel`; `report` is called with each progress (percent and message).
        """
        return cls(
            task_id=task_id,
            type=task_type,
            attempt=attempt,
            fence=attempt if fence is None else fence,
            deadline=deadline,
            checkpoint=checkpoint,
            report=report,
            ask=lambda: requested_action,
            inputs=inputs,
            due_at=due_at,
        )

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


REGISTRY: dict[str, Registered] = {}
"""The registered handlers by task type."""


class Registration(Protocol):
    """Registers what it decorates, whose payload is plain JSON."""

    @overload
    def __call__(self, decorated: type[C], /) -> type[C]: ...  # type: ignore[overload-overlap]  # no class is both

    @overload
    def __call__(self, decorated: Callable[[Context, P], R], /) -> TaskHandler[P, R]: ...


class TypedRegistration(Protocol[P]):
    """Registers what it decorates, whose payload is of a class."""

    @overload
    def __call__(self, decorated: type[C], /) -> type[C]: ...  # type: ignore[overload-overlap]  # no class is both

    @overload
    def __call__(self, decorated: Callable[[Context, P], R], /) -> TaskHandler[P, R]: ...


@overload
def handler(task_type: str) -> Registration: ...


@overload
def handler(task_type: str, *, payload: type[P]) -> TypedRegistration[P]: ...


def handler(task_type: str, *, payload: type | None = None) -> Any:
    """Register the decorated function or class as the handler of a task type.

    A function does `run`. A class is made once, without arguments, and its methods do the phases they are named
    after. Each is given a `Context` and the payload (decoded JSON); what `run` returns (JSON) is the result.
    Whatever it raises fails the attempt, which is retried by the task's policy, unless it is `Unretriable`.
    Functions and methods may be coroutines: each attempt has an event loop of its own.

    Args:
        task_type: The type.
        payload: The class of the payload: a pydantic model or a dataclass. A task with another payload fails at once.

    Raises:
        DuplicateHandler: the type has a handler already.
        HandlerIncomplete: a class has no method `run`.
    """

    def register(decorated: Callable[..., Any]) -> object:
        registered = registered_as(task_type, decorated, payload)
        if task_type in REGISTRY:
            raise DuplicateHandler(task_type)
        REGISTRY[task_type] = registered
        return decorated if isinstance(decorated, type) else TaskHandler(task_type, decorated, payload)

    return register
