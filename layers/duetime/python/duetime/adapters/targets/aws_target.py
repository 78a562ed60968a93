"""Calls AWS resources as targets. A resource receives the same facts as an HTTP endpoint."""

from __future__ import annotations

import json
from dataclasses import replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ParamValidationError

from duetime.adapters.aws_clients import is_throttled, is_transient
from duetime.adapters.sqs import group_of
from duetime.adapters.targets.aws_jobs import JobRunner
from duetime.adapters.targets.envelope import UNRETRIABLE, compact, envelope, result_of
from duetime.adapters.targets.http_messages import TIMEOUT
from duetime.domain.ids import TRACEPARENT
from duetime.domain.tasks.attempt_results import Deferred, Ending, Failed, NotSent, Succeeded, TargetEnding, failure
from duetime.domain.tasks.targets import EVENT_SOURCE, AwsService, AwsTarget, service_of
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from duetime.adapters.targets.job_calls import Resources
    from duetime.domain.tasks.targets import ArnPatterns
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work

_MIB = 1_048_576
_OF_CONTAINERS = 7_168
_MOST_BYTES = {
    AwsService.LAMBDA: 6_000_000,
    AwsService.SQS: _MIB,
    AwsService.SNS: _MIB,
    AwsService.EVENTBRIDGE: 1_000_000,
    AwsService.STEP_FUNCTIONS: 262_144,
    AwsService.ECS: _OF_CONTAINERS,
    AwsService.BATCH: _OF_CONTAINERS,
    AwsService.CODEBUILD: _OF_CONTAINERS,
    AwsService.GLUE: _OF_CONTAINERS,
}
"""Source: Lambda API Reference, Invoke; SQS, SendMessage; SNS, Publish (256 KiB unless the topic allows more);
EventBridge, PutEvents (entries of one request, less than 1 MB); Step Functions, StartExecution; ECS, TaskOverride: 8192
characters, which include other overrides. Batch runs ECS tasks. The limits for CodeBuild variables and Glue arguments
are our own."""
_MOST_BYTES_UNWAITED = 1_000_000
"""Maximum size of an asynchronous invocation's event in bytes (Source: Lambda API Reference, Invoke: 1 MB)."""
_PASSES_WITH_TIME = frozenset(
    {
        # Lambda returns these codes while a function is being changed or prepared.
        "ResourceConflictException",
        "SnapStartNotReadyException",
        # PutEvents returns these codes for an entry.
        "InternalFailure",
        "InternalException",
    }
)
"""Error codes of rejections after which a later attempt may succeed, in addition to throttling and server errors.

Source: the API references of the services.
"""


