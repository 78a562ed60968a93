"""Tests that the testing kit's client is the ordinary client, in virtual time and without a network."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from duetime_client import Conflict, InvalidRequest, NotFound
from duetime_testing import Duetime

if TYPE_CHECKING:
    from duetime.handlers import Context


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail on any attempt to open a connection."""

    def refuse(*_arguments: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_waiting_for_a_task_advances_virtual_time(duetime: Duetime) -> None:
    """Polling sleeps in virtual time and ends when the task ends."""

    def work(_context: Context, _payload: object) -> str:
        duetime.sleep(40)
        return "done"

    duetime.register("report", work)
    began = duetime.now
    task = duetime.client.tasks.create("report", delay_seconds=600)
    assert duetime.client.tasks.wait(task.id).result == "done"
    assert timedelta(seconds=640) <= duetime.now - began < timedelta(seconds=700)


def test_a_waiting_request_returns_when_the_task_has_ended(duetime: Duetime) -> None:
    """`wait_seconds` returns the outcome or, after the limit, the current task."""
    duetime.register("report", lambda _context, payload: duetime.sleep(payload))
    began = duetime.now
    assert duetime.client.tasks.create("report", payload=3, wait_seconds=20).state == "succeeded"
    assert duetime.now - began < timedelta(seconds=6)
    assert duetime.client.tasks.create("report", payload=50, wait_seconds=5).state == "running"


def test_changes_are_watched_without_a_connection(duetime: Duetime) -> None:
    """The client polls in virtual time until the task has ended."""
    duetime.register("report", lambda _context, _payload: duetime.sleep(5))
    task = duetime.client.tasks.create("report", delay_seconds=30)
    states = [change.item["state"] for change in duetime.client.tasks.watch(task.id) if change.item]
    assert (states[0], states[-1]) == ("scheduled", "succeeded")


def test_requests_are_validated_as_in_a_deployment(duetime: Duetime) -> None:
    """Requests are refused as in a deployment, and idempotency keys have their effect."""
    with pytest.raises(InvalidRequest, match="due_at"):
        duetime.client.tasks.create("report", due_at="tomorrow")
    with pytest.raises(NotFound):
        duetime.client.tasks.get("01KE6P53G80000HJ4NJW9RY2YV")
    first, again = (duetime.client.tasks.create("report", idempotency_key="k") for _ in range(2))
    assert first.id == again.id
    duetime.run_until_idle()
    with pytest.raises(Conflict):
        duetime.client.tasks.cancel(first.id)


def test_every_new_task_is_listed_at_once(duetime: Duetime) -> None:
    """Lists are always up to date, so a new task is on one of the pages of the next list."""
    made = [duetime.client.tasks.create("report", delay_seconds=60).id for _ in range(12)]
    assert {task.id for task in duetime.client.tasks.list(page_size=5)} == set(made)
    count = duetime.client.tasks.count(state="scheduled")
    assert (count.tasks, count.is_exact) == (len(made), True)


def test_two_accounts_in_one_thread_are_separate() -> None:
    """Two accounts in one thread have separate tasks and separate times."""
    one, other = Duetime(), Duetime()
    one.client.tasks.create("report", delay_seconds=60)
    other.advance(hours=1)
    assert not list(other.client.tasks.list())
    assert other.now - one.now == timedelta(hours=1)
    for each in (one, other):
        each.close()


def test_pytest_fail_in_a_handler_ends_the_test(duetime: Duetime) -> None:
    """`pytest.fail` in a handler ends the test and is not a failure of the task."""

    def refuse(_context: Context, _payload: object) -> None:
        pytest.fail("not in this test")

    duetime.register("report", refuse)
    duetime.client.tasks.create("report")
    with pytest.raises(pytest.fail.Exception, match="not in this test"):
        duetime.run_until_idle()


def test_an_assertion_of_a_handler_is_in_the_report(duetime: Duetime) -> None:
    """As in a deployment, a handler's failed assertion fails the attempt, and the next assertion's report shows it."""

    def check(_context: Context, payload: object) -> None:
        assert payload == {"a": 2}, f"got {payload}"

    duetime.register("report", check)
    duetime.client.tasks.create("report", payload={"a": 1}, retry={"max_attempts": 2})
    duetime.run_until_idle()
    with pytest.raises(AssertionError, match=r"report, attempt 2, failed: AssertionError: got \{'a': 1\}"):
        duetime.assert_ran("report", times=1)
