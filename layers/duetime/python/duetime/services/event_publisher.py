"""Publishes task events to the event bus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.change_events import events_of

if TYPE_CHECKING:
    from duetime.domain.change_events import ChangeBatch
    from duetime.ports.change_consumers import EventBus
    from duetime.ports.runtime import Telemetry


class EventPublisher:
    """`duetime.ports.change_consumers.ChangeConsumer` that publishes events; events the bus rejects are lost."""

    name = "events"

    def __init__(self, bus: EventBus, telemetry: Telemetry) -> None:
        self._bus = bus
        self._telemetry = telemetry

    def consume(self, changes: ChangeBatch) -> None:
        """Publish the events of a batch."""
        events = events_of(changes)
        if not events:
            return
        lost = self._bus.publish(events)
        self._telemetry.count("events_published", len(events) - lost)
        self._telemetry.count("events_lost", lost)
