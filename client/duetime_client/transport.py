"""The client's HTTP layer: one request with its retries."""

from __future__ import annotations

import json
import random
import time
from importlib.metadata import version
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import httpx

from duetime_client.errors import AddressInvalid, ClientError, HeaderInvalid, Unreachable
from duetime_client.problems import error_of_response
from duetime_client.retries import Retries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

IDEMPOTENCY_KEY = "Idempotency-Key"
# The API's gateway times out after 30 seconds, so waiting much longer is useless.
TIMEOUT = httpx.Timeout(35.0, connect=5.0)
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Transport:
    """Sends requests to one API, and retries them if that is safe."""

    def __init__(
        self,
        url: str,
        *,
        auth: httpx.Auth | None = None,
        headers: Mapping[str, str] | None = None,
        retries: Retries | None = None,
        sleep: Callable[[float], object] = time.sleep,
        random_source: Callable[[], float] = random.random,
        http_transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = checked(url)
        self._retries = retries or Retries()
        self._sleep = sleep
        self._chance = random_source
        self._http = httpx.Client(
            auth=auth,
            headers={"User-Agent": f"duetime-client/{version('duetime-client')}", **sendable(headers or {})},
            timeout=TIMEOUT,
            transport=http_transport,
            # A proxy named by the environment cannot reach this machine's own loopback.
            trust_env=httpx.URL(self.url).host not in LOOPBACK,
        )

    def close(self) -> None:
        """Close the open connections."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Iterable[tuple[str, str]] = (),
        body: object = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
    ) -> httpx.Response:
        """The API's response, which is always a 2xx.

        A request is retried if that is safe: a GET, one with a key, or one that is `repeatable`.
        A `body` is sent as JSON; bytes are sent unchanged, with the type of the headers.

        Raises:
            ApiError: The API rejected the request, or all of its retries.
            Unreachable: The API did not respond.
        """
        request_headers = sendable(headers or {})
        content = body if isinstance(body, bytes) else None
        if body is not None and content is None:
            content = json.dumps(body, allow_nan=False).encode()
            request_headers["Content-Type"] = "application/json"
        repeatable = repeatable or method == "GET" or IDEMPOTENCY_KEY in request_headers
        for attempts in count(1):
            request = self._http.build_request(
                method, self._address(path, query), content=content, headers=request_headers
            )
            try:
                return self._send(request)
            except ClientError as error:
                if not self._retries.allows(error, attempts, repeatable=repeatable):
                    raise
                self._sleep(self._retries.wait_seconds(error, attempts, self._chance))
        raise AssertionError  # pragma: no cover - count() never ends

    def _send(self, request: httpx.Request) -> httpx.Response:
        try:
            response = self._http.send(request)
        except httpx.RequestError as error:
            reason = str(error) or type(error).__name__
            raise Unreachable(self.url, reason, sent=not isinstance(error, NEVER_SENT)) from error
        if not response.is_success:
            raise error_of_response(response)
        return response

    def _address(self, path: str, query: Iterable[tuple[str, str]]) -> str:
        # Encoded strictly, because a SigV4 signature holds for this one spelling of the query.
        encoded = urlencode([*query], quote_via=quote, safe="", errors="replace")
        return f"{self.url}{path}?{encoded}" if encoded else f"{self.url}{path}"


def sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, if they can be sent.

    Raises:
        HeaderInvalid: One has characters that HTTP headers cannot have.
    """
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise HeaderInvalid(name)
    return dict(headers)


def checked(url: str) -> str:
    """The address without its trailing slash, if it is a valid http or https URL."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise AddressInvalid(url) from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.query or parsed.fragment:
        raise AddressInvalid(url)
    return url.rstrip("/")


def guard(if_match: str | None) -> dict[str, str]:
    """The header by which a request is refused unless its subject still has this ETag; none for any."""
    return {"If-Match": if_match} if if_match else {}
