"""The queues between the trigger and the workers, in memory, with time held by the clock that they are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.times import SECOND, Millis
from duetime.ports.queues import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from duetime.domain.dispatch.timers import Message
    from duetime.domain.tasks.task import Priority
    from duetime.ports.queues import Outgoing
    from duetime.ports.runtime import Clock


_PULL_QUEUE = "pull queue "
"""Before the name of a pull queue, which may be that of a priority."""


@dataclass(slots=True)
class _Queued:
    message: Message
    visible_at: Millis
    receives: int = 0


class MemoryQueues:
    """`duetime.ports.queues.PullQueues` in memory, and the receiving side that Lambda otherwise plays.

    Attributes:
        sent: everything that was ever sent, in order.
        visibility: how long a received message stays unseen, in milliseconds.
        changed: called when the time of the next visible message may have changed.
    """

    def __init__(
        self,
        clock: Clock,
        visibility: Millis = 120 * SECOND,
        changed: Callable[[], None] = lambda: None,
        pull_queues: Collection[str] = (),
    ) -> None:
        self.sent: list[Outgoing] = []
        self.visibility = visibility
        self.changed = changed
        self._clock = clock
        self._pull_queues = pull_queues
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

    def backlog(self, priority: Priority, pull_queue: str = "") -> int:
        """How many messages of a priority, or of a pull queue, wait to be received, delayed ones not counted."""
        with self._lock:
            return len(self._visible(_PULL_QUEUE + pull_queue if pull_queue in self._pull_queues else priority))

    def receive(self, pull_queue: str, limit: int, wait_seconds: int, away_seconds: int) -> list[Delivery]:
        """Receive messages of one pull queue; what is sent while it waits is found at the end of the wait."""
        queue = _PULL_QUEUE + pull_queue
        if not (found := self._receive(queue, limit, away_seconds * SECOND)) and wait_seconds:
            until = self._clock.now() + wait_seconds * SECOND
            self._clock.sleep_until(min(until, self._next_visible_at(pull_queue) or until))
            found = self._receive(queue, limit, away_seconds * SECOND)
        return found

    def receive_batch(self, priority: Priority, limit: int = 10) -> list[Delivery]:
        """Receive messages of one priority whose time has come, the longest visible first, as Lambda does."""
        return self._receive(priority, limit, self.visibility)

    def _receive(self, queue: str, limit: int, away: Millis) -> list[Delivery]:
        with self._lock:
            hidden_until = self._clock.now() + away
            deliveries = []
            for message_id in self._visible(queue)[:limit]:
                queued = self._queued[message_id]
                queued.visible_at = hidden_until
                queued.receives += 1
                message = replace(queued.message, pull_queue=self._pull_queue_of(queued))
                deliveries.append(Delivery(message, f"{message_id}/{queued.receives}", message_id))
            return deliveries

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        """Delete received messages."""
        with self._lock:
            for delivery in deliveries:
                if self._held(delivery):
                    del self._queued[delivery.receipt.rpartition("/")[0]]

    def next_visible_at(self) -> Millis | None:
        """When the next message for a worker function can be received, past if one can be now; `None` for never."""
        with self._lock:
            return min(
                (each.visible_at for each in self._queued.values() if not self._pull_queue_of(each)), default=None
            )

    def _next_visible_at(self, pull_queue: str) -> Millis | None:
        with self._lock:
            return min(
                (each.visible_at for each in self._queued.values() if self._pull_queue_of(each) == pull_queue),
                default=None,
            )

    def _held(self, delivery: Delivery) -> _Queued | None:
        """The message of a delivery, if it is the last delivery of it and still unseen by others."""
        message_id, _, receives = delivery.receipt.rpartition("/")
        queued = self._queued.get(message_id)
        if queued is None or receives != str(queued.receives):
            return None
        return queued if queued.visible_at > self._clock.now() else None

    def _pull_queue_of(self, queued: _Queued) -> str:
        """The pull queue that a message is on; none if no queue of that name is known here."""
        return queued.message.pull_queue if queued.message.pull_queue in self._pull_queues else ""

    def _queue_of(self, queued: _Queued) -> str:
        pull_queue = self._pull_queue_of(queued)
        return _PULL_QUEUE + pull_queue if pull_queue else queued.message.priority

    def _visible(self, queue: str) -> list[str]:
        """The messages that can be received from a queue now, the longest visible first."""
        now = self._clock.now()
        visible = [
            (queued.visible_at, message_id)
            for message_id, queued in self._queued.items()
            if self._queue_of(queued) == queue and queued.visible_at <= now
        ]
        return [message_id for _at, message_id in sorted(visible)]
