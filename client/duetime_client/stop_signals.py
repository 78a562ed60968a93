"""Stops a worker on termination signals."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at the first SIGTERM or SIGINT; only the main thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def on_signal(_number: int, _frame: object) -> None:
        # A second signal ends the process.
        for number, handler in before.items():
            signal.signal(number, handler)
        # `stop` runs in a thread, because the signal handler may have interrupted code that holds a lock `stop`
        # needs.
        threading.Thread(target=stop, name="stopping").start()

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
