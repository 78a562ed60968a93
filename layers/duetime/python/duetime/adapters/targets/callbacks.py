"""Encodes callback and notice events about tasks, and sends notices.

An event has the form that Standard Webhooks recommends, with `type`, `timestamp` and `data`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.targets.envelope import audience_of
from duetime.adapters.targets.http_messages import Call, NoResponse
from duetime.adapters.targets.http_target import OK, passes_with_time, trace_header
from duetime.domain.operating_parameters import NOTICE_TIMEOUT
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.tasks.notices import is_notice_arn
from duetime.domain.times import SECOND, to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.targets.aws_target import AwsRunner
    from duetime.adapters.targets.http_messages import Caller
    from duetime.domain.tasks.attempt_results import Failed
    from duetime.domain.tasks.notices import ConsolePages, Notice
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

_HEADERS = {"Content-Type": "application/json", "User-Agent": "duetime"}


@frozen
class EventEncoding:
    """Encodes events about tasks.

    Attributes:
        entry: encodes a task like an entry in the API's lists.
        pages: creates links from events to the console.
    """

    entry: Callable[[Task], Mapping[str, object]]
    pages: ConsolePages

    def of_outcome(self, task: Task) -> bytes:
        """Encode a task's outcome as JSON text in UTF-8."""
        return self.event(f"task.{task.state}", task.outcome_at, task, audience_of(task.callback_url or ""))

    def event(self, kind: str, at: Millis, task: Task, audience: str, **more: str) -> bytes:
        """Encode an event about a task as JSON text in UTF-8."""
        event = {
            "type": kind,
            "timestamp": to_iso(at),
            "owner": task.owner,
            "audience": audience,
            **more,
            **self.pages.link(task),
            "data": self.entry(task),
        }
        return json.dumps(event, separators=(",", ":")).encode()


@frozen
class HttpCallbacks:
    """Encodes outcome events, and sends notices.

    Attributes:
        caller: makes the calls.
        encoding: encodes the events.
        aws: sends notices to AWS resources.
    """

    caller: Caller
    encoding: EventEncoding
    aws: Callable[[], AwsRunner]

    def notify(self, task: Task, address: str, notice: Notice) -> Failed | None:
        """Send a notice to an address, without retries, and return the error, if any."""
        body = self.encoding.event(notice.kind.value, notice.at, task, audience_of(address), id=notice.id)
        if is_notice_arn(address):
            return self.aws().notify(address, notice.kind.value, task, body, NOTICE_TIMEOUT / SECOND)
        return self._post(task, address, notice.id, body)

    def outcome_event(self, task: Task) -> bytes:
        """Encode a task's outcome as JSON text in UTF-8."""
        return self.encoding.of_outcome(task)

    def _post(self, task: Task, url: str, event_id: str, body: bytes) -> Failed | None:
        reply = self.caller.call(
            Call(
                id=event_id,
                method="POST",
                url=url,
                headers={**_HEADERS, **trace_header(task)},
                body=body,
                seconds=NOTICE_TIMEOUT / SECOND,
                owner=task.owner,
            )
        )
        if isinstance(reply, NoResponse):
            return failure(reply.kind, reply.message, retriable=reply.retriable)
        if reply.status in OK:
            return None
        message = f"the notice returned the status {reply.status}"
        return failure(f"Http{reply.status}", message, retriable=passes_with_time(reply.status))
