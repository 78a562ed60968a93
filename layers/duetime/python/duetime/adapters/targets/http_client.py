"""HTTP calls from this process: signed, to a checked address, limited in time and size, no redirects or proxies.

A target may use public addresses only. A name is resolved once, each of its addresses is checked, and the connection
uses the checked address, so that a second resolution with another result has no effect.
"""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, parse_headers
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection

from duetime.adapters.targets.http_messages import SIGNING_KEY_MISSING, TIMEOUT, NoResponse, Reply
from duetime.adapters.targets.response_capture import ResponseTooLarge, kept_response
from duetime.adapters.targets.signing import SigningKeyMissing
from duetime.domain.tasks.allowed_targets import is_public, port_of, refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from urllib.parse import SplitResult

    from duetime.adapters.targets.credentials import Credential, Credentials
    from duetime.adapters.targets.http_messages import Call, HttpResponse
    from duetime.adapters.targets.signing import Signer
    from duetime.ports.runtime import Clock


class AddressForbidden(ValueError):
    """A URL leads to an address that a target must not call."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The address to connect to, and the names to send.

    Attributes:
        address: the checked IP address.
        host: the name in the URL, for TLS.
        path: path and query.
        authority: name and port as in the URL, for `Host`.
    """

    scheme: str
    address: str
    host: str
    port: int
    path: str
    authority: str


def find(url: str, allowed: frozenset[str]) -> Destination:
    """Resolve a URL and check its address.

    Args:
        url: http or https.
        allowed: non-public hosts that may be called.

    Raises:
        AddressForbidden: its address must not be called.
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


_MOST_INTERIM_RESPONSES = 20
"""Maximum per call: proxies and frameworks send one or two."""
_CONNECT_SECONDS = 5.0
_GRACE_SECONDS = 1.0


class TooManyInterimResponses(HTTPException):
    """An endpoint sends too many interim responses."""


class FinalResponse(HTTPResponse):
    """A response without its interim ones, of which `http.client` skips only those with status 100.

    Source: RFC 9110, 15.2. After an unrequested 101, no other response follows.
    """

    def _read_status(self) -> tuple[str, int, str]:
        for _ in range(_MOST_INTERIM_RESPONSES + 1):
            version, status, reason = super()._read_status()  # type: ignore[misc]  # typeshed does not know it
            if not HTTPStatus.CONTINUE <= status < HTTPStatus.OK or status == HTTPStatus.SWITCHING_PROTOCOLS:
                return version, status, reason
            parse_headers(self.fp)
        raise TooManyInterimResponses(f"more than {_MOST_INTERIM_RESPONSES} interim responses")


class _FinalConnection(HTTPConnection):
    """A connection that skips interim responses."""

    response_class = FinalResponse


class HostUnknown(Exception):
    """A name cannot be resolved."""


class Connection:
    """A connection that another thread can cut while it waits for anything.

    It has a second descriptor of the socket: TLS takes over the first one before its handshake, and shutting down one
    ends the connection for both.
    """

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._lock = Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    def open(self, destination: Destination) -> socket.socket:
        """Connect to the checked address only.

        Raises:
            OSError: the address does not answer, or the connection was cut.
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
        """End the connection, and prevent opening another one."""
        with self._lock:
            self._is_cut = True
            held, self._socket = self._socket, None
        if held is not None:
            with held:
                _shut_down(held)

    @property
    def socket_seconds(self) -> float:
        """A timeout for the socket, never shorter than the call's own, which alone decides that the time is up."""
        return max(0.0, self._until - time.monotonic()) + _GRACE_SECONDS


def _shut_down(held: socket.socket) -> None:
    try:
        held.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the peer closed it first


class DirectCaller:
    """Makes HTTP calls in this process.

    Args:
        allowed: non-public hosts that may be called.
        signer: signs each call; `None` sends them unsigned.
        credentials: creates the headers of calls that name a secret; `None` rejects such calls.
        clock: clock for the dates of responses.
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
        """Make a call within its time, whatever the endpoint or a name server does.

        A socket's own timeout starts again with every byte, and a look-up has none: so a thread does the work, and this
        one keeps the time.
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
            # Imported when needed: most calls send no secret.
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
        except (OSError, ValueError) as error:  # UnicodeError, of a name that IDNA rejects, is a ValueError
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
        """Certificates are checked against the name in the URL, with this machine's trusted authorities."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls
