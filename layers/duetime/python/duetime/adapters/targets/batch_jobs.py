"""Calls for jobs in AWS Batch. Source: AWS Batch API Reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.targets.envelope import compact
from duetime.adapters.targets.job_calls import WHY_STOPPED, JobCalls, JobEnding, parameters_of
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_TAG, JOB_UNKNOWN, TASK_VARIABLE

if TYPE_CHECKING:
    from duetime.adapters.targets.job_calls import Resources
    from duetime.domain.tasks.targets import AwsTarget


def _start(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    given = parameters_of(target)
    overrides = given.get("containerOverrides") or {}
    facts = {"name": TASK_VARIABLE, "value": body.decode()}
    with_facts = {**overrides, "environment": [*overrides.get("environment", []), facts]}
    answer = resources.jobs("batch", target.arn).submit_job(
        **{**given, "containerOverrides": with_facts, "tags": {**(given.get("tags") or {}), JOB_TAG[0]: JOB_TAG[1]}},
        jobName=name,
        jobQueue=target.place,
        jobDefinition=target.arn,
    )
    return str(answer["jobArn"])


def _find(resources: Resources, target: AwsTarget, name: str) -> str | None:
    """Find a job in any state by its name. Batch lists a job by name as long as it stores the job."""
    listed = resources.jobs("batch", target.arn).list_jobs(
        jobQueue=target.place, filters=[{"name": "JOB_NAME", "values": [name]}]
    )
    return next((str(each["jobArn"]) for each in listed["jobSummaryList"] if each["jobName"] == name), None)


def _ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    found = resources.jobs("batch", target.arn).describe_jobs(jobs=[_id(job)]).get("jobs")
    if not found:
        return failure(JOB_UNKNOWN, "Batch does not know the job, or no longer does")
    (described,) = found
    code, reason = described.get("container", {}).get("exitCode"), described.get("statusReason", "")
    match described["status"]:
        case "SUCCEEDED":
            return Succeeded(compact({"job_arn": job, "exit_code": code}))
        case "FAILED" if described.get("isTerminated") or described.get("isCancelled"):
            return failure(JOB_STOPPED, reason or "the job was stopped", retriable=False)
        case "FAILED" if code:
            return failure("ExitCode", f"the container ended with {code}: {reason}")
        case "FAILED":
            return failure("JobFailed", reason or "the job has failed")
        case _:
            return None


def _stop(resources: Resources, target: AwsTarget, job: str) -> None:
    """Stop a running job, or cancel a job that has not started."""
    resources.jobs("batch", target.arn).terminate_job(jobId=_id(job), reason=WHY_STOPPED)


def _id(job: str) -> str:
    return job.rpartition("/")[2]


CALLS = JobCalls(_start, _find, _ending, _stop, repeats=True)
