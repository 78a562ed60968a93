"""One queue per priority, so that low work never stands before high work; one per pulled type; one of dead letters."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from duetime.domain.tasks.task_options import Priority
from duetime_cdk.environments import FunctionName

if TYPE_CHECKING:
    from duetime_cdk.environments import Environment

MAX_RECEIVES = 1000
"""A rejection ("another lease is live") is a receive too, so the limit is for what nobody can handle at all."""
_LONGEST_NAME, _LONGEST_STACK, _DIGEST = 80, 30, 8
"""Of the name of a queue (Source: Amazon SQS Developer Guide, "Amazon SQS standard queue quotas"), and of its parts."""


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
        self.names_of_pulled = {name: _pulled_name(self, name) for name in sorted(environment.pulled_types)}
        self.pulled = {
            type_: self._queue(f"Pulled-{type_}", environment, name) for type_, name in self.names_of_pulled.items()
        }

    @property
    def to_work(self) -> list[sqs.Queue]:
        """All queues that a due task may be sent to."""
        return [*self.of_priority.values(), *self.pulled.values()]

    def _queue(self, id_: str, environment: Environment, name: str | None = None) -> sqs.Queue:
        return sqs.Queue(
            self,
            id_,
            queue_name=name,
            retention_period=Duration.days(4),
            # AWS rejects less than the function's timeout. The worker sets the lease's length on receipt.
            visibility_timeout=Duration.seconds(environment.sizes[FunctionName.WORKER].timeout_seconds),
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=MAX_RECEIVES, queue=self.dead_letters),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )


def _pulled_name(scope: Construct, task_type: str) -> str:
    """A name that differs from those of all other types and stacks of the account.

    It is known before it is deployed, as CloudFormation's are not: a table of many of those would not fit into the
    environment of a function.
    """
    stack = Stack.of(scope).stack_name
    readable = re.sub(r"[^A-Za-z0-9_-]", "-", f"{stack[:_LONGEST_STACK]}-pulled-{task_type}")
    return f"{readable[: _LONGEST_NAME - 1 - _DIGEST]}-{sha256(f'{stack} {task_type}'.encode()).hexdigest()[:_DIGEST]}"
