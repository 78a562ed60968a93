"""Makes HTTP calls through the egress function; calls that begin at the same time share an invocation.

An invocation returns when its last call has ended, so only calls for the same owner and with the same time limit share
an invocation. A call never waits for another owner's endpoint, or longer than its own limit. If spans are exported,
each call has a span within its attempt's span, regardless of which function makes the call.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, EndpointConnectionError

from duetime.adapters.aws_clients import is_refused_invocation
from duetime.adapters.targets.http_messages import (
    EGRESS_FAILED,
    EGRESS_UNAVAILABLE,
    TIMEOUT,
    NoResponse,
    Reply,
    calls_in,
    packed_call,
    packed_calls,
    packed_replies,
    replies_in,
)
from duetime.domain.ids import TRACEPARENT, read_traceparent
from duetime.ports.runtime import Span, SpanKind
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mypy_boto3_lambda import LambdaClient

    from duetime.adapters.targets.http_messages import Call, Caller
    from duetime.ports.runtime import Executor, Tracer

WINDOW = 0.005
"""Seconds that the first call of a group waits for other calls."""
MOST_CALLS = 10
"""Maximum number of calls in one invocation. By default, a worker has at most this many tasks at once."""
MOST_BYTES = 5_500_000
"""Maximum size of one invocation's event in bytes; Lambda's limit is 6 MB (Source: AWS Lambda quotas)."""
_MARGIN = 0.5
_MARGIN_SHARE = 0.1
_FIRST_ERROR = 400


class EgressFailed(Exception):
    """An invoked function returned no response, but may have done its work."""


class EgressUnavailable(Exception):
    """The function was not invoked, so it has done nothing."""


@frozen
class LambdaInvocation:
    """Invokes the egress function, or another function of duetime, and waits for its response.

    Attributes:
        client: a client without retries, whose timeout is longer than a call.
        executed: receives the version that ran, as `name:version`, regardless of the outcome; `None` if not needed.
    """

    client: LambdaClient
    function: str
    executed: Callable[[str], None] | None = None

    def __call__(self, payload: bytes) -> bytes:
        """Invoke the function with an event, and return its response.

        Raises:
            EgressUnavailable: the function was not invoked.
            EgressFailed: the function did not return a response.
        """
        try:
            answer = self.client.invoke(FunctionName=self.function, Payload=payload)
            data = answer["Payload"].read()
        except ClientError as error:
            failed = EgressUnavailable if is_refused_invocation(error) else EgressFailed
            raise failed(str(error.response.get("Error", {}).get("Code", "unknown"))) from error
        except (EndpointConnectionError, ConnectTimeoutError) as error:
            raise EgressUnavailable(type(error).__name__) from error
        except BotoCoreError as error:
            raise EgressFailed(type(error).__name__) from error
        if self.executed is not None:
            name, _, _ = self.function.partition(":")
            self.executed(f"{name}:{answer.get('ExecutedVersion', '')}")
        if "FunctionError" in answer:
            raise EgressFailed(f"the function ended with an error ({answer['FunctionError']})")
        return data


@dataclass(slots=True)
class _Waiting:
    """A call that waits for its reply."""

    packed: bytes
    done: Event = field(default_factory=Event)
    reply: Reply | None = None


@dataclass(slots=True)
class _Group:
    """Calls that will share an invocation."""

    waiting: list[_Waiting] = field(default_factory=list)
    full: Event = field(default_factory=Event)

    def has_room_for(self, packed: bytes) -> bool:
        size = sum(len(one.packed) + 1 for one in self.waiting) + len(packed)
        return len(self.waiting) < MOST_CALLS and size <= MOST_BYTES


class EgressCaller:
    """Makes calls through the egress function for several threads. A group's first call sends the group.

    Args:
        invoke: invokes the function.
        window: seconds that the first call of a group waits for other calls.
    """

    def __init__(self, invoke: Callable[[bytes], bytes], window: float = WINDOW) -> None:
        self._invoke = invoke
        self._window = window
        self._lock = Lock()
        self._open: dict[tuple[str, float], _Group] = {}

    def call(self, call: Call) -> Reply:
        """Make a call. If the function's response is lost, the call fails at its time limit."""
        until = time.monotonic() + call.seconds
        # The endpoint has slightly less time than the caller, because otherwise a last-moment response would be too
        # late.
        seconds = call.seconds - min(_MARGIN, call.seconds * _MARGIN_SHARE)
        waiting = _Waiting(packed_call(call, seconds))
        key = (call.owner, call.seconds)
        group, is_first = self._join(key, waiting)
        if is_first:
            group.full.wait(self._window)
            self._close(key, group)
            # A separate thread sends the group, because this thread must not wait longer than the call may take.
            Thread(target=self._send, args=(group,), name="egress", daemon=True).start()
        if not waiting.done.wait(max(0.0, until - time.monotonic())) or waiting.reply is None:
            return NoResponse(TIMEOUT, f"the endpoint did not answer within {call.seconds:g} s")
        return waiting.reply

    def _join(self, key: tuple[str, float], waiting: _Waiting) -> tuple[_Group, bool]:
        """Join the current group for the call, and return the group and whether the call is the group's first."""
        with self._lock:
            group = self._open.get(key)
            if group is None or not group.has_room_for(waiting.packed):
                if group is not None:
                    group.full.set()
                group = self._open[key] = _Group()
            group.waiting.append(waiting)
            if len(group.waiting) == MOST_CALLS:
                group.full.set()
            return group, len(group.waiting) == 1

    def _close(self, key: tuple[str, float], group: _Group) -> None:
        """Close the group to more calls."""
        with self._lock:
            if self._open.get(key) is group:
                del self._open[key]

    def _send(self, group: _Group) -> None:
        replies: list[Reply]
        try:
            data = self._invoke(packed_calls([one.packed for one in group.waiting]))
            replies = replies_in(data, len(group.waiting))
        except EgressUnavailable as error:
            replies = [NoResponse(EGRESS_UNAVAILABLE, f"the call was not handed on: {error}")] * len(group.waiting)
        except Exception as error:  # noqa: BLE001 - any error must reach each call
            replies = [NoResponse(EGRESS_FAILED, f"the call could not be handed on: {error}")] * len(group.waiting)
        for waiting, reply in zip(group.waiting, replies, strict=True):
            waiting.reply = reply
            waiting.done.set()


