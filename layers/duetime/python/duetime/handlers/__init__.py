"""Provides what authors of Python handlers need: a decorator that registers handlers, and the context of attempts.

    from duetime.handlers import Context, Unretriable, handler

    @handler("report")
    def make_report(context: Context, payload: object) -> object:
        context.progress(50, "half way")
        return {"pages": 3}

A handler may be a coroutine function (`async def`). If `payload=` names a pydantic model or a dataclass, the handler
receives an instance of this class, and a task whose payload does not match fails:

    @handler("charge", payload=Charge)
    async def charge(context: Context, payload: Charge) -> Receipt:
        return Receipt(await bank.charge(payload.amount, idempotency_key=context.task_id))

The decorator's arguments can set default options for all tasks of the type, which the creation of a task can override:

    @handler("mail.send", retry={"max_attempts": 3}, timeout_seconds=30, rate={"key": "smtp", "limit": 10})
    def send_mail(context: Context, payload: object) -> None: ...

A class can implement other phases in addition to `run`; all phases receive the same context and payload:

    @handler("transfer")
    class Transfer:
        def prepare(self, context, payload): ...
        def run(self, context, payload): ...
        def rollback(self, context, payload): ...
        def clean(self, context, payload): ...

With `batch=`, a function is called with several tasks at once, and each task has its own outcome:

    @handler("index.add", batch=Batch(max_size=100))
    def add(items: Sequence[BatchItem[Any]]) -> Sequence[object]:
        return index.bulk([item.payload for item in items])

A phase may run more than once for a task, after a crash or a lost response. Make the phase's effects idempotent with
`context.idempotency_key`, and let stores reject a `context.fence` that is lower than the highest fence that they have
seen. Later attempts do not repeat completed steps, because `context.step("charge", bank.charge, amount)` stores the
result of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, Unpack, overload

from duetime.handlers.context import Accepted, AsyncContext, Context, RunSchedule, RunTopology
from duetime.handlers.errors import (
    AttemptCancelled,
    AttemptPaused,
    CheckpointInvalid,
    ClientMissing,
    HandlerIncomplete,
    HandlerTimeout,
    LeaseLost,
    OptionInvalid,
    PayloadInvalid,
    StepInvalid,
    TaskTypeMissing,
    Unretriable,
)
from duetime.handlers.options import checked_options
from duetime.handlers.payload_codec import use_codec
from duetime.handlers.secrets import SecretUnavailable, secret
from duetime.handlers.task_handlers import PHASES, BatchHandler, Registered, TaskHandler, registered_as
from duetime_common.handler_batches import Batch, check_batch
from duetime_common.handler_batches import BatchItem as _BatchItem
from duetime_common.handler_retries import HANDLER_DEFINITION, Classes, RetryIn, RetryRule
from duetime_common.payload_codecs import Binary
from duetime_common.secret_variables import SecretMissing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_common.option_fields import LockSpec, NotifyOn, RateSpec, RetryPolicy, TypeOptions, UniqueKey
    from duetime_common.soft_timeouts import SoftTimeout, soft_timeout

__all__ = [
    "PHASES",
    "REGISTRY",
    "Accepted",
    "AsyncContext",
    "AttemptCancelled",
    "AttemptPaused",
    "Batch",
    "BatchHandler",
    "BatchItem",
    "Binary",
    "CheckpointInvalid",
    "ClientMissing",
    "Context",
    "DuplicateHandler",
    "Handler",
    "HandlerIncomplete",
    "HandlerTimeout",
    "LeaseLost",
    "LockSpec",
    "NotifyOn",
    "OptionInvalid",
    "PayloadInvalid",
    "RateSpec",
    "Registered",
    "RetryIn",
    "RetryPolicy",
    "RunSchedule",
    "RunTopology",
    "SecretMissing",
    "SecretUnavailable",
    "SoftTimeout",
    "StepInvalid",
    "TaskHandler",
    "TaskTypeMissing",
    "UniqueKey",
    "Unretriable",
    "handler",
    "process_lock",
    "registered_as",
    "secret",
    "soft_timeout",
    "use_codec",
]
if not TYPE_CHECKING:
    _OPTION_TYPES = {"LockSpec", "NotifyOn", "RateSpec", "RetryPolicy", "UniqueKey"}
    _SOFT_TIMEOUTS = {"SoftTimeout", "soft_timeout"}

    def __getattr__(name: str) -> object:
        """Import option types and soft timeouts on first use."""
        if name not in _OPTION_TYPES | _SOFT_TIMEOUTS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from duetime_common import option_fields, soft_timeouts  # noqa: PLC0415 - see above

        return getattr(soft_timeouts if name in _SOFT_TIMEOUTS else option_fields, name)


Handler = Callable[[Context, Any], Any]
C = TypeVar("C")
X = TypeVar("X", Context, AsyncContext)
P = TypeVar("P")
R = TypeVar("R")
BatchItem: TypeAlias = _BatchItem[Context, P]
"""One task of a batch, with its `context` and `payload`. `fail(error)` fails only this task's attempt."""
REGISTRY: dict[str, Registered] = {}
"""The registered handlers, by task type."""
_MAKING = Lock()
_PROCESS_LOCKS: dict[str, tuple[BoundedSemaphore, int]] = {}


class DuplicateHandler(ValueError):
    """Two handlers were registered for one task type."""

    def __init__(self, task_type: str) -> None:
        super().__init__(f"two handlers are registered for the task type {task_type!r}")


class Registration(Protocol):
    """Registers the decorated handler, whose payload is plain JSON."""

    @overload
    def __call__(self, decorated: type[C], /) -> type[C]: ...  # type: ignore[overload-overlap]  # no class is both

    @overload
    def __call__(self, decorated: Callable[[X, P], R], /) -> TaskHandler[P, R]: ...


