from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.dispatch.cursors import QueueDepth
from duetime.domain.dispatch.enqueue_plan import Message
from duetime.domain.tasks.task_options import Priority
from duetime.ports.queues import Delivery, Outgoing
from tests.adapters.examples import HOME, OWNER, numbered

if TYPE_CHECKING:
    from tests.adapters.receivers import Receiver


def message(number: int, priority: Priority = Priority.NORMAL, owner: str = OWNER) -> Message:
    """Return the numbered message."""
    return Message(numbered(number), number % 3, HOME + number, priority, owner)


def received(receiver: Receiver, priority: Priority) -> list[Delivery]:
    """Receive messages until the queue is empty."""
    deliveries: list[Delivery] = []
    while batch := receiver.receive(priority):
        deliveries += batch
    return deliveries


def in_order(messages: list[Message]) -> list[Message]:
    """Sort messages, because queues do not keep an order."""
    return sorted(messages, key=lambda each: each.task_id)


def test_every_message_arrives_on_the_queue_of_its_priority(receiver: Receiver) -> None:
    """Any number of messages arrives unchanged, and only on the queue for the messages' priority."""
    sent = [message(number, list(Priority)[number % 3]) for number in range(37)]
    assert receiver.queues.send([Outgoing(each, 0) for each in sent]) == []
    for priority in Priority:
        arrived = [delivery.message for delivery in received(receiver, priority)]
        assert in_order(arrived) == [each for each in sent if each.priority is priority]


def test_sending_no_messages_makes_no_request(receiver: Receiver) -> None:
    """Sending an empty list of messages makes no request."""
    assert receiver.queues.send([]) == []
    receiver.queues.come_back([], [])


def test_messages_of_many_owners_are_accepted(receiver: Receiver) -> None:
    """Messages of several owners can be sent together, even if an owner's name is not a valid group id."""
    owners = ["ann", "a#b", "two words", "\u00e9lan", "x" * 200, "\U0001f552" * 128]
    sent = [Outgoing(message(number, owner=owner), 0) for number, owner in enumerate(owners)]
    assert receiver.queues.send(sent) == []
    assert len(received(receiver, Priority.NORMAL)) == len(owners)


def test_a_delayed_message_is_neither_received_nor_backlog(receiver: Receiver) -> None:
    """A delayed message is not received and does not count as waiting."""
    receiver.queues.send([Outgoing(message(1), 900), Outgoing(message(2), 0)])
    assert receiver.queues.depth(Priority.NORMAL) == QueueDepth(waiting=1, delayed=1, in_flight=0)
    assert [delivery.message for delivery in received(receiver, Priority.NORMAL)] == [message(2)]
    assert receiver.queues.depth(Priority.NORMAL) == QueueDepth(waiting=0, delayed=1, in_flight=1)


def test_the_backlog_is_counted_by_queue(receiver: Receiver) -> None:
    """Messages with one priority do not count toward another priority's backlog."""
    receiver.queues.send([Outgoing(message(number, Priority.LOW), 0) for number in range(12)])
    assert [receiver.queues.depth(priority).waiting for priority in (Priority.HIGH, Priority.LOW)] == [0, 12]


def test_a_message_made_visible_is_redelivered(receiver: Receiver) -> None:
    """A message that becomes visible at once is redelivered with a new receipt, and other messages stay hidden."""
    receiver.queues.send([Outgoing(message(1), 0), Outgoing(message(2), 0)])
    first = sorted(received(receiver, Priority.NORMAL), key=lambda each: each.message.task_id)
    receiver.queues.come_back(first, [0, 300])
    again = received(receiver, Priority.NORMAL)
    assert [(each.message, each.id) for each in again] == [(first[0].message, first[0].id)]


def test_a_visibility_wait_out_of_range_is_clamped(receiver: Receiver) -> None:
    """A wait below zero is zero, and a wait that is too long becomes the longest that the queue allows."""
    receiver.queues.send([Outgoing(message(1), 0), Outgoing(message(2), 0)])
    first = sorted(received(receiver, Priority.NORMAL), key=lambda each: each.message.task_id)
    receiver.queues.come_back(first, [-5, 90_000])
    assert [each.message for each in received(receiver, Priority.NORMAL)] == [message(1)]


