"""Tests of the egress function, which is called between the worker and an endpoint in the same way as by Lambda."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.adapters.targets.egress import EgressCaller
from duetime.composition import composed
from duetime.composition.invoked_functions import HttpServices
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HttpTarget
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.environment_variables import Variable
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


@pytest.fixture
def events(stack: Stack) -> list[dict[str, Any]]:
    """Pass the worker's HTTP calls to the egress function, and return the events that the function receives."""
    kept: list[dict[str, Any]] = []

    def invoke(payload: bytes) -> bytes:
        kept.append(json.loads(payload))
        return json.dumps(stack.call("egress", kept[-1])).encode()

    # The composition would invoke the egress function through Lambda, which does not exist in this test.
    composed(HttpServices).__dict__["caller"] = EgressCaller(invoke, window=2.0)
    return kept


def test_calls_that_begin_together_share_an_invocation(
    stack: Stack, events: list[dict[str, Any]], receiver: Receiver
) -> None:
    """Ten tasks make ten signed calls in fewer invocations, because calls that begin together share an invocation."""
    receiver.answers["PUT", "/job?action=run"] = (200, b'{"rows": 3}')
    target = HttpTarget(f"{receiver.url}/job")
    tasks = [stack.create(TaskSpec("report", payload=b'{"n":1}', target=target)) for _ in range(10)]
    assert stack.work(Priority.NORMAL) == []
    # How many calls begin within the window depends on the machine's load. On an idle machine, all ten calls do so.
    assert sum(len(event["calls"]) for event in events) == 10
    assert len(events) < 10
    for task in tasks:
        done = stack.get(task)
        assert done.state is State.SUCCEEDED
        assert done.result is not None
        assert done.result.data == b'{"rows":3}'
    assert len(receiver.requests) == 10
    for request in receiver.requests:
        assert is_signed_by(secret_for(OWNER, SECRET), request.headers, request.body)
        assert request.headers["webhook-id"] == f"{request.json['task_id']}-1-run"
        assert request.headers["Idempotency-Key"] == request.json["task_id"]


def test_a_task_is_retried_if_the_egress_fails(stack: Stack, receiver: Receiver) -> None:
    """If the egress function fails, the task is retried and its error names the egress."""

    def invoke(_payload: bytes) -> bytes:
        raise ConnectionError

    composed(HttpServices).__dict__["caller"] = EgressCaller(invoke)
    task = stack.create(TaskSpec("report", target=HttpTarget(receiver.url)))
    assert stack.work(Priority.NORMAL) == []
    after = stack.get(task)
    assert after.state is State.WAITING
    assert after.error is not None
    assert after.error.type == "EgressFailed"
    assert receiver.requests == []


def test_the_worker_makes_no_http_calls_if_there_is_an_egress(stack: Stack) -> None:
    """If the settings name an egress function, the worker makes no HTTP calls itself."""
    stack.environ[Variable.EGRESS_FUNCTION] = "egress"
    assert isinstance(composed(HttpServices).caller, EgressCaller)
