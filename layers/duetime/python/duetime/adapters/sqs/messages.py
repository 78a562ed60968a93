"""A message as SQS carries it: the body is `{"i": task id, "t": generation, "d": due}`; `"l"` has a check for lateness.

`{"j": job name}` is from a rule of EventBridge: the job that AWS ran for a task has ended. So is a list in its place,
`[service, region, name of what was started, job]`, of a service that knows no names.

Its queue says the priority or the pulled type, its group the owner.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.ids import TaskId
from duetime.domain.tasks.aws_jobs import task_of_job
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import LAST_INSTANT
from duetime.ports.queues import Delivery

if TYPE_CHECKING:
    from collections.abc import Mapping

_GROUP_PATTERN = re.compile(r"[!-~]{1,128}")
"""What SQS allows (Source: SQS API Reference, SendMessage, MessageGroupId): printable ASCII but the space."""
_SENT = re.compile(r"[0-9]{1,15}")
"""When a message was sent, in milliseconds (Source: SQS API Reference, ReceiveMessage, SentTimestamp)."""
_HASHED = "sha256:"
_MOST_TURNS = 1 << 53
_UNKNOWN = TaskId("0" * 26)
"""Stands for the task of a job that has to be asked for its name."""
_UNNAMED = ("service", "region", "resource", "job")
"""What identifies such a job."""


class MessageUnreadable(ValueError):
    """A message's body is not one of ours."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"message {message_id} is not one of duetime's")
        self.message_id = message_id


def body_of(message: Message) -> str:
    """The body of a message."""
    late = "" if message.late_at is None else f',"l":{message.late_at}'
    return f'{{"i":"{message.task_id}","t":{message.generation},"d":{message.due}{late}}}'


def group_of(owner: str) -> str:
    """The fair-queue group of an owner: the owner itself where SQS allows it, else its hash."""
    if _GROUP_PATTERN.fullmatch(owner):
        return owner
    return _HASHED + sha256(owner.encode()).hexdigest()


def delivery_of(
    record: Mapping[str, Any], priorities: Mapping[str, Priority], pull_queues: Mapping[str, str] | None = None
) -> Delivery:
    """Read one record of a Lambda event of SQS.

    The message's owner is empty if SQS did not tell the group, or if the owner could not be a group's name.

    Args:
        record: one of the event's `Records`.
        priorities: the priority of each queue, by the queue's name.
        pull_queues: the pulled type of each other queue, by the queue's name.

    Raises:
        MessageUnreadable: the body is not one of ours.
    """
    attributes = record.get("attributes", {})
    # A dead letter tells the queue it was given up on; without it only the record knows the priority.
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
    """What a queue and its groups tell of a message."""

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
    # Beyond these no record can be asked about: DynamoDB would reject the number, the calendar the time.
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
