"""The event bus for other systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import Event


class EventBus(Protocol):
    """A bus that hands events to whoever has a rule for them."""

    def publish(self, events: Sequence[Event]) -> int:
        """Put events on the bus; what it does not take is tried again a few times.

        Returns:
            How many it did not take.
        """
        ...
