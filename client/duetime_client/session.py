"""Sends API requests as HTTP calls, with retries where they are safe."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, urlencode
from uuid import uuid4

from duetime_client.errors import ClientError, DecryptionFailed, HeaderInvalid, NotJson
from duetime_client.io_operations import HttpCall, Pause
from duetime_client.problems import error_of_response

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime

    import httpx

    from duetime_client.io_operations import Request, Steps
    from duetime_client.retries import Retries
    from duetime_common.payload_codecs import PayloadCodec

T = TypeVar("T")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Host names of this machine, which a proxy from the environment cannot reach."""
IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_KEY_SECONDS = "Idempotency-Key-Seconds"


class RandomKey(str):
    """An idempotency key that the caller did not choose."""

    __slots__ = ()


def key_or_random(idempotency_key: str | None) -> str:
    """The caller's idempotency key, or a random one."""
    return idempotency_key or RandomKey(uuid4())


class StepKeys(Protocol):
    """Idempotency keys that depend on the requests, so that a program sends the same keys when it is rerun."""

    def take(self, path: str, body: bytes) -> str:
        """A key for a request with this path and body."""
        ...

    def give_back(self, key: str) -> None:
        """Free the key of a failed request, so that the next request with the same path and body gets the same key."""
        ...


@dataclass(frozen=True, slots=True)
class PageRead:
    """A page of a list. A page may be empty and still have a next page.

    Attributes:
        entries: The number of entries on the page.
        examined: The number of records the API scanned for the page; the number of entries if the list does not report
            this number.
        examined_to: Due time of the last record scanned; `None` at the end of the list or if not reported.
        has_more: Whether there is a next page.
    """

    entries: int
    examined: int
    examined_to: datetime | None
    has_more: bool


@dataclass(frozen=True, slots=True)
class Session:
    """Sends requests to one API, and retries them.

    Attributes:
        url: The address of the API, as `checked` returns it.
        retries: How often a request is retried.
        random_source: Returns a number in [0, 1).
        now: Returns the current time.
        page_listeners: Called with each page of a list that is read.
        step_keys: The idempotency keys of requests whose caller chose no key; random by default.
        codec: Encrypts requests and decrypts responses; `None` for no encryption.
    """

    url: str
    retries: Retries
    random_source: Callable[[], float]
    now: Callable[[], datetime]
    page_listeners: list[Callable[[PageRead], object]] = field(default_factory=list)
    step_keys: StepKeys | None = None
    codec: PayloadCodec | None = None

    def send(self, request: Request[T]) -> Steps[T]:
        """Send a request, with retries.

        A request is retried if a retry is safe, as for a GET, a request with an idempotency key, or a `repeatable`
        request.

        Raises:
            ApiError: The API rejected the request, or all of its retries.
            Unreachable: The API did not respond.
            DecryptionFailed: The codec cannot decrypt the response.
            NotJson: A value cannot be sent as JSON.
        """
        headers = sendable(request.headers)
        content = request.body if isinstance(request.body, bytes) else None
        if request.body is not None and content is None:
            content = _json_of(request.body)
            headers["Content-Type"] = "application/json"
        if self.step_keys is not None and isinstance(headers.get(IDEMPOTENCY_KEY), RandomKey):
            headers[IDEMPOTENCY_KEY] = self.step_keys.take(request.path, content or b"")
        if self.codec is not None and content is not None and not isinstance(request.body, bytes):
            # The idempotency key is computed before the encryption, whose output differs each time.
            from duetime_client.encryption import encrypted_body  # noqa: PLC0415 - only clients with a codec need it

            content = _json_of(encrypted_body(self.codec, request.body))
        repeatable = request.repeatable or request.method == "GET" or IDEMPOTENCY_KEY in headers
        call = HttpCall(request.method, self._address(request.path, request.query), content, headers)
        try:
            response = yield from self.exchange(call, repeatable=repeatable)
        except ClientError:
            if self.step_keys is not None:
                self.step_keys.give_back(headers.get(IDEMPOTENCY_KEY, ""))
            raise
        if self.codec is not None:
            from duetime_client.encryption import decrypted_response  # noqa: PLC0415 - as above

            response = decrypted_response(self.readable, response)
        return request.decode(response)

    def exchange(
        self, call: HttpCall, *, repeatable: bool = True, accepted: Collection[int] = ()
    ) -> Steps[httpx.Response]:
        """Send one HTTP request, with retries.

        Args:
            call: The request.
            repeatable: Whether the request may be sent twice.
            accepted: Statuses other than 2xx that are not errors.

        Raises:
            ApiError: The API rejected the request, or all of its retries.
            Unreachable: The API did not respond.
        """
        for attempts in count(1):
            try:
                response: httpx.Response = yield call
                if response.is_success or response.status_code in accepted:
                    return response
                raise error_of_response(response)
            except ClientError as error:
                if not self.retries.allows(error, attempts, repeatable=repeatable):
                    raise
                seconds = self.retries.wait_seconds(error, attempts, self.random_source)
            yield Pause(seconds)
        raise AssertionError("the attempts end")

    def readable(self, document: Any) -> Any:  # noqa: ANN401 - any JSON
        """JSON that the API sent, decrypted if there is a codec.

        Raises:
            DecryptionFailed: The codec cannot decrypt the JSON.
        """
        if self.codec is None:
            return document
        from duetime_common.payload_codecs import decrypted_within  # noqa: PLC0415 - only clients with a codec need it

        try:
            return decrypted_within(self.codec, document)
        except Exception as error:  # a codec can raise any exception
            raise DecryptionFailed(error) from error

    def _address(self, path: str, query: Iterable[tuple[str, str]]) -> str:
        # The query is encoded strictly, because a SigV4 signature covers its exact spelling.
        encoded = urlencode([*query], quote_via=quote, safe="", errors="replace")
        return f"{self.url}{path}?{encoded}" if encoded else f"{self.url}{path}"


def sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, if they can be sent.

    Raises:
        HeaderInvalid: A header has characters that HTTP does not allow.
    """
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise HeaderInvalid(name)
    return dict(headers)


def _json_of(body: object) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        from duetime_client.json_faults import fault_of  # noqa: PLC0415 - imported for faults only

        raise NotJson(fault_of(body) or str(error)) from None


def guard(if_match: str | None) -> dict[str, str]:
    """The `If-Match` header for an ETag; empty without an ETag."""
    return {"If-Match": if_match} if if_match else {}


def segment(name: str) -> str:
    """Escape a name, which can have any characters, as one path segment."""
    return quote(name, safe="", errors="replace")
