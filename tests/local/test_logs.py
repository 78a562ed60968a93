from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from duetime_client.logs import LogFilter, LogLine, LogReader
from duetime_local import commands, ready_file
from duetime_local.logs import PagedLogs
from duetime_local.ready_file import Ready

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_local.emulator import Emulator

ADDRESS = "http://127.0.0.1:8750"


class Reader:
    """A reader that returns one line for each task."""

    def __init__(self, wanted: LogFilter) -> None:
        self._wanted = wanted

    def read(self, since_ms: int) -> Iterator[LogLine]:
        """Return the line."""
        yield LogLine(since_ms, {"task_id": self._wanted.task_id or "ANY", "attempt": 1, "message": "here"})


def test_the_log_lines_of_the_running_stack_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running stack is found by its ready file, and all tasks' lines are shown if no task is given."""
    asked: list[str] = []

    def reader_at(address: str, wanted: LogFilter) -> Reader:
        asked.append(address)
        return Reader(wanted)

    monkeypatch.setattr(ready_file, "find", lambda _file: Ready("http://api", ADDRESS, 1))
    monkeypatch.setattr(commands, "reader_at", reader_at)
    shown = [CliRunner().invoke(commands.app, ["logs", *arguments]) for arguments in ([], ["01abc"])]
    assert [each.exit_code for each in shown] == [0, 0]
    assert ["ANY #1" in shown[0].stdout, "01ABC #1" in shown[1].stdout] == [True, True]
    assert asked == [ADDRESS, ADDRESS]


def test_without_a_running_stack_the_message_says_how_to_start_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a running stack, the message says how to start a stack."""
    monkeypatch.setattr(ready_file, "find", lambda _file: None)
    shown = CliRunner().invoke(commands.app, ["logs"])
    assert shown.exit_code == 1
    assert "duetime local up" in " ".join(shown.output.split())


class OldestLogs:
    """Imitates the embedded CloudWatch Logs, which return only the oldest events, for any task, and no page token."""

    exceptions = None

    def __init__(self, times: Sequence[int], most: int) -> None:
        self._events: list[dict[str, Any]] = [
            {"timestamp": at, "message": f'{{"task_id": "{number}"}}'} for number, at in enumerate(times)
        ]
        self._most = most

    def filter_log_events(self, *, startTime: int, **_wanted: object) -> dict[str, Any]:  # noqa: N803 - as botocore's
        """Return the oldest events."""
        return {"events": [each for each in self._events if each["timestamp"] >= startTime][: self._most]}


@pytest.mark.parametrize(
    "times",
    [[], range(5), range(20), [0] * 3 + [1] * 9 + [2] * 4, [0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3]],
    ids=["none", "fewer", "several pages", "many at once", "a page that ends within a moment"],
)
def test_all_log_lines_are_read_despite_incomplete_responses(times: Sequence[int]) -> None:
    """Each line is read once and in order, although each response has only the oldest lines."""
    reader = LogReader(PagedLogs(OldestLogs(times, most=10), most=10), "g", LogFilter())
    assert [line.fields["task_id"] for line in reader.read(0)] == [str(number) for number in range(len(times))]


@pytest.mark.slow
def test_log_lines_after_ten_thousand_others_are_found(engine: Emulator) -> None:
    """Lines that the embedded AWS leaves out of a response are requested again."""
    logs, group = engine.client("logs"), uuid4().hex
    logs.create_log_group(logGroupName=group)
    logs.create_log_stream(logGroupName=group, logStreamName="s")
    at = round(time.time() * 1000) - 60_000
    messages = [*(f'{{"task_id": "OTHER", "n": {number}}}' for number in range(10_500)), '{"task_id": "MINE"}']
    for first in range(0, len(messages), 5_000):
        events = [
            {"timestamp": at + (first + offset) // 7, "message": message}
            for offset, message in enumerate(messages[first : first + 5_000])
        ]
        logs.put_log_events(logGroupName=group, logStreamName="s", logEvents=events)
    assert len(list(LogReader(logs, group, LogFilter("MINE")).read(at))) == 0
    assert len(list(LogReader(PagedLogs(logs), group, LogFilter("MINE")).read(at))) == 1
    others = [line.fields["n"] for line in LogReader(PagedLogs(logs), group, LogFilter("OTHER")).read(at)]
    assert others == [*range(10_500)]
