"""Makes signed HTTP calls to checked addresses, with limits for time and size, and without redirects or proxies.

A target may use only public addresses, unless the settings allow its host. A name is resolved once, each of its
addresses is checked, and the connection uses the checked address, so that a second resolution with another result has
no effect. Only the parts of a response that the target selects are kept.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from codecs import lookup
from datetime import UTC
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, parse_headers
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection

from duetime.adapters.targets.http_messages import SIGNING_KEY_MISSING, TIMEOUT, HttpResponse, NoResponse, Reply
from duetime.adapters.targets.signing import SigningKeyMissing
from duetime.domain.tasks.allowed_targets import is_public, port_of, refusal
from duetime.domain.times import DAY, SECOND, to_datetime
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime
    from urllib.parse import SplitResult

    from duetime.adapters.targets.credentials import Credential, Credentials
    from duetime.adapters.targets.http_messages import Call
    from duetime.adapters.targets.signing import Signer
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock

_MOST_INTERIM_RESPONSES = 20
"""Maximum number of interim responses per call. Proxies and frameworks send one or two interim responses."""
_CONNECT_SECONDS = 5.0
_GRACE_SECONDS = 1.0
_CHUNK = 16_384
_MOST_HEADER_BYTES = 8_192
_REDACTED = "[secret]"
_DAY_SECONDS = DAY // SECOND
_NO_CHARSETS = frozenset({"utf-8", "idna", "punycode", "unicode-escape", "raw-unicode-escape"})
"""Codecs for which a body is returned unchanged: UTF-8, and codecs that are not charsets for media types."""
_NOT_KEPT = frozenset({"set-cookie", "authorization", "proxy-authorization"})


class AddressForbidden(ValueError):
    """A URL's host has an address that a target must not call."""


@frozen
class Destination:
    """The address to connect to, and the names to send in the request.

    Attributes:
        address: the checked IP address.
        host: the host name in the URL, for TLS.
        path: the path and the query.
        authority: the host name and the port as in the URL, for the header `Host`.
    """

    scheme: str
    address: str
    host: str
    port: int
    path: str
    authority: str


def find(url: str, allowed: frozenset[str]) -> Destination:
    """Resolve a URL and check its addresses.

    Args:
        url: an http or https URL.
        allowed: non-public hosts that may be called.

    Raises:
        AddressForbidden: an address must not be called.
        OSError: the name cannot be resolved.
    """
    if why := refusal(url, allowed):
        raise AddressForbidden(f"{url!r} {why}")
    parts = urlsplit(url)
    host, port = parts.hostname or "", port_of(parts) or 0
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if host not in allowed:
        for address in addresses:
            if not is_public(address):
                raise AddressForbidden(f"{host} leads to {address}, which is not a public address")
    authority = parts.netloc.rpartition("@")[2]
    return Destination(parts.scheme, addresses[0], host, port, _target(parts), authority)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class TooManyInterimResponses(HTTPException):
    """An endpoint sends too many interim responses."""


class FinalResponse(HTTPResponse):
    """A final response.

    This class skips all interim responses, because `http.client` itself skips only responses with status 100.

    Source: RFC 9110, 15.2. After an unrequested 101, no other response follows.
    """

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_MOST_INTERIM_RESPONSES + 1):
            version, status, reason = super()._read_status()  # type: ignore[misc]  # typeshed does not define it
            if not HTTPStatus.CONTINUE <= status < HTTPStatus.OK or status == HTTPStatus.SWITCHING_PROTOCOLS:
                return version, status, reason
            parse_headers(self.fp)
        raise TooManyInterimResponses(f"more than {_MOST_INTERIM_RESPONSES} interim responses")


class _FinalConnection(HTTPConnection):
    """A connection that skips interim responses."""

    response_class = FinalResponse


class HostUnknown(Exception):
    """A host name cannot be resolved."""


