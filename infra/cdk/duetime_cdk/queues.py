"""One queue per priority, so that low work never stands before high work; one per pulled type; one of dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from duetime.domain.tasks.task_options import Priority
from duetime_cdk.environments import FunctionName

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment

MAX_RECEIVES = 1000
"""A rejection ("another lease is live") is a receive too, so the limit is for what nobody can handle at all."""


class Queues(Construct):
    """Standard queues: order comes from due times, and being first from the claim."""

    def __init__(self, scope: Construct, id_: str, *, environment: Environment) -> None:
        super().__init__(scope, id_)
        self.dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            retention_period=Duration.days(14),
            visibility_timeout=Duration.seconds(environment.sizes[FunctionName.DEADLETTER].timeout_seconds),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        Validations.of(self.dead_letters).acknowledge(
            Acknowledgment(
                id="Serverless-SQSRedrivePolicy",
                reason="It is a dead-letter queue itself: what is left in it comes again, and an alarm tells of it",
            )
        )
        self.of_priority = {priority: self._queue(priority.capitalize(), environment) for priority in Priority}
        # Nobody is woken by these: their workers ask.
        self.pulled = {name: self._queue(f"Pulled-{name}", environment) for name in sorted(environment.pulled_types)}

    @property
    def to_work(self) -> list[sqs.Queue]:
        """All queues that a due task may be sent to."""
        return [*self.of_priority.values(), *self.pulled.values()]

    def _queue(self, id_: str, environment: Environment) -> sqs.Queue:
        return sqs.Queue(
            self,
            id_,
            retention_period=Duration.days(4),
            # AWS rejects less than the function's timeout. The worker sets the lease's length on receipt.
            visibility_timeout=Duration.seconds(environment.sizes[FunctionName.WORKER].timeout_seconds),
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=MAX_RECEIVES, queue=self.dead_letters),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
