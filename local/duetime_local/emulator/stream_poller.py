"""Polls streams without blocking queues.

MiniStack 1.5.33 polls queues and streams in one thread and blocks this thread until a function has processed a stream
batch, so no queue messages are delivered in the meantime. In AWS, each event source mapping has its own pollers. This
module polls streams in a separate thread.

The emulator's own Python runs this module, so it imports only the standard library.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_SECONDS = 0.05
"""The pause between polls, which lets records of a busy stream arrive in batches. AWS polls every 0.25 s."""

_log = logging.getLogger(__name__)


class StreamPoller:
    """Polls streams in a separate thread, which starts with the first call to `start`.

    Args:
        look: polls all streams once and invokes functions with new records.
        pause: waits for a number of seconds.
    """

    def __init__(self, look: Callable[[], object], pause: Callable[[float], object] = time.sleep) -> None:
        self._look = look
        self._pause = pause
        self._thread: threading.Thread | None = None

    def start(self) -> bool:
        """Start the polling thread if it has not started yet.

        The emulator calls this method instead of polling streams itself.

        Returns:
            `False`, which means that no records were found, so that the emulator's poller continues to wait.
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
                _log.exception("streams could not be read")
            self._pause(PAUSE_SECONDS)
