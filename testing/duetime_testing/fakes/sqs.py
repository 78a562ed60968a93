"""A fake of SQS, which has standard queues with delays, visibility timeouts and dead-letter queues."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.errors import Exceptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)
_INVALID = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that a message must not contain (Source: SQS API Reference, SendMessage)."""
_MOST_ENTRIES = 10
_MOST_BYTES = 1_048_576
_NOISY_SHARE, _NOISY_LEAST = 0.1, 30
"""A message group is noisy if it has at least this number and more than this share of the messages in flight; the
group's share of the processing time is not considered. Source: SQS Developer Guide, "How Amazon SQS fair queues work".
"""
_LONGEST_HIDDEN = 43_200_000
"""The longest visibility timeout, in milliseconds (Source: SQS Developer Guide, Visibility timeout)."""
_USUAL_RETENTION = "345600"
"""The default message retention (four days), in seconds (Source: SQS API Reference, CreateQueue,
"MessageRetentionPeriod")."""
_NAMESPACE = "AWS.SimpleQueueService."
_ACCOUNT = "123456789012"


@dataclass
class Held:
    """One message.

    Attributes:
        visible_at: time when the message can be received, in milliseconds.
        receipt: the last receiver's receipt handle; empty before the first receive.
        received_at: time of the last receive, in milliseconds.
        source: ARN of a dead letter's original queue.
    """

    id: str
    body: str
    group: str | None
    sent_at: int
    visible_at: int
    attributes: dict[str, Any] = field(default_factory=dict)
    receipt: str = ""
    received: int = 0
    received_at: int = 0
    source: str = ""


@dataclass
class Queue:
    """One queue.

    Attributes:
        retention: how long the queue keeps a message, in seconds.
    """

    name: str
    url: str
    visibility: int
    dead_letters: str = ""
    most_receives: int = 0
    retention: int = int(_USUAL_RETENTION)
    messages: list[Held] = field(default_factory=list)

    @property
    def arn(self) -> str:
        """The queue's ARN."""
        return f"arn:aws:sqs:us-east-1:{_ACCOUNT}:{self.name}"

    def visible_at(self, now: int) -> int | None:
        """The earliest time, now or later, when a message can be received; `None` if the queue is empty."""
        return min((max(now, each.visible_at) for each in self.messages), default=None)


