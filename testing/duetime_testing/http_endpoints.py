"""Simulates the HTTP endpoints that a test provides."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.adapters.targets.http_messages import HttpResponse
from duetime.domain.times import to_datetime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from duetime.adapters.targets.http_messages import Call
    from duetime.domain.times import Millis

_NOT_FOUND = 404


@dataclass(frozen=True)
class HttpRequest:
    """A request from a task or a callback.

    Attributes:
        json: the decoded body; `None` if the request has no body or the body is not JSON.
        body: the body as it was sent.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    json: Any
    at: datetime
    body: bytes = b""


@dataclass(frozen=True)
class HttpReply:
    """An endpoint's response; `json` is the body as a JSON value."""

    status: int = 200
    json: Any = None


@dataclass
class HttpEndpoints:
    """The external endpoints, by URL prefix.

    Attributes:
        requests: all received requests, in order.
    """

    requests: list[HttpRequest] = field(default_factory=list)
    _answers: dict[str, Callable[[HttpRequest], HttpReply]] = field(default_factory=dict)

    def respond(self, url: str, *, status: int = 200, json: Any = None) -> None:  # noqa: ANN401 - any JSON
        """Give the same response to all requests whose URL has this prefix."""
        self.respond_with(url, lambda _request: HttpReply(status, json))

    def respond_with(self, url: str, answer: Callable[[HttpRequest], HttpReply]) -> None:
        """Let a function respond to requests whose URL has this prefix; the longest matching prefix wins."""
        self._answers[url] = answer

    def receive(self, call: Call, now: Millis) -> HttpResponse:
        """Record a request and return the test's response; 404 if no URL prefix matches."""
        request = HttpRequest(
            call.method, call.url, dict(call.headers), _json_of(call.body), to_datetime(now), bytes(call.body)
        )
        self.requests.append(request)
        found = max((each for each in self._answers if call.url.startswith(each)), key=len, default=None)
        if found is None:
            said = f"no endpoint for {call.url}: add one to the test with duetime.http.respond(...)"
            return HttpResponse(_NOT_FOUND, body=said.encode())
        reply = self._answers[found](request)
        return HttpResponse(reply.status, body=b"" if reply.json is None else json.dumps(reply.json).encode())


def _json_of(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(body)
    except ValueError:
        return None
