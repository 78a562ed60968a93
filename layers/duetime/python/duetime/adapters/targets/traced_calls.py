"""HTTP calls as spans of their attempt, even if another function makes them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from duetime.adapters.targets.http_messages import NoResponse
from duetime.domain.ids import TRACEPARENT, read_traceparent
from duetime.ports.runtime import Span, SpanKind
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.adapters.targets.http_messages import Call, Caller, Reply
    from duetime.ports.runtime import Tracer

_FIRST_ERROR = 400


@frozen
class TracedCaller:
    """Makes calls, with a span each. The span has the host, not the URL, which may contain secrets."""

    caller: Caller
    tracer: Tracer

    def call(self, call: Call) -> Reply:
        """Make a call and wait for its end. Never raises."""
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
        """Forward a call and wait for its end. Never raises."""
        return self.caller.call(replace(call, parent=self.tracer.current() or ""))
