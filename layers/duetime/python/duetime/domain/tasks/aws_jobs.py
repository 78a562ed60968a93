"""Defines each service's names and permissions for long-running AWS jobs whose end a task waits for.

`duetime.adapters.targets.aws_jobs` makes the calls, and the stack derives its grants and rules from these entries.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from duetime.domain.tasks.targets import AwsService, AwsTarget
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task

JOB_PREFIX = "duetime-"
"""Prefix of the names of all jobs that tasks start, which distinguishes their events from other jobs' events."""
JOB_TAG = ("duetime", "task")
"""Tag key and value for jobs whose ARNs do not identify them as duetime jobs."""
_NAME = re.compile(JOB_PREFIX + "([0-9A-Za-z]{26})-[0-9]{1,16}")
JOB_STOPPED = "JobStopped"
"""Error type of an attempt whose job was stopped by something other than duetime."""
JOB_UNKNOWN = "JobUnknown"
"""Error type of an attempt whose job is unknown to its service, so that its outcome is unknown."""
TASK_VARIABLE = "DUETIME_TASK"
"""Environment variable or argument that contains the task's facts."""
NAME_VARIABLE = "DUETIME_JOB"
"""Environment variable or argument that contains the job's name, for services that do not let duetime name jobs."""


@frozen
class JobGrant:
    """IAM actions on the jobs of resources that the settings list.

    Attributes:
        actions: all granted actions.
        of: a regular expression; ARNs and ARN patterns that do not match it get no grant.
        on: the resource to which the actions are granted, in which references to the groups of `of` are replaced.
        conditions: IAM conditions; `None` if there are none.
    """

    actions: tuple[str, ...]
    of: str
    on: str
    conditions: Mapping[str, Mapping[str, str]] | None = None


_FUNCTION = r"(.*):function:([^:]*).*"


@frozen
class JobService:
    """A service that runs jobs.

    Attributes:
        start: the action that starts a job, on the target's resource.
        grants: actions that find, read and stop running jobs.
        event_source: source of the event for a job's end.
        event_type: the event's detail type.
        event_states: the detail field with the job's state, and the field's values for final states.
        event_job: the detail field with the job's name. If the event has no field for the name, these are the field
            with the name of the started resource, and the field that identifies the job.
        console: URL of a job in the AWS console, with `region`, `account`, `arn`, and `parts`: the segments of the ARN
            after the account, without colons and slashes.
    """

    start: str
    grants: tuple[JobGrant, ...]
    event_source: str
    event_type: str
    event_states: tuple[str, tuple[str, ...]]
    event_job: str | tuple[str, str]
    console: str


