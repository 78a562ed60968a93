"""The connections of DynamoDB's client, against a server of the test's own."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SO_KEEPALIVE, SOL_SOCKET, create_server
from ssl import create_default_context
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError, SSLError

from duetime.adapters.aws_clients import Clients
from duetime.adapters.dynamodb.connections import Connections
from tests.adapters.targets.peers import LOOPBACK, certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from ssl import SSLContext

    from botocore.awsrequest import AWSPreparedRequest

_SECONDS = 20
_MODULE = Connections.__module__


def _answer(name: str, status: int = 200) -> bytes:
    body = json.dumps({"Item": {"p": {"S": name}}}).encode()
    return b"HTTP/1.1 %d Any\r\nX-Amzn-RequestId: 7\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
_HALF = _answer("half")[:-5]
_FAILED = b'{"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}'


@dataclass
class Server:
    """Answers requests in turn; a connection ends after what is not in `kept`.

    Attributes:
        answers: what is left to answer; nothing is sent for an empty one until `released`.
        received: the connection, by its port, the headers and the body of each request.
    """

    answers: list[bytes]
    ending: frozenset[bytes] = frozenset()
    received: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    ended: Event = field(default_factory=Event)
    released: Event = field(default_factory=Event)

    @property
    def connections(self) -> list[int]:
        """The connection of each request, numbered in order of their first requests."""
        ports = [port for port, _, _ in self.received]
        return [list(dict.fromkeys(ports)).index(port) for port in ports]


@contextmanager
def served(server: Server, tls: SSLContext | None = None) -> Iterator[str]:
    """The URL under which a server answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.received.append((self.client_address[1], dict(self.headers), body))
            answer = server.answers.pop(0)
            if not answer:
                server.released.wait(_SECONDS)
            self.wfile.write(answer or _answer("late"))
            self.close_connection = answer in server.ending

        def finish(self) -> None:
            super().finish()
            self.connection.close()
            server.ended.set()

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as listening:
        listening.daemon_threads = True
        if tls is not None:
            listening.socket = tls.wrap_socket(listening.socket, server_side=True)
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"{'http' if tls is None else 'https'}://{LOOPBACK}:{listening.server_port}"
        finally:
            server.released.set()
            listening.shutdown()


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Makes a client of DynamoDB at a URL, as the functions have it."""
    for name, value in (("ACCESS_KEY_ID", "AKIAEXAMPLE"), ("SECRET_ACCESS_KEY", "secret"), ("DEFAULT_REGION", "x")):
        monkeypatch.setenv(f"AWS_{name}", value)

    def made(url: str) -> Any:  # noqa: ANN401 - boto3's own
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
        return Clients().dynamodb()

    return made


def _read(client: Any, key: str = "k") -> str:  # noqa: ANN401 - boto3's own
    answer: dict[str, Any] = client.get_item(TableName="table", Key={"p": {"S": key}})
    return str(answer["Item"]["p"]["S"])


def _request(url: str) -> AWSPreparedRequest:
    return AWSRequest("POST", f"{url}/", {}, b"{}").prepare()


def test_requests_are_signed_by_botocore_and_share_a_connection(client: Callable[[str], Any]) -> None:
    """Two requests have a signature each, their whole body and their own answer, on one connection."""
    server = Server([_answer("a"), _answer("b")])
    with served(server) as url:
        table = client(url)
        assert [_read(table, "1"), _read(table, "2")] == ["a", "b"]
    assert server.connections == [0, 0]
    assert [json.loads(body)["Key"]["p"]["S"] for _, _, body in server.received] == ["1", "2"]
    assert all("Signature=" in headers["Authorization"] for _, headers, _ in server.received)


def test_a_response_has_its_metadata(client: Callable[[str], Any]) -> None:
    """The SDK finds the request id in the headers, whatever the case of their names."""
    with served(Server([_answer("a")])) as url:
        answer = client(url).get_item(TableName="table", Key={"p": {"S": "k"}})
    assert answer["ResponseMetadata"]["RequestId"] == "7"


def test_a_failed_condition_is_an_error_of_the_client(client: Callable[[str], Any]) -> None:
    """It is not repeated, and its connection is kept."""
    failed = b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s" % (len(_FAILED), _FAILED)
    server = Server([failed, _answer("a")])
    with served(server) as url:
        table = client(url)
        with pytest.raises(table.exceptions.ConditionalCheckFailedException):
            _read(table)
        assert _read(table) == "a"
    assert server.connections == [0, 0]


@pytest.mark.parametrize("first", [_answer("a", 500), _HALF, b"HTTP/1.1 nonsense\r\n\r\n"])
def test_botocore_repeats_a_request_without_a_whole_answer(first: bytes, client: Callable[[str], Any]) -> None:
    """After a server error, half an answer or nonsense, the answer to the repetition counts."""
    server = Server([first, _answer("b")], ending=frozenset({_HALF}))
    with served(server) as url, patch("botocore.endpoint.time.sleep"):
        assert _read(client(url)) == "b"
    assert len(server.received) == 2


def test_a_connection_that_was_closed_while_idle_is_not_used() -> None:
    """The next request is sent once, on a new connection."""
    server = Server([_answer("a"), _answer("b")], ending=frozenset({_answer("a")}))
    with served(server) as url:
        connections = Connections(1, _SECONDS)
        connections.send(_request(url))
        server.ended.wait(_SECONDS)
        assert b'"b"' in connections.send(_request(url)).content
    assert server.connections == [0, 1]


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_ones() -> None:
    """After the time limit the connection is closed, so the next request gets its own answer."""
    server = Server([b"", _answer("own")])
    with served(server) as url:
        connections = Connections(1, 0.05)
        with pytest.raises(ReadTimeoutError):
            connections.send(_request(url))
        server.released.set()
        assert b'"own"' in Connections.send(connections, _request(url)).content
    assert server.connections == [0, 1]


def test_a_response_has_a_time_limit_of_its_own() -> None:
    """A connection has the limit of responses once it is open, and is kept alive."""
    with served(Server([_answer("a")])) as url:
        connections = Connections(1, _SECONDS)
        connections.send(_request(url))
        ((connection,),) = connections._idle.values()
        assert connection.sock.gettimeout() == _SECONDS
        assert connection.sock.getsockopt(SOL_SOCKET, SO_KEEPALIVE)


def test_an_interrupted_request_leaves_no_connection() -> None:
    """An exception from elsewhere, such as the end of a thread, closes the connection as well."""
    server = Server([_answer("interrupted"), _answer("own")])
    with served(server) as url:
        connections = Connections(1, _SECONDS)
        with (
            patch("http.client.HTTPConnection.getresponse", side_effect=KeyboardInterrupt),
            pytest.raises(KeyboardInterrupt),
        ):
            connections.send(_request(url))
        assert b'"own"' in connections.send(_request(url)).content


def test_half_an_answer_is_an_error() -> None:
    """A body that is shorter than its length is not returned."""
    with served(Server([_HALF], ending=frozenset({_HALF}))) as url, pytest.raises(ConnectionClosedError):
        Connections(1, _SECONDS).send(_request(url))


def test_an_answer_in_chunks_is_read_to_its_end() -> None:
    """DynamoDB sends none today, but may."""
    with served(Server([_CHUNKED])) as url:
        assert Connections(1, _SECONDS).send(_request(url)).content == b"{}"


def test_nobody_at_the_address_is_botocores_error() -> None:
    """The SDK repeats a request after it."""
    with create_server((LOOPBACK, 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(EndpointConnectionError):
        Connections(1, 1).send(_request(f"http://{LOOPBACK}:{port}"))


def test_a_server_without_a_trusted_certificate_gets_no_request(
    client: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Requests are sent over TLS only to a server whose certificate an authority of the environment has signed."""
    tls, trusted = certificate(tmp_path, LOOPBACK)
    server = Server([_answer("a")])
    with served(server, tls) as url:
        with patch("botocore.endpoint.time.sleep"), pytest.raises(SSLError):
            _read(client(url))
        assert server.received == []
        monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
        table = client(url)
        assert isinstance(table._endpoint.http_session, Connections)
        assert _read(table) == "a"


