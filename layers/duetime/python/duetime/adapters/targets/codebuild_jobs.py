"""Calls for CodeBuild builds as jobs. Source: CodeBuild API Reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.targets.envelope import compact
from duetime.adapters.targets.job_calls import JobCalls, JobEnding, NoCapacity, NotListed, parameters_of
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_UNKNOWN, NAME_VARIABLE, TASK_VARIABLE

if TYPE_CHECKING:
    from duetime.adapters.targets.job_calls import Resources
    from duetime.domain.tasks.targets import AwsTarget

_MISMATCH = "mismatch"
"""Word in CodeBuild's error when a token is reused with different parameters: "a parameter mismatch error" (Source:
CodeBuild API Reference, StartBuild, which specifies neither the error's class nor its text; untested on AWS).
"""


def _start(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    """Start a build. The token prevents a second build for five minutes; later, the build is found by its variable."""
    client = resources.jobs("codebuild", target.arn)
    given = parameters_of(target)
    variables = [
        *given.get("environmentVariablesOverride", []),
        {"name": NAME_VARIABLE, "value": name, "type": "PLAINTEXT"},
        {"name": TASK_VARIABLE, "value": body.decode(), "type": "PLAINTEXT"},
    ]
    try:
        answer = client.start_build(
            **{**given, "environmentVariablesOverride": variables},
            projectName=_project(target),
            idempotencyToken=name,
        )
    except client.exceptions.AccountLimitExceededException as error:
        raise NoCapacity("CodeBuild: too many builds run") from error
    except client.exceptions.InvalidInputException as error:
        # The parameters of a second attempt differ, so this error means that the build was started but is not yet
        # listed.
        if _MISMATCH in str(error).lower():
            raise NotListed from error
        raise
    return str(answer["build"]["arn"])


def _find(resources: Resources, target: AwsTarget, name: str) -> str | None:
    """Search the latest hundred builds of the project, because the build was started minutes ago."""
    client = resources.jobs("codebuild", target.arn)
    ids = client.list_builds_for_project(projectName=_project(target), sortOrder="DESCENDING").get("ids")
    builds = client.batch_get_builds(ids=ids).get("builds", []) if ids else []
    return next((str(each["arn"]) for each in builds if _name_of(each) == name), None)


def _name(client: Any, _project_name: str, job: str) -> str:  # noqa: ANN401 - a client of boto3
    """The job name in the environment of a build; the build is given by its ARN or id."""
    builds = client.batch_get_builds(ids=[_id(job)]).get("builds")
    return _name_of(builds[0]) if builds else ""


def _name_of(build: dict[str, Any]) -> str:
    variables = build.get("environment", {}).get("environmentVariables", [])
    return next((str(each["value"]) for each in variables if each["name"] == NAME_VARIABLE), "")


def _ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    builds = resources.jobs("codebuild", target.arn).batch_get_builds(ids=[_id(job)]).get("builds")
    if not builds:
        return failure(JOB_UNKNOWN, "CodeBuild does not know the build, or no longer does")
    (build,) = builds
    match build["buildStatus"]:
        case "IN_PROGRESS":
            return None
        case "SUCCEEDED":
            exported = build.get("exportedEnvironmentVariables", [])
            variables = {each["name"]: each["value"] for each in exported}
            return Succeeded(compact({"build_arn": job, "variables": variables}))
        case "STOPPED":
            return failure(JOB_STOPPED, "the build was stopped", retriable=False)
        case "TIMED_OUT":
            return failure("Timeout", _why(build) or "the build took longer than its project allows")
        case _:
            return failure("BuildFailed", _why(build) or "the build has failed")


def _why(build: dict[str, Any]) -> str:
    """The messages from build phases that did not succeed."""
    failed = (each for each in build.get("phases", []) if each.get("phaseStatus") not in {None, "SUCCEEDED"})
    texts = (f"{phase['phaseType']}: {each['message']}" for phase in failed for each in phase.get("contexts", []))
    return "; ".join(texts)


def _stop(resources: Resources, target: AwsTarget, job: str) -> None:
    resources.jobs("codebuild", target.arn).stop_build(id=_id(job))


def _project(target: AwsTarget) -> str:
    return target.arn.rpartition("/")[2]


def _id(job: str) -> str:
    return job.rpartition("/")[2]


CALLS = JobCalls(_start, _find, _ending, _stop, repeats=True, name=_name)
