"""Tests of callbacks, from the API's `callback_url` to the receiver's verification of the signature."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from duetime import composition
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HandlerTarget, HttpTarget, Phase
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Registered
from tests.adapters.targets.receiver import is_signed_by, secret_for
from tests.functions.receivers import Receiver, receiving
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "c2VjcmV0" * 8


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running HTTP endpoint on the loopback address."""
    with receiving() as started:
        yield started


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions over AWS fakes, with a signing secret."""
    settings: dict[str, str] = {Variable.HTTP_ALLOW: "127.0.0.1", Variable.SIGNING_SECRET: "signing"}
    yield Stack.faked(settings, {"signing": SECRET})
    composition.use(None)


def test_an_outcome_is_sent_in_one_signed_callback(
    stack: Stack, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a task has finished, one signed POST request has the type, a timestamp, and the task in its list form."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: {"rows": 3}}))
    task = stack.create(TaskSpec("report", name="Nightly", callback_url=f"{receiver.url}/ended"))
    assert stack.work(Priority.NORMAL) == []
    assert stack.get(task).finished_at is not None
    assert receiver.requests == []
    assert stack.work(Priority.NORMAL) == []
    (told,) = receiver.requests
    assert (told.method, told.path) == ("POST", "/ended")
    assert told.headers["Content-Type"] == "application/json"
    assert told.headers["webhook-id"] != str(task.id)
    assert is_signed_by(secret_for(OWNER, SECRET), told.headers, told.body)
    event = told.json
    assert set(event) == {"type", "timestamp", "owner", "audience", "data"}
    assert (event["owner"], event["audience"]) == (OWNER, f"{receiver.url}/ended")
    assert event["type"] == "task.succeeded"
    assert (event["data"]["id"], event["data"]["state"]) == (str(task.id), "succeeded")
    assert event["data"]["name"] == "Nightly"
    assert event["data"]["finished_at"] is None


def test_the_callback_is_sent_after_the_clean_action(stack: Stack, receiver: Receiver) -> None:
    """The callback is sent after the target's `clean` action."""
    target = HttpTarget(f"{receiver.url}/job", frozenset({Phase.CLEAN}))
    stack.create(TaskSpec("report", target=target, callback_url=f"{receiver.url}/ended"))
    assert stack.work(Priority.NORMAL) == []
    assert stack.work(Priority.NORMAL) == []
    asked = [(one.method, one.path) for one in receiver.requests]
    assert asked == [("PUT", "/job?action=run"), ("PUT", "/job?action=clean"), ("POST", "/ended")]


def test_a_callback_that_fails_leaves_the_outcome_as_it_is(stack: Stack, receiver: Receiver) -> None:
    """A failed callback is repeated with the same id and body, and the state of its task does not change."""
    receiver.answers["POST", "/ended"] = (503, b"sorry")
    task = stack.create(TaskSpec("unheard.of", target=HandlerTarget(), callback_url=f"{receiver.url}/ended"))
    for _ in range(3):
        assert stack.work(Priority.NORMAL) == []
        stack.clock.at += MINUTE
    told = receiver.requests
    assert len(told) == 2
    assert len({(one.headers["webhook-id"], one.body) for one in told}) == 1
    assert told[0].json["type"] == "task.failed"
    done = stack.get(task)
    assert (done.state, done.finished_at is not None) == (State.FAILED, True)


@pytest.mark.parametrize("status", [301, 400, 410])
def test_a_callback_is_sent_only_once_if_a_retry_cannot_help(
    stack: Stack, receiver: Receiver, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    """A callback that fails in a way which a retry cannot fix is sent only once and counted as failed."""
    receiver.answers["POST", "/ended"] = (status, b"")
    stack.create(TaskSpec("unheard.of", callback_url=f"{receiver.url}/ended"))
    for _ in range(3):
        assert stack.work(Priority.NORMAL) == []
        stack.clock.at += MINUTE
    assert len(receiver.requests) == 1
    assert '"callbacks_failed":[1.0]' in capsys.readouterr().out.replace(" ", "")


def test_a_callback_to_a_private_address_fails(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A callback to a private address fails, but its task keeps its outcome."""
    leads = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: leads)
    task = stack.create(TaskSpec("unheard.of", callback_url="http://rebinding.example.org/latest/meta-data"))
    assert stack.work(Priority.NORMAL) == []
    before = stack.get(task)
    assert before.finished_at is not None
    assert stack.work(Priority.NORMAL) == []
    assert '"callbacks_failed":[1.0]' in capsys.readouterr().out.replace(" ", "")
    assert stack.get(task) == before
