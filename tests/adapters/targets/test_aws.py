from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from duetime.adapters.aws_clients import Clients
from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.job_calls import Resources
from duetime.domain.tasks.attempt_results import Deferred, Failed, NotSent, Succeeded, TargetEnding
from duetime.domain.tasks.targets import ArnPatterns, AwsService, AwsTarget, service_of
from tests.adapters.targets.works import work
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_local.emulator import Emulator

PLACE = "us-east-1:000000000000"
FUNCTION = f"arn:aws:lambda:{PLACE}:function:report"
QUEUE = f"arn:aws:sqs:{PLACE}:reports"
TOPIC = f"arn:aws:sns:{PLACE}:reports"
BUS = f"arn:aws:events:{PLACE}:event-bus/default"
MACHINE = f"arn:aws:states:{PLACE}:stateMachine:report"
ALL = ArnPatterns(tuple(f"arn:aws:{service}:*:*:*" for service in ("lambda", "sqs", "sns", "events", "states")))
ENVELOPE = {"type": "report", "attempt": 2, "fence": 3, "payload": {"a": 1}}


def target(arn: str, **options: Any) -> AwsTarget:  # noqa: ANN401 - any field of a target
    """Return the target for an ARN."""
    return AwsTarget(AwsService(service_of(arn) or ""), arn, **options)


def names(engine: Emulator, service: str) -> Any:  # noqa: ANN401 - a client of any service
    """Return an engine client for a service."""
    return boto3.client(
        service,  # type: ignore[call-overload]  # any of the services
        endpoint_url=engine.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id=engine.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key="none",  # noqa: S106 - none
    )


@pytest.fixture
def call(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TargetEnding]:
    """Call a resource of the embedded engine as a target."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    runner = AwsRunner(Resources(Clients(boto3.Session())), ALL)

    def called(arn: str, *, attempt: int = 2, seconds: int = 60, **options: Any) -> TargetEnding:  # noqa: ANN401 - same
        wanted = work(seconds=seconds)
        claimed = replace(wanted.task, attempt=attempt, fence=attempt + 1)
        return runner.run(target(arn, **options), replace(wanted, task=claimed))

    return called


def function(engine: Emulator, body: str) -> str:
    """Create an engine function with this code and return its ARN."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", f"def handler(event, context):\n    {body}\n")
    made = engine.client("lambda").create_function(
        FunctionName=f"target-{uuid4().hex}",
        Runtime="python3.13",
        Role="arn:aws:iam::000000000000:role/probe",
        Handler="index.handler",
        Code={"ZipFile": archive.getvalue()},
        Timeout=30,
    )
    return made["FunctionArn"]


def queue(engine: Emulator, suffix: str = "", **attributes: str) -> tuple[str, str]:
    """Create an engine queue and return its ARN and URL."""
    sqs = engine.client("sqs")
    url = sqs.create_queue(QueueName=f"target-{uuid4().hex}{suffix}", Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]  # names of attributes
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return arn, url


def received(engine: Emulator, url: str) -> list[Any]:
    """Wait for messages on a queue and return their bodies as JSON."""
    sqs = engine.client("sqs")

    def look() -> list[Any]:
        answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]

    return until(look)


def result(ending: TargetEnding) -> Any:  # noqa: ANN401 - any JSON
    """Return the result of a call that must succeed."""
    assert isinstance(ending, Succeeded)
    return json.loads(ending.result)


def failed(ending: TargetEnding) -> Failed:
    """Return the failure of a call that must fail."""
    assert isinstance(ending, Failed)
    return ending


def test_a_function_receives_the_task_and_its_response_is_the_result(
    engine: Emulator, call: Callable[..., TargetEnding]
) -> None:
    """A function receives the same document as an HTTP endpoint, and its response is the result."""
    told = result(call(function(engine, "return event")))
    assert {name: told[name] for name in ENVELOPE} == ENVELOPE
    assert set(told) == {*ENVELOPE, "task_id", "deadline", "due_at", "created_at", "lateness_ms"}


