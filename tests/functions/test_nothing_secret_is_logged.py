"""Tests that no log line has confidential user data: payloads, results, responses, URLs, headers or secrets.

Each test puts a mark into such data, runs code that writes logs, and searches all output for the mark.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime import composition
from duetime.adapters.content_store import SplitContentStore
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HttpTarget, Phase
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import SECOND
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Registered
from tests.functions.api.gateway import Gateway
from tests.functions.receivers import Receiver, receiving
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.task import Task

MARK = "h4" + "ndsoff"
"""The mark in confidential data. It is composed of parts, because tracebacks quote lines of this file.
"""
PAYLOAD: dict[str, Any] = {"password": MARK, "rows": [MARK]}
TEXT = json.dumps(PAYLOAD).encode()
CLOSED = "http://127.0.0.1:9"
"""A URL with the discard port, on which no server listens."""


class Output:
    """All output of the functions."""

    def __init__(self, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        self._capsys = capsys
        self._caplog = caplog

    def lines(self) -> list[str]:
        """The lines written so far, and the log records of libraries with all their fields."""
        out, err = self._capsys.readouterr()
        return [*(out + err).splitlines(), *(repr(record.__dict__) for record in self._caplog.records)]


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Iterator[Output]:
    """Collects all output from now on, including log records of libraries at the level INFO and above."""
    caplog.set_level(logging.INFO)
    yield Output(capsys, caplog)
    composition.use(None)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running HTTP endpoint on the loopback address."""
    with receiving() as started:
        yield started


@pytest.fixture
def stack() -> Stack:
    """The Lambda functions, with a signing secret that contains the mark."""
    settings: dict[str, str] = {Variable.HTTP_ALLOW: "127.0.0.1,localhost", Variable.SIGNING_SECRET: "signing"}
    made = Stack.faked(settings, {"signing": f"whsec_{MARK}" + "c2Vj" * 8})
    made.environ[Variable.INTAKE_REJECTS] = made.cloud.sqs.create_queue(QueueName=f"rejects-{uuid4().hex}")["QueueUrl"]
    made.environ[Variable.INTAKE_OWNER] = "events"
    return made


def handle(monkeypatch: pytest.MonkeyPatch, **phases: Callable[[Any, Any], object]) -> None:
    """Register a handler with these phases for the type `report`."""
    monkeypatch.setitem(REGISTRY, "report", Registered(phases))


def assert_silent(output: Output, *told: str) -> None:
    """Assert that the output lacks the mark, but has the expected strings, which prove that something was logged."""
    lines = output.lines()
    assert [line for line in lines if MARK in line] == []
    assert [text for text in told if not any(text in line for line in lines)] == []


def run(stack: Stack, **fields: Any) -> Task:  # noqa: ANN401 - fields of a task
    """Create a task with the marked payload, and let the worker run the task and its callback."""
    task = stack.create(TaskSpec("report", payload=TEXT, **fields))
    stack.work(Priority.NORMAL)
    if task.callback_url is not None:
        stack.work(Priority.NORMAL)
    return stack.get(task)


def raising(error: BaseException) -> Callable[..., object]:
    """A callable that always raises this error."""

    def boom(*_: object, **__: object) -> object:
        raise error

    return boom


