"""Runs handlers that are coroutines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Awaitable, Callable

_SPARE_SECONDS = 0.5
"""A coroutine is cancelled this long before the deadline, as a late handler ends its whole process."""


def result_of(
    work: Awaitable[object],
    seconds: float | None,
    new_event_loop: Callable[[], AbstractEventLoop] | None,
    late: Exception,
) -> object:
    """Wait for the result of an awaitable in a separate event loop.

    Args:
        work: Awaitable that a handler returned.
        seconds: Timeout; `None` for none.
        new_event_loop: Creates the event loop; `None` for asyncio's own.
        late: Raised if it was cancelled because it did not end in time.
    """
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_ended(work, seconds, late))


async def _ended(work: Awaitable[object], seconds: float | None, late: Exception) -> object:
    spare = 0.0 if seconds is None else min(_SPARE_SECONDS, seconds / 10)
    limit = asyncio.timeout(None if seconds is None else seconds - spare)
    try:
        async with limit:
            return await work
    except TimeoutError as error:
        if limit.expired():
            raise late from error
        raise
