"""Tests that function logs in the embedded AWS contain all lines written before the response, without extra waits."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from queue import SimpleQueue
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING

from duetime_local.emulator.function_logs import FunctionLogs
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

_WRITINGS, _LINES = 300, 7
SLOWLY = "collected slowly"


class Process:
    """A function's process, whose lines wait in a pipe until they are read into a queue."""

    def __init__(self, pipe: IO[str]) -> None:
        self._proc: SimpleNamespace | None = SimpleNamespace(stderr=pipe)
        self._stderr_queue: SimpleQueue[str] = SimpleQueue()

    def end(self) -> None:
        """End as if killed."""
        self._proc = None

    def _drain_stderr(self) -> str:
        return "\n".join(self._stderr_queue.get() for _ in range(self._stderr_queue.qsize()))


@contextmanager
def started(logs: FunctionLogs) -> Iterator[tuple[Process, IO[str]]]:
    """Yield a process whose log a thread reads, and the file to which the process writes."""
    read, write = os.pipe()
    with os.fdopen(read) as reading, os.fdopen(write, "w", buffering=1) as writing:
        process = Process(reading)
        thread = threading.Thread(target=logs.read, args=(process,))
        thread.start()
        assert until(lambda: logs.collect(process) != SLOWLY)
        yield process, writing
        writing.close()
        thread.join()


def function_logs() -> FunctionLogs:
    """Return logs that record whether the emulator itself collects them."""
    return FunctionLogs(lambda _process: SLOWLY)


def test_each_log_is_complete_however_the_reading_thread_is_scheduled() -> None:
    """Each of hundreds of logs contains all lines written so far, and is empty if no line was written."""
    logs = function_logs()
    with started(logs) as (process, log):
        for number in range(_WRITINGS):
            lines = [f"{number} {line} ä" for line in range(number % _LINES)]
            log.write("".join(f"{line}\n" for line in lines))
            log.flush()
            assert logs.collect(process).splitlines() == lines


def test_an_incomplete_line_belongs_to_the_next_log() -> None:
    """An incomplete line is not split, and the last line of a process needs no newline."""
    logs = function_logs()
    with started(logs) as (process, log):
        log.write("one\ntw")
        log.flush()
        assert logs.collect(process) == "one"
        log.write("o\nthree")
        log.flush()
        assert logs.collect(process) == "two"
    assert process._drain_stderr() == "three"


def test_the_log_of_an_ended_process_can_be_collected() -> None:
    """The last lines of a process, which say why it ended, can be collected after it has ended."""
    logs = function_logs()
    with started(logs) as (process, _):
        process.end()
        assert logs.collect(process) == SLOWLY
    assert logs.collect(process) == SLOWLY
