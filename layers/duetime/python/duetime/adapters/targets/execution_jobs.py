"""Starts state machine executions, and defines the calls for executions as jobs.

Source: Step Functions API Reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.targets.envelope import UNRETRIABLE, result_of
from duetime.adapters.targets.job_calls import WHY_STOPPED, JobCalls, JobEnding
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_UNKNOWN

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

    from duetime.adapters.targets.job_calls import Resources
    from duetime.domain.tasks.targets import AwsTarget

_GOING = frozenset({"RUNNING", "PENDING_REDRIVE"})
"""Statuses that are not final (Source: Step Functions API Reference, DescribeExecution)."""


def start_execution(client: SFNClient, machine: str, name: str, body: bytes) -> str:
    """Start the only execution with a given name, and return its ARN, even if the execution was started before.

    A name cannot be reused within 90 days (Source: Step Functions API Reference, StartExecution).
    """
    try:
        return client.start_execution(stateMachineArn=machine, name=name, input=body.decode())["executionArn"]
    except client.exceptions.ExecutionAlreadyExists:
        return _arn(machine, name)


def _arn(machine: str, name: str) -> str:
    """The ARN of an execution of a state machine, or of a version of a state machine."""
    *place, _, called = machine.split(":")[:7]
    return ":".join([*place, "execution", called, name])


def _start(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    return start_execution(resources.step_functions(target.arn), target.arn, name, body)


def _find(resources: Resources, target: AwsTarget, name: str) -> str | None:
    client = resources.step_functions(target.arn)
    try:
        return client.describe_execution(executionArn=_arn(target.arn, name))["executionArn"]
    except client.exceptions.ExecutionDoesNotExist:
        return None


def _ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    client = resources.step_functions(target.arn)
    try:
        found = client.describe_execution(executionArn=job)
    except client.exceptions.ExecutionDoesNotExist:
        return failure(JOB_UNKNOWN, "Step Functions does not know the execution")
    match found["status"]:
        case "SUCCEEDED":
            return Succeeded(result_of(found.get("output", "null").encode("utf-8", "replace")))
        case "ABORTED":
            return failure(JOB_STOPPED, found.get("cause") or "the execution was stopped", retriable=False)
        case status if status in _GOING:
            return None
        case status:
            kind = found.get("error") or ("Timeout" if status == "TIMED_OUT" else "ExecutionFailed")
            return failure(kind, found.get("cause") or f"the execution ended {status}", retriable=kind != UNRETRIABLE)


def _stop(resources: Resources, target: AwsTarget, job: str) -> None:
    client = resources.step_functions(target.arn)
    client.stop_execution(executionArn=job, cause=WHY_STOPPED)


CALLS = JobCalls(_start, _find, _ending, _stop)
