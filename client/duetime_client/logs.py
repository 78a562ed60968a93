"""Reads the log lines and output of attempts from CloudWatch Logs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

POLL_SECONDS = 2.0
"""Seconds between two readings while following logs."""
_LATEST_INGESTION_MS = 30_000
"""How long after a newer line an older line can still arrive; each reading looks back by this time."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Selects log lines by task, type or schedule; a line must match every given field.

    Without fields, the lines of all attempts match.
    """

    task_id: str = ""
    task_type: str = ""
    schedule: str = ""

    @property
    def wanted(self) -> dict[str, str]:
        """The required values by their keys in a line."""
        values = {"task_id": self.task_id, "type": self.task_type, "schedule": self.schedule}
        return {key: value for key, value in values.items() if value}

    @property
    def pattern(self) -> str:
        """The CloudWatch Logs filter pattern; it can also match other lines, because an asterisk is a wildcard."""
        if not self.wanted:
            return "{ $.task_id = * }"
        terms = [f"($.{key} = {json.dumps(value, ensure_ascii=False)})" for key, value in self.wanted.items()]
        return "{ " + " && ".join(terms) + " }"

    def matches(self, fields: Mapping[str, object]) -> bool:
        """Whether a line matches all fields."""
        return "task_id" in fields and all(fields.get(key) == value for key, value in self.wanted.items())


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that an attempt logged or printed.

    Attributes:
        at_ms: the time of the line, in milliseconds since the epoch.
        fields: the line's JSON.
    """

    at_ms: int
    fields: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The message, which can be any JSON value in a structured line."""
        message = self.fields.get("message", "")
        return message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)

    @property
    def traceback(self) -> str:
        """The traceback that a failed attempt or a logger added to the line, if any."""
        facts = self.fields.get("facts")
        found = facts.get("traceback") if isinstance(facts, dict) else None
        found = found or self.fields.get("exception")
        return found if isinstance(found, str) else ""


class LogReader:
    """Reads the lines of attempts from a log group.

    Args:
        logs: a botocore client for CloudWatch Logs.
        group: the log group of the worker function.
        wanted: the lines to read.
    """

    def __init__(self, logs: Any, group: str, wanted: LogFilter) -> None:  # noqa: ANN401 - botocore has no types
        self._logs = logs
        self._group = group
        self._wanted = wanted

    def read(self, since_ms: int) -> Iterator[LogLine]:
        """The lines since a given time, oldest first."""
        for _, line in self._events(since_ms):
            yield line

    def follow(self, since_ms: int, sleep: Callable[[float], object]) -> Iterator[LogLine]:
        """Yield each line since a given time once, and keep waiting for new lines."""
        seen: dict[str, int] = {}
        latest = since_ms
        while True:
            for id_, line in self._events(max(since_ms, latest - _LATEST_INGESTION_MS)):
                if id_ not in seen:
                    seen[id_] = line.at_ms
                    latest = max(latest, line.at_ms)
                    yield line
            seen = {id_: at_ms for id_, at_ms in seen.items() if at_ms >= latest - _LATEST_INGESTION_MS}
            sleep(POLL_SECONDS)

    def _events(self, since_ms: int) -> Iterator[tuple[str, LogLine]]:
        token: dict[str, str] = {}
        while True:
            try:
                page = self._logs.filter_log_events(
                    logGroupName=self._group, startTime=since_ms, filterPattern=self._wanted.pattern, **token
                )
            except self._logs.exceptions.ResourceNotFoundException:
                return  # nothing has been logged yet
            for event in page.get("events", []):
                fields = _object_in(event.get("message", ""))
                if fields is not None and self._wanted.matches(fields):
                    at_ms = int(event.get("timestamp", since_ms))
                    # The embedded AWS has no event ids, so identical lines of the same millisecond count as one.
                    id_ = event.get("eventId") or f"{at_ms} {event.get('logStreamName')} {event['message']}"
                    yield id_, LogLine(at_ms, fields)
            if "nextToken" not in page:
                return
            token = {"nextToken": page["nextToken"]}


def _object_in(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
