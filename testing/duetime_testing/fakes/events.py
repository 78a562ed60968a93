"""A fake of EventBridge."""

from __future__ import annotations

from typing import Any

from duetime_testing.fakes.errors import Exceptions


class FakeEvents:
    """An EventBridge client with one event bus.

    Attributes:
        taken: the accepted entries, in order.
        requests: the entries of each request.
        refuses: number of entries that are rejected before entries are accepted.
        error: exception raised by the first request.
    """

    def __init__(self) -> None:
        self.exceptions = Exceptions()
        self.taken: list[dict[str, Any]] = []
        self.requests: list[list[dict[str, Any]]] = []
        self.refuses = 0
        self.error: Exception | None = None

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        """Put events (Source: EventBridge API Reference, PutEvents)."""
        assert 1 <= len(Entries) <= 10
        self.requests.append(Entries)
        if self.error is not None and len(self.requests) == 1:
            raise self.error
        answers: list[dict[str, str]] = []
        for entry in Entries:
            if self.refuses:
                self.refuses -= 1
                answers.append({"ErrorCode": "ThrottlingException", "ErrorMessage": "too many"})
                continue
            self.taken.append(entry)
            answers.append({"EventId": f"event-{len(self.taken)}"})
        failed = sum("ErrorCode" in answer for answer in answers)
        return {"FailedEntryCount": failed, "Entries": answers}
