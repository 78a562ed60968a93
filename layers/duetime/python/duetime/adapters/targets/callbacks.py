"""Callbacks: the outcome of a task as an event, posted to the URL that its creator named.

The event has the form that Standard Webhooks recommends: `type`, `timestamp`, `data`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.adapters.targets.http_messages import Call, NoResponse
from duetime.adapters.targets.http_target import OK, passes_with_time, trace_header
from duetime.domain.operating_parameters import CALLBACK_TIMEOUT
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.times import SECOND, to_iso

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.targets.http_messages import Caller
    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.task import Task

_HEADERS = {"Content-Type": "application/json", "User-Agent": "duetime"}


@dataclass(frozen=True, slots=True)
class HttpCallbacks:
    """Posts outcomes.

    Attributes:
        caller: makes the calls.
        entry: a task as the API's lists show it.
    """

    caller: Caller
    entry: Callable[[Task], Mapping[str, object]]

    def call_back(self, task: Task, url: str) -> Failed | None:
        """Post the outcome once; what went wrong, or nothing."""
        last = task.attempt_history[-1] if task.attempt_history else None
        at = last.started_at + last.took if last and last.started_at else task.next_at
        event = {"type": f"task.{task.state}", "timestamp": to_iso(at), "data": self.entry(task)}
        reply = self.caller.call(
            Call(
                # The fence of the attempt that brought the outcome: whoever follows it up again has a later one.
                id=f"{task.id}-{last.fence if last else 0}-{task.state}",
                method="POST",
                url=url,
                headers={**_HEADERS, **trace_header(task)},
                body=json.dumps(event, separators=(",", ":")).encode(),
                seconds=CALLBACK_TIMEOUT / SECOND,
                owner=task.owner,
            )
        )
        if isinstance(reply, NoResponse):
            return failure(reply.kind, reply.message, retriable=reply.retriable)
        if reply.status in OK:
            return None
        message = f"the callback was answered {reply.status}"
        return failure(f"Http{reply.status}", message, retriable=passes_with_time(reply.status))
