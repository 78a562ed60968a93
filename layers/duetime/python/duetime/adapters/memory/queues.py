"""The queues between the trigger and the workers, in memory, with time held by the clock that they are given."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.times import SECOND, Millis
from duetime.ports.queues import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.dispatch import Message
    from duetime.domain.task import Priority
    from duetime.ports.queues import Outgoing
    from duetime.ports.surroundings import Clock


@dataclass(slots=True)
class _Queued:
    message: Message
    visible_at: Millis
    receives: int = 0


class MemoryQueues:
    """`duetime.ports.queues.WorkQueues` in memory, and the receiving side that Lambda otherwise plays.

    Attributes:
        sent: everything that was ever sent, in order.
        visibility: how long a received message stays unseen, in milliseconds.
        changed: called when the time of the next visible message may have changed.
    """

    def __init__(
        self, clock: Clock, visibility: Millis = 120 * SECOND, changed: Callable[[], None] = lambda: None
    ) -> None:
        self.sent: list[Outgoing] = []
        self.visibility = visibility
        self.changed = changed
        self._clock = clock
        self._queued: dict[str, _Queued] = {}
        self._lock = Lock()

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Send messages; all are acknowledged."""
        with self._lock:
            now = self._clock.now()
            for each in outgoing:
                message_id = f"m{len(self.sent)}"
                self._queued[message_id] = _Queued(each.message, now + each.delay_seconds * SECOND)
                self.sent.append(each)
        self.changed()
        return []

    def come_back(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        """Set after how many seconds each of up to ten undeleted messages is delivered again."""
        with self._lock:
            now = self._clock.now()
            for delivery, wait in zip(deliveries, seconds, strict=True):
                if queued := self._held(delivery):
                    queued.visible_at = now + wait * SECOND
        self.changed()

    def backlog(self, priority: Priority) -> int:
        """How many messages wait to be received, delayed ones not counted."""
        with self._lock:
            return len(self._visible(priority))

    def receive(self, priority: Priority, limit: int = 10) -> list[Delivery]:
        """Receive messages whose time has come, the longest visible first."""
        with self._lock:
            hidden_until = self._clock.now() + self.visibility
            deliveries = []
            for message_id in self._visible(priority)[:limit]:
                queued = self._queued[message_id]
                queued.visible_at = hidden_until
                queued.receives += 1
                deliveries.append(Delivery(queued.message, f"{message_id}/{queued.receives}", message_id))
            return deliveries

    def delete(self, delivery: Delivery) -> None:
        """Delete a received message."""
        with self._lock:
            if self._held(delivery):
                del self._queued[delivery.id]

    def next_visible_at(self) -> Millis | None:
        """When the next message can be received, past if one can be now; `None` if all queues are empty."""
        with self._lock:
            return min((queued.visible_at for queued in self._queued.values()), default=None)

    def _held(self, delivery: Delivery) -> _Queued | None:
        """The message of a delivery, if it is the last delivery of it and still unseen by others."""
        queued = self._queued.get(delivery.id)
        if queued is None or delivery.receipt != f"{delivery.id}/{queued.receives}":
            return None
        return queued if queued.visible_at > self._clock.now() else None

    def _visible(self, priority: Priority) -> list[str]:
        now = self._clock.now()
        visible = [
            (queued.visible_at, message_id)
            for message_id, queued in self._queued.items()
            if queued.message.priority is priority and queued.visible_at <= now
        ]
        return [message_id for _at, message_id in sorted(visible)]
