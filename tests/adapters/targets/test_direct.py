from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.targets import http_client
from duetime.adapters.targets.credentials import Credential
from duetime.adapters.targets.http_client import Connection, DirectCaller
from duetime.adapters.targets.http_messages import Call, HttpResponse, NoResponse, Reply
from tests.adapters.targets.peers import LOOPBACK, Peer, answering, certificate, dripping, peer, read_request
from tests.clocks import StandingClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALLOWED = frozenset({LOOPBACK, "localhost"})
CLOCK = StandingClock()
MOST = 1_000
LONG = 60.0
"""Seconds that a call takes only if its time limit does not work; even a busy machine is faster."""
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def call(port: int, *, host: str = LOOPBACK, scheme: str = "http", seconds: float = LONG, most: int = MOST) -> Reply:
    """Call a peer with a small body."""
    wanted = Call("id-1", "PUT", f"{scheme}://{host}:{port}/job?action=run", body=b"{}", seconds=seconds, most=most)
    return DirectCaller(ALLOWED, None, CLOCK).call(wanted)


def refused(reply: Reply) -> NoResponse:
    """Call a peer and return the reply, which must not be a response."""
    assert isinstance(reply, NoResponse), reply
    return reply


def test_a_call_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host name is resolved only once, because a second lookup could return another address."""
    looked_up: list[str] = []

    def look_up(host: str, port: int, **_more: object) -> list[tuple[object, ...]]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (LOOPBACK, port))]

    with peer(answering(GOOD)) as other:
        monkeypatch.setattr(http_client, "socket", _Resolver(look_up))
        caller = DirectCaller(frozenset({"jobs.example.org"}), None, CLOCK)
        reply = caller.call(Call("id-1", "PUT", f"http://jobs.example.org:{other.port}/job", body=b"{}", most=MOST))
    assert reply == HttpResponse(200, "", b"{}")
    assert looked_up == ["jobs.example.org"]
    assert f"host: jobs.example.org:{other.port}".encode() in other.requests[0].lower()


class _Resolver:
    """Stands in for the module `socket`, with a different resolver."""

    def __init__(self, getaddrinfo: Callable[..., object]) -> None:
        self.getaddrinfo = getaddrinfo

    def __getattr__(self, name: str) -> object:
        return getattr(socket, name)


def test_a_host_with_any_private_address_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """If any of a name's addresses is private, the call is refused, regardless of the addresses' order."""

    def look_up(_host: str, port: int, **_more: object) -> list[tuple[object, ...]]:
        found = ("1.1.1.1", "10.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(http_client, "socket", _Resolver(look_up))
    reply = refused(DirectCaller(frozenset(), None, CLOCK).call(Call("id-1", "GET", "http://rebinding.example.org/")))
    assert (reply.kind, reply.retriable) == ("DestinationRefused", False)
    assert "10.0.0.1" in reply.message


def test_tls_verifies_the_host_name_of_the_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SNI and the checked certificate name are taken from the URL, although the connection is to an IP address."""
    server, trusted = certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with peer(answering(GOOD), server) as other:
        assert call(other.port, host="localhost", scheme="https") == HttpResponse(200, "", b"{}")
    assert other.names == ["localhost"]
    assert f"host: localhost:{other.port}".encode() in other.requests[0].lower()


@pytest.mark.parametrize("trusts", [True, False])
def test_a_certificate_for_another_host_is_rejected(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trusts: bool,  # noqa: FBT001 - the case
) -> None:
    """With a certificate for another name or from an untrusted authority, nothing is sent, not even the headers."""
    server, trusted = certificate(tmp_path, "else.example.org" if trusts else "localhost")
    if trusts:
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    with peer(answering(GOOD), server) as other:
        reply = refused(call(other.port, host="localhost", scheme="https"))
    assert reply.kind == "SSLCertVerificationError"
    assert other.requests == []


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\nX-Endless: ", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n200\r\n", b"x"),
    ],
    ids=["status", "header", "headers", "continue", "length", "close", "chunks", "chunk"],
)
def test_a_slow_response_is_cut_off_at_the_time_limit(head: bytes, drop: bytes) -> None:
    """The time limit applies to the complete call, even if each single byte arrives quickly."""
    with peer(dripping(head, drop)) as other:
        began = time.monotonic()
        reply = refused(call(other.port, seconds=0.6))
        took = time.monotonic() - began
    # The call with too many headers is refused before the time limit; without a limit, the other calls would never end.
    assert reply.kind in {"Timeout", "HTTPException"}
    assert took < LONG


def test_a_stalled_tls_handshake_is_cut_off_at_the_time_limit() -> None:
    """The time limit includes the TLS handshake with a silent or slow server."""

    def drip(connection: socket.socket, kept: Peer) -> None:
        while not kept.over.wait(0.05):
            connection.sendall(b"\x16")

    with peer(drip) as other:
        began = time.monotonic()
        assert isinstance(call(other.port, scheme="https", seconds=0.6), NoResponse)
        assert time.monotonic() - began < LONG