def test_visibility_is_changed_in_requests_of_ten_messages(receiver: Receiver) -> None:
    """More messages than a request allows can be changed at once."""
    receiver.queues.send([Outgoing(message(number), 0) for number in range(23)])
    deliveries = received(receiver, Priority.NORMAL)
    receiver.queues.come_back(deliveries, [0] * 23)
    assert len(received(receiver, Priority.NORMAL)) == len(deliveries) == 23


def test_a_deleted_message_is_skipped_when_visibility_changes(receiver: Receiver) -> None:
    """A deleted message does not keep other messages from becoming visible again."""
    receiver.queues.send([Outgoing(message(number), 0) for number in range(3)])
    deliveries = received(receiver, Priority.NORMAL)
    receiver.delete(deliveries[1])
    receiver.queues.come_back(deliveries, [0, 0, 0])
    again = [each.message for each in received(receiver, Priority.NORMAL)]
    assert in_order(again) == in_order([deliveries[0].message, deliveries[2].message])


def laned(number: int, pull_queue: str = "resize") -> Message:
    """Return a message for a lane."""
    return replace(message(number), pull_queue=pull_queue)


def test_messages_of_a_lane_arrive_only_on_that_lane(receiver: Receiver) -> None:
    """A lane's messages are separate from a priority's messages, even if the pulled type is named like the priority."""
    pull_queues = ("resize", "high")
    sent = [laned(number, pull_queues[number % 2]) for number in range(25)]
    other = message(99, Priority.HIGH)
    assert receiver.queues.send([Outgoing(each, 0) for each in (*sent, other)]) == []
    assert [delivery.message for delivery in received(receiver, Priority.HIGH)] == [other]
    assert received(receiver, Priority.NORMAL) == []
    for pull_queue in pull_queues:
        arrived = [each.message for _ in range(4) for each in receiver.queues.receive(pull_queue, 10, 0, 60)]
        assert in_order(arrived) == [each for each in sent if each.pull_queue == pull_queue]


def test_a_message_of_an_unknown_lane_is_sent_to_its_priority(receiver: Receiver) -> None:
    """A message whose type is no longer pulled goes to a worker function, without a lane."""
    assert receiver.queues.send([Outgoing(laned(1, "gone"), 0)]) == []
    assert [delivery.message for delivery in received(receiver, Priority.NORMAL)] == [message(1)]


def test_at_most_the_requested_number_of_messages_is_received(receiver: Receiver) -> None:
    """A worker that wants one message receives only one, and the other messages stay on the queue."""
    receiver.queues.send([Outgoing(laned(number), 0) for number in range(3)])
    assert len(receiver.queues.receive("resize", 1, 0, 60)) == 1
    assert len(receiver.queues.receive("resize", 10, 0, 60)) == 2
    assert receiver.queues.receive("resize", 10, 0, 60) == []


def test_the_backlog_of_a_lane_is_counted_separately(receiver: Receiver) -> None:
    """A lane's backlog counts only messages for pull workers, which no priority's backlog counts."""
    receiver.queues.send([Outgoing(laned(number), 0) for number in range(3)])
    assert receiver.queues.depth(Priority.NORMAL, "resize").waiting == 3
    assert receiver.queues.depth(Priority.NORMAL).waiting == 0
    assert receiver.queues.depth(Priority.HIGH, "high").waiting == 0


def test_deleted_messages_of_a_lane_are_not_redelivered(receiver: Receiver) -> None:
    """Messages are deleted by their receipts; missing messages and invalid receipts are ignored."""
    receiver.queues.send([Outgoing(laned(number), 0) for number in range(3)])
    first = receiver.queues.receive("resize", 10, 0, 60)
    kept = first.pop()
    for _ in range(2):
        receiver.queues.delete([replace(each, id="") for each in first])
    receiver.queues.delete([replace(kept, receipt="none")])
    receiver.queues.delete([])
    receiver.queues.come_back([*first, kept, replace(kept, receipt="none")], [0] * 4)
    assert [each.message for each in receiver.queues.receive("resize", 10, 1, 60)] == [kept.message]


def test_an_invalid_message_of_a_lane_is_deleted(receiver: Receiver) -> None:
    """An invalid message on a lane's queue is deleted, and the other messages are received."""
    receiver.send_raw("resize", "poison")
    receiver.queues.send([Outgoing(laned(1), 0)])
    assert [each.message for each in receiver.queues.receive("resize", 10, 1, 0)] == [laned(1)]
    assert [each.message for each in receiver.queues.receive("resize", 10, 1, 60)] == [laned(1)]
