from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.adapters.sqs import MessageUnreadable, body_of, delivery_of, group_of
from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.tasks.task_options import Priority
from duetime.ports.queues import Delivery
from tests.adapters.examples import HOME, numbered
from tests.adapters.strategies import TASK_IDS

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId

PRIORITIES = {"duetime-high": Priority.HIGH, "duetime-normal": Priority.NORMAL, "duetime-low": Priority.LOW}
GOOD = '{"i":"' + numbered(1).text + '","t":2,"d":1795228380250}'


def record(body: str = GOOD, **attributes: str) -> dict[str, Any]:
    """Return a record of a Lambda event (Source: AWS Lambda Developer Guide, "Using Lambda with Amazon SQS")."""
    return {
        "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d",
        "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1545082649183"} | attributes,
        "messageAttributes": {},
        "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-2:123456789012:duetime-low",
        "awsRegion": "us-east-2",
    }


@given(TASK_IDS, st.integers(0, 10**6), st.integers(0, 4_000_000_000_000))
def test_a_message_is_unchanged_after_encoding_and_decoding(task_id: TaskId, generation: int, due: int) -> None:
    """A message does not change when it is encoded and decoded, and its body is JSON."""
    message = Message(task_id, generation, due, Priority.LOW, "")
    assert json.loads(body_of(message)) == {"i": task_id.text, "t": generation, "d": due}
    assert delivery_of(record(body_of(message)), PRIORITIES).message == message


def test_a_delivery_is_read_from_a_lambda_event_record() -> None:
    """The receipt, id, priority, owner and time of sending are read from a Lambda event's record."""
    expected = Delivery(
        Message(numbered(1), 2, HOME, Priority.LOW, "ann"),
        "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "059f36b4-87a3-44ab-83d2-661975830a7d",
        1_545_082_649_183,
    )
    assert delivery_of(record(MessageGroupId="ann"), PRIORITIES) == expected


def test_a_job_event_identifies_its_job_by_name_or_id() -> None:
    """A job is identified by its name, or by an id with which its service can be queried."""
    name = f"duetime-{numbered(1)}-0"
    message = delivery_of(record(json.dumps({"j": name})), PRIORITIES).message
    assert (message.task_id, message.ended_job) == (numbered(1), (name,))
    asked = ["glue", "us-east-1", "report", "jr_1"]
    assert delivery_of(record(json.dumps({"j": asked})), PRIORITIES).message.ended_job == tuple(asked)
    for other in ("report-7", asked[:3], [*asked[:3], 7], {"name": name}, None):
        with pytest.raises(MessageUnreadable):
            delivery_of(record(json.dumps({"j": other})), PRIORITIES)


@pytest.mark.parametrize("sent", ["", "soon", "-1", "9" * 16])
def test_an_invalid_time_of_sending_is_read_as_unknown(sent: str) -> None:
    """A message with an invalid time of sending is still received, with an unknown time."""
    assert delivery_of(record(SentTimestamp=sent), PRIORITIES).sent_at == 0


@pytest.mark.parametrize(
    ("source", "priority"),
    [("arn:aws:sqs:us-east-2:1:duetime-high", Priority.HIGH), ("arn:aws:sqs:us-east-2:1:other", Priority.NORMAL)],
)
def test_a_dead_letter_has_the_priority_of_the_queue_it_left(source: str, priority: Priority) -> None:
    """A dead letter has the priority of the queue that it left; for an unknown queue, the priority is normal."""
    assert delivery_of(record(DeadLetterQueueSourceArn=source), PRIORITIES).message.priority is priority


POISON = {
    "empty": "",
    "not JSON": "{",
    "no object": "[]",
    "a number": "1",
    "no id": '{"t":2,"d":5}',
    "no turn": GOOD.replace('"t":2,', ""),
    "id of another kind": GOOD.replace(numbered(1).text, "01"),
    "numeric id": '{"i":1,"t":2,"d":5}',
    "fraction": GOOD.replace('"t":2', '"t":2.0'),
    "truth": GOOD.replace('"t":2', '"t":true'),
    "nothing": GOOD.replace("1795228380250", "null"),
    "not a number": GOOD.replace("1795228380250", "NaN"),
    "too many digits": GOOD.replace("1795228380250", "1" * 5_000),
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("body", POISON.values(), ids=POISON)
def test_an_invalid_message_body_is_reported_as_unreadable(body: str) -> None:
    """Any invalid body raises the same error, with the message's id."""
    with pytest.raises(MessageUnreadable) as unreadable:
        delivery_of(record(body), PRIORITIES)
    assert unreadable.value.message_id == "059f36b4-87a3-44ab-83d2-661975830a7d"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
def test_every_owner_has_a_valid_sqs_group_id(owner: str) -> None:
    """A group id has 1 to 128 letters, digits and punctuation marks (Source: SQS API Reference, SendMessage)."""
    group = group_of(owner)
    assert 1 <= len(group) <= 128
    assert all("!" <= character <= "~" for character in group)


def test_different_owners_have_different_group_ids() -> None:
    """Different owners have different groups, even if names are hashed; a hashed group is not mistaken for an owner."""
    owners = ["ann", "a b", "a  b", "a_b", "x" * 200, "x" * 201, "\u00e9", "\u00e8"]
    assert len({group_of(owner) for owner in owners}) == len(owners)
    assert delivery_of(record(MessageGroupId=group_of("a b")), PRIORITIES).message.owner == ""


def test_fair_keys_of_an_owner_have_separate_groups() -> None:
    """An owner's fair key never leads to another owner's group and is not mistaken for an owner."""
    owners, keys = ("ann", "ann\n0.a", "a b"), ("", "0.a", "0.a.0.b", "1.a")
    groups = [group_of(owner, key) for owner in owners for key in keys]
    assert all(1 <= len(group) <= 128 for group in groups)
    assert delivery_of(record(MessageGroupId=group_of("ann", "0.a")), PRIORITIES).message.owner == ""
    assert len(set(groups)) == len(groups)


def test_a_message_has_the_lane_of_its_queue() -> None:
    """A message has the lane of its queue, and a dead letter has the lane of the queue that it left."""
    pull_queues = {"duetime-resize": "resize"}
    left = record(DeadLetterQueueSourceArn="arn:aws:sqs:us-east-2:1:duetime-resize")
    assert delivery_of(left, PRIORITIES, pull_queues).message.pull_queue == "resize"
    assert delivery_of(record(), PRIORITIES, pull_queues).message.pull_queue == ""