class TypedRegistration(Protocol[P]):
    """Registers the decorated handler, whose payload is an instance of a class."""

    @overload
    def __call__(self, decorated: type[C], /) -> type[C]: ...  # type: ignore[overload-overlap]  # no class is both

    @overload
    def __call__(self, decorated: Callable[[X, P], R], /) -> TaskHandler[P, R]: ...


class BatchRegistration(Protocol):
    """Registers the decorated function for batches of tasks, whose payloads are plain JSON."""

    def __call__(self, decorated: Callable[[Sequence[BatchItem[P]]], Any], /) -> BatchHandler[P]: ...


class TypedBatchRegistration(Protocol[P]):
    """Registers the decorated function for batches of tasks, whose payloads are instances of a class."""

    def __call__(self, decorated: Callable[[Sequence[BatchItem[P]]], Any], /) -> BatchHandler[P]: ...


@overload
def handler(
    task_type: str,
    *,
    retry_on: Classes | None = None,
    no_retry_on: Classes = (),
    **options: Unpack[TypeOptions],
) -> Registration: ...


@overload
def handler(
    task_type: str,
    *,
    payload: type[P],
    retry_on: Classes | None = None,
    no_retry_on: Classes = (),
    **options: Unpack[TypeOptions],
) -> TypedRegistration[P]: ...


@overload
def handler(
    task_type: str,
    *,
    batch: Batch,
    retry_on: Classes | None = None,
    no_retry_on: Classes = (),
    **options: Unpack[TypeOptions],
) -> BatchRegistration: ...


@overload
def handler(
    task_type: str,
    *,
    payload: type[P],
    batch: Batch,
    retry_on: Classes | None = None,
    no_retry_on: Classes = (),
    **options: Unpack[TypeOptions],
) -> TypedBatchRegistration[P]: ...


def handler(
    task_type: str = "",
    *,
    payload: type | None = None,
    batch: Batch | None = None,
    retry_on: Classes | None = None,
    no_retry_on: Classes = (),
    **options: Unpack[TypeOptions],
) -> Any:
    """Register the decorated function or class as the handler of a task type.

    A function implements `run`. A class is instantiated once, without arguments, and its methods implement the phases
    after which they are named. Each method receives a `Context` and the payload (decoded JSON), and the return value of
    `run` (JSON) is the task's result. Any exception fails the attempt, which is retried according to the task's policy,
    unless the exception is `Unretriable` or excluded by `retry_on` or `no_retry_on`. `RetryIn` sets the wait before the
    next attempt. Functions and methods may be coroutine functions; each attempt has its own event loop.

    Args:
        task_type: The task type.
        payload: The class of the payload, which is a pydantic model, a dataclass or `bytes`. A task whose payload does
            not match fails at once.
        batch: Calls the function with several tasks, as a list of `BatchItem`. The function returns `None`, or a list
            that contains a result for each task, or an exception if the task failed. If the function raises an
            exception, all attempts fail.
        retry_on: Only these exceptions and `RetryIn` are retried. All other exceptions fail the task at once.
        no_retry_on: These exceptions fail the task at once, even if `retry_on` includes them.
        options: Default options for tasks of the type, which the creation of a task can override: `priority`, `retry`,
            `timeout_seconds`, `notify_within_seconds`, `rollback_on_failure`, `lock`, `locks`, `rate`, `notify_on`,
            `expires_seconds`, `fair_key`, `fair_weight` and `unique`, with the same values as in a creation.

    Raises:
        DuplicateHandler: the type already has a handler.
        HandlerIncomplete: a class has no method `run`.
        OptionInvalid: an option has a wrong value.
        TaskTypeMissing: the decorator has no task type, as in `@handler` or `@handler()`.
        TypeError: a keyword has a wrong value.
    """
    # The type is also checked at run time, because a decorator without parentheses is an easy mistake.
    if not isinstance(task_type, str) or not task_type:
        raise TaskTypeMissing(task_type)
    check_batch(batch)
    rule = RetryRule(retry_on, no_retry_on)
    defaults = checked_options(task_type, options)

    def register(decorated: Callable[..., Any]) -> object:
        registered = registered_as(task_type, decorated, payload, rule, defaults, batch)
        if task_type in REGISTRY:
            raise DuplicateHandler(task_type)
        REGISTRY[task_type] = registered
        if registered.batch is not None:
            return BatchHandler(task_type, registered)
        is_class = isinstance(decorated, type)
        of_run = registered.phases["run"] if is_class else decorated
        definition = TaskHandler(task_type, of_run, registered.payload_model, registered.retry_rule, registered.options)
        if not is_class:
            return definition
        # The client's `client.tasks.of` reads this attribute.
        setattr(decorated, HANDLER_DEFINITION, definition)
        return decorated

    return register


@contextmanager
def process_lock(key: str, limit: int = 1) -> Iterator[None]:
    """Let at most `limit` handlers in this process enter a block at the same time, without network calls.

    Use this for resources of one process or machine, such as a model in memory, a connection or a file. For resources
    that several machines share, use a task's `lock`. Waiting counts towards the attempt's timeout, but the lease is
    renewed while the handler waits.

    Raises:
        ValueError: the key was used with a different limit before, or the limit is not positive.
    """
    if limit < 1:
        raise ValueError(f"the limit of process lock {key!r} should be at least 1")
    with _MAKING:
        places, kept = _PROCESS_LOCKS.setdefault(key, (BoundedSemaphore(limit), limit))
    if kept != limit:
        raise ValueError(f"process lock {key!r} has the limit {kept}, not {limit}")
    with places:
        yield
