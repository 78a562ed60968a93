"""Collects the logs of functions without waiting.

After each invocation, MiniStack 1.5.33 waits for its reading thread to deliver more lines (50 ms if there are none). A
function writes its log before its response, so all lines are already in the pipe when the response arrives, and this
module reads them directly. With MiniStack's wait, an invocation of an empty function takes ten times as long.

The emulator's own Python runs this module, so it imports only the standard library.
"""

from __future__ import annotations

import os
import select
import threading
from typing import IO, TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK_BYTES = 65_536


class Process(Protocol):
    """The emulator's process for a function, with a queue for log lines that have been read but not yet collected."""

    _proc: Any
    _stderr_queue: Any

    def _drain_stderr(self) -> str: ...


class LogReader:
    """Reads a process's log line by line; the reading thread and collectors share an instance.

    Args:
        pipe: the pipe to read from, which is switched to non-blocking mode.
        put: receives each line, without the line end.
    """

    def __init__(self, pipe: IO[str], put: Callable[[str], None]) -> None:
        self._pipe = pipe  # keeps the pipe open
        self._put = put
        self._lock = threading.Lock()
        self._begun = b""
        os.set_blocking(pipe.fileno(), False)

    def run(self) -> None:
        """Read, and wait for more, until the process closes its end of the pipe."""
        ready = select.poll()
        ready.register(self._pipe.fileno(), select.POLLIN)
        while ready.poll() and self.read():
            pass

    def read(self) -> bool:
        """Read the available lines without waiting, and return whether more lines can follow."""
        with self._lock:
            try:
                while chunk := os.read(self._pipe.fileno(), _CHUNK_BYTES):
                    *lines, self._begun = (self._begun + chunk).split(b"\n")
                    for line in lines:
                        self._put(line.decode(errors="replace"))
            except BlockingIOError:
                return True
            if self._begun:
                self._put(self._begun.decode(errors="replace"))
                self._begun = b""
            return False


class FunctionLogs:
    """Replaces the emulator's functions that read and collect logs.

    Args:
        collect_slowly: the emulator's own function for collecting logs, which waits for more lines.
    """

    def __init__(self, collect_slowly: Callable[..., str]) -> None:
        self._collect_slowly = collect_slowly
        self._readers: dict[int, LogReader] = {}

    def read(self, process: Process) -> None:
        """Read a process's log until the process ends; the emulator calls this method in a thread."""
        started = process._proc  # noqa: SLF001 - the emulator has no other way
        if started is None:
            return
        reader = LogReader(started.stderr, process._stderr_queue.put)  # noqa: SLF001 - same
        self._readers[id(started)] = reader
        try:
            reader.run()
        finally:
            del self._readers[id(started)]

    def collect(self, process: Process, **waits: float) -> str:
        """Return all lines that a process wrote before its response.

        Args:
            process: the process that has just responded.
            waits: the emulator's timeouts, which are used only if the process has ended in the meantime.
        """
        reader = self._readers.get(id(process._proc))  # noqa: SLF001 - same
        if reader is None:
            return self._collect_slowly(process, **waits)
        reader.read()
        return process._drain_stderr()  # noqa: SLF001 - same
