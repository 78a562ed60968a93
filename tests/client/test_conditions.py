"""Tests that every precondition and idempotency key that the API supports has a command option."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from duetime.contract.http.operation import IF_MATCH, KEY, operation_at
from duetime.contract.openapi.document import OPERATIONS
from tests.client.deployment import Answer, Deployment, problem, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from typer.testing import Result

    from tests.client.deployment import Received

    Run = Callable[..., Result]

PERIOD = ("--after", "2026-11-01T00:00:00Z", "--before", "2026-11-02T00:00:00Z")
CONDITIONAL = [
    "tasks update a --name n",
    "tasks cancel a",
    *(f"tasks {action} a" for action in ("delete", "pause", "resume", "run", "retry", "rollback", "approve", "reject")),
    "schedules update a --cron 0_2_*_*_*",
    *(f"schedules {action} a" for action in ("delete --yes", "pause", "resume", "run")),
    "schedules update-occurrence a 2027-01-01T01:30 skip",
    f"schedules backfills create a {' '.join(PERIOD)}",
    "calendars put a FILE",
    "calendars put a ICS",
    "calendars delete a",
    "topologies definitions put a FILE",
    "topologies definitions delete a",
    *(f"topologies {action} a" for action in ("retry", "cancel", "pause", "resume", "delete")),
]
KEYED = [
    "tasks create report",
    "schedules create a report --rate 5m",
    "schedules run a",
    f"schedules backfills create a {' '.join(PERIOD)}",
    "topologies run FILE",
    "topologies definitions run a",
    "signals send a",
]
BY_OTHER_WAYS = {
    "createTaskBatch",
    "cancelTasksByFilter",
    "updateTasksByFilter",
    "retryTasksByFilter",
    "deleteTasksByFilter",
    "pauseSchedulesByTag",
    "resumeSchedulesByTag",
    "cancelGroup",
    "retryGroup",
}
"""Operations without a key option. No command sends a batch, and actions on many objects use one key per part.
"""


class Refusing(Deployment):
    """A deployment that records each request and refuses it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Received] = []

    def answer(self, request: Received) -> Answer:
        """Record a request and refuse it."""
        self.seen.append(request)
        return problem(412, "version_mismatch", "it has changed")


@pytest.fixture
def deployment() -> Iterator[Refusing]:
    """Return a deployment that refuses every request."""
    with served(Refusing()) as made:
        yield made


@pytest.fixture
def arguments(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return a command line as arguments, with files that exist."""
    graph, calendar = tmp_path / "a.json", tmp_path / "a.ics"
    graph.write_text(json.dumps({"nodes": {"a": {"type": "report"}}}))
    calendar.write_text("BEGIN:VCALENDAR\nEND:VCALENDAR\n")
    files = {"FILE": str(graph), "ICS": str(calendar)}
    return lambda line: [files.get(part, re.sub("_", " ", part)) for part in line.split()]


def asked(deployment: Refusing) -> str:
    """Return the only operation that a command has requested."""
    (request,) = deployment.seen
    return operation_at(request.method, request.path.removeprefix("/stage"))[0].id


def test_every_command_for_a_conditional_operation_accepts_a_version(
    duetime: Run, deployment: Refusing, arguments: Callable[[str], list[str]]
) -> None:
    """`--if-match` is sent as an ETag, and each operation with preconditions has a command with this option."""
    found = set()
    for line in CONDITIONAL:
        deployment.seen.clear()
        result = duetime(*arguments(line), "--if-match", "7")
        assert deployment.seen, (line, result.output)
        assert [each.headers["If-Match"] for each in deployment.seen] == ['"7"'], line
        found.add(asked(deployment))
    assert found == {one.id for one in OPERATIONS if IF_MATCH in one.headers}


def test_every_command_for_an_idempotent_operation_accepts_a_key(
    duetime: Run, deployment: Refusing, arguments: Callable[[str], list[str]]
) -> None:
    """`--idempotency-key` is sent, and each operation that supports a key has a command with this option."""
    found = set()
    for line in KEYED:
        deployment.seen.clear()
        result = duetime(*arguments(line), "--idempotency-key", "order-4711")
        assert deployment.seen, (line, result.output)
        assert [each.headers["Idempotency-Key"] for each in deployment.seen] == ["order-4711"], line
        found.add(asked(deployment))
    assert found == {one.id for one in OPERATIONS if KEY in one.headers} - BY_OTHER_WAYS


@pytest.mark.parametrize("command", ["cancel", "update --name n"])
def test_a_version_with_a_filter_is_rejected(duetime: Run, deployment: Refusing, command: str) -> None:
    """A version together with a filter is refused, and nothing is sent."""
    result = duetime("tasks", *command.split(), "--type", "report", "--if-match", "7")
    assert (result.exit_code, deployment.seen) == (2, [])
    assert "goes with an ID" in result.output