@frozen
class Egress:
    """Makes an invocation's calls in parallel, in the egress function."""

    caller: Caller
    executor: Executor

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Make the calls in an event, and return a reply for each call."""
        return packed_replies(self.executor.map(self.caller.call, calls_in(event)))


@frozen
class TracedCaller:
    """Makes each call within a span. The span contains the host but not the URL, because a URL may contain secrets."""

    caller: Caller
    tracer: Tracer

    def call(self, call: Call) -> Reply:
        """Make a call, and wait for its end. This method never raises."""
        host = urlsplit(call.url)
        attributes = {"http.request.method": call.method, "server.address": host.hostname or ""}
        link = read_traceparent(call.headers.get(TRACEPARENT))
        span = Span(call.method, SpanKind.CLIENT, attributes, [link], parent=read_traceparent(call.parent))
        with self.tracer.span(span) as opened:
            reply = self.caller.call(call)
            if isinstance(reply, NoResponse):
                opened.end_with({}, reply.kind)
            else:
                error = str(reply.status) if reply.status >= _FIRST_ERROR else ""
                opened.end_with({"http.response.status_code": reply.status}, error)
        return reply


@frozen
class SpanPassingCaller:
    """Forwards calls to another function together with their parent span."""

    caller: Caller
    tracer: Tracer

    def call(self, call: Call) -> Reply:
        """Forward a call, and wait for its end. This method never raises."""
        return self.caller.call(replace(call, parent=self.tracer.current() or ""))
