"""The log lines of attempts on this machine: the reader of `duetime logs`, pointed at the embedded AWS."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from duetime_client.commands.logs import worker_logs
from duetime_client.logs import LogReader
from duetime_local.emulator import Emulator

if TYPE_CHECKING:
    from duetime_client.logs import LogFilter

STACK = "duetime-local"
MOST_EVENTS = 10_000
"""Most events in one response: the embedded AWS returns the oldest events of all tasks, without a token for the
rest."""


class PagedLogs:
    """The embedded CloudWatch Logs with page tokens, as in AWS.

    Args:
        logs: botocore's client of it.
        most: number of events in a full response, after which there may be more.
    """

    def __init__(self, logs: Any, most: int = MOST_EVENTS) -> None:  # noqa: ANN401 - botocore has no types
        self._logs = logs
        self._most = most
        self.exceptions = logs.exceptions

    def filter_log_events(self, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - as botocore's
        """Return a page of events, oldest first.

        Its token contains the start time of the next page, and the number of events already returned of that
        millisecond.
        """
        start, _, skipped = str(wanted.pop("nextToken", f"{wanted['startTime']}.0")).partition(".")
        page = self._logs.filter_log_events(**{**wanted, "startTime": int(start)})
        events = page["events"]
        if len(events) < self._most:
            return {"events": events[int(skipped) :]}
        last = events[-1]["timestamp"]
        of_the_last = sum(event["timestamp"] == last for event in events)
        # If one millisecond has more events than a response, the rest cannot be requested.
        token = f"{last}.{of_the_last}" if last > int(start) else f"{last + 1}.0"
        return {"events": events[int(skipped) :], "nextToken": token}


def reader_at(aws_endpoint_url: str, wanted: LogFilter) -> LogReader:
    """A log reader for the stack with this embedded AWS."""
    os.environ.update(Emulator(urlsplit(aws_endpoint_url).port or 0, Path()).environ)
    logs, group = worker_logs(STACK)
    return LogReader(PagedLogs(logs), group, wanted)
