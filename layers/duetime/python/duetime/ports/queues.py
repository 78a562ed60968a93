"""Ports for the queues between the trigger and the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.dispatch.cursors import QueueDepth
    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis


@frozen
class Delivery:
    """One delivery of a message to a worker.

    Attributes:
        message: the message.
        receipt: handle of this delivery, which is needed to change the message's visibility.
        id: the queue's id for the message, which identifies it in the report about a batch.
        sent_at: when the message was sent; 0 if unknown.
    """

    message: Message
    receipt: str
    id: str
    sent_at: Millis = 0


@frozen
class Outgoing:
    """A message to send with a delay of 0 to 900 whole seconds."""

    message: Message
    delay_seconds: int


class MessagePace(Protocol):
    """Delays messages of owners that may not run all of their due tasks at once, in order to spread the starts."""

    def is_limited(self, owner: str) -> bool:
        """Whether an owner's messages may be delayed."""
        ...

    def delay_seconds(self, owner: str, delay_seconds: int) -> int:
        """The delay to use instead of a message's given delay; both delays are from 0 to 900 seconds."""
        ...


class WorkQueues(Protocol):
    """One queue per priority and per pulled type. Messages are delivered at least once, in any order.

    A message whose pulled type has no queue goes to the queue of its priority.
    """

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Send messages, ten per request.

        Returns:
            The messages that the queue did not acknowledge.
        """
        ...

    def come_back(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        """Set the visibility timeouts of messages in one queue; messages that are already deleted are skipped."""
        ...

    def depth(self, priority: Priority, pull_queue: str = "") -> QueueDepth:
        """Approximate number of messages in a priority's queue or in a pull queue."""
        ...


class PullQueues(WorkQueues, Protocol):
    """The queues for callers that receive messages themselves."""

    def receive(self, pull_queue: str, limit: int, wait_seconds: int, away_seconds: int) -> list[Delivery]:
        """Receive messages of one pull queue.

        Args:
            pull_queue: a pulled type that has a queue.
            limit: maximum number of messages, 1 to 10.
            wait_seconds: how long to wait for the first message.
            away_seconds: seconds until messages that are not deleted are delivered again.

        Returns: The received messages; messages that do not come from duetime are deleted and left out.
        """
        ...

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        """Delete up to ten messages from one queue; messages that are already deleted are skipped."""
        ...


@frozen
class Reject:
    """An event that cannot become a task.

    Attributes:
        body: body of the event as it was received.
        reason: human-readable reason.
    """

    body: str
    reason: str


class Rejects(Protocol):
    """Stores rejected events so that people can check them."""

    def put(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Store rejected events.

        Returns:
            The events that may not have been stored.
        """
        ...