def test_an_error_of_a_function_fails_the_attempt(engine: Emulator, call: Callable[..., TargetEnding]) -> None:
    """The function's exception is the attempt's error; unlike AWS, the engine does not report the exception's class."""
    ending = failed(call(function(engine, "raise LookupError('no such row')")))
    assert (ending.error.message, ending.retriable) == ("no such row", True)


def test_a_function_that_is_too_slow_fails_only_its_attempt(
    engine: Emulator, call: Callable[..., TargetEnding]
) -> None:
    """A function that is too slow fails its attempt, but does not end the worker's process or its other tasks."""
    slow = function(engine, "import time; time.sleep(8)")
    assert failed(call(slow, seconds=1)).error.type == "Timeout"


def test_an_asynchronous_invocation_defers_the_attempt(engine: Emulator, call: Callable[..., TargetEnding]) -> None:
    """An asynchronous invocation defers the attempt, even if the function then raises an error."""
    assert call(function(engine, "raise LookupError('nobody waits')"), waits=False) == Deferred()


def test_a_message_is_sent_to_a_queue(engine: Emulator, call: Callable[..., TargetEnding]) -> None:
    """The result of sending a message is the message's id."""
    arn, url = queue(engine)
    assert result(call(arn))["message_id"]
    (message,) = received(engine, url)
    assert {name: message[name] for name in ENVELOPE} == ENVELOPE


def test_a_repeated_message_on_a_fifo_queue_is_dropped(engine: Emulator, call: Callable[..., TargetEnding]) -> None:
    """If an attempt is repeated after a lost response, the FIFO queue still contains only one message."""
    arn, url = queue(engine, ".fifo", FifoQueue="true")
    for attempt in (1, 2):
        assert result(call(arn, attempt=attempt))
    (message,) = received(engine, url)
    assert message["attempt"] == 1


def test_a_message_is_published_to_a_topic(engine: Emulator, call: Callable[..., TargetEnding]) -> None:
    """A subscriber of the topic receives the message."""
    sns, (arn, url) = names(engine, "sns"), queue(engine)
    topic = sns.create_topic(Name=f"target-{uuid4().hex}")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    assert result(call(topic))["message_id"]
    (message,) = received(engine, url)
    assert {name: message[name] for name in ENVELOPE} == ENVELOPE


