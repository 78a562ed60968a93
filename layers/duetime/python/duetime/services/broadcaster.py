"""Passes each batch of changes to every consumer, such as the event bus; one consumer's failure affects no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.change_events import events_of
from duetime.domain.tracebacks import places_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import ChangeBatch
    from duetime.ports.change_consumers import ChangeConsumer, EventBus
    from duetime.ports.runtime import Telemetry


class EventPublisher:
    """`duetime.ports.change_consumers.ChangeConsumer` that publishes events. Events that the bus rejects are lost."""

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


class BatchNotCounted(RuntimeError):
    """A consumer that must count every change failed to process a batch; the stream must deliver the batch again."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"the batch must be delivered again to: {', '.join(names)}")


class Broadcaster:
    """Passes every batch to every consumer.

    Args:
        exact: consumers that must count every change, so the batch is delivered again if one of them fails. These
            consumers recognize changes that they have already processed.
        best_effort: consumers that lose the changes they fail to process. A redelivered batch reaches these consumers
            again.
        telemetry: counts and logs the consumers' failures.
    """

    def __init__(
        self, exact: Sequence[ChangeConsumer], best_effort: Sequence[ChangeConsumer], telemetry: Telemetry
    ) -> None:
        self._exact = exact
        self._best_effort = best_effort
        self._telemetry = telemetry

    def broadcast(self, changes: ChangeBatch) -> None:
        """Pass a batch to all consumers.

        Raises:
            BatchNotCounted: the batch must be delivered again.
        """
        if not changes.tasks and not changes.schedules:
            return
        for consumer in self._best_effort:
            self._told(consumer, changes)
        if failed := [consumer.name for consumer in self._exact if not self._told(consumer, changes)]:
            raise BatchNotCounted(failed)

    def _told(self, consumer: ChangeConsumer, changes: ChangeBatch) -> bool:
        try:
            consumer.consume(changes)
        except Exception as error:  # noqa: BLE001 - a defect in one consumer must not keep the batch from the others
            self._telemetry.count("broadcast_failures")
            self._telemetry.note("changes could not be delivered", consumer=consumer.name, error=places_of(error))
            return False
        return True
