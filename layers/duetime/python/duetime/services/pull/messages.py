"""The messages of tasks that were claimed for pull workers: deleted, or hidden until they matter again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.dispatch.message_deletion import DeleteMessage, RedeliverMessage
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.pull_leases import LeaseKey
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.queues import Delivery, PullQueues
    from duetime.ports.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Leased:
    """A task that was handed out.

    Attributes:
        task: the record as it was claimed, with its payload.
        checkpoint: what a paused attempt left; JSON text in UTF-8.
        inputs: of a topology's node, the results of the parents that it names: one JSON object in UTF-8.
    """

    key: LeaseKey
    task: Task
    checkpoint: bytes | None
    inputs: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of its contents."""
        return len(self.task.payload.data or b"") + len(self.checkpoint or b"") + len(self.inputs or b"")

    def left(self, now: Millis) -> Millis:
        """How much of the lease is left; less than nothing if it is over."""
        return (self.task.lease_expires_at or 0) - now


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """What happened to one delivery: a lease, or the message's disposition."""

    delivery: Delivery
    end: Leased | DeleteMessage | RedeliverMessage


@dataclass(frozen=True, slots=True)
class PullMessages:
    """Settles messages; what cannot be settled comes back at the visibility that it has."""

    queues: PullQueues
    runtime: Runtime

    def settle(self, ends: Sequence[ClaimedDelivery]) -> None:
        """Delete the messages that are done with, and set when the others come back."""
        try:
            self.queues.delete([each.delivery for each in ends if isinstance(each.end, DeleteMessage)])
        except Unavailable as error:
            self.runtime.telemetry.note("messages were not deleted", error=str(error))
        self.hide([each for each in ends if isinstance(each.end, RedeliverMessage)])

    def hide(self, ends: Sequence[ClaimedDelivery]) -> None:
        """Hide messages until their leases are over, or until their disposition says."""
        now = self.runtime.now()
        seconds = [max(0, -(-(_returns_at(each.end) - now) // SECOND)) for each in ends]
        try:
            self.queues.come_back([each.delivery for each in ends], seconds)
        except Unavailable as error:
            # They come back at the visibility they have.
            self.runtime.telemetry.note("visibility was not changed", error=str(error))


def _returns_at(end: Leased | DeleteMessage | RedeliverMessage) -> Millis:
    """When a message comes back whose task is leased, or whose disposition is to come back."""
    match end:
        case Leased(task=task):
            return (task.lease_expires_at or 0) + LEASE_RETURN_MARGIN
        case RedeliverMessage(at=at):
            return at
        case DeleteMessage():
            return 0
