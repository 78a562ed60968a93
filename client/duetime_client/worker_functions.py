"""Functions that a pull worker has registered for task types."""

from __future__ import annotations

import inspect
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from duetime_client.task_definitions import ResultNotJson, TaskType
from duetime_common.handler_retries import RETRY_ALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client.run_context import Context
    from duetime_common.handler_retries import RetryRule

P = TypeVar("P")
R_co = TypeVar("R_co", covariant=True)


class TaskFunction(TaskType[P], Generic[P, R_co]):
    """A function registered for a task type; calling this object calls the function."""

    def __init__(
        self,
        task_type: str,
        function: Callable[[Context, P], R_co],
        payload: type[P] | None = None,
        retry_rule: RetryRule = RETRY_ALL,
    ) -> None:
        # This call comes first; otherwise, attributes of a function that is itself a handler would replace this
        # object's.
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
        return json_result(returned_by(self.function(context, self.decode(document))))


def returned_by(result: Any) -> Any:  # noqa: ANN401 - what a handler returns
    """The result of a function, or of its coroutine, which runs in its own event loop."""
    if not inspect.isawaitable(result):
        return result
    import asyncio  # noqa: PLC0415 - for coroutines only

    with asyncio.Runner() as runner:
        return runner.run(_awaited(result))


def json_result(result: Any) -> object:  # noqa: ANN401 - same
    """A result as JSON, if it is a value of a class.

    Raises:
        ResultNotJson: The result cannot be converted.
    """
    from duetime_common.payload_codecs import json_of_bytes  # noqa: PLC0415 - small, but read for workers only
    from duetime_common.payload_models import plain  # noqa: PLC0415 - same

    if isinstance(result, bytes):
        return json_of_bytes(result)
    try:
        return plain(result)
    except BaseException as error:  # the value can be an instance of any class
        raise ResultNotJson("the result of the handler is not JSON") from error


async def _awaited(work: Any) -> object:  # noqa: ANN401 - an awaitable
    return await work
