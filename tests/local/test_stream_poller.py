"""Tests that the embedded AWS's stream poller does not delay queues."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from duetime_local.emulator.stream_poller import PAUSE_SECONDS, StreamPoller

if TYPE_CHECKING:
    import pytest

_PATIENCE = 30.0


class Looks:
    """Counts how often streams are read; the last read never ends."""

    def __init__(self, before_the_last: int, error: Exception | None = None) -> None:
        self.count = 0
        self.pauses: list[float] = []
        self.last = threading.Event()
        self._before_the_last = before_the_last
        self._error = error

    def look(self) -> None:
        """Read once."""
        self.count += 1
        if self.count > self._before_the_last:
            self.last.set()
            threading.Event().wait()
        if self._error is not None:
            raise self._error


def test_starting_a_read_does_not_wait_for_a_running_function() -> None:
    """While a read waits for a function, each call returns at once and starts no second read."""
    looks = Looks(0)
    poller = StreamPoller(looks.look, looks.pauses.append)

    assert [poller.start() for _ in range(3)] == [False] * 3

    assert looks.last.wait(_PATIENCE)
    assert [poller.start() for _ in range(3)] == [False] * 3
    assert looks.count == 1


def test_streams_are_read_again_after_a_pause() -> None:
    """Streams are read again after a pause, without another call."""
    looks = Looks(3)
    StreamPoller(looks.look, looks.pauses.append).start()

    assert looks.last.wait(_PATIENCE)
    assert looks.pauses == [PAUSE_SECONDS] * 3


def test_a_failed_read_is_logged_and_polling_continues(caplog: pytest.LogCaptureFixture) -> None:
    """A failed read is logged and polling continues, because a bad mapping must not end all deliveries."""
    looks = Looks(2, RuntimeError("no such stream"))
    with caplog.at_level(logging.ERROR):
        StreamPoller(looks.look, looks.pauses.append).start()
        assert looks.last.wait(_PATIENCE)

    assert [record.getMessage() for record in caplog.records] == ["streams could not be read"] * 2
