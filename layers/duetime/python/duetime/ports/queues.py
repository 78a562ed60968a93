"""The queues between the trigger and the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.dispatch.dispatch_status import QueueDepth
    from duetime.domain.dispatch.enqueue_plan import Message
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a message to a worker.

    Attributes:
        message: what it carries.
        receipt: proof of this delivery, needed to change when it comes back.
        id: the queue's own id of the message, by which a batch reports it.
        sent_at: when the message was sent; 0 if the queue does not say.
    """

    message: Message
    receipt: str
    id: str
    sent_at: Millis = 0


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be sent with a delay of whole seconds, 0 to 900."""

    message: Message
    delay_seconds: int


class WorkQueues(Protocol):
    """One queue per priority, and one per pulled type; at-least-once, in no order.

    A message whose pull queue has no queue goes to the one of its priority.
    """

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Send messages, ten a request.

        Returns:
            Those that the queue did not acknowledge.
        """
        ...

    def come_back(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        """Set after how many seconds each of up to ten undeleted messages is delivered again, in one request.

        A message that is gone already is passed over.
        """
        ...

    def depth(self, priority: Priority, pull_queue: str = "") -> QueueDepth:
        """About how many messages the queue of a priority, or a pull queue, has."""
        ...


class PullQueues(WorkQueues, Protocol):
    """The queues as they are for whoever receives from them by itself."""

    def receive(self, pull_queue: str, limit: int, wait_seconds: int, away_seconds: int) -> list[Delivery]:
        """Receive messages of one pull queue.

        Args:
            pull_queue: a pulled type that has a queue.
            limit: most messages, 1 to 10.
            wait_seconds: how long to wait for the first one.
            away_seconds: after how many seconds those that are not deleted are delivered again.

        Returns:
            What was there; a message that is not ours is deleted and left out.
        """
        ...

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        """Delete up to ten messages of one queue. One that is gone already is passed over."""
        ...


@dataclass(frozen=True, slots=True)
class Reject:
    """An event that can become no task.

    Attributes:
        body: as it came.
        reason: why, in words.
    """

    body: str
    reason: str


class Rejects(Protocol):
    """Keeps them for a person to check."""

    def put(self, rejects: Sequence[Reject]) -> list[Reject]:
        """Keep events.

        Returns:
            Those that were not kept for sure.
        """
        ...
