"""One SQS queue per priority, and one per pulled type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from duetime.adapters.aws_clients import translated
from duetime.adapters.sqs.messages import MessageUnreadable, body_of, delivery_of, group_of
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef

    from duetime.domain.dispatch.dispatch_status import QueueDepth
    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.task_options import Priority
    from duetime.ports.queues import Delivery, Outgoing
    from duetime.ports.runtime import Executor

_ENTRIES_A_REQUEST = 10
"""Source: SQS API Reference, SendMessageBatch."""
_WAITING: Final = "ApproximateNumberOfMessages"
_DELAYED: Final = "ApproximateNumberOfMessagesDelayed"
_IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"
_MAX_AWAY_SECONDS = 43_200 - 900
"""A message may stay unseen for twelve hours from its receipt (Source: SQS Developer Guide, "Visibility timeout");
its receiver, a Lambda function, may have had it for fifteen minutes already."""


class SqsQueues:
    """`duetime.ports.queues.PullQueues` over SQS; the executor sends batches at once.

    Args:
        client: of SQS.
        urls: the queue of each priority.
        executor: sends batches at once.
        pull_queues: the queue of each pulled type.
    """

    def __init__(
        self,
        client: SQSClient,
        urls: Mapping[Priority, str],
        executor: Executor,
        pull_queues: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._urls = urls
        self._executor = executor
        self._pull_queues = dict(pull_queues or {})
        self._priorities = {url.rpartition("/")[2]: priority for priority, url in urls.items()}
        self._pull_queues_by_name = {
            url.rpartition("/")[2]: pull_queue for pull_queue, url in self._pull_queues.items()
        }

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Send messages, ten a request; return those that the queue did not acknowledge."""
        batches = list(self._batches(outgoing))
        if len(batches) == 1:
            return self._send_batch(batches[0])
        return [lost for losses in self._executor.map(self._send_batch, batches) for lost in losses]

    def _send_batch(self, batch: Sequence[Outgoing]) -> list[Outgoing]:
        entries: list[Any] = [
            {
                "Id": str(number),
                "MessageBody": body_of(each.message),
                "DelaySeconds": each.delay_seconds,
                "MessageGroupId": group_of(each.message.owner),
            }
            for number, each in enumerate(batch)
        ]
        try:
            answer = self._client.send_message_batch(QueueUrl=self._url(batch[0].message), Entries=entries)
        except (ClientError, BotoCoreError):
            # Whatever it was, the caller must not take them for sent, and has other batches to account for.
            return list(batch)
        acknowledged = {entry["Id"] for entry in answer.get("Successful", [])}
        return [each for number, each in enumerate(batch) if str(number) not in acknowledged]

    def come_back(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        """Set after how many seconds each of up to ten undeleted messages is delivered again, in one request.

        Raises:
            Unavailable: SQS throttles or fails.
        """
        if not deliveries:
            return
        entries: list[Any] = [
            {
                "Id": str(number),
                "ReceiptHandle": delivery.receipt,
                "VisibilityTimeout": max(0, min(wait, _MAX_AWAY_SECONDS)),
            }
            for number, (delivery, wait) in enumerate(zip(deliveries, seconds, strict=True))
        ]
        url = self._url(deliveries[0].message)
        with translated():
            answer = self._client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
        # The sender's fault is a message that is gone: deleted, or received again by somebody else.
        broken = [entry for entry in answer.get("Failed", []) if not entry["SenderFault"]]
        if broken:
            raise Unavailable(_reasons(broken))

    def depth(self, priority: Priority, pull_queue: str = "") -> QueueDepth:
        """About how many messages the queue of a priority, or a pull queue, has."""
        from duetime.domain.dispatch.dispatch_status import QueueDepth  # noqa: PLC0415 - few functions ask, and they seldom

        url = self._pull_queues.get(pull_queue, self._urls[priority])
        with translated():
            answer = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=[_WAITING, _DELAYED, _IN_FLIGHT])
        found = answer["Attributes"]
        return QueueDepth(int(found[_WAITING]), int(found[_DELAYED]), int(found[_IN_FLIGHT]))

    def delivery(self, record: Mapping[str, Any]) -> Delivery:
        """Read one record of a Lambda event of these queues.

        Raises:
            MessageUnreadable: the body is not one of ours.
        """
        return delivery_of(record, self._priorities, self._pull_queues_by_name)

    def receive(self, pull_queue: str, limit: int, wait_seconds: int, away_seconds: int) -> list[Delivery]:
        """Receive messages of one pull queue.

        Raises:
            Unavailable: SQS throttles or fails.
        """
        url = self._pull_queues[pull_queue]
        with translated():
            answer = self._client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=limit,
                WaitTimeSeconds=wait_seconds,
                VisibilityTimeout=away_seconds,
                MessageSystemAttributeNames=["MessageGroupId"],
            )
        deliveries, strange = [], []
        for message in answer.get("Messages", []):
            try:
                deliveries.append(self.delivery(_as_record(message, url)))
            except MessageUnreadable:
                # No task needs it.
                strange.append(message["ReceiptHandle"])
        self._delete(url, strange)
        return deliveries

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        """Delete up to ten messages of one queue; one that is gone already is passed over.

        Raises:
            Unavailable: SQS throttles or fails.
        """
        if deliveries:
            self._delete(self._url(deliveries[0].message), [delivery.receipt for delivery in deliveries])

    def _delete(self, url: str, receipts: Sequence[str]) -> None:
        entries: list[Any] = [{"Id": str(number), "ReceiptHandle": each} for number, each in enumerate(receipts)]
        if not entries:
            return
        with translated():
            answer = self._client.delete_message_batch(QueueUrl=url, Entries=entries)
        broken = [entry for entry in answer.get("Failed", []) if not entry["SenderFault"]]
        if broken:
            raise Unavailable(_reasons(broken))

    def _url(self, message: Message) -> str:
        """The queue of a message: its pull queue's, or its priority's if no pull queue of that name is known here."""
        return self._pull_queues.get(message.pull_queue, self._urls[message.priority])

    def _batches(self, outgoing: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
        """Batches of ten, each for one queue. Bodies are far too short for the size limit of a request."""
        queues: dict[str, list[Outgoing]] = {}
        for each in outgoing:
            queues.setdefault(self._url(each.message), []).append(each)
        for queue in queues.values():
            for start in range(0, len(queue), _ENTRIES_A_REQUEST):
                yield queue[start : start + _ENTRIES_A_REQUEST]


def _as_record(message: Mapping[str, Any], url: str) -> dict[str, Any]:
    """A received message in the form that Lambda hands it on."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "eventSourceARN": url.rpartition("/")[2],
    }


def _reasons(entries: Sequence[BatchResultErrorEntryTypeDef]) -> str:
    return ", ".join(sorted({entry["Code"] for entry in entries}))