def test_a_success_is_logged_without_its_payload_and_result(
    stack: Stack, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A successful task logs a line of metrics without the task's payload and result."""
    handle(monkeypatch, run=lambda _context, payload: payload)
    assert run(stack).state is State.SUCCEEDED
    assert_silent(output, "tasks_succeeded")


@pytest.mark.parametrize("result", [{MARK}, MARK + "\ud800", {(MARK, 1): 1}, [MARK, float("nan")]])
def test_a_result_that_is_not_json_is_not_logged(
    stack: Stack, output: Output, monkeypatch: pytest.MonkeyPatch, result: object
) -> None:
    """A result that is not JSON fails the task, and the log does not quote the result."""
    handle(monkeypatch, run=lambda _context, _payload: result)
    assert run(stack).state is State.FAILED
    assert_silent(output, "tasks_failed")


def test_likely_secrets_in_a_logged_traceback_are_replaced(
    stack: Stack, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure's full traceback is logged, but likely secrets in the messages of its errors are replaced."""

    def boom(_context: object, payload: Any) -> None:  # noqa: ANN401 - JSON
        try:
            raise ConnectionError(f"postgres://app:{payload['password']}@db/orders")  # noqa: TRY301 - two errors in one
        except ConnectionError as error:
            raise RuntimeError(f"password={payload['password']}") from error

    handle(monkeypatch, run=boom)
    run(stack)
    assert_silent(output, "an attempt failed", "in boom", "postgres://app:[redacted]@db/orders", "password=[redacted]")


def test_a_refused_request_is_logged_without_its_values(stack: Stack, output: Output) -> None:
    """A request that cannot be accepted is answered with an error, but the log has none of the request's values."""
    del stack
    gateway = Gateway(headers={"authorization": f"Bearer {MARK}", "cookie": MARK, "x-api-key": MARK})
    bodies = [
        {"type": "report", "payload": PAYLOAD, MARK: MARK},
        {"type": {"a": MARK}, "payload": PAYLOAD},
        {"type": "report", "payload": PAYLOAD, "priority": MARK, "due_at": MARK, "target": {"kind": MARK}},
        {"type": "report", "payload": PAYLOAD, "callback_url": f"https://u:{MARK}@example.org/?token={MARK}"},
    ]
    assert [gateway.send("POST", "/v1/tasks", body).status for body in bodies] == [422] * len(bodies)
    assert gateway.send("POST", "/v1/tasks", bodies[0], query=f"token={MARK}").status == 400
    raw = [f'{{"type": "report", "payload": [NaN, "{MARK}"', f'"{MARK}"', "[" * 500 + MARK]
    assert [gateway.send("POST", "/v1/tasks", raw=text).status for text in raw] == [400, 422, 422]
    assert_silent(output)


def test_an_unforeseen_error_is_logged_without_its_message(
    stack: Stack, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the location of an unforeseen error, but not its message, which may quote values as validators do."""
    stack.create(TaskSpec("report", payload=TEXT))
    deliveries = stack.receive(Priority.NORMAL)
    defect = ValueError(f"cannot digest {PAYLOAD}")
    monkeypatch.setattr(SplitContentStore, "keep", raising(defect))
    answer = Gateway(headers={"authorization": f"Bearer {MARK}"}).send(
        "POST", "/v1/tasks", {"type": "report", "payload": PAYLOAD}
    )
    assert answer.status == 500
    assert MARK not in answer.text
    event = {"type": "report", "payload": PAYLOAD}
    record = {
        "messageId": "1",
        "body": json.dumps(event),
        "attributes": {"SentTimestamp": str(stack.clock.now())},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:intake",
        "messageAttributes": {},
    }
    assert stack.call("intake", {"Records": [record]})["batchItemFailures"] != []
    handle(monkeypatch, run=lambda _context, payload: payload)
    monkeypatch.setattr("duetime.services.worker.attempt.AttemptPhases.work", raising(defect))
    assert stack.call("worker", deliveries)["batchItemFailures"] != []
    monkeypatch.setattr("duetime.services.worker.dead_letters.DeadLetterService.bury", raising(defect))
    assert stack.call("deadletter", deliveries)["batchItemFailures"] != []
    assert_silent(
        output,
        "a request failed unexpectedly",
        "an event must be delivered again",
        "a delivery could not be processed",
        "a dead letter could not be examined",
    )


def test_secrets_tokens_and_response_bodies_of_endpoints_are_not_logged(
    stack: Stack, receiver: Receiver, output: Output
) -> None:
    """The log has neither the signing secret, nor a token in a URL, nor the body of any response."""
    token = f"?token={MARK}"
    answers = receiver.answers
    answers["PUT", f"/fails{token}&action=run"] = (500, TEXT)
    answers["PUT", f"/done{token}&action=run"] = (200, TEXT)
    answers["PUT", f"/done{token}&action=clean"] = (400, TEXT)
    answers["POST", f"/ended{token}"] = (400, TEXT)
    told = f"{receiver.url}/ended{token}"
    done = HttpTarget(f"{receiver.url}/done{token}", frozenset({Phase.CLEAN}))
    assert run(stack, target=done, callback_url=told).state is State.SUCCEEDED
    assert run(stack, target=HttpTarget(f"{receiver.url}/fails{token}"), callback_url=told).error is not None
    assert run(stack, target=HttpTarget(f"{CLOSED}/{token}"), callback_url=f"{CLOSED}/{token}").error is not None
    assert_silent(output, "a target could not clean up", "callbacks_failed", "tasks_retried")


def test_a_callback_to_an_unknown_host_is_logged_without_its_token(
    stack: Stack, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a callback's host is unknown, the logged reason does not include the token in the callback's URL."""
    handle(monkeypatch, run=lambda _context, payload: payload)
    run(stack, callback_url=f"https://unknown.invalid/?token={MARK}")
    assert_silent(output, "tasks_succeeded", "tasks_retried")


def test_a_circuit_that_opens_is_logged_without_the_endpoints_response(
    stack: Stack, receiver: Receiver, output: Output
) -> None:
    """If a circuit opens, the log does not include the error response of the endpoint."""
    receiver.answers["PUT", "/fails?action=run"] = (500, TEXT)
    for _ in range(12):
        run(stack, target=HttpTarget(f"{receiver.url}/fails"))
        stack.clock.at += SECOND
    assert_silent(output, "a circuit was opened")


def test_unreadable_events_and_messages_are_logged_only_by_id(stack: Stack, output: Output) -> None:
    """The log has only the ids of unreadable events and messages, and not their text."""
    bodies = [MARK, json.dumps({"type": "report", MARK: 1}), json.dumps({"type": [MARK]}), f'{{"a": "{MARK}"']
    records = [
        {
            "messageId": str(uuid4()),
            "receiptHandle": "handle",
            "body": body,
            "attributes": {"SentTimestamp": str(stack.clock.now()), "ApproximateReceiveCount": "1"},
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:intake",
        }
        for body in bodies
    ]
    assert stack.call("intake", {"Records": records}) == {"batchItemFailures": []}
    for body in bodies:
        stack.cloud.sqs.send_message(QueueUrl=stack.queues[Priority.NORMAL], MessageBody=body)
    stack.work(Priority.NORMAL)
    ids = [str(record["messageId"]) for record in records]
    assert_silent(output, "an event cannot be carried out", "a message is not one of duetime's", *ids)
