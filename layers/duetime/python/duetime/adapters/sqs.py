"""Sends and receives SQS messages, with a queue for each priority, for each pulled type, and for rejected events."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

from duetime.adapters.aws_clients import translated
from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.errors import Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_REASON_LENGTH
from duetime.domain.tasks.aws_jobs import task_of_job
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import LAST_INSTANT
from duetime.ports.queues import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import BatchResultErrorEntryTypeDef

    from duetime.domain.dispatch.cursors import QueueDepth
    from duetime.ports.queues import Outgoing, Reject
    from duetime.ports.runtime import Executor, Telemetry


_ENTRIES_A_REQUEST = 10
"""Maximum number of entries per request (Source: SQS API Reference, SendMessageBatch)."""
_WAITING: Final = "ApproximateNumberOfMessages"
_DELAYED: Final = "ApproximateNumberOfMessagesDelayed"
_IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"
_MAX_AWAY_SECONDS = 43_200 - 900
"""Longest visibility timeout that can be set, in seconds. A message can stay hidden for at most twelve hours after its
receipt (Source: SQS Developer Guide, "Visibility timeout"), of which a Lambda function may already have used fifteen
minutes.
"""


class SqsQueues:
    """The `duetime.ports.queues.PullQueues` for SQS, which sends batches in parallel.

    Args:
        client: the SQS client.
        urls: the queue URL for each priority.
        executor: sends batches in parallel.
        pull_queues: the queue URL for each pulled type.
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
        """Send messages, ten per request, and return the messages that the queue did not acknowledge."""
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
                "MessageGroupId": group_of(each.message.owner, each.message.fair_share),
            }
            for number, each in enumerate(batch)
        ]
        try:
            answer = self._client.send_message_batch(QueueUrl=self._url(batch[0].message), Entries=entries)
        except (ClientError, BotoCoreError):
            # The error is not raised, because the caller has other batches to handle. No message in this batch counts
            # as sent.
            return list(batch)
        acknowledged = {entry["Id"] for entry in answer.get("Successful", [])}
        return [each for number, each in enumerate(batch) if str(number) not in acknowledged]

    def come_back(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        """Set the visibility timeouts of messages in one queue; messages that are already deleted are skipped.

        Raises:
            Unavailable: SQS throttled or failed a request, although other requests may have succeeded.
        """
        waits = list(zip(deliveries, seconds, strict=True))
        self._executor.map(
            self._come_back, [waits[i : i + _ENTRIES_A_REQUEST] for i in range(0, len(waits), _ENTRIES_A_REQUEST)]
        )

    def _come_back(self, waits: Sequence[tuple[Delivery, int]]) -> None:
        entries: list[Any] = [
            {
                "Id": str(number),
                "ReceiptHandle": delivery.receipt,
                "VisibilityTimeout": max(0, min(wait, _MAX_AWAY_SECONDS)),
            }
            for number, (delivery, wait) in enumerate(waits)
        ]
        url = self._url(waits[0][0].message)
        with translated():
            answer = self._client.change_message_visibility_batch(QueueUrl=url, Entries=entries)
        # With `SenderFault`, the message was deleted, or another worker has received it again.
        broken = [entry for entry in answer.get("Failed", []) if not entry["SenderFault"]]
        if broken:
            raise Unavailable(_reasons(broken))

    def depth(self, priority: Priority, pull_queue: str = "") -> QueueDepth:
        """The approximate number of messages in a priority's queue or in a pull queue."""
        from duetime.domain.dispatch.cursors import QueueDepth  # noqa: PLC0415 - few functions need it

        url = self._pull_queues.get(pull_queue, self._urls[priority])
        with translated():
            answer = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=[_WAITING, _DELAYED, _IN_FLIGHT])
        found = answer["Attributes"]
        return QueueDepth(int(found[_WAITING]), int(found[_DELAYED]), int(found[_IN_FLIGHT]))

    def delivery(self, record: Mapping[str, Any]) -> Delivery:
        """Read one record from a Lambda event for these queues.

        Raises:
            MessageUnreadable: the body is not a duetime message.
        """
        return delivery_of(record, self._priorities, self._pull_queues_by_name)

    def receive(self, pull_queue: str, limit: int, wait_seconds: int, away_seconds: int) -> list[Delivery]:
        """Receive messages from one pull queue.

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
                # The message is deleted, because it does not concern a task.
                strange.append(message["ReceiptHandle"])
        self._delete(url, strange)
        return deliveries

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        """Delete up to ten messages of one queue; messages that are already deleted are skipped.

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
        """The URL of a message's pull queue, or of its priority's queue if the pull queue is unknown."""
        return self._pull_queues.get(message.pull_queue, self._urls[message.priority])

    def _batches(self, outgoing: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
        """Yield batches of up to ten messages for one queue. Message bodies are far below a request's size limit."""
        queues: dict[str, list[Outgoing]] = {}
        for each in outgoing:
            queues.setdefault(self._url(each.message), []).append(each)
        for queue in queues.values():
            for start in range(0, len(queue), _ENTRIES_A_REQUEST):
                yield queue[start : start + _ENTRIES_A_REQUEST]


def _as_record(message: Mapping[str, Any], url: str) -> dict[str, Any]:
    """A received message in the form of Lambda's event record."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "eventSourceARN": url.rpartition("/")[2],
    }


def _reasons(entries: Sequence[BatchResultErrorEntryTypeDef]) -> str:
    return ", ".join(sorted({entry["Code"] for entry in entries}))


_GROUP_PATTERN = re.compile(r"[!-~]{1,128}")
"""Group ids that SQS allows: printable ASCII except the space (Source: SQS API Reference, SendMessage, MessageGroupId).
"""
_SENT = re.compile(r"[0-9]{1,15}")
"""The time at which a message was sent, in milliseconds (Source: SQS API Reference, ReceiveMessage, SentTimestamp)."""
_HASHED, _FAIR = "sha256:", "fair:"
_MOST_TURNS = 1 << 53
_UNKNOWN = TaskId("0" * 26)
"""Placeholder for the task of a job whose name must be looked up."""
_UNNAMED = ("service", "region", "resource", "job")
"""Fields that identify a job whose name must be looked up."""


class MessageUnreadable(ValueError):
    """A message's body is not a duetime message."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"message {message_id} is not one of duetime's")
        self.message_id = message_id


def body_of(message: Message) -> str:
    """The SQS body of a message."""
    late = "" if message.late_at is None else f',"l":{message.late_at}'
    return f'{{"i":"{message.task_id}","t":{message.generation},"d":{message.due}{late}}}'


def group_of(owner: str, fair_share: str = "") -> str:
    """The fair-queue group for an owner, or for a part of the owner's fair keys.

    The group is the owner's name if SQS allows this name as a group id; otherwise, the group is a hash. An owner cannot
    choose a key that puts its tasks into another owner's group.
    """
    if fair_share:
        return _HASHED + _FAIR + sha256(f"{owner}\n{fair_share}".encode()).hexdigest()
    if _GROUP_PATTERN.fullmatch(owner):
        return owner
    return _HASHED + sha256(owner.encode()).hexdigest()


def delivery_of(
    record: Mapping[str, Any], priorities: Mapping[str, Priority], pull_queues: Mapping[str, str] | None = None
) -> Delivery:
    """Read one record from a Lambda event for SQS.

    The message's owner is empty if SQS did not return the group, or if the group is a hash.

    Args:
        record: one of the event's `Records`.
        priorities: the priority of each queue, by the queue's name.
        pull_queues: the pulled type of each other queue, by the queue's name.

    Raises:
        MessageUnreadable: the body is not a duetime message.
    """
    attributes = record.get("attributes", {})
    # A dead letter has the ARN of its source queue; for other messages, the record's own queue gives the priority.
    queue_arn = str(attributes.get("DeadLetterQueueSourceArn") or record.get("eventSourceARN", ""))
    queue = queue_arn.rpartition(":")[2]
    priority, pull_queue = priorities.get(queue, Priority.NORMAL), (pull_queues or {}).get(queue, "")
    group = str(attributes.get("MessageGroupId", ""))
    owner = "" if group.startswith(_HASHED) else group
    message_id = str(record["messageId"])
    try:
        message = _parsed(record["body"], Place(priority, owner, pull_queue))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise MessageUnreadable(message_id) from None
    sent = str(attributes.get("SentTimestamp", ""))
    return Delivery(
        message,
        str(record["receiptHandle"]),
        message_id,
        int(sent) if _SENT.fullmatch(sent) else 0,
    )


class Place(NamedTuple):
    """A message's priority, owner and pull queue, which are known from its queue and its message group."""

    priority: Priority
    owner: str
    pull_queue: str


def _parsed(body: str, place: Place) -> Message:
    fields = json.loads(body)
    if "j" in fields:
        return _ended_job(fields["j"], place)
    generation, due, late_at = fields["t"], fields["d"], fields.get("l")
    if type(generation) is not int or type(due) is not int or type(late_at or 0) is not int:
        raise TypeError
    # Records cannot contain values beyond these limits, because DynamoDB or the calendar would reject them.
    if not (0 <= generation < _MOST_TURNS and 0 <= due <= LAST_INSTANT):
        raise ValueError
    return Message(TaskId.parse(fields["i"]), generation, due, *place, late_at)


def _ended_job(job: object, place: Place) -> Message:
    if isinstance(job, list) and len(job) == len(_UNNAMED) and all(isinstance(each, str) for each in job):
        return Message(_UNKNOWN, 0, 0, *place, ended_job=tuple(job))
    task_id = task_of_job(job)
    if task_id is None:
        raise ValueError
    return Message(TaskId.parse(task_id), 0, 0, *place, ended_job=(str(job),))


def readable(event: Mapping[str, Any], queues: SqsQueues, telemetry: Telemetry) -> list[Delivery]:
    """The deliveries in an event.

    Messages that are not from duetime are logged and left out, so that they are deleted.
    """
    deliveries = []
    for record in event["Records"]:
        try:
            deliveries.append(queues.delivery(record))
        except MessageUnreadable as error:
            telemetry.count("unreadable")
            telemetry.note("a message is not one of duetime's", message=error.message_id)
    return deliveries


REASON = "reason"
"""Name of the message attribute that contains the reason for a rejection."""


class SqsRejects:
    """The `duetime.ports.queues.Rejects` for SQS, which sends single messages because of the size limit of requests.

    Args:
        client: the SQS client.
        url: the queue's URL.
        executor: sends messages in parallel.
    """

    def __init__(self, client: SQSClient, url: str, executor: Executor) -> None:
        self._client = client
        self._url = url
        self._executor = executor

    def put(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Store rejected events in the queue, and return the events that may not have been stored."""
        acknowledged = self._executor.map(self._put, rejects)
        return [reject for reject, is_kept in zip(rejects, acknowledged, strict=True) if not is_kept]

    def _put(self, reject: Reject) -> bool:
        try:
            self._client.send_message(
                QueueUrl=self._url,
                MessageBody=reject.body,
                MessageAttributes={REASON: {"DataType": "String", "StringValue": _printable(reject.reason)}},
            )
        except (ClientError, BotoCoreError):
            # An event that is too large together with its reason is redelivered until SQS moves it to a dead-letter
            # queue.
            return False
        return True


def _printable(reason: str) -> str:
    """A reason in characters that message attributes allow, because the reason may quote the event."""
    text = "".join(letter if " " <= letter <= "~" else ascii(letter)[1:-1] for letter in reason)
    return text[:MAX_REASON_LENGTH] or "unknown"