class Connection:
    """A connection that another thread can cut at any time, even while this connection waits.

    This class keeps a second descriptor of the socket, because TLS takes over the first descriptor before its
    handshake. Shutting down either descriptor ends the connection.
    """

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    def open(self, destination: Destination) -> socket.socket:
        """Connect to the checked address only.

        Raises:
            OSError: the address does not respond, or the connection was cut.
        """
        opened = socket.create_connection(
            (destination.address, destination.port), min(_CONNECT_SECONDS, self.socket_seconds)
        )
        opened.settimeout(self.socket_seconds)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            if self._is_cut:
                opened.close()
                raise TimeoutError("cut off")
            earlier, self._socket = self._socket, opened.dup()
        if earlier is not None:
            earlier.close()
        return opened

    def cut(self) -> None:
        """End the connection, and prevent this object from opening another connection."""
        with self._lock:
            self._is_cut = True
            held, self._socket = self._socket, None
        if held is not None:
            with held:
                _shut_down(held)

    @property
    def socket_seconds(self) -> float:
        """The socket's timeout, which is longer than the call's timeout, so that the socket does not end the call."""
        return max(0.0, self._until - time.monotonic()) + _GRACE_SECONDS


def _shut_down(held: socket.socket) -> None:
    try:
        held.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the peer closed the connection first


class DirectCaller:
    """Makes HTTP calls in this process.

    Args:
        allowed: non-public hosts that may be called.
        signer: signs calls, except custom requests; `None` to send all calls without signatures.
        credentials: creates the headers for calls that name a secret; `None` rejects such calls.
        clock: the clock for evaluating dates in responses.
    """

    def __init__(
        self,
        allowed: frozenset[str],
        signer: Signer | None,
        clock: Clock,
        credentials: Callable[[], Credentials] | None = None,
    ) -> None:
        self._allowed = allowed
        self._clock = clock
        self._signer = signer
        self._credentials = credentials
        self._tls: ssl.SSLContext | None = None

    def call(self, call: Call) -> Reply:
        """Make a call within its time limit, regardless of how the endpoint or a name server behaves.

        A socket's own timeout starts again with every byte, and a name lookup has no timeout. Therefore, another thread
        makes the call, and the calling thread enforces the limit.
        """
        connection, done = Connection(call.seconds), Event()
        replies: list[Reply] = []

        def work() -> None:
            try:
                replies.append(self._reply(call, connection))
            except Exception as error:  # noqa: BLE001 - a defect in one call must not affect the others
                replies.append(NoResponse("CallDefect", type(error).__name__))
            done.set()

        Thread(target=work, name="call", daemon=True).start()
        in_time = done.wait(call.seconds)
        connection.cut()
        if in_time:
            return replies[0]
        return NoResponse(TIMEOUT, f"the endpoint did not answer within {call.seconds:g} s")

    def _reply(self, call: Call, connection: Connection) -> Reply:
        try:
            if call.auth is None:
                return self._response(call, connection=connection)
            # The module is imported here, because most calls send no secret.
            from duetime.adapters.targets.credentials import authenticated_reply  # noqa: PLC0415 - see above

            return authenticated_reply(
                self._credentials, call, call.auth, partial(self._response, connection=connection)
            )
        except AddressForbidden as error:
            return NoResponse("DestinationRefused", str(error), retriable=False)
        except HostUnknown as error:
            return NoResponse("HostUnknown", str(error))
        except ResponseTooLarge as error:
            return NoResponse("AnswerTooLarge", str(error), retriable=False)
        except SigningKeyMissing as error:
            return NoResponse(SIGNING_KEY_MISSING, str(error))
        except (urllib3.exceptions.HTTPError, HTTPException, OSError) as error:
            return NoResponse(type(error).__name__, f"{urlsplit(call.url).hostname}: {error}")

    def _destination(self, url: str) -> Destination:
        try:
            return find(url, self._allowed)
        except AddressForbidden:
            raise
        except (OSError, ValueError) as error:  # IDNA rejects a name with UnicodeError, which is a ValueError
            raise HostUnknown(f"{url}: {error}") from error

    def _response(self, call: Call, *, connection: Connection, credential: Credential | None = None) -> HttpResponse:
        destination = self._destination(call.url)
        signature = self._signer.headers(call.owner, call.id, call.body) if self._signer and call.signed else {}
        proof, secrets = (credential.headers, credential.secrets) if credential else ({}, ())
        opened = connection.open(destination)
        try:
            if destination.scheme == "https":
                opened = self._context().wrap_socket(opened, server_hostname=destination.host)
            http = _FinalConnection(destination.address, destination.port, timeout=connection.socket_seconds)
            http.sock = opened
            http.request(
                call.method,
                destination.path,
                body=call.body or None,
                headers={"Host": destination.authority, **call.headers, **proof, **signature},
                preload_content=False,
            )
            return kept_response(http.getresponse(), call, secrets, self._clock.now())
        finally:
            opened.close()

    def _context(self) -> ssl.SSLContext:
        """The TLS context, which checks certificates for the host name against this machine's trusted authorities."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class ResponseTooLarge(ValueError):
    """The endpoint's response is larger than its limit."""


