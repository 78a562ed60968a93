"""Receives messages from the queues, as Lambda's poller does in AWS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from duetime.adapters.sqs import SqsQueues

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_sqs import SQSClient

    from duetime.domain.tasks.task_options import Priority
    from duetime.ports.queues import Delivery, PullQueues
    from duetime.ports.runtime import Executor


LANES = ("resize", "high")
"""Pulled types that have queues; one of them has the same name as a priority."""


class Receiver(Protocol):
    """Receives messages from queues."""

    @property
    def queues(self) -> PullQueues:
        """The queues from which messages are received."""
        ...

    def receive(self, priority: Priority) -> list[Delivery]:
        """Return up to ten messages that can be received now."""
        ...

    def delete(self, delivery: Delivery) -> None:
        """Delete a received message."""
        ...

    def send_raw(self, pull_queue: str, body: str) -> None:
        """Put an invalid message on a lane's queue, where that is possible."""
        ...


class SqsReceiver:
    """Receives from SQS and returns each message as a record of a Lambda event."""

    def __init__(self, client: SQSClient, urls: Mapping[Priority, str], executor: Executor) -> None:
        mark = uuid4().hex[:8]
        self._pull_queues = {
            pull_queue: client.create_queue(QueueName=f"{pull_queue}-{mark}")["QueueUrl"] for pull_queue in LANES
        }
        self.queues = SqsQueues(client, urls, executor, self._pull_queues)
        self._client = client
        self._urls = urls

    def receive(self, priority: Priority) -> list[Delivery]:
        """Return the messages that can be received now."""
        answer = self._client.receive_message(
            QueueUrl=self._urls[priority],
            MaxNumberOfMessages=10,
            VisibilityTimeout=600,
            MessageSystemAttributeNames=["All"],
        )
        return [self.queues.delivery(self.record(message, priority)) for message in answer.get("Messages", [])]

    def send_raw(self, pull_queue: str, body: str) -> None:
        """Put an invalid message on a lane's queue."""
        self._client.send_message(QueueUrl=self._pull_queues[pull_queue], MessageBody=body)

    def record(self, message: Mapping[str, Any], priority: Priority) -> dict[str, Any]:
        """Return a record as in Lambda's events (Source: Lambda Developer Guide, "Using Lambda with Amazon SQS")."""
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message.get("Attributes", {}),
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{self._urls[priority].rpartition('/')[2]}",
        }

    def delete(self, delivery: Delivery) -> None:
        """Delete a received message."""
        url = self._urls[delivery.message.priority]
        self._client.delete_message(QueueUrl=url, ReceiptHandle=delivery.receipt)
