"""An event loop in virtual time, for handlers that are coroutines."""

from __future__ import annotations

import asyncio
import selectors
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_testing.simulation.virtual_time import VirtualTime


class VirtualEventLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time that lets the account's other strands continue while it waits."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__(cast("selectors.BaseSelector", _VirtualSelector(time)))
        self._virtual_time = time
        self._started_at = time.now()

    def time(self) -> float:
        """Seconds since the loop's start.

        Counting from the start keeps the number small enough for asyncio to add a nanosecond.
        """
        return (self._virtual_time.now() - self._started_at) / SECOND


class _VirtualSelector(selectors.DefaultSelector):
    """A selector that waits for timers in virtual time, and for sockets only if there are no timers."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait, and return the ready events."""
        if timeout is not None and timeout > 0:
            with without_event_loop():
                self._time.sleep_until(self._time.now() + max(1, round(timeout * SECOND)))
        return super().select(None if timeout is None else 0)


@contextmanager
def without_event_loop() -> Iterator[None]:
    """Within the context, allow other strands of this thread to run event loops for coroutine handlers."""
    # asyncio tracks one running loop per thread. The functions below are its API for event loop implementations.
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(running)
