"""Requests to DynamoDB that are made without most of botocore, against a server of the test's own."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from zlib import crc32

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, SSLError

from duetime.adapters.aws_clients import Clients
from duetime.adapters.dynamodb.direct_requests import DirectRequests
from tests.adapters.targets.peers import LOOPBACK, certificate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from ssl import SSLContext

_ITEM = {"pk": {"S": "x"}, "b": {"B": "AAEC"}}
_FAILED = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "Item": _ITEM}
_THROTTLED = {"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"}
_INVALID = {"__type": "com.amazon.coral.validate#ValidationException", "message": "no such attribute"}


@dataclass
class Server:
    """Answers requests in turn: a status and a body, or nothing.

    Attributes:
        answers: what is left to answer.
        received: the headers of each request.
        wrong_checksums: how many of the next answers have a wrong checksum.
    """

    answers: list[tuple[int, Mapping[str, Any]] | None]
    received: list[Mapping[str, str]] = field(default_factory=list)
    wrong_checksums: int = 0


@contextmanager
def served(server: Server, monkeypatch: pytest.MonkeyPatch, tls: SSLContext | None = None) -> Iterator[Any]:
    """A client of a function whose requests the server answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            server.received.append(dict(self.headers))
            answer = server.answers.pop(0)
            if answer is None:
                self.close_connection = True
                return
            body = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(body)))
            self.send_header("x-amz-crc32", str(crc32(body) + (server.wrong_checksums > 0)))
            server.wrong_checksums -= 1
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        if tls is not None:
            listening.socket = tls.wrap_socket(listening.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        thread = Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"{scheme}://127.0.0.1:{listening.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        # An exception from proxies is no proxy.
        monkeypatch.setenv("NO_PROXY", "example.org")
        try:
            yield Clients().dynamodb()
        finally:
            listening.shutdown()


def _update(client: Any) -> Any:  # noqa: ANN401 - boto3's own
    return client.update_item(TableName="t", Key={"pk": {"S": "x"}}, ReturnValues="ALL_NEW")


def test_a_request_is_answered_by_one_request_without_those_headers_that_only_botocore_adds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer is parsed like botocore's, with its metadata, and botocore has not sent the request."""
    server = Server([(200, {"Attributes": _ITEM})])
    with served(server, monkeypatch) as client:
        answer = _update(client)
    assert answer["Attributes"] == {"pk": {"S": "x"}, "b": {"B": b"\0\1\2"}}
    assert answer["ResponseMetadata"]["HTTPHeaders"]["x-amz-crc32"]
    (headers,) = server.received
    assert "amz-sdk-invocation-id" not in headers
    assert headers["User-Agent"].startswith("duetime ")


def test_a_failed_condition_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised as the client's own class, with the item that was there."""
    server = Server([(400, _FAILED)])
    with (
        served(server, monkeypatch) as client,
        pytest.raises(client.exceptions.ConditionalCheckFailedException) as failed,
    ):
        _update(client)
    assert failed.value.response["Item"] == {"pk": {"S": "x"}, "b": {"B": b"\0\1\2"}}
    assert len(server.received) == 1


@pytest.mark.parametrize("first", [(400, _THROTTLED), (500, {}), (503, {}), None])
def test_botocore_repeats_a_request_without_a_final_answer(
    first: tuple[int, Mapping[str, Any]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a throttle, an error of the service or a lost connection the next answer counts."""
    server = Server([first, (200, {"Attributes": _ITEM})])
    with served(server, monkeypatch) as client:
        assert _update(client)["Attributes"]["pk"] == {"S": "x"}
    assert ["amz-sdk-invocation-id" in each for each in server.received] == [False, True]


def test_an_answer_with_another_checksum_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is repeated, as botocore does."""
    server = Server([(200, {"Attributes": {}}), (200, {"Attributes": _ITEM})], wrong_checksums=1)
    with served(server, monkeypatch) as client:
        assert _update(client)["Attributes"]["pk"] == {"S": "x"}


def test_an_invalid_request_has_botocores_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors that are not decided by a condition are raised as before."""
    server = Server([(400, _INVALID)] * 2)
    with served(server, monkeypatch) as client, pytest.raises(ClientError, match="no such attribute"):
        _update(client)


def test_a_request_is_sent_three_times_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """The direct attempt counts as one of the three that a call may take."""
    server = Server([(500, {})] * 3)
    with (
        patch("botocore.endpoint.time.sleep"),
        served(server, monkeypatch) as client,
        pytest.raises(ClientError),
    ):
        _update(client)
    assert len(server.received) == 3


def test_a_server_without_a_trusted_certificate_gets_no_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Requests are made over TLS, and only to a server whose certificate the environment's authorities have signed."""
    tls, trusted = certificate(tmp_path, LOOPBACK)
    server = Server([(200, {"Attributes": _ITEM})])
    with served(server, monkeypatch, tls) as client:
        with pytest.raises(SSLError):
            _update(client)
        assert server.received == []
        monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
        _update(Clients().dynamodb())
    assert ["amz-sdk-invocation-id" in each for each in server.received] == [False]


def test_requests_by_a_proxy_are_left_to_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names gets the request from botocore, which knows how to use proxies."""
    server = Server([(200, {"Attributes": _ITEM})])
    with served(server, monkeypatch):
        monkeypatch.setenv("HTTP_PROXY", os.environ["AWS_ENDPOINT_URL_DYNAMODB"])
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://dynamodb.example.org")
        assert _update(Clients().dynamodb())["Attributes"]["pk"] == {"S": "x"}
    assert ["amz-sdk-invocation-id" in each for each in server.received] == [True]


@pytest.mark.parametrize("token", [None, "session"])
def test_a_signature_is_the_one_that_botocore_makes(token: str | None) -> None:
    """Of the same request at the same moment, with and without a session token."""
    moment = datetime(2026, 11, 21, 2, 33, 5, tzinfo=UTC)
    credentials = Credentials("AKIAEXAMPLE", "secret", token)
    url, body = "http://dynamodb.eu-west-1.amazonaws.com", b'{"TableName": "t"}'
    headers = {"X-Amz-Target": "DynamoDB_20120810.GetItem", "Content-Type": "application/x-amz-json-1.0"}
    usual = AWSRequest("POST", f"{url}/", dict(headers), body)
    with patch("botocore.auth.get_current_datetime", lambda: moment.replace(tzinfo=None)):
        botocore.auth.SigV4Auth(credentials, "dynamodb", "eu-west-1").add_auth(usual)
    ours = DirectRequests(url, "eu-west-1", credentials, Config(), now=lambda: moment)._signed(headers, body)
    assert ours["Authorization"] == usual.headers["Authorization"]
    assert ours["x-amz-date"] == usual.headers["X-Amz-Date"]
