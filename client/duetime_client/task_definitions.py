"""Task types with the class of their payload, for callers and for handlers of pull workers."""

from __future__ import annotations

import inspect
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from duetime_client.errors import ClientError
from duetime_common.handler_retries import RETRY_ALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client.run_context import Context
    from duetime_common.handler_retries import RetryRule

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class ResultNotJson(ValueError):
    """The result of a handler is not JSON; no attempt would change that."""


class PayloadInvalid(ClientError, ValueError):
    """A payload does not match its type. The message names the fields but never a value."""


class ResultInvalid(ClientError, ValueError):
    """A result does not match the requested class. The message names the fields but never a value."""


class TaskDefinition(Protocol[P_contra]):
    """A task type: a `TaskType`, or a function registered by `handler` or `Worker.task`."""

    @property
    def task_type(self) -> str:
        """Its name."""
        ...

    def encode(self, payload: P_contra, /) -> Any:  # noqa: ANN401 - any JSON
        """A payload as JSON."""
        ...


class TaskType(Generic[P]):
    """A task type, for programs that create tasks but do not have the handler.

    Args:
        task_type: Its name.
        payload: The class of its payload: a pydantic model or a dataclass. Without it, any JSON.
    """

    def __init__(self, task_type: str, payload: type[P] | None = None) -> None:
        self.task_type = task_type
        self.payload_model = payload

    def encode(self, payload: P) -> Any:  # noqa: ANN401 - any JSON
        """A payload as JSON.

        Raises:
            PayloadInvalid: It is not valid.
        """
        if self.payload_model is None:
            return payload
        from duetime_common.payload_models import to_json  # noqa: PLC0415 - for those with a class only

        try:
            return to_json(self.payload_model, payload)
        except ValueError as error:
            raise PayloadInvalid(f"the payload of {self.task_type!r} is {error}") from None

    def decode(self, document: object) -> P:
        """Parse JSON as a payload.

        Raises:
            PayloadInvalid: It is not valid.
        """
        if self.payload_model is None:
            plain: Any = document
            payload: P = plain
            return payload
        from duetime_common.payload_models import from_json  # noqa: PLC0415 - same

        try:
            return from_json(self.payload_model, document)
        except ValueError as error:
            raise PayloadInvalid(f"the payload of {self.task_type!r} is {error}") from None


class TaskFunction(TaskType[P], Generic[P, R_co]):
    """A function registered for a task type; calling it calls the function."""

    def __init__(
        self,
        task_type: str,
        function: Callable[[Context, P], R_co],
        payload: type[P] | None = None,
        retry_rule: RetryRule = RETRY_ALL,
    ) -> None:
        # First, because it copies the attributes of a function that is such a handler itself.
        update_wrapper(self, function)
        super().__init__(task_type, payload)
        self.function = function
        self.retry_rule = retry_rule

    def __call__(self, context: Context, payload: P) -> R_co:
        """Call the function, as in a test."""
        return self.function(context, payload)

    def run(self, context: Context, document: object) -> object:
        """Call the function with a payload's JSON; a result of a class is converted to JSON.

        A coroutine runs to its end in its own event loop.

        Raises:
            PayloadInvalid: The payload is not valid.
            ResultNotJson: The result cannot be converted to JSON.
        """
        result: Any = self.function(context, self.decode(document))
        if inspect.isawaitable(result):
            import asyncio  # noqa: PLC0415 - for coroutines only

            with asyncio.Runner() as runner:
                result = runner.run(_awaited(result))
        from duetime_common.payload_models import plain  # noqa: PLC0415 - it is small, but read for workers only

        try:
            return plain(result)
        except BaseException as error:  # the value may be of the author's own class
            raise ResultNotJson("the result of the handler is not JSON") from error


async def _awaited(work: Any) -> object:  # noqa: ANN401 - an awaitable
    return await work
