"""The queues between the trigger and the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.dispatch import Message
    from duetime.domain.task import Priority


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery of a message to a worker.

    Attributes:
        message: what it carries.
        receipt: proof of this delivery, needed to change when it comes back.
        id: the queue's own id of the message, by which a batch reports it.
    """

    message: Message
    receipt: str
    id: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be sent with a delay of whole seconds, 0 to 900."""

    message: Message
    delay_seconds: int


class WorkQueues(Protocol):
    """One queue per priority; at-least-once, in no order."""

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

    def backlog(self, priority: Priority) -> int:
        """About how many messages wait to be received, delayed ones not counted."""
        ...