JOB_SERVICES = {
    AwsService.STEP_FUNCTIONS: JobService(
        start="states:StartExecution",
        grants=(
            JobGrant(
                ("states:DescribeExecution", "states:StopExecution"),
                of=r"(.*):stateMachine:([^:]*).*",
                on=r"\1:execution:\2:*",
            ),
        ),
        event_source="aws.states",
        event_type="Step Functions Execution Status Change",
        event_states=("status", ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")),
        event_job="name",
        console="https://{region}.console.aws.amazon.com/states/home?region={region}#/v2/executions/details/{arn}",
    ),
    AwsService.ECS: JobService(
        start="ecs:RunTask",
        grants=(JobGrant(("ecs:DescribeTasks", "ecs:StopTask"), of=r"(.*):cluster/(.*)", on=r"\1:task/\2/*"),),
        event_source="aws.ecs",
        event_type="ECS Task State Change",
        event_states=("lastStatus", ("STOPPED",)),
        event_job="startedBy",
        console="https://{region}.console.aws.amazon.com/ecs/v2/clusters/{parts[1]}/tasks/{parts[2]}/logs"
        "?region={region}",
    ),
    AwsService.LAMBDA: JobService(
        start="lambda:InvokeFunction",
        grants=(
            JobGrant(
                ("lambda:GetDurableExecution", "lambda:StopDurableExecution"),
                of=_FUNCTION,
                on=rf"\1:function:\2:*/durable-execution/{JOB_PREFIX}*/*",
            ),
            JobGrant(("lambda:ListDurableExecutionsByFunction",), of=_FUNCTION, on=r"\1:function:\2"),
        ),
        event_source="aws.lambda",
        event_type="Durable Execution Status Change",
        event_states=("status", ("SUCCEEDED", "FAILED", "TIMED_OUT", "STOPPED")),
        event_job="durableExecutionName",
        console="https://{region}.console.aws.amazon.com/lambda/home?region={region}#/functions/{parts[1]}",
    ),
    AwsService.BATCH: JobService(
        start="batch:SubmitJob",
        grants=(
            # A job's id is known only when it runs, so a tag identifies it as a duetime job (Source: Service
            # Authorization Reference, "Actions, resources, and condition keys for AWS Batch").
            JobGrant(
                ("batch:TerminateJob",),
                of=r"(.*):job-queue/.*",
                on=r"\1:job/*",
                conditions={"StringEquals": {f"aws:ResourceTag/{JOB_TAG[0]}": JOB_TAG[1]}},
            ),
            JobGrant(
                ("batch:TagResource",),
                of=r"(.*):job-queue/.*",
                on=r"\1:job/*",
                conditions={"StringEquals": {f"aws:RequestTag/{JOB_TAG[0]}": JOB_TAG[1]}},
            ),
            # These actions do not support resource-level permissions.
            JobGrant(("batch:DescribeJobs", "batch:ListJobs"), of=r".*:job-queue/.*", on="*"),
        ),
        event_source="aws.batch",
        event_type="Batch Job State Change",
        event_states=("status", ("SUCCEEDED", "FAILED")),
        event_job="jobName",
        console="https://{region}.console.aws.amazon.com/batch/home?region={region}#jobs/detail/{parts[1]}",
    ),
    AwsService.CODEBUILD: JobService(
        start="codebuild:StartBuild",
        grants=(
            JobGrant(
                ("codebuild:BatchGetBuilds", "codebuild:ListBuildsForProject", "codebuild:StopBuild"),
                of="(.*:project/.*)",
                on=r"\1",
            ),
        ),
        event_source="aws.codebuild",
        event_type="CodeBuild Build State Change",
        event_states=("build-status", ("SUCCEEDED", "FAILED", "FAULT", "TIMED_OUT", "STOPPED")),
        event_job=("project-name", "build-id"),
        console="https://{region}.console.aws.amazon.com/codesuite/codebuild/{account}/projects/{parts[1]}/build/"
        "{parts[1]}%3A{parts[2]}/log?region={region}",
    ),
    AwsService.GLUE: JobService(
        start="glue:StartJobRun",
        grants=(JobGrant(("glue:GetJobRun", "glue:GetJobRuns", "glue:BatchStopJobRun"), of="(.*:job/.*)", on=r"\1"),),
        event_source="aws.glue",
        event_type="Glue Job State Change",
        event_states=("state", ("SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED")),
        event_job=("jobName", "jobRunId"),
        console=""
        "https://{region}.console.aws.amazon.com/gluestudio/home?region={region}#/job/{parts[1]}/run/{parts[2]}",
    ),
}
"""Sources: the services' API references and Service Authorization References; EventBridge event references; AWS Lambda
Developer Guide, "Monitoring durable functions" and "Security and permissions for Lambda durable functions". AWS does
not document its console URLs; the URLs of CodeBuild, Glue and Lambda are untested."""


def is_job(target: Target | None) -> bool:
    """Whether a target is an AWS job whose end the task waits for."""
    return isinstance(target, AwsTarget) and target.is_job


def job_name(task: Task) -> str:
    """Name of the job for a task's current attempt.

    The name contains the fence of the last ended attempt instead of the current attempt's fence. If a worker is lost,
    the next worker that claims the task therefore finds the job that may have been started.
    """
    return f"{JOB_PREFIX}{task.id}-{_last_ended(task)}"


def is_first_claim(task: Task) -> bool:
    """Whether a task was just claimed for the first time for its current attempt."""
    return task.fence <= _last_ended(task) + 1


def seeks_job(task: Task) -> bool:
    """Whether the request to start a job got no response, so that the job must be searched for."""
    return is_job(task.target) and task.awaiting_notification and task.job is None


def _last_ended(task: Task) -> int:
    return task.attempt_history[-1].fence if task.attempt_history else 0


def task_of_job(name: object) -> str | None:
    """The task id that a job's name contains, as text; `None` if the job does not belong to a task."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    return found[1] if found else None


def job_page(arn: str) -> str:
    """URL of a job in the AWS console, which links to its logs.

    Raises:
        KeyError: the ARN is not a job's ARN.
    """
    _, _, service, region, account, resource = arn.split(":", 5)
    row = next((row for row in JOB_SERVICES.values() if row.start.partition(":")[0] == service), None)
    if row is None:
        raise KeyError(arn)
    parts = [quote(part, safe="") for part in re.split("[:/]", resource)]
    return row.console.format(region=region, account=account, arn=arn, parts=parts)
