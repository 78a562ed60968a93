"""Handlers that are coroutines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from duetime.task_handlers import HandlerTimeout

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from duetime.task_handlers import NewEventLoop

_SPARE_SECONDS = 0.5
"""A coroutine is cancelled so long before the deadline: a handler that is late takes its process with it."""


def result_of(work: Awaitable[object], seconds: float | None, new_event_loop: NewEventLoop | None) -> object:
    """The result of some work, in an event loop of its own.

    Args:
        work: What a handler returned.
        seconds: How long it may take; `None` for any time.
        new_event_loop: Makes the event loop; `None` for asyncio's own.

    Raises:
        HandlerTimeout: It was cancelled, because it did not end in time.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_ended(work, seconds))


async def _ended(work: Awaitable[object], seconds: float | None) -> object:
    spare = 0.0 if seconds is None else min(_SPARE_SECONDS, seconds / 10)
    limit = asyncio.timeout(None if seconds is None else seconds - spare)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if limit.expired():
            raise HandlerTimeout from error
        raise
