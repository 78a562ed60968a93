"""Runs jobs in AWS services as targets.

Each service has a module with its calls. `domain.tasks.aws_jobs` defines the jobs' names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from duetime.domain.errors import Unavailable
from duetime.domain.tasks.attempt_results import Deferred, NotSent, failure
from duetime.domain.tasks.aws_jobs import is_first_claim, job_name
from duetime.domain.tasks.targets import AwsService, AwsTarget

if TYPE_CHECKING:
    from duetime.adapters.targets.job_calls import JobCalls, JobEnding, Resources
    from duetime.domain.tasks.task import Task


class JobRunner:
    """The `duetime.ports.targets.Jobs` that starts jobs in AWS services, and reads how they ended."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def start(self, target: AwsTarget, task: Task, body: bytes) -> Deferred | JobEnding | NotSent:
        """Start an attempt's job, or find the job that was started.

        If the job cannot be found but may be running, the returned `Deferred` does not name the job. Other errors from
        the service are raised.
        """
        # Few tasks are jobs, so the modules are imported only for jobs.
        from duetime.adapters.targets.job_calls import NoCapacity, NoJob, NotListed  # noqa: PLC0415 - see above
        from duetime.domain.tasks.attempt_run import start_is_open  # noqa: PLC0415 - the same

        calls, name = _calls(target.service), job_name(task)
        if calls.repeats and not is_first_claim(task):
            known = calls.find(self._resources, target, name)
            if known or start_is_open(task):
                return Deferred(known or "")
        try:
            return Deferred(calls.start(self._resources, target, name, body))
        except NoCapacity as error:
            return NotSent(str(error))
        except NotListed:
            return Deferred()
        except (NoJob, AttributeError, TypeError) as error:
            # `AttributeError` and `TypeError` mean that the parameters do not have the form that the service expects.
            return failure(type(error).__name__, str(error), retriable=False)

    def ending(self, task: Task) -> JobEnding | None:
        """How the job of a task's current attempt ended; `None` while the job runs."""
        target, job = _job_of(task)
        try:
            return _calls(target.service).ending(self._resources, target, job)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(str(error)) from error

    def find(self, task: Task) -> str | None:
        """Find the ARN of the job for a task's current attempt by name; `None` if the service does not list the job."""
        target = _target_of(task)
        try:
            return _calls(target.service).find(self._resources, target, job_name(task))
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(str(error)) from error

    def stop(self, task: Task) -> None:
        """Stop the job of a task's current attempt; if the job has ended, nothing changes."""
        target, job = _job_of(task)
        try:
            _calls(target.service).stop(self._resources, target, job)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(str(error)) from error

    def name(self, ended_job: tuple[str, ...]) -> str:
        """The name of the job in an event, as in `Message`; empty if no task started the job."""
        if len(ended_job) == 1:
            return ended_job[0]
        service, region, resource, job = ended_job
        known = next((each for each in AwsService if each == service), None)
        name = None if known is None else _calls(known).name
        if name is None:
            return ""
        try:
            return name(self._resources.jobs(service, f"arn:aws:{service}:{region}::"), resource, job)
        except (ClientError, BotoCoreError) as error:
            raise Unavailable(str(error)) from error


def _job_of(task: Task) -> tuple[AwsTarget, str]:
    if task.job is None:
        raise Unavailable(f"the task {task.id} has no job")
    return _target_of(task), task.job


def _target_of(task: Task) -> AwsTarget:
    if not isinstance(task.target, AwsTarget):
        raise Unavailable(f"the target of the task {task.id} runs no jobs")
    return task.target


def _calls(service: AwsService) -> JobCalls:
    """The calls for a service's jobs. Few tasks are jobs, so the modules are imported only for jobs."""
    from duetime.adapters.targets import (  # noqa: PLC0415 - see the line above
        batch_jobs,
        codebuild_jobs,
        durable_jobs,
        ecs_jobs,
        execution_jobs,
        glue_jobs,
    )

    return {
        AwsService.STEP_FUNCTIONS: execution_jobs.CALLS,
        AwsService.ECS: ecs_jobs.CALLS,
        AwsService.LAMBDA: durable_jobs.CALLS,
        AwsService.BATCH: batch_jobs.CALLS,
        AwsService.CODEBUILD: codebuild_jobs.CALLS,
        AwsService.GLUE: glue_jobs.CALLS,
    }[service]
