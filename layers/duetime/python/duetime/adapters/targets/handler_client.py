"""Sends the requests of `context.client` to the API without a gateway.

A request invokes the API function as the running task's owner, so the client needs no URL and no signature. Handler
packages with their own functions send requests through the attempts function.
This module is imported when a handler first uses its client, because the client and httpx take long to import.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import httpx

from duetime.adapters.targets.egress import EgressFailed, EgressUnavailable
from duetime.domain.times import SECOND
from duetime.handlers.payload_codec import present_codec
from duetime_client.attempt_client import AttemptClients, BlockingTransport, PhaseKeys
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import Work

_URL = "http://localhost"
"""A base URL whose host is never resolved, because requests are sent by invocations."""
_NOT_PASSED_ON = frozenset({"accept-encoding", "connection", "host"})
"""Headers about connections, which do not apply to these requests."""


@frozen
class HandlerClients:
    """Creates the clients for attempts.

    Attributes:
        invoke: sends an event to the API function, and returns its response.
        in_thread: calls a function without blocking the event loop; `None` to use a thread.
    """

    invoke: Callable[[bytes], bytes]
    runtime: Runtime
    in_thread: Callable[[Callable[[], httpx.Response]], Awaitable[httpx.Response]] | None = None

    def of(self, work: Work) -> AttemptClients:
        """The clients for one phase of an attempt."""
        clock, random_source = self.runtime.clock, self.runtime.random_source
        return AttemptClients(
            _URL,
            BlockingTransport(ApiFunction(self.invoke, self.runtime, work).send, self.in_thread),
            PhaseKeys(work.phase.value),
            sleep=lambda seconds: clock.sleep_until(clock.now() + round(seconds * SECOND)),
            options={"random_source": random_source.fraction, "codec": present_codec()},
        )


@frozen
class ApiFunction:
    """Sends an attempt's requests to the API function."""

    invoke: Callable[[bytes], bytes]
    runtime: Runtime
    work: Work

    def send(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            httpx.ConnectError: the function was not invoked.
            httpx.ReadError: the function did not respond, or failed.
        """
        try:
            answer: dict[str, Any] = json.loads(self.invoke(json.dumps(self._event(request)).encode()))
        except EgressUnavailable as error:
            raise httpx.ConnectError(f"the API function was not invoked: {error}", request=request) from error
        except EgressFailed as error:
            raise httpx.ReadError(f"the API function did not answer: {error}", request=request) from error
        content = (answer.get("body") or "").encode()
        if answer.get("isBase64Encoded"):
            content = base64.b64decode(content)
        return httpx.Response(answer["statusCode"], headers=answer["headers"], content=content, request=request)

    def _event(self, request: httpx.Request) -> dict[str, Any]:
        """An event in payload format 2.0 (Source: API Gateway Developer Guide, "Lambda proxy integrations")."""
        task, path = self.work.task, request.url.raw_path.partition(b"?")[0].decode()
        event = {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": request.url.query.decode(),
            "headers": {name: value for name, value in request.headers.items() if name not in _NOT_PASSED_ON},
            "requestContext": {
                "http": {"method": request.method, "path": path},
                "requestId": f"{task.id}.{task.fence}.{self.runtime.random_source.nonce()}",
                "authorizer": {"duetime": {"owner": task.owner, "task_id": task.id.text}},
            },
            "isBase64Encoded": True,
        }
        if not request.content:
            return event
        return {**event, "body": base64.b64encode(request.content).decode()}