class FakeSQS:
    """An SQS client with in-memory queues.

    Attributes:
        now: returns the time in milliseconds.
        wait: performs a long poll's wait until a message is visible or the given time is reached.
        pick: chooses and orders the messages to receive.
        changed: called with the time at which a message becomes visible, to wake pollers.
        transit: returns how many milliseconds pass, in addition to the delay, until a new message can be received.
        is_fair: whether messages of noisy groups are received after messages of other groups.
    """

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self.now = now
        self.wait: Callable[[Queue, int], None] = lambda _queue, _until: None
        self.pick: Callable[[list[Held]], list[Held]] = lambda messages: messages
        self.changed: Callable[[Queue, int], None] = lambda _queue, _at: None
        self.transit: Callable[[], int] = lambda: 0
        self.is_fair = True
        self.exceptions = Exceptions()
        self.queues: dict[str, Queue] = {}
        self._numbers = count(1)

    def create_queue(self, *, QueueName: str, Attributes: dict[str, str] | None = None) -> dict[str, Any]:
        """Create a queue."""
        url = f"https://sqs.us-east-1.amazonaws.com/{_ACCOUNT}/{QueueName}"
        attributes = Attributes or {}
        redrive = json.loads(attributes.get("RedrivePolicy", "{}"))
        self.queues[url] = Queue(
            QueueName,
            url,
            int(attributes.get("VisibilityTimeout", "30")),
            str(redrive.get("deadLetterTargetArn", "")),
            int(redrive.get("maxReceiveCount", 0)),
            int(attributes.get("MessageRetentionPeriod", _USUAL_RETENTION)),
        )
        return {"QueueUrl": url}

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str]) -> dict[str, Any]:
        """Count messages."""
        queue, now = self._queue(QueueUrl, "GetQueueAttributes"), self.now()
        counts = {"": 0, "NotVisible": 0, "Delayed": 0}
        for each in queue.messages:
            counts["" if each.visible_at <= now else "NotVisible" if each.received else "Delayed"] += 1
        told = {f"ApproximateNumberOfMessages{kind}": str(number) for kind, number in counts.items()}
        told |= {"QueueArn": queue.arn, "VisibilityTimeout": str(queue.visibility)}
        wanted = told if "All" in AttributeNames else {name: told[name] for name in AttributeNames}
        return {"Attributes": wanted}

    def send_message(
        self,
        *,
        QueueUrl: str,
        MessageBody: str,
        DelaySeconds: int = 0,
        MessageGroupId: str | None = None,
        MessageAttributes: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a message."""
        queue = self._queue(QueueUrl, "SendMessage")
        if code := _fault_of(MessageBody):
            raise self.exceptions.make(code, "SendMessage")
        return self._send(queue, MessageBody, DelaySeconds, MessageGroupId, MessageAttributes)

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Send up to ten messages."""
        queue = self._queue(QueueUrl, "SendMessageBatch")
        self._check(Entries, "SendMessageBatch")
        if sum(len(entry["MessageBody"].encode()) for entry in Entries) > _MOST_BYTES:
            raise self.exceptions.make(f"{_NAMESPACE}BatchRequestTooLong", "SendMessageBatch")
        answer = _Answer()
        for entry in Entries:
            if code := _fault_of(entry["MessageBody"]):
                answer.fail(entry, code)
                continue
            sent = self._send(
                queue,
                entry["MessageBody"],
                entry.get("DelaySeconds", 0),
                entry.get("MessageGroupId"),
                entry.get("MessageAttributes"),
            )
            answer.successful.append({"Id": entry["Id"], **sent})
        return answer.told()

    def receive_message(
        self,
        *,
        QueueUrl: str,
        MaxNumberOfMessages: int = 1,
        VisibilityTimeout: int | None = None,
        WaitTimeSeconds: int = 0,
        MessageSystemAttributeNames: Sequence[str] = (),
        MessageAttributeNames: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Receive messages and hide them from other receivers until their visibility timeout ends."""
        queue = self._queue(QueueUrl, "ReceiveMessage")
        if not 1 <= MaxNumberOfMessages <= _MOST_ENTRIES:
            raise self.exceptions.make("InvalidParameterValue", "ReceiveMessage")
        self._give_up(queue)
        if WaitTimeSeconds and not self._visible(queue):
            self.wait(queue, self.now() + WaitTimeSeconds * 1000)
            self._give_up(queue)
        seconds = queue.visibility if VisibilityTimeout is None else VisibilityTimeout
        received = self.pick(self._visible(queue))[:MaxNumberOfMessages]
        for each in received:
            each.receipt = f"receipt-{next(self._numbers)}"
            each.received += 1
            each.received_at = self.now()
            each.visible_at = self.now() + seconds * 1000
            self.changed(queue, each.visible_at)
        told = [self._told(each, MessageSystemAttributeNames) for each in received]
        for each, message in zip(received, told, strict=True):
            if named := {name: each.attributes[name] for name in each.attributes if "All" in MessageAttributeNames}:
                message["MessageAttributes"] = named
        return {"Messages": told} if told else {}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Set the visibility timeout of received messages, in seconds."""
        queue = self._queue(QueueUrl, "ChangeMessageVisibilityBatch")
        self._check(Entries, "ChangeMessageVisibilityBatch")
        answer = _Answer()
        for entry in Entries:
            if (held := _held_by(queue, entry["ReceiptHandle"])) is None:
                answer.fail(entry, "ReceiptHandleIsInvalid")
                continue
            visible_at = self.now() + entry["VisibilityTimeout"] * 1000
            if visible_at - held.received_at > _LONGEST_HIDDEN:
                answer.fail(entry, "InvalidParameterValue")
                continue
            held.visible_at = visible_at
            self.changed(queue, held.visible_at)
            answer.successful.append({"Id": entry["Id"]})
        return answer.told()

    def delete_queue(self, *, QueueUrl: str) -> dict[str, Any]:
        """Delete a queue and its messages."""
        self._queue(QueueUrl, "DeleteQueue")
        del self.queues[QueueUrl]
        return {}

    def delete_message(self, *, QueueUrl: str, ReceiptHandle: str) -> dict[str, Any]:
        """Delete a received message."""
        queue = self._queue(QueueUrl, "DeleteMessage")
        if (held := _held_by(queue, ReceiptHandle)) is None:
            raise self.exceptions.make("ReceiptHandleIsInvalid", "DeleteMessage")
        queue.messages.remove(held)
        return {}

    def delete_message_batch(self, *, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Delete up to ten received messages."""
        queue = self._queue(QueueUrl, "DeleteMessageBatch")
        self._check(Entries, "DeleteMessageBatch")
        answer = _Answer()
        for entry in Entries:
            if (held := _held_by(queue, entry["ReceiptHandle"])) is None:
                answer.fail(entry, "ReceiptHandleIsInvalid")
                continue
            queue.messages.remove(held)
            answer.successful.append({"Id": entry["Id"]})
        return answer.told()

    def _queue(self, url: str, operation: str) -> Queue:
        try:
            return self.queues[url]
        except KeyError:
            raise self.exceptions.make(f"{_NAMESPACE}NonExistentQueue", operation) from None

    def _check(self, entries: Sequence[dict[str, Any]], operation: str) -> None:
        code = "" if entries else "EmptyBatchRequest"
        if len(entries) > _MOST_ENTRIES:
            code = "TooManyEntriesInBatchRequest"
        seen: set[str] = set()
        for id_ in () if code else (entry["Id"] for entry in entries):
            if not _ENTRY_ID.fullmatch(id_):
                code = code or "InvalidBatchEntryId"
            elif id_ in seen:
                code = code or "BatchEntryIdsNotDistinct"
            seen.add(id_)
        if code:
            raise self.exceptions.make(_NAMESPACE + code, operation)

    def _send(
        self, queue: Queue, body: str, delay: int, group: str | None, attributes: dict[str, Any] | None
    ) -> dict[str, Any]:
        now = self.now()
        visible_at = now + delay * 1000 + self.transit()
        held = Held(f"message-{next(self._numbers)}", body, group, now, visible_at, attributes or {})
        queue.messages.append(held)
        self.changed(queue, held.visible_at)
        return {"MessageId": held.id, "MD5OfMessageBody": _digest(body)}

    def _visible(self, queue: Queue) -> list[Held]:
        """The messages that can be received.

        Messages of noisy groups come last, ordered by the group's number of messages in flight.
        """
        now = self.now()
        visible = [each for each in queue.messages if each.visible_at <= now]
        if not self.is_fair:
            return visible
        at_work = Counter(each.group for each in queue.messages if each.received and each.visible_at > now)
        least = max(_NOISY_LEAST, _NOISY_SHARE * at_work.total() + 1)
        noisy = {group: number for group, number in at_work.items() if group and number >= least}
        return sorted(visible, key=lambda each: noisy.get(each.group or "", 0)) if noisy else visible

    def _give_up(self, queue: Queue) -> None:
        """Delete messages older than the retention; move messages received too often to the dead-letter queue."""
        oldest = self.now() - queue.retention * 1000
        queue.messages[:] = [each for each in queue.messages if each.sent_at > oldest]
        if not queue.most_receives:
            return
        graves = next(each for each in self.queues.values() if each.arn == queue.dead_letters)
        for each in self._visible(queue):
            if each.received >= queue.most_receives:
                queue.messages.remove(each)
                each.source, each.receipt = each.source or queue.arn, ""
                graves.messages.append(each)
                self.changed(graves, each.visible_at)

    def _told(self, held: Held, names: Sequence[str]) -> dict[str, Any]:
        attributes = {
            "SentTimestamp": str(held.sent_at),
            "ApproximateReceiveCount": str(held.received),
            **({"MessageGroupId": held.group} if held.group else {}),
            **({"DeadLetterQueueSourceArn": held.source} if held.source else {}),
        }
        told = attributes if "All" in names else {name: attributes[name] for name in names if name in attributes}
        message = {
            "MessageId": held.id,
            "ReceiptHandle": held.receipt,
            "MD5OfBody": _digest(held.body),
            "Body": held.body,
        }
        return message | ({"Attributes": told} if told else {})


@dataclass
class _Answer:
    """The response to a batch request, with a result for each entry."""

    successful: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)

    def fail(self, entry: dict[str, Any], code: str) -> None:
        """Reject an entry."""
        self.failed.append({"Id": entry["Id"], "Code": code, "Message": code, "SenderFault": True})

    def told(self) -> dict[str, Any]:
        """Return the response in boto3's format, without empty lists."""
        named = {"Successful": self.successful, "Failed": self.failed}
        return {name: entries for name, entries in named.items() if entries}


def _held_by(queue: Queue, receipt: str) -> Held | None:
    return next((each for each in queue.messages if receipt and each.receipt == receipt), None)


def _fault_of(body: str) -> str:
    if not body:
        return "MissingParameter"
    if _INVALID.search(body):
        return "InvalidMessageContents"
    return "InvalidParameterValue" if len(body.encode()) > _MOST_BYTES else ""


def _digest(body: str) -> str:
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