def test_a_stalled_dns_lookup_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a DNS server does not respond, the call still ends within its time limit."""
    over = threading.Event()

    def look_up(_host: str, _port: int, **_more: object) -> list[object]:
        over.wait(2 * LONG)
        raise OSError("no such name")

    monkeypatch.setattr(http_client, "socket", _Resolver(look_up))
    began = time.monotonic()
    reply = refused(
        DirectCaller(frozenset(), None, CLOCK).call(Call("id-1", "GET", "http://slow.example.org/", seconds=0.2))
    )
    took = time.monotonic() - began
    over.set()
    assert (reply.kind, reply.retriable) == ("Timeout", True)
    assert took < LONG


def test_a_response_above_the_size_limit_fails_permanently() -> None:
    """A response larger than the limit fails at once and permanently."""

    def pour(connection: socket.socket, kept: Peer) -> None:
        read_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not kept.over.is_set():
            connection.sendall(b"x" * 65_536)

    with peer(pour) as other:
        reply = refused(call(other.port))
    assert (reply.kind, reply.retriable) == ("AnswerTooLarge", False)


def test_a_decompression_bomb_is_not_decompressed() -> None:
    """If a compressed response would expand to a hundred megabytes, only a little more than the limit is expanded."""
    packed = gzip.compress(b"\0" * 100_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with peer(answering(head + packed)) as other:
        tracemalloc.start()
        reply = refused(call(other.port))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert reply.kind == "AnswerTooLarge"
    assert peak < 5_000_000


def test_a_compressed_response_is_decompressed() -> None:
    """A compressed response is decompressed, although the request asks for no compression."""
    packed = gzip.compress(b'{"rows": 3}')
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with peer(answering(head + packed)) as other:
        assert call(other.port) == HttpResponse(200, "", b'{"rows": 3}')
        assert b"accept-encoding: identity" in other.requests[0].lower()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        b"HTTP/1.1 200 OK\r\nX-Huge: " + b"x" * 100_000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X-Many: 1\r\n" * 1_000 + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: " + b"gzip, " * 50 + b"gzip\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 twohundred OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\0" * 1_000,
    ],
    ids=range(12),
)
def test_an_invalid_response_fails_and_can_be_retried(data: bytes) -> None:
    """A response that is cut short, malformed or not HTTP is a named failure, never an internal error."""
    with peer(answering(data)) as other:
        reply = refused(call(other.port))
    assert reply.retriable
    assert reply.kind not in {"CallDefect", "Timeout"}


HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize(
    "interim",
    [HINTS, PROCESSING, CONTINUE, HINTS + PROCESSING + CONTINUE + HINTS, b"HTTP/1.1 199 \r\nRetry-After: 9\r\n\r\n"],
    ids=["103", "102", "100", "several", "of another kind"],
)
def test_interim_responses_are_skipped(interim: bytes) -> None:
    """Interim responses are skipped, and the final response counts with its own headers (Source: RFC 9110, 15.2)."""
    with peer(answering(interim + GOOD)) as other:
        assert call(other.port) == HttpResponse(200, "", b"{}")


def test_too_many_interim_responses_fail_the_call() -> None:
    """After too many interim responses, the call fails and may be retried."""
    for interim in (HINTS, CONTINUE):
        with peer(answering(21 * interim + GOOD)) as other:
            reply = refused(call(other.port))
        assert (reply.kind, reply.retriable) == ("TooManyInterimResponses", True)
        with peer(answering(20 * interim + GOOD)) as other:
            assert call(other.port) == HttpResponse(200, "", b"{}")


def test_a_101_status_is_a_final_response() -> None:
    """A 101 response counts as final, because no more HTTP follows on the connection."""
    with peer(answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n\x81\x00")) as other:
        reply = call(other.port)
    assert isinstance(reply, HttpResponse)
    assert reply.status == 101


def test_interim_responses_count_toward_the_time_limit() -> None:
    """Interim responses count toward the call's time limit."""
    with peer(dripping(b"HTTP/1.1 103 Early Hints\r\n", b"Link: </x>\r\n")) as other:
        reply = refused(call(other.port, seconds=0.3))
    assert reply.kind in {"Timeout", "HTTPException"}


def test_a_secret_in_a_response_of_another_charset_is_removed() -> None:
    """A secret is removed from the stored text, even if it is cut off at the end."""
    secret, text = "s3cr3t-" * 3, "x" * 980
    body = f"{text}{secret}".encode("utf-16-le")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-16-le\r\nContent-Length: {len(body)}\r\n\r\n"
    with peer(answering(head.encode() + body)) as other:
        url = f"http://{LOOPBACK}:{other.port}/"
        for most in (500, 1_000, 1_960, 1_970, 3_000):
            wanted = Call("id-1", "GET", url, most=most, truncates=True)
            caller = DirectCaller(ALLOWED, None, CLOCK)
            opened = Connection(LONG)
            reply = caller._response(wanted, connection=opened, credential=Credential({}, (secret,), 0))
            opened.cut()
            assert b"s3c" not in reply.body
            assert reply.body.startswith(b"x" * 200)


def test_a_redirect_is_not_followed() -> None:
    """A redirect is not followed, because its destination was not checked."""
    with peer(answering(GOOD)) as inside:
        location = f"http://{LOOPBACK}:{inside.port}/"
        with peer(answering(f"HTTP/1.1 307 Go\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode())) as other:
            assert call(other.port) == HttpResponse(307)
        assert inside.requests == []


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy from the environment is not used, because the proxy would resolve names again and see all data."""
    with peer(answering(GOOD)) as proxy, peer(answering(GOOD)) as other:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{LOOPBACK}:{proxy.port}")
        assert isinstance(call(other.port), HttpResponse)
        assert proxy.requests == []


def test_a_body_that_is_not_needed_is_not_read() -> None:
    """If only the status is needed, the body is not read, so an endless body does no harm."""
    with peer(dripping(b"HTTP/1.1 204 Fine\r\nContent-Length: 1000000\r\n\r\n", b"x")) as other:
        assert call(other.port, most=0) == HttpResponse(204)
