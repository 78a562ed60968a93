"""Reads the log lines of attempts from the embedded AWS, with the log reader of `duetime logs`."""

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
"""Maximum number of events in a response; the embedded AWS returns the oldest events and no token for the rest."""


class PagedLogs:
    """Adds page tokens, as in AWS, to the embedded CloudWatch Logs.

    Args:
        logs: botocore's client for CloudWatch Logs.
        most: number of events in a full response, after which there may be more events.
    """

    def __init__(self, logs: Any, most: int = MOST_EVENTS) -> None:  # noqa: ANN401 - botocore has no types
        self._logs = logs
        self._most = most
        self.exceptions = logs.exceptions

    def filter_log_events(self, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - as botocore's
        """Return a page of events, oldest first.

        The token for the next page contains the page's start time and the number of events at that millisecond that
        were already returned.
        """
        start, _, skipped = str(wanted.pop("nextToken", f"{wanted['startTime']}.0")).partition(".")
        page = self._logs.filter_log_events(**{**wanted, "startTime": int(start)})
        events = page["events"]
        if len(events) < self._most:
            return {"events": events[int(skipped) :]}
        last = events[-1]["timestamp"]
        of_the_last = sum(event["timestamp"] == last for event in events)
        # If more events have the same millisecond than fit into a response, the remaining ones cannot be requested.
        token = f"{last}.{of_the_last}" if last > int(start) else f"{last + 1}.0"
        return {"events": events[int(skipped) :], "nextToken": token}


def reader_at(aws_endpoint_url: str, wanted: LogFilter) -> LogReader:
    """Return a log reader for the stack in the embedded AWS at this endpoint."""
    os.environ.update(Emulator(urlsplit(aws_endpoint_url).port or 0, Path()).environ)
    logs, group = worker_logs(STACK)
    return LogReader(PagedLogs(logs), group, wanted)