def test_the_trusted_certificates_are_read_once(tmp_path: Path) -> None:
    """All connections share them: reading them takes more than ten times the processor time of a handshake."""
    tls, trusted = certificate(tmp_path, LOOPBACK)
    server = Server([_answer("a")] * 2, ending=frozenset({_answer("a")}))
    with served(server, tls) as url, patch(f"{_MODULE}.create_default_context", wraps=create_default_context) as made:
        connections = Connections(1, _SECONDS, str(trusted))
        connections.send(_request(url))
        server.ended.wait(_SECONDS)
        connections.send(_request(url))
    assert server.connections == [0, 1]
    made.assert_called_once()


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    """A trusted authority is not enough: the certificate must be for the host of the request."""
    tls, trusted = certificate(tmp_path, "elsewhere.example.org")
    with served(Server([_answer("a")]), tls) as url, pytest.raises(SSLError):
        Connections(1, _SECONDS, str(trusted)).send(_request(url))


def test_requests_by_a_proxy_are_left_to_botocore(
    client: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy that the environment names gets the request from botocore, which knows how to use proxies."""
    server = Server([_answer("by the proxy")])
    with served(server) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("NO_PROXY", "")
        assert _read(client("http://dynamodb.example.org")) == "by the proxy"


def test_closing_a_client_closes_its_idle_connections() -> None:
    """The server sees the end of the connection."""
    server = Server([_answer("a")])
    with served(server) as url:
        connections = Connections(1, _SECONDS)
        connections.send(_request(url))
        connections.close()
        assert server.ended.wait(_SECONDS)