def kept_response(response: urllib3.HTTPResponse, call: Call, secrets: Collection[str], now: Millis) -> HttpResponse:
    """The requested parts of a response, with text in UTF-8 and without secrets that the endpoint may echo.

    Args:
        response: the endpoint's response.
        call: the call that was made.
        secrets: the secrets in the call, which must not be kept.
        now: the current time.

    Raises:
        ResponseTooLarge: the response exceeds its limit.
    """
    longest = max((len(secret) for secret in secrets), default=0)
    body = _read(response, call, longest) if call.most else b""
    is_cut = len(body) > call.most + longest
    body = in_utf_8(body, response.headers.get("Content-Type", ""))
    for form in _forms(secrets):
        body = body.replace(form.encode(), _REDACTED.encode())
    if is_cut:
        # The truncated body may end with the beginning of a secret, which is removed.
        body = body[: max(0, len(body) - longest)]
    headers = _headers(response.headers, secrets) if call.wants_headers else {}
    return HttpResponse(response.status, retry_after_of(response.headers, now), body[: call.most], headers)


def retry_after_of(headers: Mapping[str, str], now: Millis) -> str:
    """The seconds in `Retry-After`, at most a day; empty if the header is neither a number nor a date.

    A date is compared with the response's own date, or with this clock if the response has no date (Source: RFC 9110,
    10.2.3 and 6.6.1).
    """
    asked = headers.get("Retry-After", "").strip()
    if asked.isascii() and asked.isdigit():
        # The header may contain any number of digits, but `int` limits the number of digits.
        digits = asked.lstrip("0") or "0"
        return digits if len(digits) <= len(str(_DAY_SECONDS)) else str(_DAY_SECONDS)
    at = _instant(asked)
    if at is None:
        return ""
    answered_at = _instant(headers.get("Date", "")) or to_datetime(now)
    return str(min(_DAY_SECONDS, max(0, round((at - answered_at).total_seconds()))))


def in_utf_8(body: bytes, content_type: str) -> bytes:
    """Convert a body to UTF-8 if its media type declares another known charset; otherwise, return the body unchanged.

    JSON with valid UTF-8 is unchanged regardless of the charset in its media type (Source: RFC 8259, 8.1 and 11).
    """
    message = Message()
    message["Content-Type"] = content_type
    charset = message.get_content_charset("utf-8")
    if message.get_content_subtype().endswith("json") and _is_utf_8(body):
        return body
    try:
        if lookup(charset).name in _NO_CHARSETS:
            return body
        return body.decode(charset, "replace").encode("utf-8", "replace")
    except (LookupError, ValueError):
        return body


def _is_utf_8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _instant(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    # A date in the zone "-0000" has no `tzinfo`; HTTP dates are in UTC.
    return at.replace(tzinfo=at.tzinfo or UTC)


def _read(response: urllib3.HTTPResponse, call: Call, longest: int) -> bytes:
    """The decompressed body, up to the limit plus the length of a secret that may be at its end."""
    data = bytearray()
    for chunk in response.stream(_CHUNK):
        data += chunk
        if len(data) > call.most and not call.truncates:
            raise ResponseTooLarge(f"the response has more than {call.most} bytes")
        if len(data) > call.most + longest:
            break
    return bytes(data)


def _headers(headers: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """The headers by lower-case name, up to the size limit and without cookies and credentials."""
    found: dict[str, str] = {}
    size = 0
    for name in headers:
        text = headers[name]
        size += len(name) + len(text)
        if name.lower() in _NOT_KEPT or size > _MOST_HEADER_BYTES:
            continue
        for form in _forms(secrets):
            text = text.replace(form, _REDACTED)
        found[name.lower()] = text
    return found


def _forms(secrets: Collection[str]) -> list[str]:
    """Each secret in plain text and in JSON, the longest first, because a secret may be part of another secret."""
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1]) if form}
    return sorted(forms, key=len, reverse=True)
