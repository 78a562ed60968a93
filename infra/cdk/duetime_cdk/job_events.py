"""The rules that send a message when a job has ended which AWS ran for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from duetime.domain.tasks.arns import service_of
from duetime.domain.tasks.aws_jobs import JOB_PREFIX, JOB_SERVICES
from duetime.domain.tasks.task_options import Priority

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment
    from duetime_cdk.queues import Queues


class JobEvents(Construct):
    """A rule for each service whose jobs the settings let tasks run; an event that is lost is found by a check."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment, queues: Queues) -> None:
        super().__init__(scope, id_)
        services = {service_of(each) for each in environment.aws_targets}
        for service, row in JOB_SERVICES.items():
            if service not in services:
                continue
            field, ends = row.event_states
            message = {"j": events.EventField.from_path(f"$.detail.{row.event_name}")}
            events.Rule(
                self,
                service.value,
                description=f"Jobs of tasks of duetime {environment.name} that have ended",
                event_pattern=events.EventPattern(
                    source=[row.event_source],
                    detail_type=[row.event_type],
                    detail={field: list(ends), row.event_name: [{"prefix": JOB_PREFIX}]},
                ),
                targets=[
                    targets.SqsQueue(
                        queues.of_priority[Priority.HIGH], message=events.RuleTargetInput.from_object(message)
                    )
                ],
            )
