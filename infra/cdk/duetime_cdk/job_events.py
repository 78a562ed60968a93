"""Creates EventBridge rules that send a message when a task's AWS job has ended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from duetime.domain.tasks.aws_jobs import JOB_PREFIX, JOB_SERVICES
from duetime.domain.tasks.targets import service_of
from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.aws_jobs import JobService
    from duetime.domain.tasks.targets import AwsService
    from duetime_cdk.environments import Environment
    from duetime_cdk.queues import Queues


class JobEvents(Construct):
    """A rule for each job service that the settings allow; a periodic check covers lost events."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, queues: Queues) -> None:
        super().__init__(scope, id_)
        services = {service_of(each) for each in environment.aws_targets}
        for service, row in JOB_SERVICES.items():
            if service not in services:
                continue
            field, ends = row.event_states
            events.Rule(
                self,
                service.value,
                description=f"Jobs of tasks of duetime {environment.name} that have ended",
                event_pattern=events.EventPattern(
                    source=[row.event_source],
                    detail_type=[row.event_type],
                    detail={field: list(ends), **_ours(service, row, environment.aws_targets)},
                ),
                targets=[
                    targets.SqsQueue(
                        queues.of_priority[Priority.HIGH],
                        message=events.RuleTargetInput.from_object({"j": _job(service, row)}),
                    )
                ],
            )


def _ours(service: AwsService, row: JobService, patterns: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """The part of an event pattern that selects jobs of tasks, by the job's name or the definition's name."""
    if isinstance(row.event_job, str):
        return {row.event_job: [{"prefix": JOB_PREFIX}]}
    names = [each.rpartition("/")[2] for each in patterns if service_of(each) is service]
    return {row.event_job[0]: [{"wildcard": wildcard_of(name)} for name in names]}


def wildcard_of(name: str) -> str:
    """A name pattern in EventBridge's syntax, which has no `?` and rejects `**` (Source: the library Event Ruler)."""
    return re.sub(r"[*?]+", "*", name)


def _job(service: AwsService, row: JobService) -> str | list[str]:
    """The job in the message, which is either its name, or fields with which the job's service finds it."""
    if isinstance(row.event_job, str):
        return events.EventField.from_path(f"$.detail.{row.event_job}")
    named = [events.EventField.from_path(f"$.detail.{field}") for field in row.event_job]
    return [service.value, events.EventField.from_path("$.region"), *named]
