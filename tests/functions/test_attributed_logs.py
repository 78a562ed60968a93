from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools import Logger

from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.handlers import REGISTRY, Context, Registered
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 60


@pytest.fixture(autouse=True)
def _restored_output() -> Iterator[None]:
    """Restore the standard streams and the root logger after each test."""
    stdout, stderr, root = sys.stdout, sys.stderr, logging.getLogger()
    handlers, level = list(root.handlers), root.level
    filters = {handler: list(handler.filters) for handler in handlers}
    yield
    sys.stdout, sys.stderr = stdout, stderr
    root.handlers[:] = handlers
    root.setLevel(level)
    for handler in handlers:
        handler.filters[:] = filters[handler]


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The JSON lines on both standard streams, without the metrics."""
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in (out + err).splitlines()]
    return [line for line in lines if "_aws" not in line]


def run(
    stack: Stack,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: Callable[[Context], object],
    tasks: int = 1,
) -> list[dict[str, Any]]:
    """Let the worker run a handler for this many tasks in one batch, and return the log lines."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda context, _payload: body(context)}))
    for _ in range(tasks):
        stack.create(TaskSpec("report"))
    capsys.readouterr()
    assert stack.work(Priority.NORMAL) == []
    return lines_of(capsys)


def test_a_printed_line_names_the_attempt_that_printed_it(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`print` in a handler writes a JSON line with the task, attempt, fence, type and owner."""
    seen: list[Context] = []

    def body(context: Context) -> None:
        seen.append(context)
        print("half way", 50)  # noqa: T201 - what is tested

    (line,) = run(stack, monkeypatch, capsys, body)
    assert line.pop("timestamp").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "message": "half way 50",
        "service": line["service"],
        "stream": "stdout",
        "task_id": seen[0].task_id,
        "attempt": 1,
        "fence": 1,
        "type": "report",
        "owner": OWNER,
    }


def test_lines_of_concurrent_handlers_have_the_ids_of_their_tasks(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line that ten concurrent handlers write has the id of the handler's task."""
    barrier = threading.Barrier(10)
    log = logging.getLogger("users.module")

    def body(context: Context) -> None:
        for turn in range(5):
            barrier.wait(PATIENCE)
            print(f"piece {turn} ", end="")  # noqa: T201 - what is tested
            barrier.wait(PATIENCE)
            print(f"of {context.task_id}")  # noqa: T201 - as above
            print(f"error of {context.task_id}", file=sys.stderr)  # noqa: T201 - as above
            log.warning("logged by %s", context.task_id)

    # Only duetime's log handler is left, so that each line is written only once.
    logging.getLogger().handlers[:] = []
    lines = run(stack, monkeypatch, capsys, body, tasks=10)
    assert len(lines) == 10 * 5 * 3
    assert all(line["message"].endswith(line["task_id"]) for line in lines)
    assert len({line["task_id"] for line in lines}) == 10
    assert {line["message"][:7] for line in lines if line["message"].startswith("piece")} == {
        f"piece {turn}" for turn in range(5)
    }


def test_an_existing_root_handler_receives_the_tasks_facts(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """A root handler with its own stream, such as Lambda's, receives the task's facts in the log record."""
    run(stack, monkeypatch, capsys, lambda _context: logging.getLogger("users").warning("seen", extra={"type": "mine"}))
    (record,) = [record for record in caplog.records if record.name == "users"]
    assert (record.__dict__["attempt"], record.__dict__["type"]) == (1, "report")
    assert record.__dict__["replaced"] == {"type": "mine"}


def test_a_line_is_not_repeated_if_nobody_has_configured_logging(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The root logger does not repeat lines of Powertools loggers if nobody has configured logging."""
    logging.getLogger().handlers[:] = []

    def body(_context: Context) -> None:
        logging.getLogger("users").info("by the standard logger")
        Logger(service="of-users").warning("by Powertools")
        raise LookupError

    lines = run(stack, monkeypatch, capsys, body)
    assert [line["message"] for line in lines] == ["by the standard logger", "by Powertools", "an attempt failed"]
    assert len({line["task_id"] for line in lines}) == 1


def test_a_json_line_of_a_handler_stays_json(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A JSON line from a handler stays JSON, and fields whose names duetime also uses are moved to `replaced`."""

    def body(_context: Context) -> None:
        # This logger's name is used only in this test, because its log handler, unlike the stream, outlives the test.
        Logger(service="payments").info("paid", amount=5)
        print(json.dumps({"event": "sent", "type": "invoice", "task_id": "another", "odd": "\ud800é"}))  # noqa: T201 - what is tested

    paid, sent = run(stack, monkeypatch, capsys, body)
    assert (paid["service"], paid["message"], paid["amount"], paid["type"]) == ("payments", "paid", 5, "report")
    assert (sent["event"], sent["type"], sent["odd"]) == ("sent", "report", "\ud800é")
    assert sent["replaced"] == {"type": "invoice", "task_id": "another"}
    assert sent["task_id"] == paid["task_id"]


def test_the_metrics_of_a_handler_are_printed_unchanged(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line in the embedded metric format is printed unchanged, so duetime adds no dimensions to the metric."""
    text = '{"_aws":{"Timestamp":1,"CloudWatchMetrics":[]},"type":"mine"}'
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda *_: print(text)}))  # noqa: T201 - what is tested
    stack.create(TaskSpec("report"))
    capsys.readouterr()
    stack.work(Priority.NORMAL)
    assert text in capsys.readouterr().out.splitlines()


def test_text_that_cannot_be_encoded_in_utf_8_is_printed_escaped(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printing a file name that cannot be encoded, in any form, does not fail the attempt."""
    name = "caf\udce9.txt"
    texts = [name, f'{{"file":"{name}"}}', f'{{"_aws":{{}},"file":"{name}"}}']
    ended: list[str] = []

    def body(_context: Context) -> None:
        for text in texts:
            print(text)  # noqa: T201 - what is tested
        thread = threading.Thread(target=lambda: ended.append(str(print(f'{{"file":"{name}"}}'))))  # noqa: T201 - as above
        thread.start()
        thread.join(PATIENCE)
        ended.append(name)

    lines = run(stack, monkeypatch, capsys, body)
    assert ended == ["None", name]
    assert [line.get("file") or line["message"] for line in lines] == [name, name, name]


def test_coroutines_and_copied_contexts_are_attributed_and_other_threads_are_not(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Log lines name the attempt if they come from `asyncio` code or from a copy of the handler's context.

    A plain thread can outlive its attempt, so its lines are left unchanged and never name another task.
    """

    async def inside() -> None:
        await asyncio.gather(asyncio.to_thread(print, '{"from":"asyncio"}'))

    def body(_context: Context) -> None:
        asyncio.run(inside())
        for target in ([copy_context().run, print, '{"from":"copy"}'], [print, '{"from":"thread"}']):
            thread = threading.Thread(target=target[0], args=target[1:])  # type: ignore[arg-type]  # item 0 is callable
            thread.start()
            thread.join(PATIENCE)

    lines = run(stack, monkeypatch, capsys, body)
    assert [(line["from"], "task_id" in line) for line in lines] == [
        ("asyncio", True),
        ("copy", True),
        ("thread", False),
    ]


def test_an_unfinished_line_is_written_when_its_attempt_ends(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Text without a line end is written when the attempt ends, and is not added to the thread's next attempt."""
    names = iter("ab")

    def body(context: Context) -> None:
        print(f"{next(names)} {context.task_id}", end="")  # noqa: T201 - what is tested

    (first,) = run(stack, monkeypatch, capsys, body)
    (second,) = run(stack, monkeypatch, capsys, body)
    assert (first["message"], second["message"]) == (f"a {first['task_id']}", f"b {second['task_id']}")


def test_a_line_without_end_is_written_in_parts(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a handler prints a million characters without a line end, the text is written in parts of limited length."""

    def body(_context: Context) -> None:
        for _ in range(3):
            print("x" * 1_000_000, end="")  # noqa: T201 - what is tested

    lines = run(stack, monkeypatch, capsys, body)
    assert sum(len(line["message"]) for line in lines) == 3_000_000
    assert max(len(line["message"]) for line in lines) <= 100_000


def test_lines_that_belong_to_no_attempt_are_left_unchanged(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines that are printed after the batch has ended are left unchanged."""
    run(stack, monkeypatch, capsys, lambda _context: None)
    print("plain")  # noqa: T201 - what is tested
    assert capsys.readouterr().out == "plain\n"
