"""Logs of functions, collected without a wait.

After each invocation MiniStack 1.5.33 waits for lines that its reading thread may still get, 50 ms if there is none at
all. A function writes its log before its response, so all lines are in the pipe by then: here they are read by whoever
collects them. With the wait, an invocation of a function that does nothing takes ten times as long.

Run by the emulator's own Python, so it imports the standard library only.
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
    """A process of a function, as the emulator keeps it: the lines of its log are in a queue until they are drained."""

    _proc: Any
    _stderr_queue: Any

    def _drain_stderr(self) -> str: ...


class LogReader:
    """Reads the log of a process line by line, from a thread that waits for it and for those who collect it.

    Args:
        pipe: the end to read from; it does not block from now on.
        put: takes each line, without its end.
    """

    def __init__(self, pipe: IO[str], put: Callable[[str], None]) -> None:
        self._pipe = pipe  # kept, or it would be closed
        self._put = put
        self._lock = threading.Lock()
        self._begun = b""
        os.set_blocking(pipe.fileno(), False)

    def run(self) -> None:
        """Read until the process closes its end."""
        ready = select.poll()
        ready.register(self._pipe.fileno(), select.POLLIN)
        while ready.poll() and self.read():
            pass

    def read(self) -> bool:
        """Read what there is, without waiting; whether more may come."""
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
    """Takes the place of the emulator's reading and collecting.

    Args:
        collect_slowly: as the emulator does it.
    """

    def __init__(self, collect_slowly: Callable[..., str]) -> None:
        self._collect_slowly = collect_slowly
        self._readers: dict[int, LogReader] = {}

    def read(self, process: Process) -> None:
        """Read the log of a process until it ends: the work of a thread."""
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
        """All lines that a process has written until its response.

        Args:
            process: that has just responded.
            waits: of the emulator, if the process has ended since.
        """
        reader = self._readers.get(id(process._proc))  # noqa: SLF001 - same
        if reader is None:
            return self._collect_slowly(process, **waits)
        reader.read()
        return process._drain_stderr()  # noqa: SLF001 - same
