"""Jobs of AWS services as targets: one row of calls for each service, beside the names in `domain.tasks.aws_jobs`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from duetime.adapters.targets.envelope import compact, result_of
from duetime.domain.errors import Unavailable
from duetime.domain.tasks.arns import AwsService
from duetime.domain.tasks.attempt_results import Deferred, Failed, NotSent, Succeeded, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_UNKNOWN, TASK_VARIABLE, job_name
from duetime.domain.tasks.targets import AwsTarget

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_stepfunctions import SFNClient

    from duetime.adapters.targets.aws_resource_clients import Resources
    from duetime.domain.tasks.task import Task

JobEnding = Succeeded | Failed
UNRETRIABLE = "Unretriable"
"""Name of the error by which a function or state machine says that another attempt would not help."""
_GOING = frozenset({"RUNNING", "PENDING_REDRIVE"})
"""Of an execution; the others are ends (Source: Step Functions API Reference, DescribeExecution)."""
_WHY = "stopped by duetime: its task was cancelled, or its time is over"


class NoCapacity(Exception):
    """The service has started nothing, and may do it later."""


@dataclass(frozen=True, slots=True)
class JobCalls:
    """How the jobs of a service are started, read and stopped.

    Attributes:
        start: starts the job of a name, once however often it is called, and returns its ARN.
        ending: how a job has ended; `None` while it runs.
        stop: stops a job; one that has ended stays as it is.
    """

    start: Callable[[Resources, AwsTarget, str, bytes], str]
    ending: Callable[[Resources, AwsTarget, str], JobEnding | None]
    stop: Callable[[Resources, AwsTarget, str], None]


class JobRunner:
    """`duetime.ports.targets.Jobs`: starts jobs, and says how they ended."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def start(self, target: AwsTarget, task: Task, body: bytes) -> Deferred | JobEnding | NotSent:
        """Start the job of an attempt, or find the one that was started for it."""
        try:
            job = _CALLS[target.service].start(self._resources, target, job_name(task), body)
        except NoCapacity as error:
            return NotSent(str(error))
        return Deferred(job)

    def ending(self, task: Task) -> JobEnding | None:
        """How the job of a task's present attempt has ended; `None` while it runs."""
        target, job = _job_of(task)
        try:
            return _CALLS[target.service].ending(self._resources, target, job)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(str(error)) from error

    def stop(self, task: Task) -> None:
        """Have the job of a task's present attempt stopped."""
        target, job = _job_of(task)
        try:
            _CALLS[target.service].stop(self._resources, target, job)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(str(error)) from error


def start_execution(client: SFNClient, machine: str, name: str, body: bytes) -> str:
    """Start the one execution of a name; its ARN, also if it was started before.

    A name is not given twice within 90 days (Source: Step Functions API Reference, StartExecution).
    """
    try:
        return client.start_execution(stateMachineArn=machine, name=name, input=body.decode())["executionArn"]
    except client.exceptions.ExecutionAlreadyExists:
        *place, _, called = machine.split(":")[:7]
        return ":".join([*place, "execution", called, name])


def _job_of(task: Task) -> tuple[AwsTarget, str]:
    if not isinstance(task.target, AwsTarget) or task.job is None:
        raise Unavailable(f"the task {task.id} has no job")
    return task.target, task.job


def _start_execution(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    return start_execution(resources.step_functions(target.arn), target.arn, name, body)


def _execution_ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    client = resources.step_functions(target.arn)
    try:
        found = client.describe_execution(executionArn=job)
    except client.exceptions.ExecutionDoesNotExist:
        return failure(JOB_UNKNOWN, "Step Functions does not know the execution")
    match found["status"]:
        case "SUCCEEDED":
            return Succeeded(result_of(found.get("output", "null").encode()))
        case "ABORTED":
            return failure(JOB_STOPPED, found.get("cause") or "the execution was stopped", retriable=False)
        case status if status in _GOING:
            return None
        case status:
            kind = found.get("error") or ("Timeout" if status == "TIMED_OUT" else "ExecutionFailed")
            return failure(kind, found.get("cause") or f"the execution ended {status}", retriable=kind != UNRETRIABLE)


def _stop_execution(resources: Resources, target: AwsTarget, job: str) -> None:
    client = resources.step_functions(target.arn)
    client.stop_execution(executionArn=job, cause=_WHY)


def _run_task(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    """Source: ECS API Reference, RunTask and "Ensuring idempotency": of one token there is one task in a cluster."""
    client = resources.ecs(target.arn)
    given = json.loads(target.parameters or "{}")
    try:
        answer = client.run_task(
            **{**given, "overrides": _overrides(given.get("overrides") or {}, target.container, body)},
            cluster=target.cluster,
            taskDefinition=target.arn,
            startedBy=name,
            clientToken=name,
        )
    except client.exceptions.ConflictException as error:
        # The facts of a second try differ: it has another number.
        if known := error.response.get("resourceIds"):
            return str(known[0])
        raise
    if not answer["tasks"]:
        raise NoCapacity("ECS: " + ", ".join(sorted({each.get("reason", "no task") for each in answer["failures"]})))
    return str(answer["tasks"][0]["taskArn"])


def _overrides(given: dict[str, Any], container: str, body: bytes) -> dict[str, Any]:
    """What a task is run with, and the facts in the environment of its container."""
    facts = {"name": TASK_VARIABLE, "value": body.decode()}
    each_one: list[dict[str, Any]] = given.get("containerOverrides", [])
    others = [each for each in each_one if each.get("name") != container]
    own: dict[str, Any] = next((each for each in each_one if each.get("name") == container), {})
    with_facts = {**own, "name": container, "environment": [*own.get("environment", []), facts]}
    return {**given, "containerOverrides": [*others, with_facts]}


def _task_ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    found = resources.ecs(target.arn).describe_tasks(cluster=target.cluster, tasks=[job])["tasks"]
    if not found:
        return failure(JOB_UNKNOWN, "ECS does not know the task, or not any more")
    (task,) = found
    if task["lastStatus"] != "STOPPED":
        return None
    reason = task.get("stoppedReason", "")
    if task.get("stopCode") == "UserInitiated":
        return failure(JOB_STOPPED, reason or "the task was stopped", retriable=False)
    codes = {each["name"]: each.get("exitCode") for each in task["containers"]}
    code = codes.get(target.container)
    if code == 0:
        return Succeeded(compact({"task_arn": job, "exit_code": code}))
    if code is None:
        return failure(task.get("stopCode") or "TaskFailed", reason or "the task has stopped")
    return failure("ExitCode", f"the container {target.container!r} ended with {code}: {reason}")


def _stop_task(resources: Resources, target: AwsTarget, job: str) -> None:
    resources.ecs(target.arn).stop_task(cluster=target.cluster, task=job, reason=_WHY)


_CALLS = {
    AwsService.STEP_FUNCTIONS: JobCalls(_start_execution, _execution_ending, _stop_execution),
    AwsService.ECS: JobCalls(_run_task, _task_ending, _stop_task),
}
