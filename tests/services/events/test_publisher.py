"""The event publisher puts events on the bus and counts them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.change_events import Change, ChangeBatch
from duetime.domain.tasks.states import State
from duetime.services.broadcaster import EventPublisher
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.domain.changes.test_events import RUNNING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import Event


@dataclass
class Bus:
    """An event bus that accepts all events but the first few."""

    refused: int = 0
    taken: list[Event] = field(default_factory=list)

    def publish(self, events: Sequence[Event]) -> int:
        """Accept all events but the first few, and return the number of refused events."""
        self.taken += events[self.refused :]
        return min(self.refused, len(events))


FAILED = ChangeBatch((Change("1", 0, RUNNING, replace(RUNNING, state=State.FAILED, version=3)),))


def test_an_event_that_the_bus_rejects_is_counted_as_lost() -> None:
    """If the bus permanently refuses one of a failed task's two events, the refused event is counted as lost."""
    bus, telemetry = Bus(refused=1), FakeTelemetry()
    EventPublisher(bus, telemetry).consume(FAILED)
    assert len(bus.taken) == 1
    assert telemetry.counts == {"events_published": 1, "events_lost": 1}


def test_a_batch_without_events_is_not_sent() -> None:
    """If no task in a batch has an event, the bus is not called."""
    bus, telemetry = Bus(), FakeTelemetry()
    EventPublisher(bus, telemetry).consume(ChangeBatch((Change("1", 0, RUNNING, replace(RUNNING, version=3)),)))
    assert bus.taken == []
    assert not +telemetry.counts
