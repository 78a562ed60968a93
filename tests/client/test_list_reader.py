"""Tests that commands read past a list's empty pages, and that an interrupted command reports an incomplete list."""

from __future__ import annotations

import json
import os
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client import Client
from tests.client.deployment import Answer, Deployment, served
from tests.client.test_display import TASK
from tests.client.test_worker import server as server_of_the_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typer.testing import Result

    from duetime_client.session import PageRead
    from tests.client.api_server import ApiServer
    from tests.client.deployment import Received

    Run = Callable[..., Result]

server = server_of_the_api
CROWD = 1_600
"""A number of tasks that is larger than the number examined for one page."""
PAGES = 5
REACHED = "2026-12-03T02:00:00.000Z"


class LongList(Deployment):
    """Serves lists whose pages are all empty except for the last page, and possibly the first page.

    Attributes:
        hits: the entries of the last page.
        interrupted_at: the page at which Ctrl-C is pressed, or `None`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hits: list[dict[str, Any]] = []
        self.interrupted_at: int | None = None
        self.early: list[dict[str, Any]] = []
        """The entries of the first page."""

    def answer(self, request: Received) -> Answer:
        """Return a page for which a thousand tasks were examined."""
        self.received.append(request)
        number = int(request.query.get("next_token", ["1"])[0])
        if number == self.interrupted_at:
            os.kill(os.getpid(), signal.SIGINT)
        is_last = number == PAGES
        found = self.hits if is_last else self.early if number == 1 else []
        name = request.path.rpartition("/")[2]
        applied = {"examined": 1_000, "examined_to": None if is_last else REACHED}
        return Answer(200, {name: found, "applied": applied, "next_token": None if is_last else str(number + 1)})


@pytest.fixture
def deployment() -> Iterator[LongList]:
    """Return a deployment with a long list; Ctrl-C interrupts the command even if the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with served(LongList()) as made:
        yield made
    signal.signal(signal.SIGINT, before)


LISTS = {
    ("tasks", "list", "--state", "running"): "no tasks",
    ("dead-letters", "list"): "no dead letters",
    ("topologies", "list"): "no topologies",
    ("schedules", "runs", "nightly"): "no runs",
}


@pytest.mark.parametrize("words", LISTS)
def test_a_completely_read_empty_list_reports_that_there_are_no_entries(
    duetime: Run, deployment: LongList, words: tuple[str, ...]
) -> None:
    """The command says that there are no entries only after it has read the complete list."""
    result = duetime(*words)
    assert (result.exit_code, result.stdout.strip()) == (0, LISTS[words])
    assert len(deployment.received) == PAGES


@pytest.mark.parametrize("words", LISTS)
def test_an_interrupted_list_reports_that_there_may_be_more(
    duetime: Run, deployment: LongList, words: tuple[str, ...]
) -> None:
    """After Ctrl-C the command prints how far it has read and that there may be more, and exits with code 130."""
    deployment.interrupted_at = 3
    result = duetime(*words)
    assert (result.exit_code, result.stdout) == (130, "")
    what = next((each for each in ("runs", "topologies") if each in words), "tasks")
    assert f"none found so far: stopped after 2,000 {what}, up to 03 Dec 11:00; there may be more" in result.stderr


def test_an_interrupted_table_shows_the_entries_found_so_far(duetime: Run, deployment: LongList) -> None:
    """After Ctrl-C the table has the entries found so far, and the error stream says that the table is incomplete."""
    deployment.interrupted_at, deployment.early = 3, [TASK]
    result = duetime("tasks", "list", "--state", "running")
    assert result.exit_code == 130
    assert TASK["id"] in result.stdout
    assert "stopped after 2,000 tasks" in result.stderr


def test_an_interrupted_json_list_prints_nothing(duetime: Run, deployment: LongList) -> None:
    """With `--json`, Ctrl-C ends the command without output, because a partial list could be mistaken for complete."""
    deployment.interrupted_at, deployment.early = 3, [TASK]
    result = duetime("tasks", "list", "--json")
    assert (result.exit_code, result.stdout) == (130, "")


def test_an_interrupted_sum_of_costs_is_marked_as_incomplete(duetime: Run, deployment: LongList) -> None:
    """After Ctrl-C, the sum of the costs so far is marked as incomplete."""
    deployment.interrupted_at, deployment.early = 3, [{**TASK, "cost_dollars": 0.5}]
    result = duetime("cost", "sum", "--by", "type")
    assert (result.exit_code, "stopped after 2,000 tasks" in result.stderr) == (130, True)
    assert "0.500000" in result.stdout


def test_a_listener_is_called_for_each_page(deployment: LongList) -> None:
    """A listener is called for each page, even an empty page, with the examined tasks and the due time reached."""
    deployment.hits = [TASK]
    heard: list[PageRead] = []
    with Client(deployment.url) as client:
        client.page_listeners.append(heard.append)
        assert [task.id for task in client.tasks.list(state="running")] == [TASK["id"]]
    assert [(page.entries, page.examined, page.has_more) for page in heard] == [
        *[(0, 1_000, True)] * (PAGES - 1),
        (1, 1_000, False),
    ]
    assert heard[0].examined_to == datetime(2026, 12, 3, 2, tzinfo=UTC)


@pytest.mark.slow
def test_a_task_on_the_last_page_is_found(duetime: Run, server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real API, a task on the last page is found, and a missing task is reported as missing."""
    monkeypatch.setenv("DUETIME_URL", server.url)
    with Client(server.url) as client:
        needle = client.tasks.create("report", name="needle", delay_seconds=600)
        client.tasks.create_batch([{"type": "crowd", "delay_seconds": 7_200}] * CROWD)
        heard: list[PageRead] = []
        client.page_listeners.append(heard.append)
        assert [task.id for task in client.tasks.list(name="needle")] == [needle.id]
        assert [page.examined for page in heard] == [1_000, CROWD - 999]
    listed = duetime("tasks", "list", "--name", "needle", "--json")
    assert [task["id"] for task in json.loads(listed.stdout)] == [needle.id]
    assert duetime("tasks", "list", "--name", "nowhere").stdout.strip() == "no tasks"