class AwsRunner:
    """Calls AWS resources.

    Args:
        resources: creates the services' clients.
        callable_arns: patterns of the resources that the settings allow.
    """

    def __init__(self, resources: Resources, callable_arns: ArnPatterns) -> None:
        self._resources = resources
        self._callable_arns = callable_arns
        self.jobs = JobRunner(resources)

    def run(self, target: AwsTarget, work: Work) -> TargetEnding:
        """Call the resource within the task's timeout.

        This method never raises, because every error becomes an ending.
        """
        for arn in filter(None, (target.arn, target.place)):
            if self._callable_arns.allow(arn):
                continue
            message = f"the settings do not let tasks call {arn}"
            return failure("TargetNotAllowed", message, retriable=False)
        if target.is_job:
            work = _for_its_job(work)
        body = envelope(work)
        is_unwaited = target.service is AwsService.LAMBDA and (target.is_job or not target.waits)
        most = _MOST_BYTES_UNWAITED if is_unwaited else _MOST_BYTES[target.service]
        if len(body) > most:
            message = f"with the facts of its task the payload has {len(body)} bytes; {target.service} takes {most}"
            return failure("PayloadTooLarge", message, retriable=False)
        ending = self._within(work.seconds, target, work.task, body)
        if target.is_job and isinstance(ending, Failed) and ending.retriable:
            # The job may have begun nevertheless, so it is searched for.
            return Deferred()
        return ending

    def notify(self, arn: str, kind: str, task: Task, body: bytes, seconds: float) -> Failed | None:
        """Send a task's notice to a topic or an event bus once, and return the error, if any.

        This method never raises.
        """
        service = service_of(arn)
        if service is None or not self._callable_arns.allow(arn):
            return failure("TargetNotAllowed", f"the settings do not let tasks call {arn}", retriable=False)
        ending = self._within(seconds, AwsTarget(service, arn, detail_type=kind), task, body)
        if isinstance(ending, NotSent):
            return failure("NotSent", ending.reason, retriable=True)
        return ending if isinstance(ending, Failed) else None

    def _within(self, seconds: float, target: AwsTarget, task: Task, body: bytes) -> TargetEnding:
        """Make the call on a separate thread, because a worker whose own thread hangs must end its process."""
        endings: list[TargetEnding] = []
        done = Event()

        def call() -> None:
            try:
                endings.append(self._call(target, task, body))
            except Exception as error:  # noqa: BLE001 - any error must reach the attempt
                endings.append(_failed(error))
            done.set()

        Thread(target=call, name="aws-target", daemon=True).start()
        if not done.wait(seconds):
            return failure(TIMEOUT, f"{target.service} did not answer within {seconds:g} s")
        return endings[0]

    def _call(self, target: AwsTarget, task: Task, body: bytes) -> TargetEnding:
        if target.is_job:
            return self.jobs.start(target, task, body)
        match target.service:
            case AwsService.LAMBDA:
                return self._invoke(target, body)
            case AwsService.SQS:
                return self._send(target.arn, task, body)
            case AwsService.SNS:
                return self._publish(target.arn, task, body)
            case AwsService.EVENTBRIDGE:
                return self._put(target, task, body)
            case AwsService.STEP_FUNCTIONS:
                return self._execute(target.arn, task, body)
            case AwsService.ECS | AwsService.BATCH | AwsService.CODEBUILD | AwsService.GLUE:
                raise AssertionError(f"{target.service} runs jobs")

    def _invoke(self, target: AwsTarget, body: bytes) -> Ending:
        client = self._resources.lambdas(target.arn)
        if not target.waits:
            client.invoke(FunctionName=target.arn, InvocationType="Event", Payload=body)
            return Deferred()
        answer = client.invoke(FunctionName=target.arn, InvocationType="RequestResponse", Payload=body)
        data = answer["Payload"].read()
        return _function_failed(data) if "FunctionError" in answer else Succeeded(result_of(data))

    def _send(self, arn: str, task: Task, body: bytes) -> Ending:
        client = self._resources.sqs(arn)
        account, name = arn.split(":")[-2:]
        # The group makes a standard queue fair between owners and fair keys.
        options = (
            _in_order(task) if name.endswith(".fifo") else {"MessageGroupId": group_of(task.owner, task.fair_share)}
        )
        url = f"{client.meta.endpoint_url}/{account}/{name}"
        answer = client.send_message(QueueUrl=url, MessageBody=body.decode(), **options, **_trace(task))
        return _told("message_id", answer["MessageId"])

    def _publish(self, arn: str, task: Task, body: bytes) -> Ending:
        options = _in_order(task) if arn.endswith(".fifo") else {}
        answer = self._resources.sns(arn).publish(TopicArn=arn, Message=body.decode(), **options, **_trace(task))
        return _told("message_id", answer["MessageId"])

    def _execute(self, arn: str, task: Task, body: bytes) -> Ending:
        """Start a task's only execution, whose name is the task's id, so that a later attempt finds the execution."""
        # Few tasks start an execution, so the module is imported only for them.
        from duetime.adapters.targets.execution_jobs import start_execution  # noqa: PLC0415 - see the line above

        client = self._resources.step_functions(arn)
        return _told("execution_arn", start_execution(client, arn, task.id.text, body))

    def _put(self, target: AwsTarget, task: Task, body: bytes) -> Ending:
        answer = self._resources.events(target.arn).put_events(
            Entries=[
                {
                    "EventBusName": target.arn,
                    "Source": EVENT_SOURCE,
                    "DetailType": target.detail_type or task.type,
                    "Detail": body.decode(),
                }
            ]
        )
        (entry,) = answer["Entries"]
        if "EventId" not in entry:
            # PutEvents returns a successful response even if it rejects the event.
            code, message = entry.get("ErrorCode", "unknown"), entry.get("ErrorMessage", "")
            raise ClientError({"Error": {"Code": code, "Message": message}}, "PutEvents")
        return _told("event_id", entry["EventId"])


def _for_its_job(work: Work) -> Work:
    """The work with the job's own deadline instead of the deadline for starting the job."""
    started_at = work.deadline - work.task.timeout_seconds * SECOND
    return replace(work, deadline=started_at + work.task.notify_within_seconds * SECOND)


def _in_order(task: Task) -> dict[str, Any]:
    """The parameters for a FIFO queue or topic, which keep each owner's order and deduplicate by the task's id."""
    return {"MessageGroupId": group_of(task.owner), "MessageDeduplicationId": task.id.text}


def _trace(task: Task) -> dict[str, Any]:
    """The message attribute with the trace context of the task's creation, if any."""
    if task.traceparent is None:
        return {}
    return {"MessageAttributes": {TRACEPARENT: {"DataType": "String", "StringValue": task.traceparent}}}


def _told(name: str, value: str) -> Succeeded:
    return Succeeded(compact({name: value}))


def _function_failed(data: bytes) -> Failed:
    """The failure for an error that a function raised, or for an error of the invocation."""
    try:
        parsed = json.loads(data)
    except ValueError:
        parsed = None
    facts = parsed if isinstance(parsed, dict) else {}
    kind = str(facts.get("errorType") or "FunctionError")
    message = str(facts.get("errorMessage") or data[:200].decode("utf-8", "replace"))
    return failure(kind, message, retriable=kind != UNRETRIABLE)


def _failed(error: Exception) -> Failed | NotSent:
    """The failure for an error from a call. Only permanent rejections are not retried."""
    if isinstance(error, ClientError):
        if is_throttled(error):
            return NotSent(f"{error.operation_name}: {error.response['Error']['Code']}")
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        return failure(code, str(error), retriable=is_transient(error) or code in _PASSES_WITH_TIME)
    return failure(type(error).__name__, str(error), retriable=not isinstance(error, ParamValidationError))
