"""Calls for Glue job runs as jobs. Source: AWS Glue Web API Reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.targets.envelope import compact
from duetime.adapters.targets.job_calls import JobCalls, JobEnding, NoCapacity, parameters_of
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_UNKNOWN, NAME_VARIABLE, TASK_VARIABLE

if TYPE_CHECKING:
    from duetime.adapters.targets.job_calls import Resources
    from duetime.domain.tasks.targets import AwsTarget

_NAME_ARGUMENT, _TASK_ARGUMENT = f"--{NAME_VARIABLE}", f"--{TASK_VARIABLE}"
_GOING = frozenset({"STARTING", "RUNNING", "STOPPING", "WAITING"})


def _start(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    client = resources.jobs("glue", target.arn)
    given = parameters_of(target)
    arguments = {**given.get("Arguments", {}), _NAME_ARGUMENT: name, _TASK_ARGUMENT: body.decode()}
    full = (client.exceptions.ConcurrentRunsExceededException, client.exceptions.ResourceNumberLimitExceededException)
    try:
        answer = client.start_job_run(**{**given, "Arguments": arguments}, JobName=_job_name(target))
    except full as error:
        raise NoCapacity("Glue: too many runs of the job, or of all jobs") from error
    return f"{target.arn}/{answer['JobRunId']}"


def _find(resources: Resources, target: AwsTarget, name: str) -> str | None:
    """Search the latest runs of the job, because the run was started minutes ago."""
    listed = resources.jobs("glue", target.arn).get_job_runs(JobName=_job_name(target), MaxResults=100)
    runs = listed.get("JobRuns", [])
    return next((f"{target.arn}/{each['Id']}" for each in runs if _name_of(each) == name), None)


def _name(client: Any, job_name: str, job: str) -> str:  # noqa: ANN401 - a client of boto3
    try:
        return _name_of(client.get_job_run(JobName=job_name, RunId=job)["JobRun"])
    except client.exceptions.EntityNotFoundException:
        return ""


def _name_of(run: dict[str, Any]) -> str:
    return str(run.get("Arguments", {}).get(_NAME_ARGUMENT, ""))


def _ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    client = resources.jobs("glue", target.arn)
    try:
        run = client.get_job_run(JobName=_job_name(target), RunId=_id(job))["JobRun"]
    except client.exceptions.EntityNotFoundException:
        return failure(JOB_UNKNOWN, "Glue does not know the run, or no longer does")
    why = run.get("ErrorMessage", "")
    match run["JobRunState"]:
        case "SUCCEEDED":
            return Succeeded(compact({"job_name": _job_name(target), "run_id": _id(job)}))
        case "STOPPED":
            return failure(JOB_STOPPED, why or "the run was stopped", retriable=False)
        case "TIMEOUT":
            return failure("Timeout", why or "the run took longer than its job allows")
        case state if state in _GOING:
            return None
        case state:
            return failure("JobRunFailed", why or f"the run ended {state}")


def _stop(resources: Resources, target: AwsTarget, job: str) -> None:
    resources.jobs("glue", target.arn).batch_stop_job_run(JobName=_job_name(target), JobRunIds=[_id(job)])


def _job_name(target: AwsTarget) -> str:
    return target.arn.partition("/")[2]


def _id(job: str) -> str:
    return job.rpartition("/")[2]


CALLS = JobCalls(_start, _find, _ending, _stop, repeats=True, name=_name)
