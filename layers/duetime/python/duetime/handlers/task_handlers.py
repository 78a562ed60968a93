"""Defines registered handlers, which the decorator returns, and calls their phases."""

from __future__ import annotations

import inspect
from dataclasses import field
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duetime.handlers.errors import HandlerIncomplete, HandlerTimeout, PayloadInvalid
from duetime_common.frozen_classes import frozen
from duetime_common.handler_batches import BatchItem, batch_outcomes, error_of
from duetime_common.handler_retries import RETRY_ALL

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping, Sequence

    from duetime.handlers.context import Context
    from duetime_common.handler_batches import Batch
    from duetime_common.handler_retries import RetryRule

    Handler = Callable[..., Any]
    NewEventLoop = Callable[[], AbstractEventLoop]

P = TypeVar("P")
R_co = TypeVar("R_co", covariant=True)
PHASES = ("prepare", "run", "clean", "rollback")
"""Names of the methods that a handler class can have. Only `run` is required."""
_SPARE_SECONDS = 0.5
"""A coroutine is cancelled this many seconds before the deadline, because a late handler ends the entire process."""
_REGISTERED = "_duetime_registered"
"""Attribute of a handler class that contains its latest registration."""


class TaskHandler(Generic[P, R_co]):
    """A function that is registered for a task type; calling this object calls the function.

    Callers create tasks for this handler with the client's `client.tasks.of(...)`, which uses `task_type` and `encode`.
    """

    def __init__(
        self,
        task_type: str,
        function: Callable[[Context, P], R_co],
        payload_model: type[P] | None = None,
        retry_rule: RetryRule = RETRY_ALL,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        # This call comes first, because it also copies the attributes set below if the function is a `TaskHandler`.
        update_wrapper(self, function)
        self.task_type = task_type
        self.function = function
        self.payload_model = payload_model
        self.retry_rule = retry_rule
        self.options: Mapping[str, Any] = options or {}

    def __call__(self, context: Context, payload: P) -> R_co:
        """Call the function, as in a test."""
        return self.function(context, payload)

    def encode(self, payload: P) -> Any:  # noqa: ANN401 - any JSON
        """Encode a payload as JSON.

        Raises:
            PayloadInvalid: The payload does not match the handler's payload class.
        """
        if self.payload_model is None:
            return payload
        from duetime_common.payload_models import to_json  # noqa: PLC0415 - imported for handlers with a model only

        try:
            return to_json(self.payload_model, payload)
        except ValueError as error:
            raise PayloadInvalid(f"the payload of {self.task_type!r} is {error}") from None


class BatchHandler(TaskHandler[P, Any]):
    """A function that is registered for batches of a task type; calling this object calls the function."""

    def __init__(self, task_type: str, registered: Registered) -> None:
        function, model = registered.phases["run"], registered.payload_model
        super().__init__(task_type, function, model, registered.retry_rule, registered.options)
        self.batch = registered.batch

    def __call__(self, items: Sequence[BatchItem[Context, P]]) -> Any:  # type: ignore[override]  # noqa: ANN401 - a function's result
        """Call the function, as in a test."""
        return self.function(items)  # type: ignore[call-arg, arg-type]  # a function of items


@frozen
class Registered:
    """The handler for a task type, with a callable for each implemented phase.

    Attributes:
        phases: callables by phase name; a batch handler's callable takes a list of items.
        payload_model: class of the payload; `None` for plain JSON.
        retry_rule: which of the handler's exceptions are retried.
        options: default options for tasks of the type, as JSON.
        batch: which tasks share a call; `None` if each task has its own call.
    """

    phases: Mapping[str, Handler]
    payload_model: type | None = None
    retry_rule: RetryRule = RETRY_ALL
    options: Mapping[str, Any] = field(default_factory=dict)
    batch: Batch | None = None

    def call(
        self,
        phase: str,
        context: Context,
        payload: object,
        *,
        seconds: float | None = None,
        new_event_loop: NewEventLoop | None = None,
    ) -> Any:  # noqa: ANN401 - a handler's return value
        """Call a phase, and await its coroutine, if any. A batch handler is called with one item.

        Args:
            phase: Name of the phase.
            context: Context of the attempt.
            payload: Decoded JSON.
            seconds: Timeout, after which a coroutine is cancelled; none by default.
            new_event_loop: Creates the event loop of a coroutine; asyncio's own by default.

        Raises:
            PayloadInvalid: The payload does not match the handler's payload class.
            HandlerTimeout: The coroutine was cancelled.
        """
        payload = self.decode(payload)
        if self.batch is None:
            return _ended(self.phases[phase](context, payload), seconds, new_event_loop)
        (outcome,) = self.call_batch([BatchItem(context, payload)], seconds=seconds, new_event_loop=new_event_loop)
        if (error := error_of(outcome)) is not None:
            raise error
        return outcome

    def call_batch(
        self,
        items: Sequence[BatchItem[Context, Any]],
        *,
        seconds: float | None = None,
        new_event_loop: NewEventLoop | None = None,
    ) -> list[object]:
        """Call a batch handler, and await its coroutine, if any.

        Args:
            items: the tasks to handle.
            seconds: Timeout, after which a coroutine is cancelled; none by default.
            new_event_loop: Creates the event loop of a coroutine; asyncio's own by default.

        Returns:
            The result of each item, or the exception with which the item's attempt failed.

        Raises:
            HandlerTimeout: The coroutine was cancelled.
        """
        return batch_outcomes(items, _ended(self.phases["run"](items), seconds, new_event_loop))

    def decode(self, payload: object) -> Any:  # noqa: ANN401 - a value of the payload's class
        """Parse a payload's JSON into an instance of the handler's payload class.

        Raises:
            PayloadInvalid: The payload does not match.
        """
        if self.payload_model is None:
            return payload
        from duetime_common.payload_models import from_json  # noqa: PLC0415 - imported for handlers with a model only

        try:
            return from_json(self.payload_model, payload)
        except ValueError as error:
            raise PayloadInvalid(f"the payload is {error}") from None


def _ended(result: Any, seconds: float | None, new_event_loop: NewEventLoop | None) -> Any:  # noqa: ANN401 - a handler's return value
    """Return a function's result. If the result is a coroutine, run the coroutine in its own event loop.

    Raises:
        HandlerTimeout: the coroutine was cancelled because it did not end in time.
    """
    if not inspect.isawaitable(result):
        return result
    import asyncio  # noqa: PLC0415 - imported for coroutines only

    async def awaited() -> object:
        spare = 0.0 if seconds is None else min(_SPARE_SECONDS, seconds / 10)
        limit = asyncio.timeout(None if seconds is None else seconds - spare)
        try:
            async with limit:
                return await result
        except TimeoutError as error:
            if limit.expired():
                raise HandlerTimeout from error
            raise

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(awaited())


def registered_as(
    task_type: str,
    decorated: Callable[..., Any],
    payload_model: type | None = None,
    retry_rule: RetryRule = RETRY_ALL,
    options: Mapping[str, Any] | None = None,
    batch: Batch | None = None,
) -> Registered:
    """Turn a decorated function or class into a registered handler.

    Omitted options are taken from an earlier registration of the same function or class.

    Raises:
        HandlerIncomplete: a class has no method `run`.
        TypeError: the payload's class is neither a pydantic model, a dataclass nor `bytes`, or a class is registered
            with `batch`.
    """
    if batch is not None and isinstance(decorated, type):
        raise TypeError(f"batch takes a function: the class {decorated.__name__!r} cannot run tasks in batches")
    if payload_model is not None:
        from duetime_common.payload_models import check_model  # noqa: PLC0415 - imported for handlers with a model only

        check_model(payload_model)
    earlier: TaskHandler[Any, Any] | Registered = Registered({})
    if isinstance(decorated, TaskHandler):
        earlier, phases = decorated, {"run": decorated.function}
    elif isinstance(decorated, type):
        # `vars` excludes the attribute of a base class.
        earlier, phases = vars(decorated).get(_REGISTERED, earlier), _methods(task_type, decorated)
    else:
        phases = {"run": decorated}
    rule = earlier.retry_rule if retry_rule == RETRY_ALL else retry_rule
    model, defaults = payload_model or earlier.payload_model, {**earlier.options, **(options or {})}
    registered = Registered(phases, model, rule, defaults, batch or _batch_of(earlier))
    if isinstance(decorated, type):
        setattr(decorated, _REGISTERED, registered)
    return registered


def _batch_of(earlier: TaskHandler[Any, Any] | Registered) -> Batch | None:
    return earlier.batch if isinstance(earlier, BatchHandler | Registered) else None


def _methods(task_type: str, decorated: type) -> dict[str, Handler]:
    made = decorated()
    phases = {phase: getattr(made, phase) for phase in PHASES if hasattr(made, phase)}
    if "run" not in phases:
        raise HandlerIncomplete(task_type)
    return phases
