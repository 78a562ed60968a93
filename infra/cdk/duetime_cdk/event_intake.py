"""Creates the intake of events: a queue, the rules that fill it, and a queue for events that cannot become tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as lambda_destinations
from aws_cdk import aws_lambda_event_sources as event_sources
from aws_cdk import aws_logs as logs
from aws_cdk import aws_logs_destinations as destinations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from duetime.domain.operating_parameters import INTAKE_KEPT
from duetime.domain.tasks.targets import EVENT_SOURCE
from duetime.domain.times import DAY
from duetime_cdk.encryption import key_of, queue_encryption
from duetime_cdk.environments import FunctionName
from duetime_cdk.queues import MAX_RECEIVES
from duetime_cdk.table_stream import OLDEST, READ

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment
    from duetime_cdk.lambda_function import LambdaFunction

_MOST_DAYS = INTAKE_KEPT // DAY


class Intake(Construct):
    """The intake. Everyone who may send to its queue or bus can create tasks for its owner; IAM controls access."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        key = key_of(self, environment)
        self.rejects = sqs.Queue(
            self,
            "Rejects",
            retention_period=Duration.days(14),
            encryption=queue_encryption(key),
            encryption_master_key=key,
            enforce_ssl=True,
        )
        Validations.of(self.rejects).acknowledge(
            Acknowledgment(
                id="Serverless-SQSRedrivePolicy",
                reason="This is a dead-letter queue itself; an alarm reports its messages, and a person handles them",
            )
        )
        seconds = environment.sizes[FunctionName.INTAKE].timeout_seconds + environment.intake_batch_seconds
        self.queue = sqs.Queue(
            self,
            "Queue",
            # An event must expire before the record of its task, which detects repeated deliveries.
            retention_period=Duration.days(min(_MOST_DAYS, environment.shortest_retention_days)),
            # The visibility timeout also covers the batching window.
            visibility_timeout=Duration.seconds(seconds),
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=MAX_RECEIVES, queue=self.rejects),
            encryption=queue_encryption(key),
            encryption_master_key=key,
            enforce_ssl=True,
        )
        bus = events.EventBus.from_event_bus_name(self, "Bus", environment.intake_bus)
        events.Rule(
            self,
            "Rule",
            description=f"Events that become tasks of duetime {environment.name}",
            event_bus=bus,
            event_pattern=events.EventPattern(
                detail_type=[environment.intake_detail_type],
                # Events sent by tasks create no tasks, because the new tasks would belong to another owner.
                source=events.Match.anything_but(EVENT_SOURCE),
            ),
            targets=[targets.SqsQueue(self.queue, dead_letter_queue=self.rejects)],
        )
        for index, pattern in enumerate(environment.intake_patterns):
            rule = events.Rule(
                self,
                f"Rule{index}",
                description=f"Events for the intake rules of duetime {environment.name}",
                event_bus=bus,
                # The pattern is replaced below, because the CDK's form of a pattern lacks some of EventBridge's
                # operators.
                event_pattern=events.EventPattern(source=["replaced"]),
                targets=[targets.SqsQueue(self.queue, dead_letter_queue=self.rejects)],
            )
            resource = rule.node.default_child
            assert isinstance(resource, events.CfnRule)  # noqa: S101 - the rule's only resource
            resource.event_pattern = dict(pattern)


class IntakeSources(Construct):
    """Passes events from queues, table streams and log groups to the intake rules."""

    def __init__(
        self, scope: Construct, id_: str, *, environment: Environment, function: LambdaFunction, rejects: sqs.Queue
    ) -> None:
        super().__init__(scope, id_)
        self._function, self._rejects = function, rejects
        for index, arn in enumerate(environment.intake_queues):
            function.invoke_by(
                sqs.Queue.from_queue_arn(self, f"Queue{index}", arn),
                batch_size=environment.intake_batch_size,
                batch_seconds=environment.intake_batch_seconds,
                concurrency=environment.intake_concurrency,
            )
        for index, arn in enumerate(environment.intake_streams):
            self._read(f"Stream{index}", arn, environment)
        for index, name in enumerate(environment.intake_log_groups):
            logs.SubscriptionFilter(
                self,
                f"Lines{index}",
                log_group=logs.LogGroup.from_log_group_name(self, f"LogGroup{index}", name),
                destination=destinations.LambdaDestination(function.live),
                filter_pattern=logs.FilterPattern.all_events(),
            )
        if environment.intake_log_groups:
            # A failed delivery is retried twice within at most six hours, and then goes to the reject queue.
            function.live.configure_async_invoke(
                retry_attempts=2,
                max_event_age=Duration.hours(6),
                on_failure=lambda_destinations.SqsDestination(rejects),
            )

    def _read(self, id_: str, stream: str, environment: Environment) -> None:
        self._function.allow(READ, [stream])
        mapping = self._function.live.add_event_source_mapping(
            id_,
            event_source_arn=stream,
            starting_position=lambda_.StartingPosition.LATEST,
            batch_size=environment.intake_batch_size,
            max_batching_window=Duration.seconds(environment.intake_batch_seconds),
            bisect_batch_on_error=True,
            report_batch_item_failures=True,
            max_record_age=OLDEST,
            on_failure=event_sources.SqsDlq(self._rejects),
        )
        mapping.node.add_dependency(self._function.role)