def test_a_notice_is_published_to_a_topic(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notice is published unchanged to the subscribers of the topic."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    sns, (arn, url) = names(engine, "sns"), queue(engine)
    topic = sns.create_topic(Name=f"target-{uuid4().hex}")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"})
    runner = AwsRunner(Resources(Clients(boto3.Session())), ALL)
    assert runner.notify(topic, "task.late", work().task, b'{"type":"task.late"}', 60) is None
    assert received(engine, url) == [{"type": "task.late"}]


@pytest.mark.parametrize(("given", "told"), [("report due", "report due"), ("", "report")])
def test_an_event_is_put_on_a_bus(engine: Emulator, call: Callable[..., TargetEnding], given: str, told: str) -> None:
    """The source is duetime, the detail type is the target's or else the task's type, and the detail is the task."""
    events, (arn, url) = names(engine, "events"), queue(engine)
    bus = events.create_event_bus(Name=f"target-{uuid4().hex}")["EventBusArn"]
    name = bus.rpartition("/")[2]
    events.put_rule(Name=name, EventBusName=name, EventPattern='{"source": ["duetime"]}')
    events.put_targets(Rule=name, EventBusName=name, Targets=[{"Id": "queue", "Arn": arn}])
    assert result(call(bus, detail_type=given))["event_id"]
    (event,) = received(engine, url)
    assert (event["source"], event["detail-type"]) == ("duetime", told)
    assert {name: event["detail"][name] for name in ENVELOPE} == ENVELOPE


def test_repeated_attempts_start_one_execution(engine: Emulator, call: Callable[..., TargetEnding]) -> None:
    """A second attempt after a lost response finds the execution by its name and returns the same result."""
    states = names(engine, "stepfunctions")
    machine = states.create_state_machine(
        name=f"target-{uuid4().hex}",
        definition='{"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}',
        roleArn="arn:aws:iam::000000000000:role/probe",
    )["stateMachineArn"]
    told = [result(call(machine, attempt=attempt)) for attempt in (1, 2)]
    assert told[0] == told[1]
    assert until(lambda: len(states.list_executions(stateMachineArn=machine)["executions"]) == 1)
    execution = states.describe_execution(executionArn=told[0]["execution_arn"])
    assert json.loads(execution["input"])["attempt"] == 1


class Scripted:
    """AWS services with scripted responses."""

    def __init__(self) -> None:
        session = boto3.Session("none", "none", region_name="us-east-1")
        resources = Resources(Clients(session))
        self.runner = AwsRunner(resources, ALL)
        self.stubs = {
            arn: Stubber(client)
            for arn, client in (
                (FUNCTION, resources.lambdas(FUNCTION)),
                (QUEUE, resources.sqs(QUEUE)),
                (TOPIC, resources.sns(TOPIC)),
                (BUS, resources.events(BUS)),
                (MACHINE, resources.step_functions(MACHINE)),
            )
        }
        for stub in self.stubs.values():
            stub.activate()

    def refused(self, arn: str, operation: str, code: str, status: int = 400) -> Failed:
        """Return the result of a call that a service rejects."""
        # The call is sent once, because the task's retry policy determines whether to retry.
        self.stubs[arn].add_client_error(operation, code, "the message", status)
        return failed(self.runner.run(target(arn), work()))


OPERATIONS = {
    FUNCTION: "invoke",
    QUEUE: "send_message",
    TOPIC: "publish",
    BUS: "put_events",
    MACHINE: "start_execution",
}


@pytest.mark.parametrize(
    ("arn", "code", "status"),
    [
        (FUNCTION, "TooManyRequestsException", 429),
        (QUEUE, "RequestThrottled", 400),
        (QUEUE, "KmsThrottled", 400),
        (TOPIC, "Throttled", 429),
        (BUS, "ThrottlingException", 400),
        (MACHINE, "ExecutionLimitExceeded", 400),
        (MACHINE, "ThrottlingException", 400),
    ],
)
def test_a_throttled_call_does_not_count_as_an_attempt(arn: str, code: str, status: int) -> None:
    """A throttled call does nothing and does not count as an attempt."""
    services = Scripted()
    services.stubs[arn].add_client_error(OPERATIONS[arn], code, "the message", status)
    ending = services.runner.run(target(arn), work())
    assert isinstance(ending, NotSent)
    assert code in ending.reason


@pytest.mark.parametrize(
    ("arn", "code", "status"),
    [
        (FUNCTION, "ResourceConflictException", 409),
        (FUNCTION, "ServiceException", 500),
        (TOPIC, "InternalError", 500),
        (BUS, "InternalException", 500),
    ],
)
def test_a_temporary_error_of_a_service_is_retried(arn: str, code: str, status: int) -> None:
    """A server error, or an update of the function that is in progress, fails the attempt with a retry."""
    ending = Scripted().refused(arn, OPERATIONS[arn], code, status)
    assert (ending.error.type, ending.retriable) == (code, True)


@pytest.mark.parametrize(
    ("arn", "code", "status"),
    [
        (FUNCTION, "ResourceNotFoundException", 404),
        (FUNCTION, "AccessDeniedException", 403),
        (FUNCTION, "InvalidRequestContentException", 400),
        (QUEUE, "AWS.SimpleQueueService.NonExistentQueue", 400),
        (QUEUE, "AccessDenied", 403),
        (TOPIC, "NotFound", 404),
        (TOPIC, "InvalidParameter", 400),
        (TOPIC, "AuthorizationError", 403),
        (BUS, "AccessDeniedException", 400),
        (MACHINE, "StateMachineDoesNotExist", 400),
        (MACHINE, "InvalidExecutionInput", 400),
    ],
)
def test_a_permanent_error_of_a_service_is_not_retried(arn: str, code: str, status: int) -> None:
    """Errors about permissions, names and formats are not retried; the failure contains the service's message."""
    ending = Scripted().refused(arn, OPERATIONS[arn], code, status)
    assert (ending.error.type, ending.retriable) == (code, False)
    assert "the message" in ending.error.message


@pytest.mark.parametrize(
    ("told", "kind", "message", "retriable"),
    [
        (b'{"errorMessage": "no such row", "errorType": "LookupError"}', "LookupError", "no such row", True),
        (b'{"errorMessage": "no such row", "errorType": "Unretriable"}', "Unretriable", "no such row", False),
        (b'{"errorMessage": "2026 Task timed out after 3.00 seconds"}', "FunctionError", "2026 Task timed", True),
        (b"[]", "FunctionError", "[]", True),
        (b"\xff", "FunctionError", "\ufffd", True),
    ],
)
def test_the_class_and_message_of_a_function_error_are_stored(
    told: bytes, kind: str, message: str, *, retriable: bool
) -> None:
    """The attempt's error has the function's error class and message, and the class can exclude a retry."""
    services = Scripted()
    answer = {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": StreamingBody(io.BytesIO(told), len(told))}
    services.stubs[FUNCTION].add_response("invoke", answer)
    ending = failed(services.runner.run(target(FUNCTION), work()))
    assert (ending.error.type, ending.retriable) == (kind, retriable)
    assert message in ending.error.message


def test_an_entry_throttled_in_a_200_response_was_not_sent() -> None:
    """An entry that EventBridge throttles in a 200 response counts as not sent."""
    services = Scripted()
    entry = {"ErrorCode": "ThrottlingException", "ErrorMessage": "no"}
    services.stubs[BUS].add_response("put_events", {"FailedEntryCount": 1, "Entries": [entry]})
    assert services.runner.run(target(BUS), work()) == NotSent("PutEvents: ThrottlingException")


@pytest.mark.parametrize(("code", "retriable"), [("InternalFailure", True), ("NotAuthorizedForSource", False)])
def test_an_entry_rejected_in_a_200_response_fails_the_attempt(code: str, *, retriable: bool) -> None:
    """An entry that EventBridge rejects in a 200 response fails the attempt."""
    services = Scripted()
    entry = {"ErrorCode": code, "ErrorMessage": "no"}
    services.stubs[BUS].add_response("put_events", {"FailedEntryCount": 1, "Entries": [entry]})
    ending = failed(services.runner.run(target(BUS), work()))
    assert (ending.error.type, ending.retriable) == (code, retriable)


@pytest.mark.parametrize(
    ("arn", "options", "size"),
    [
        (FUNCTION, {"waits": False}, 1_000_000),
        (QUEUE, {}, 1_048_576),
        (TOPIC, {}, 1_048_576),
        (BUS, {}, 1_000_000),
        (MACHINE, {}, 262_144),
    ],
)
def test_an_invalid_call_fails_before_it_is_sent(arn: str, options: dict[str, Any], size: int) -> None:
    """An invalid call fails permanently with a clear error before it is sent."""
    payload = b'"' + b"x" * (size - 300) + b'"'
    sent = failed(Scripted().runner.run(target(arn, **options), work(payload)))
    assert sent.error.type == "UnStubbedResponseError"
    ending = failed(Scripted().runner.run(target(arn, **options), work(payload + b" " * 300)))
    assert (ending.error.type, ending.retriable) == ("PayloadTooLarge", False)
    assert str(size) in ending.error.message


def test_a_resource_that_the_settings_do_not_allow_is_not_called() -> None:
    """A resource that the settings no longer allow is not called, although the task was accepted earlier."""
    runner = AwsRunner(Resources(Clients(boto3.Session(region_name="us-east-1"))), ArnPatterns((f"{QUEUE}-*",)))
    ending = failed(runner.run(target(QUEUE), work()))
    assert (ending.error.type, ending.retriable) == ("TargetNotAllowed", False)
    assert QUEUE in ending.error.message
