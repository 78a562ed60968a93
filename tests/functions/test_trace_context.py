"""Tests that the `traceparent` of a creation request reaches everything that works on the task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.domain.ids import TaskId
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Context, Registered
from duetime.ports.tasks import ListQuery
from tests.functions.api.gateway import Gateway
from tests.functions.receivers import Receiver, receiving
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
HEADERS = {"traceparent": PARENT}
OTHER = PARENT.replace("4bf9", "aaaa")
ARN = "arn:aws:sqs:us-east-1:123456789012:"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running HTTP endpoint on the loopback address."""
    with receiving() as started:
        yield started


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions, with settings that allow calls to the loopback address and to some queues."""
    yield Stack.faked({Variable.HTTP_ALLOW: "127.0.0.1", Variable.AWS_TARGETS: f"{ARN}reports-*"})
    composition.use(None)


def create(body: dict[str, Any], headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Create a task through the API, and return its JSON."""
    return Gateway().create({"type": "report", **body}, HEADERS if headers is None else headers)


def test_the_trace_is_in_the_handlers_context_and_its_log_lines(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The trace is in the handler's `context.traceparent`, in `trace_id` of its log lines, and in the task's field."""
    seen: list[Context] = []

    def run(context: Context, _payload: object) -> None:
        seen.append(context)
        print("here")  # noqa: T201 - what is tested

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": run}))
    assert create({})["traceparent"] == PARENT
    assert create({}, {})["traceparent"] is None
    assert create({}, {"traceparent": "00-zz"})["traceparent"] is None
    capsys.readouterr()
    stack.work(Priority.NORMAL)
    assert sorted(str(context.traceparent) for context in seen) == [PARENT, "None", "None"]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(line.get("trace_id", "") for line in lines if line.get("message") == "here") == ["", "", TRACE]


def test_each_task_of_a_batch_is_part_of_the_requests_trace(stack: Stack) -> None:
    """Every task of a batch has the trace of the batch request."""
    del stack
    answer = Gateway().send("POST", "/v1/tasks/batch", {"tasks": [{"type": "report"}] * 2}, HEADERS)
    assert [result["task"]["traceparent"] for result in answer.body["results"]] == [PARENT, PARENT]


def test_a_repeated_request_does_not_change_the_trace(stack: Stack) -> None:
    """A repeated creation with an idempotency key keeps the trace of the first request."""
    del stack
    headers = {**HEADERS, "Idempotency-Key": "once"}
    first = create({"delay_seconds": 60}, headers)
    second = create({"delay_seconds": 60}, {**headers, "traceparent": OTHER})
    assert second["id"] == first["id"]
    assert second["traceparent"] == PARENT


def test_runs_of_a_schedule_keep_its_trace(stack: Stack) -> None:
    """Runs of a schedule keep the trace of the request that created the schedule, even after a change.

    A manual run has the trace of its own request, if the request has a trace.
    """
    body = {"name": "often", "rate": "1 minute", "task": {"type": "report"}}
    assert Gateway().send("POST", "/v1/schedules", body, HEADERS).status == 201
    change = Gateway().send("PATCH", "/v1/schedules/often", {"task": {"priority": "low"}}, {"traceparent": OTHER})
    assert change.status == 200
    stack.clock.at += 5 * MINUTE
    stack.call("trigger", {})
    listed = Gateway().send("GET", "/v1/schedules/often/runs").body["runs"]
    placed = [each["task_id"] for each in listed if each["task_id"]]
    assert len(placed) > 2
    for task_id in placed:
        assert Gateway().send("GET", f"/v1/tasks/{task_id}").body["traceparent"] == PARENT
    run = Gateway().send("POST", "/v1/schedules/often/run", None, {"traceparent": OTHER})
    assert run.body["traceparent"] == OTHER
    assert Gateway().send("POST", "/v1/schedules/often/run").body["traceparent"] == PARENT


def test_an_endpoint_and_a_callback_get_the_trace_header(stack: Stack, receiver: Receiver) -> None:
    """The endpoint and the callback get the trace unchanged, as a header and in the body."""
    url = receiver.url
    create({"target": {"kind": "http", "url": f"{url}/job"}, "callback_url": f"{url}/ended"})
    stack.work(Priority.NORMAL)
    stack.work(Priority.NORMAL)
    job, ended = receiver.requests
    assert {job.headers["traceparent"], ended.headers["traceparent"], job.json["traceparent"]} == {PARENT}
    assert ended.json["data"]["traceparent"] == PARENT


def test_an_endpoint_gets_no_trace_if_the_request_has_none(stack: Stack, receiver: Receiver) -> None:
    """If a request has no trace, the endpoint gets no trace, and can itself decide whether to begin a trace."""
    create({"target": {"kind": "http", "url": f"{receiver.url}/job"}}, {})
    stack.work(Priority.NORMAL)
    (job,) = receiver.requests
    assert "traceparent" not in {name.lower() for name in job.headers}
    assert "traceparent" not in job.json


def test_an_sqs_message_has_the_trace_as_an_attribute(stack: Stack) -> None:
    """An SQS message has the trace in its body and in a message attribute, where SQS consumers expect the trace."""
    name = f"reports-{uuid4().hex}"
    url = stack.cloud.sqs.create_queue(QueueName=name)["QueueUrl"]
    create({"target": {"kind": "sqs", "arn": ARN + name}})
    stack.work(Priority.NORMAL)
    (message,) = stack.cloud.sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert message["MessageAttributes"]["traceparent"]["StringValue"] == PARENT
    assert json.loads(message["Body"])["traceparent"] == PARENT


def test_a_task_from_a_queue_message_has_the_messages_trace(stack: Stack) -> None:
    """A task that is created from a queue message has the trace in the message's `traceparent` attribute."""
    stack.environ[Variable.INTAKE_REJECTS] = stack.cloud.sqs.create_queue(QueueName="rejects")["QueueUrl"]
    stack.environ[Variable.INTAKE_OWNER] = "events"
    record = {
        "messageId": "1",
        "body": json.dumps({"type": "report"}),
        "attributes": {"SentTimestamp": str(stack.clock.now())},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:intake",
        "messageAttributes": {"traceparent": {"dataType": "String", "stringValue": PARENT}},
    }
    assert stack.call("intake", {"Records": [record]}) == {"batchItemFailures": []}
    tasks = composed(TaskServices).reader
    (id_,) = tasks.stores.tasks.list_ids(ListQuery("events"))
    assert isinstance(id_, TaskId)
    assert tasks.get("events", id_).traceparent == PARENT
