"""Calls for durable executions of Lambda functions as jobs.

Source: Lambda API Reference, Invoke and GetDurableExecution; Developer Guide, "Idempotency" of durable functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.targets.envelope import UNRETRIABLE, result_of
from duetime.adapters.targets.job_calls import WHY_STOPPED, JobCalls, JobEnding, NoJob, NotListed
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_UNKNOWN

if TYPE_CHECKING:
    from duetime.adapters.targets.job_calls import Resources
    from duetime.domain.tasks.targets import AwsTarget

_ENDS = frozenset({"FAILED", "TIMED_OUT"})


def _start(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    """Start an execution.

    Each name starts only one execution, so Lambda rejects a second attempt, which has new facts.
    """
    client = resources.jobs("lambda", target.arn)
    try:
        answer = client.invoke(FunctionName=target.arn, InvocationType="Event", DurableExecutionName=name, Payload=body)
    except client.exceptions.DurableExecutionAlreadyStartedException:
        if known := _find(resources, target, name):
            return known
        raise NotListed from None
    if "DurableExecutionArn" not in answer:
        raise NoJob("the function is not durable: it was invoked, and its result is not reported")
    return str(answer["DurableExecutionArn"])


def _find(resources: Resources, target: AwsTarget, name: str) -> str | None:
    """Search the executions of all versions of the function, because an alias may have moved to another version."""
    function = ":".join(target.arn.split(":")[:7])
    listed = resources.jobs("lambda", target.arn).list_durable_executions_by_function(
        FunctionName=function, DurableExecutionName=name
    )
    executions = listed.get("DurableExecutions", [])
    return next((str(each["DurableExecutionArn"]) for each in executions if each["DurableExecutionName"] == name), None)


def _ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    client = resources.jobs("lambda", target.arn)
    try:
        found = client.get_durable_execution(DurableExecutionArn=job)
    except client.exceptions.ResourceNotFoundException:
        return failure(JOB_UNKNOWN, "Lambda does not know the execution, or no longer does")
    error = found.get("Error", {})
    message = error.get("ErrorMessage", "")
    match found["Status"]:
        case "SUCCEEDED":
            return Succeeded(result_of(found.get("Result", "null").encode("utf-8", "replace")))
        case "STOPPED":
            return failure(JOB_STOPPED, message or "the execution was stopped", retriable=False)
        case "DELETING":
            return failure(JOB_UNKNOWN, "the execution was deleted")
        case status if status in _ENDS:
            kind = error.get("ErrorType") or ("Timeout" if status == "TIMED_OUT" else "ExecutionFailed")
            return failure(kind, message or f"the execution ended {status}", retriable=kind != UNRETRIABLE)
        case _:
            return None


def _stop(resources: Resources, target: AwsTarget, job: str) -> None:
    error = {"ErrorType": JOB_STOPPED, "ErrorMessage": WHY_STOPPED}
    resources.jobs("lambda", target.arn).stop_durable_execution(DurableExecutionArn=job, Error=error)


CALLS = JobCalls(_start, _find, _ending, _stop)
