"""State of one delivery, and what its batch offers to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_run import Arrival
from duetime.domain.tasks.notices import time_to_tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.task import Progress, RequestedAction, Task
    from duetime.domain.times import Millis
    from duetime.ports.queues import Delivery


@dataclass(slots=True)
class DeliveryState:
    """What one delivery is at, shared between the thread that works on it and the one that watches over it.

    Each field has one writer at a time, and a reader that sees it a moment late does no harm: every write to the
    record is fenced.

    Attributes:
        received_at: when its batch was received.
        task: the record as it was claimed; `None` before the claim and after the end.
        started_at: when the target was called first in this attempt: its time is for all phases. What follows the
            outcome has a time of its own.
        had_turn: it was to start when its rate allowed it, and has.
        ended: the target has returned; its end is being written down.
        requested_action: what the user asks of the attempt, as of the last heartbeat.
        progress: what the target reported last, written with the next heartbeat.
        renew_at: when its lease must be renewed.
        leased_until: when its lease is over, as far as its own writes were answered.
        locks: what the attempt holds besides its lease.
        disposition: what happens to the message; `None` while that is open.
    """

    delivery: Delivery
    received_at: Millis = 0
    task: Task | None = None
    started_at: Millis | None = None
    had_turn: bool = False
    ended: bool = False
    requested_action: RequestedAction | None = None
    progress: Progress | None = None
    renew_at: Millis = 0
    leased_until: Millis = 0
    locks: tuple[LockClaim, ...] = ()
    disposition: DeleteMessage | RedeliverMessage | None = None

    @property
    def arrival(self) -> Arrival:
        """How the message came."""
        return Arrival(self.delivery.sent_at, self.received_at)

    def overdue_at(self) -> Millis | None:
        """When its target must have ended, if it runs."""
        task, started = self.task, self.started_at
        if task is None or started is None or self.ended:
            return None
        room = time_to_tell(task) if task.is_terminal else 0
        return task.overdue_at(started) + room


@dataclass(frozen=True, slots=True)
class Watch:
    """What the thread that watches over a batch offers to the one that works on a delivery.

    Attributes:
        holder: who works, for the attempt history.
        ends_at: when Lambda ends the function, whatever it does then.
        is_closing_time: whether nothing new may be claimed any more.
        heartbeat: renews the lease at once, when the target asks for it.
    """

    holder: str
    ends_at: Millis
    is_closing_time: Callable[[], bool]
    heartbeat: Callable[[], None]
