"""Calls for ECS tasks as jobs. Source: ECS API Reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.targets.envelope import compact
from duetime.adapters.targets.job_calls import WHY_STOPPED, JobCalls, JobEnding, NoCapacity, parameters_of
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.aws_jobs import JOB_STOPPED, JOB_UNKNOWN, TASK_VARIABLE

if TYPE_CHECKING:
    from duetime.adapters.targets.job_calls import Resources
    from duetime.domain.tasks.targets import AwsTarget


def _start(resources: Resources, target: AwsTarget, name: str, body: bytes) -> str:
    """Start a task. Each token starts only one task (Source: ECS API Reference, RunTask and "Ensuring idempotency")."""
    client = resources.jobs("ecs", target.arn)
    given = parameters_of(target)
    try:
        answer = client.run_task(
            **{**given, "overrides": _overrides(given.get("overrides") or {}, target.container, body)},
            cluster=target.place,
            taskDefinition=target.arn,
            startedBy=name,
            clientToken=name,
        )
    except client.exceptions.ConflictException as error:
        # ECS rejects the token if the parameters differ, as in a second attempt, whose facts have a different attempt
        # number.
        if known := error.response.get("resourceIds"):
            return str(known[0])
        raise
    if not answer["tasks"]:
        raise NoCapacity("ECS: " + ", ".join(sorted({each.get("reason", "no task") for each in answer["failures"]})))
    return str(answer["tasks"][0]["taskArn"])


def _find(resources: Resources, target: AwsTarget, name: str) -> str | None:
    """Find a task by `startedBy`, the only filter that ECS allows together with the cluster.

    Only tasks that should be running are listed. To find a stopped task, repeat the request with its token.
    """
    listed = resources.jobs("ecs", target.arn).list_tasks(cluster=target.place, startedBy=name)
    return next(map(str, listed.get("taskArns", [])), None)


def _overrides(given: dict[str, Any], container: str, body: bytes) -> dict[str, Any]:
    """The overrides for a task, with the facts in its container's environment."""
    facts = {"name": TASK_VARIABLE, "value": body.decode()}
    each_one: list[dict[str, Any]] = given.get("containerOverrides", [])
    others = [each for each in each_one if each.get("name") != container]
    own: dict[str, Any] = next((each for each in each_one if each.get("name") == container), {})
    with_facts = {**own, "name": container, "environment": [*own.get("environment", []), facts]}
    return {**given, "containerOverrides": [*others, with_facts]}


def _ending(resources: Resources, target: AwsTarget, job: str) -> JobEnding | None:
    found = resources.jobs("ecs", target.arn).describe_tasks(cluster=target.place, tasks=[job])["tasks"]
    if not found:
        return failure(JOB_UNKNOWN, "ECS does not know the task, or no longer does")
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


def _stop(resources: Resources, target: AwsTarget, job: str) -> None:
    resources.jobs("ecs", target.arn).stop_task(cluster=target.place, task=job, reason=WHY_STOPPED)


CALLS = JobCalls(_start, _find, _ending, _stop)
