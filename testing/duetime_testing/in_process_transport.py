"""HTTP transports that connect the client to a simulated account's API function and S3 without sockets."""

from __future__ import annotations

import base64
from email.utils import formatdate
from typing import TYPE_CHECKING

import httpx

from duetime.domain.times import SECOND
from duetime_testing.simulation.event_loop import without_event_loop
from duetime_testing.simulation.gateway import event_of
from duetime_testing.simulation.virtual_time import running_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from duetime_testing.account import VirtualAccount
    from duetime_testing.simulation.account import Invocation

LONGEST_ANSWER: Millis = 60_000
"""The longest time to wait for a response, in milliseconds, which is longer than API Gateway's timeout."""


class InProcessTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Invokes the API function with each request, and lets time pass until the function responds.

    The transport is used by the test and by handlers that call the API in virtual time.
    """

    def __init__(self, begin: Callable[[], VirtualAccount], after_change: Callable[[], None]) -> None:
        self._begin = begin
        self._after_change = after_change

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request from an `AsyncClient`; virtual time passes before this coroutine continues."""
        await request.aread()
        with without_event_loop():
            return self.handle_request(request)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request from a `Client`, and return the response."""
        body = base64.b64encode(request.read()).decode() or None
        query = request.url.query.decode()
        headers = dict(request.headers)
        event = event_of(request.method, request.url.path, body, headers, query, None, is_base64=True)
        account = self._begin()
        if running_time() is account.time:
            return _response(account, account.wait_for(account.invoke("api", event)), request)
        ends: list[Invocation] = []
        account.time.start_process(lambda: ends.append(account.wait_for(account.invoke("api", event))))
        account.time.run_while(lambda: not ends, account.time.now() + LONGEST_ANSWER)
        if not ends:
            raise httpx.ReadTimeout("no answer", request=request)
        if request.method != "GET":
            self._after_change()
        return _response(account, ends[0], request)


def _response(account: VirtualAccount, end: Invocation, request: httpx.Request) -> httpx.Response:
    if end.failed:
        raise httpx.RemoteProtocolError("the api function did not answer", request=request)
    content = (end.answer["body"] or "").encode()
    if end.answer.get("isBase64Encoded"):
        content = base64.b64decode(content)
    # API Gateway sets this header, too, and the client uses it to compute how long a lease lasts.
    headers = {"Date": formatdate(account.time.now() / SECOND, usegmt=True), **end.answer["headers"]}
    return httpx.Response(end.answer["statusCode"], headers=headers, content=content, request=request)


class SignedUrlTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests with presigned URLs to the fake S3 of a simulated account."""

    def __init__(self, begin: Callable[[], VirtualAccount]) -> None:
        self._begin = begin

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request from an `AsyncClient`."""
        await request.aread()
        return self.handle_request(request)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request from a `Client`."""
        sent = request.method, str(request.url), request.headers, request.read()
        status, content = self._begin().s3.send_signed(*sent)
        return httpx.Response(status, content=content, request=request)
