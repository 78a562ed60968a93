"""One SQS queue per priority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from duetime.adapters.aws import translated
from duetime.adapters.sqs.messages import body_of, delivery_of, group_of
from duetime.domain.errors import Unavailable
from duetime.domain.task import Priority

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef

    from duetime.ports.queues import Delivery, Outgoing
    from duetime.ports.surroundings import Crew

_ENTRIES_A_REQUEST = 10
"""Source: SQS API Reference, SendMessageBatch."""
_MAX_AWAY_SECONDS = 43_200 - 900
"""A message may stay unseen for twelve hours from its receipt (Source: SQS Developer Guide, "Visibility timeout");
its receiver, a Lambda function, may have had it for fifteen minutes already."""


class SqsQueues:
    """`duetime.ports.queues.WorkQueues` over one queue per priority; the crew sends batches at once."""

    def __init__(self, client: SQSClient, urls: Mapping[Priority, str], crew: Crew) -> None:
        self._client = client
        self._urls = urls
        self._crew = crew
        self._priorities = {url.rpartition("/")[2]: priority for priority, url in urls.items()}

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Send messages, ten a request; return those that the queue did not acknowledge."""
        batches = list(_batches(outgoing))
        if len(batches) == 1:
            return self._send_batch(batches[0])
        return [lost for losses in self._crew.map(self._send_batch, batches) for lost in losses]

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
            answer = self._client.send_message_batch(QueueUrl=self._urls[batch[0].message.priority], Entries=entries)
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
        url = self._urls[deliveries[0].message.priority]
        with translated():
            answer = self._client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
        # The sender's fault is a message that is gone: deleted, or received again by somebody else.
        broken = [entry for entry in answer.get("Failed", []) if not entry["SenderFault"]]
        if broken:
            raise Unavailable(_reasons(broken))

    def backlog(self, priority: Priority) -> int:
        """About how many messages wait to be received, delayed ones not counted."""
        name: Final = "ApproximateNumberOfMessages"
        with translated():
            answer = self._client.get_queue_attributes(QueueUrl=self._urls[priority], AttributeNames=[name])
        return int(answer["Attributes"][name])

    def delivery(self, record: Mapping[str, Any]) -> Delivery:
        """Read one record of a Lambda event of these queues.

        Raises:
            MessageUnreadable: the body is not one of ours.
        """
        return delivery_of(record, self._priorities)


def _batches(outgoing: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    """Batches of ten, each for one queue. Bodies are far too short for the size limit of a request."""
    for priority in Priority:
        queue = [each for each in outgoing if each.message.priority is priority]
        for start in range(0, len(queue), _ENTRIES_A_REQUEST):
            yield queue[start : start + _ENTRIES_A_REQUEST]


def _reasons(entries: Sequence[BatchResultErrorEntryTypeDef]) -> str:
    return ", ".join(sorted({entry["Code"] for entry in entries}))
