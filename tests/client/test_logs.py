from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime_client.commands import logs as command
from duetime_client.logs import LogFilter, LogReader
from duetime_common.payload_codecs import ENCRYPTED, encrypted_text
from duetime_local import commands as local_commands
from tests.client.deployment import NOW
from tests.client.test_codec_option import MODULE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    from duetime_local.emulator import Emulator

ID = "01M7XZ8CGJ0013P2ZBN3YDT3DX"
AT = round(NOW.timestamp() * 1000)


def line(message: object, **fields: object) -> str:
    """Return a log line as the worker writes it."""
    facts = {"task_id": ID, "attempt": 2, "fence": 2, "type": "report", "owner": "me"}
    return json.dumps({"level": "INFO", "message": message, **facts, **fields})


class Missing(Exception):
    """The error that AWS raises for a log group that does not exist."""


@dataclass
class FakeLogs:
    """Implements the parts of CloudWatch Logs that the client uses, with scripted results in pages of two.

    Attributes:
        found: the events for each call; additional calls return the last call's events.
        asked: the requests.
    """

    found: list[list[dict[str, Any]]]
    asked: list[dict[str, Any]] = field(default_factory=list)
    exceptions: Any = field(default_factory=lambda: type("Exceptions", (), {"ResourceNotFoundException": Missing}))
    missing: bool = False

    def filter_log_events(self, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - as botocore's
        """Return a page."""
        if self.missing:
            raise Missing
        self.asked.append(wanted)
        calls = [each for each in self.asked if "nextToken" not in each]
        events = self.found[min(len(calls), len(self.found)) - 1]
        start = int(wanted.get("nextToken", "0"))
        page: dict[str, Any] = {"events": events[start : start + 2]}
        return page if start + 2 >= len(events) else {**page, "nextToken": str(start + 2)}


def event(at_ms: int, message: str, id_: str = "") -> dict[str, Any]:
    """Return an event of a log stream."""
    return {"timestamp": at_ms, "message": message, "logStreamName": "s", "eventId": id_ or f"{at_ms}-{message}"}


def texts(reader: LogReader, since_ms: int = AT) -> list[str]:
    """Return the messages that are read."""
    return [each.text for each in reader.read(since_ms)]


def test_all_log_pages_are_read_and_filtered_by_task() -> None:
    """All pages are read; lines that are not JSON are left out, and so are other tasks' lines in the response."""
    events = [
        event(AT, line("one")),
        event(AT, line("other", task_id="X")),
        event(AT, "START RequestId: 1"),
        event(AT + 1, "[" * 5_000),
        event(AT + 1, line({"two": 2})),
    ]
    logs = FakeLogs([events])
    assert texts(LogReader(logs, "group", LogFilter(task_id=ID))) == ["one", '{"two": 2}']
    assert [each.get("nextToken") for each in logs.asked] == [None, "2", "4"]
    assert logs.asked[0]["filterPattern"] == f'{{ ($.task_id = "{ID}") }}'
    assert logs.asked[0]["startTime"] == AT


def test_a_log_pattern_escapes_special_characters_in_names() -> None:
    """A pattern can contain quotation marks, and an asterisk in a name matches only an asterisk."""
    wanted = LogFilter(task_type='a"b*', schedule="nightly")
    assert wanted.pattern == r'{ ($.type = "a\"b*") && ($.schedule = "nightly") }'
    assert wanted.matches({"task_id": ID, "type": 'a"b*', "schedule": "nightly"})
    assert not wanted.matches({"task_id": ID, "type": 'a"bcd', "schedule": "nightly"})
    assert not wanted.matches({"type": 'a"b*', "schedule": "nightly"})


def test_following_shows_each_log_line_once_even_if_ingested_late() -> None:
    """Each read starts earlier than the last line, so that lines ingested late are shown; no line is shown twice."""
    first = [event(AT, line("a")), event(AT + 10_000, line("c"))]
    second = [event(AT, line("a")), event(AT + 5_000, line("b")), event(AT + 10_000, line("c"))]
    third = [event(AT + 60_000, line("d"))]
    slept: list[float] = []
    logs = FakeLogs([first, second, third])
    reader = LogReader(logs, "group", LogFilter(task_id=ID))
    assert [each.text for each in islice(reader.follow(AT, slept.append), 4)] == ["a", "c", "b", "d"]
    assert len(slept) == 2


def test_a_missing_log_group_has_no_lines() -> None:
    """A log group that does not exist yet has no lines, because Lambda creates the group with the first line."""
    assert texts(LogReader(FakeLogs([[]], missing=True), "group", LogFilter(task_id=ID))) == []


def test_the_embedded_aws_supports_the_log_query(engine: Emulator) -> None:
    """The same call works with the embedded AWS, which ignores patterns, because the client also filters the lines."""
    logs: Any = engine.client("logs")
    group = f"/aws/lambda/{uuid4().hex}"
    logs.create_log_group(logGroupName=group)
    logs.create_log_stream(logGroupName=group, logStreamName="s")
    events = [
        {"timestamp": AT + number, "message": text}
        for number, text in enumerate((line("one"), line("other", task_id="X"), "START", line("two")))
    ]
    logs.put_log_events(logGroupName=group, logStreamName="s", logEvents=events)
    assert texts(LogReader(logs, group, LogFilter(task_id=ID))) == ["one", "two"]
    assert texts(LogReader(logs, group, LogFilter(task_type="report")), AT + 1) == ["other", "two"]
    assert texts(LogReader(logs, "/aws/lambda/none", LogFilter(task_id=ID))) == []


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> FakeLogs:
    """Set up a stack whose worker has logged some lines."""
    monkeypatch.delenv("DUETIME_STACK", raising=False)
    made = FakeLogs(
        [
            [
                event(AT - 60_000, line("half way\nor more")),
                event(
                    AT - 59_750,
                    line("an attempt failed", level="WARNING", facts={"traceback": "Traceback\n  \x1b[31mBoom\n"}),
                ),
            ]
        ]
    )
    monkeypatch.setattr(command, "worker_logs", lambda stack: (made, f"{stack}-worker"))
    return made


def test_the_log_lines_of_a_task_are_printed(duetime: Callable[..., Result], logs: FakeLogs) -> None:
    """Time, attempt, level and message are printed with the traceback below, and control characters are escaped."""
    shown = duetime("logs", ID.lower(), "--stack", "duetime-dev", "--since", "10m")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        f"20:59:00.000 {ID} #2 INFO    half way",
        "    or more",
        f"20:59:00.250 {ID} #2 WARNING an attempt failed",
        "    Traceback",
        "      \\x1b[31mBoom",
    ]
    assert (logs.asked[0]["logGroupName"], logs.asked[0]["startTime"]) == ("duetime-dev-worker", AT - 600_000)


