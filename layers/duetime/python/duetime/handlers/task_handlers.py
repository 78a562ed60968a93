"""Registered handlers: what a decorated function becomes, and how a phase is called."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duetime.handlers.errors import HandlerIncomplete, HandlerTimeout, PayloadInvalid

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Mapping

    from duetime.handlers.context import Context

    Handler = Callable[[Context, Any], Any]
    NewEventLoop = Callable[[], AbstractEventLoop]

P = TypeVar("P")
R_co = TypeVar("R_co", covariant=True)
PHASES = ("prepare", "run", "clean", "rollback")
"""Names of the methods that a handler class may have; `run` is a must."""


class TaskHandler(Generic[P, R_co]):
    """A function that is registered for a task type; calling it calls the function.

    Callers create tasks for it with `client.tasks.of(...)` of the client, which uses `task_type` and `encode`.
    """

    def __init__(
        self, task_type: str, function: Callable[[Context, P], R_co], payload_model: type[P] | None = None
    ) -> None:
        self.task_type = task_type
        self.function = function
        self.payload_model = payload_model
        update_wrapper(self, function)

    def __call__(self, context: Context, payload: P) -> R_co:
        """Call the function, as in a test."""
        return self.function(context, payload)

    def encode(self, payload: P) -> Any:  # noqa: ANN401 - any JSON
        """A payload as JSON.

        Raises:
            PayloadInvalid: It is not what the handler takes.
        """
        if self.payload_model is None:
            return payload
        from duetime.handlers.payload_models import to_json  # noqa: PLC0415 - imported for handlers with a model only

        try:
            return to_json(self.payload_model, payload)
        except ValueError as error:
            raise PayloadInvalid(f"the payload of {self.task_type!r} is {error}") from None


@dataclass(frozen=True, slots=True)
class Registered:
    """The handler of a task type: what does each of the phases that it offers.

    Attributes:
        phases: by name.
        payload_model: the class of the payload; `None` for plain JSON.
    """

    phases: Mapping[str, Handler]
    payload_model: type | None = None

    def call(
        self,
        phase: str,
        context: Context,
        payload: object,
        *,
        seconds: float | None = None,
        new_event_loop: NewEventLoop | None = None,
    ) -> Any:  # noqa: ANN401 - what a handler returns
        """Call a phase, and wait for its end if it is a coroutine.

        Args:
            phase: Its name.
            context: The attempt.
            payload: Decoded JSON.
            seconds: How long it may take. Only a coroutine is cancelled after that; no limit by default.
            new_event_loop: Makes the event loop of a coroutine; asyncio's own by default.

        Raises:
            PayloadInvalid: The payload is not one of the handler's.
            HandlerTimeout: It was cancelled.
        """
        if self.payload_model is not None:
            from duetime.handlers.payload_models import from_json  # noqa: PLC0415 - imported for handlers with a model only

            try:
                payload = from_json(self.payload_model, payload)
            except ValueError as error:
                raise PayloadInvalid(f"the payload is {error}") from None
        result = self.phases[phase](context, payload)
        if inspect.isawaitable(result):
            from duetime.handlers.coroutines import result_of  # noqa: PLC0415 - imported for coroutines only

            return result_of(result, seconds, new_event_loop, HandlerTimeout())
        return result


def registered_as(task_type: str, decorated: Callable[..., Any], payload_model: type | None = None) -> Registered:
    """What a function or class is registered as.

    Raises:
        HandlerIncomplete: a class has no method `run`.
    """
    if isinstance(decorated, TaskHandler):
        return Registered({"run": decorated.function}, payload_model or decorated.payload_model)
    if not isinstance(decorated, type):
        return Registered({"run": decorated}, payload_model)
    made = decorated()
    phases = {phase: getattr(made, phase) for phase in PHASES if hasattr(made, phase)}
    if "run" not in phases:
        raise HandlerIncomplete(task_type)
    return Registered(phases, payload_model)
