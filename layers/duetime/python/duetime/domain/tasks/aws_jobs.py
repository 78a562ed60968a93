"""Jobs that AWS runs for as long as they take, and whose ends are waited for: what each service calls things.

One row a service; `duetime.adapters.targets.aws_jobs` has the calls, the stack makes its grants and rules of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.arns import AwsService
from duetime.domain.tasks.targets import AwsTarget

if TYPE_CHECKING:
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task

JOB_PREFIX = "duetime-"
"""What the names of all jobs of tasks begin with: their events are told from those of other jobs by it."""
_NAME = re.compile(JOB_PREFIX + "([0-9A-Za-z]{26})-[0-9]{1,16}")
JOB_STOPPED = "JobStopped"
"""Class of the error of an attempt whose job was stopped from outside."""
JOB_UNKNOWN = "JobUnknown"
"""Class of the error of an attempt whose job its service does not know, so that nobody knows how it ended."""
TASK_VARIABLE = "DUETIME_TASK"
"""The environment variable by which a container is given the facts of its task."""


@dataclass(frozen=True, slots=True)
class JobService:
    """A service that runs jobs.

    Attributes:
        start: the action that starts one, of the resource that the target names.
        follow: the actions that read and stop one.
        segments: how the ARN of the resource that says where jobs are becomes the pattern of theirs: a text of it, and
            what replaces it; what is behind it stays.
        where: the target's field with that resource; empty if it is the one that is started.
        event_source: source of the event that tells of a job's end.
        event_type: its detail type.
        event_states: the field of its detail with the job's state, and those that are ends.
        event_name: the field of its detail with the job's name.
        console: the page of a job in the AWS console, with `region`, `arn` and `path`, the last segment of the ARN.
    """

    start: str
    follow: tuple[str, str]
    segments: tuple[str, str]
    where: str
    event_source: str
    event_type: str
    event_states: tuple[str, tuple[str, ...]]
    event_name: str
    console: str


JOB_SERVICES = {
    AwsService.STEP_FUNCTIONS: JobService(
        start="states:StartExecution",
        follow=("states:DescribeExecution", "states:StopExecution"),
        segments=(":stateMachine:", ":execution:"),
        where="",
        event_source="aws.states",
        event_type="Step Functions Execution Status Change",
        event_states=("status", ("SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED")),
        event_name="name",
        console="https://{region}.console.aws.amazon.com/states/home?region={region}#/v2/executions/details/{arn}",
    ),
    AwsService.ECS: JobService(
        start="ecs:RunTask",
        follow=("ecs:DescribeTasks", "ecs:StopTask"),
        segments=(":cluster/", ":task/"),
        where="cluster",
        event_source="aws.ecs",
        event_type="ECS Task State Change",
        event_states=("lastStatus", ("STOPPED",)),
        event_name="startedBy",
        console="https://{region}.console.aws.amazon.com/ecs/v2/clusters/{path}/logs?region={region}",
    ),
}
"""Sources: the services' API references; Service Authorization Reference; EventBridge event references of Step
Functions and ECS."""


def is_job(target: Target | None) -> bool:
    """Whether AWS runs a job for the target, whose end is waited for."""
    return isinstance(target, AwsTarget) and target.is_job


def job_name(task: Task) -> str:
    """The name of the job of a task's present attempt.

    It names the last attempt that has ended, not the present one: whoever claims the task after a worker that was lost
    finds the job that the worker may have started.
    """
    ended = task.attempt_history[-1].fence if task.attempt_history else 0
    return f"{JOB_PREFIX}{task.id}-{ended}"


def task_of_job(name: object) -> str | None:
    """The id, as text, of the task that a job of this name is of; `None` if it is no task's."""
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    return found[1] if found else None


def job_page(arn: str) -> str:
    """The page of a job in the AWS console, which leads to its logs.

    Raises:
        KeyError: it is no job's.
    """
    service = next(each for each, row in JOB_SERVICES.items() if f":{row.start.partition(':')[0]}:" in arn)
    path = arn.split(":", 5)[5].partition("/")[2].replace("/", "/tasks/", 1)
    return JOB_SERVICES[service].console.format(region=arn.split(":")[3], arn=arn, path=path)
