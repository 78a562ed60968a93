"""A poller of streams that keeps no queue waiting.

MiniStack 1.5.33 looks at queues and streams in one thread, and waits in it until a function has taken a batch of a
stream: meanwhile no function gets a message of a queue. In AWS each mapping has pollers of its own. Here streams have
a thread of their own.

Run by the emulator's own Python, so it imports the standard library only.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_SECONDS = 0.05
"""After each look, so that a busy stream comes in batches and not record by record. AWS looks every 0.25 s."""

_log = logging.getLogger(__name__)


class StreamPoller:
    """Looks at streams in a thread of its own, which begins when a look is first asked for.

    Args:
        look: at all streams, once: invokes functions with what is new.
        pause: for so many seconds.
    """

    def __init__(self, look: Callable[[], object], pause: Callable[[float], object] = time.sleep) -> None:
        self._look = look
        self._pause = pause
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """Look from now on, if it does not already. Called in place of a look, by the engine's poller only.

        Returns:
            That nothing was found, so that the engine goes on to wait.
        """
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stream-poller", daemon=True)
            self._thread.start()
        return False

    def _run(self) -> None:
        while True:
            try:
                self._look()
            except Exception:  # noqa: BLE001 - as the engine's own: one failure must not end all deliveries
                _log.exception("streams could not be looked at")
            self._pause(PAUSE_SECONDS)
