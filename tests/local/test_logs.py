from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from duetime_client.logs import LogFilter, LogLine
from duetime_local import commands, ready_file
from duetime_local.ready_file import Ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

ADDRESS = "http://127.0.0.1:8750"


class Reader:
    """Reads one line of each task."""

    def __init__(self, wanted: LogFilter) -> None:
        self._wanted = wanted

    def read(self, since_ms: int) -> Iterator[LogLine]:
        """The line."""
        yield LogLine(since_ms, {"task_id": self._wanted.task_id or "ANY", "attempt": 1, "message": "here"})


def test_the_lines_of_the_running_stack_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found by its ready file; without a task, the lines of all are shown."""
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


def test_without_a_stack_there_are_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says how to start one."""
    monkeypatch.setattr(ready_file, "find", lambda _file: None)
    shown = CliRunner().invoke(commands.app, ["logs"])
    assert shown.exit_code == 1
    assert "duetime local up" in " ".join(shown.output.split())