def test_log_lines_are_printed_as_json(duetime: Callable[..., Result], logs: FakeLogs) -> None:
    """With `--json`, each line is printed as it was written."""
    shown = duetime("logs", "--type", "report", "--stack", "duetime-dev", "--json")
    assert [json.loads(each)["message"] for each in shown.stdout.splitlines()] == [
        "half way\nor more",
        "an attempt failed",
    ]
    assert logs.asked[0]["filterPattern"] == '{ ($.type = "report") }'


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--stack", "s"), "name a task, a --type or a --schedule"),
        ((ID,), "name the stack with --stack or DUETIME_STACK"),
        ((ID, "--stack", "s", "--since", "yesterday"), "'yesterday' is not a duration"),
    ],
)
@pytest.mark.usefixtures("logs")
def test_an_incomplete_log_command_is_rejected(
    duetime: Callable[..., Result], arguments: tuple[str, ...], why: str
) -> None:
    """An incomplete command line exits with code 2, and the error names the missing option."""
    shown = duetime("logs", *arguments)
    assert shown.exit_code == 2
    assert why in " ".join(shown.stderr.replace("│", " ").split())


def test_logs_in_the_local_context_are_read_from_the_local_stack(
    duetime: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the `local` context, the command from `duetime-local` reads the stack's log."""
    asked: list[tuple[str, LogFilter]] = []

    def reader_at(address: str, wanted: LogFilter) -> LogReader:
        asked.append((address, wanted))
        return LogReader(FakeLogs([[event(AT, line("here", schedule="nightly"))]]), "g", wanted)

    ready = tmp_path / "local.json"
    ready.write_text(json.dumps({"api_url": "http://api", "aws_endpoint_url": "http://aws:1", "pid": os.getpid()}))
    monkeypatch.setenv("DUETIME_READY_FILE", str(ready))
    monkeypatch.setenv("DUETIME_CONTEXT", "local")
    monkeypatch.setattr(local_commands, "reader_at", reader_at)
    shown = duetime("logs", ID, "--type", "report", "--schedule", "nightly", "--since", "2h", "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["message"]) == (0, "here")
    assert asked == [("http://aws:1", LogFilter(ID, "report", "nightly"))]
    assert duetime("logs", ID, "--codec", "nothing:CODEC").exit_code == 2


def test_the_local_context_reports_that_no_stack_is_running(
    duetime: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logs: FakeLogs
) -> None:
    """In the `local` context without a running stack, the command reports this and reads no logs from AWS."""
    monkeypatch.setenv("DUETIME_READY_FILE", str(tmp_path / "none.json"))
    monkeypatch.setenv("DUETIME_CONTEXT", "local")
    shown = duetime("logs", ID)
    assert shown.exit_code == 1
    assert "no stack runs on this machine" in " ".join(shown.stderr.split())
    assert logs.asked == []


def test_a_context_from_a_stack_needs_no_stack_option(
    duetime: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, logs: FakeLogs
) -> None:
    """A context that was created from a stack needs no option for the stack."""
    contexts = {
        "current": "prod",
        "contexts": {"prod": {"url": "https://api", "auth": "none", "stack": "duetime-prod"}},
    }
    (tmp_path / "contexts.json").write_text(json.dumps(contexts))
    monkeypatch.setenv("DUETIME_CONTEXTS", str(tmp_path / "contexts.json"))
    assert duetime("logs", ID).exit_code == 0
    assert logs.asked[0]["logGroupName"] == "duetime-prod-worker"


def test_encrypted_log_lines_are_decrypted_by_the_codec(
    duetime: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A codec from an option, the variable or the context decrypts lines; other lines are printed unchanged."""
    name = f"codec_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    codec = __import__(name).CODEC
    traceback = encrypted_text(codec, "Traceback\nBoom\n")
    events = [
        event(AT, line("an attempt failed", facts={"traceback": traceback})),
        event(AT + 1, line({"$binary": {"base64": "AAAA", "content_type": ENCRYPTED}})),
    ]
    monkeypatch.setattr(command, "worker_logs", lambda stack: (FakeLogs([events]), stack))
    hidden = duetime("logs", ID, "--stack", "s")
    assert "    [encrypted]" in hidden.stdout.splitlines()
    shown = duetime("logs", ID, "--stack", "s", "--codec", f"{name}:CODEC")
    assert shown.stdout.splitlines()[1:3] == ["    Traceback", "    Boom"]
    assert "AAAA" in shown.stdout.splitlines()[3]
    monkeypatch.setenv("DUETIME_CODEC", f"{name}:CODEC")
    first, _ = map(json.loads, duetime("logs", ID, "--stack", "s", "--json").stdout.splitlines())
    assert first["facts"]["traceback"] == "Traceback\nBoom\n"
    monkeypatch.delenv("DUETIME_CODEC")
    prod = {"url": "https://api", "auth": "none", "stack": "s", "codec": f"{name}:CODEC"}
    (tmp_path / "contexts.json").write_text(json.dumps({"current": "prod", "contexts": {"prod": prod}}))
    monkeypatch.setenv("DUETIME_CONTEXTS", str(tmp_path / "contexts.json"))
    assert "    Boom" in duetime("logs", ID).stdout.splitlines()
    assert duetime("logs", ID, "--codec", "nothing:CODEC").exit_code == 2
