from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from duetime.adapters.event_bus import MOST_BYTES, MOST_ENTRIES, EventBridgeBus
from duetime.domain.change_events import Event, EventKind, ScheduleSkipped
from duetime_testing.fakes.events import FakeEvents
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import VirtualTime
from tests.clocks import NOW


def event(number: int, reason: str = "why") -> Event:
    """Return the numbered event."""
    detail = ScheduleSkipped(
        id=str(number),
        owner="ann",
        schedule="nightly",
        occurrence="",
        reason=reason,
        skipped_at="",
        runs_skipped=number,
    )
    return Event(EventKind.SCHEDULE_SKIPPED, NOW, detail)


def bus_of(client: Any, telemetry: FakeTelemetry | None = None) -> EventBridgeBus:  # noqa: ANN401 - any client
    """Return a bus with this client."""
    return EventBridgeBus(client, "events", VirtualTime(NOW), telemetry or FakeTelemetry())


def numbers(fake: FakeEvents) -> list[int]:
    """Return the numbers of the events that the bus has accepted."""
    return sorted(json.loads(entry["Detail"])["runs_skipped"] for entry in fake.taken)


def test_events_are_sent_in_requests_of_ten() -> None:
    """An event's detail type is its kind and its source is duetime, which keeps it from becoming a task."""
    fake = FakeEvents()
    assert bus_of(fake).publish([event(n) for n in range(23)]) == 0
    assert numbers(fake) == list(range(23))
    assert [len(request) for request in fake.requests] == [10, 10, 3]
    first = fake.taken[0]
    assert (first["EventBusName"], first["Source"], first["DetailType"]) == (
        "events",
        "duetime",
        "duetime.schedule.skipped.v1",
    )
    assert first["Time"] == NOW / 1000


def test_large_events_are_sent_in_separate_requests() -> None:
    """Each request stays within EventBridge's limit in bytes of UTF-8."""
    fake = FakeEvents()
    assert bus_of(fake).publish([event(n, "ü" * 30_000) for n in range(9)]) == 0
    assert numbers(fake) == list(range(9))
    sizes = [sum(len(entry["Detail"].encode()) for entry in request) for request in fake.requests]
    assert len(sizes) == 3
    assert max(sizes) <= MOST_BYTES


def test_only_events_rejected_by_the_bus_are_sent_again() -> None:
    """Only the events that the bus rejected are sent again, so no event is published twice."""
    fake = FakeEvents()
    fake.refuses = 12
    assert bus_of(fake).publish([event(n) for n in range(10)]) == 0
    assert numbers(fake) == list(range(10))


def test_an_event_that_is_always_rejected_is_logged() -> None:
    """An event that is rejected several times is abandoned and logged without its content."""
    fake, telemetry = FakeEvents(), FakeTelemetry()
    fake.refuses = 1_000
    assert bus_of(fake, telemetry).publish([event(n, "secret") for n in range(3)]) == 3
    ((text, facts),) = telemetry.notes
    assert (text, facts["number"]) == ("the event bus did not accept events", 3)
    assert "secret" not in repr(facts)


@pytest.mark.parametrize(
    "error", [ClientError({"Error": {"Code": "AccessDenied"}}, "PutEvents"), ConnectTimeoutError(endpoint_url="events")]
)
def test_requests_after_a_failed_request_are_still_sent(error: Exception) -> None:
    """If one request fails, the following requests are still sent."""
    fake = FakeEvents()
    fake.error = error
    assert bus_of(fake).publish([event(n) for n in range(25)]) == MOST_ENTRIES
    assert numbers(fake) == list(range(10, 25))
