"""When the messages of a batch are delivered again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.dispatch.message_deletion import RedeliverMessage
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import LEASE_RETURN_MARGIN, MAX_HOLD
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.times import Millis
    from duetime.ports.queues import Delivery, WorkQueues
    from duetime.ports.runtime import Runtime
    from duetime.services.worker.delivery_state import DeliveryState

_MAX_VISIBILITY = 43_200
"""Seconds; Source: SQS quotas."""


class MessageVisibility:
    """Changes the visibility of a batch's messages; each is given back once."""

    def __init__(
        self, queues: WorkQueues, runtime: Runtime, lease: Millis, delivery_states: Sequence[DeliveryState]
    ) -> None:
        self.queues = queues
        self.runtime = runtime
        self.lease = lease
        self.delivery_states = delivery_states
        self.given_back: set[int] = set()

    def extend(self) -> None:
        """Keep the batch's messages from being delivered again before a lease that begins now is over.

        The queue's own visibility must be at least the function's timeout: far too long to wait for after a crash.
        """
        undecided = [
            delivery_state.delivery
            for index, delivery_state in enumerate(self.delivery_states)
            if index not in self.given_back
        ]
        seconds = -(-(MAX_HOLD + self.lease + LEASE_RETURN_MARGIN) // SECOND)
        self.change(undecided, [seconds] * len(undecided))

    def give_back(self) -> None:
        """Set when those messages come back whose disposition is to come back."""
        now = self.runtime.now()
        dispositions = {
            index: delivery_state.disposition
            for index, delivery_state in enumerate(self.delivery_states)
            if index not in self.given_back
        }
        back = {
            index: disposition
            for index, disposition in dispositions.items()
            if isinstance(disposition, RedeliverMessage)
        }
        seconds = [max(0, min(-(-(disposition.at - now) // SECOND), _MAX_VISIBILITY)) for disposition in back.values()]
        self.change([self.delivery_states[index].delivery for index in back], seconds)
        self.given_back |= back.keys()

    def change(self, deliveries: Sequence[Delivery], seconds: Sequence[int]) -> None:
        """Set when messages come back, each in so many seconds."""
        if not deliveries:
            return
        try:
            self.queues.come_back(deliveries, seconds)
        except Unavailable as error:
            # They come back at the visibility they have: later than wished, but not lost.
            self.runtime.telemetry.note("visibility was not changed", error=str(error))
