"""The intake of events: a queue, the rule that fills it, and a queue for events that cannot become tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from duetime.domain.tasks.arns import EVENT_SOURCE
from duetime_cdk.encryption import key_of, queue_encryption
from duetime_cdk.environments import FunctionName
from duetime_cdk.queues import MAX_RECEIVES

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment

_MOST_DAYS = 4


class Intake(Construct):
    """Everyone who may send to the queue or the bus can create tasks of the intake owner; IAM controls access."""

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
                reason="It is a dead-letter queue itself: an alarm reports its messages, and a person handles them",
            )
        )
        seconds = environment.sizes[FunctionName.INTAKE].timeout_seconds + environment.intake_batch_seconds
        self.queue = sqs.Queue(
            self,
            "Queue",
            # An event must expire before the record that detects its repeated delivery.
            retention_period=Duration.days(min(_MOST_DAYS, environment.shortest_retention_days)),
            # The visibility timeout also covers the batching window.
            visibility_timeout=Duration.seconds(seconds),
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=MAX_RECEIVES, queue=self.rejects),
            encryption=queue_encryption(key),
            encryption_master_key=key,
            enforce_ssl=True,
        )
        events.Rule(
            self,
            "Rule",
            description=f"Events that become tasks of duetime {environment.name}",
            event_bus=events.EventBus.from_event_bus_name(self, "Bus", environment.intake_bus),
            event_pattern=events.EventPattern(
                detail_type=[environment.intake_detail_type],
                # Events sent by tasks create no tasks, because their owner would differ.
                source=events.Match.anything_but(EVENT_SOURCE),
            ),
            targets=[targets.SqsQueue(self.queue, dead_letter_queue=self.rejects)],
        )
