"""Puts events on an EventBridge event bus."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from duetime.domain.tasks.targets import EVENT_SOURCE
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_events import EventBridgeClient

    from duetime.domain.change_events import Event
    from duetime.ports.runtime import Executor, Telemetry

MOST_ENTRIES, MOST_BYTES = 10, 256_000
"""Maximum number of entries and bytes in one request. EventBridge allows ten entries with less than 1 MB, including the
names and 14 bytes for the time (Source: EventBridge API Reference, PutEvents).
"""
_TIME_BYTES = 14
_TRIES = 4

Entry = dict[str, Any]


class EventBridgeBus:
    """The `duetime.ports.change_consumers.EventBus` for EventBridge.

    Args:
        client: the EventBridge client.
        bus: the bus's name or ARN.
        executor: makes requests in parallel.
        telemetry: logs rejected events.
    """

    def __init__(self, client: EventBridgeClient, bus: str, executor: Executor, telemetry: Telemetry) -> None:
        self._client = client
        self._bus = bus
        self._executor = executor
        self._telemetry = telemetry

    def publish(self, events: Sequence[Event]) -> int:
        """Put events on the bus, and return the number of events that were rejected even after a few tries."""
        return sum(self._executor.map(self._put, chunks([self._entry(event) for event in events])))

    def _put(self, entries: list[Entry]) -> int:
        """Send one request, and return the number of rejected entries. An error does not affect other requests."""
        codes: list[str] = []
        for _ in range(_TRIES):
            try:
                answer = self._client.put_events(Entries=entries)  # type: ignore[arg-type]  # plain dictionaries
            except (ClientError, BotoCoreError) as error:
                codes = [repr(error)]
                break
            told = list(zip(entries, answer["Entries"], strict=True))
            entries = [entry for entry, result in told if "EventId" not in result]
            if not entries:
                return 0
            codes = sorted({result.get("ErrorCode", "unknown") for _, result in told if "EventId" not in result})
        self._telemetry.note("the event bus did not accept events", number=len(entries), reasons=codes)
        return len(entries)

    def _entry(self, event: Event) -> Entry:
        return {
            "EventBusName": self._bus,
            "Source": EVENT_SOURCE,
            "DetailType": event.kind.value,
            "Time": event.at / SECOND,
            "Detail": json.dumps(event.detail, ensure_ascii=False, separators=(",", ":")),
        }


def chunks(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Split entries into requests with at most the maximum number and size."""
    chunk: list[Entry] = []
    size = 0
    for entry in entries:
        more = _size(entry)
        if chunk and (len(chunk) == MOST_ENTRIES or size + more > MOST_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(entry)
        size += more
    if chunk:
        yield chunk


def _size(entry: Entry) -> int:
    texts = (entry["Source"], entry["DetailType"], entry["Detail"])
    return _TIME_BYTES + sum(len(text.encode()) for text in texts)
