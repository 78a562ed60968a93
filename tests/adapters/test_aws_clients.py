"""Tests AWS clients that several threads share."""

from __future__ import annotations

from io import BytesIO
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import boto3
import botocore
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ParamValidationError, SSLError
from urllib3 import HTTPResponse

from duetime.adapters.aws_clients import Clients
from tests.adapters.targets.peers import LOOPBACK, answering, certificate, peer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.adapters.targets.peers import Peer

_EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
MAKERS: dict[str, Callable[[Clients], object]] = {
    "dynamodb": Clients.dynamodb,
    "sqs": Clients.sqs,
    "s3": Clients.s3,
    "lambda": Clients.lambdas,
    "lambda that is waited for": Clients.calling_lambdas,
    "sns": Clients.sns,
    "events": Clients.events,
    "step functions": Clients.step_functions,
    "jobs": lambda clients: clients.jobs("ecs", "eu-west-1"),
    "connections": lambda clients: clients.connections("https://example.com"),
    "secrets": Clients.secrets,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_exception_classes_are_created_with_the_client(make: Callable[[Clients], object]) -> None:
    """A client's exception classes are created with the client; otherwise each thread could create different ones."""
    session = boto3.Session("AKIAEXAMPLE", "secret", region_name="eu-west-1")
    client = cast("Any", make(Clients(session)))
    client._load_exceptions = lambda: pytest.fail("the error classes are created only when they are requested")
    assert client.exceptions.ClientError


def test_the_user_agent_names_duetime_and_the_sdk() -> None:
    """AWS's logs show duetime in the user agent, without the long list of the SDK's components."""
    client, sent = _recorded(Clients.sqs)
    client.send_message(QueueUrl="https://example.com/queue", MessageBody="{}")
    (agent,) = [request.headers["User-Agent"].decode() for request in sent]
    # `ua/2.1` marks the long user agent that botocore composes; Powertools and a boto3 session add a few words to ours.
    assert agent.startswith(f"duetime Botocore/{botocore.__version__}")
    assert "ua/2.1" not in agent


def test_only_requests_to_duetime_queues_skip_client_side_validation() -> None:
    """Requests to users' targets are validated before sending, unlike requests to duetime's own queues."""
    own, sent = _recorded(Clients.sqs)
    own.send_message(QueueUrl="https://example.com/queue", MessageBody=5)
    assert len(sent) == 1
    targets, sent = _recorded(lambda clients: clients.sqs("eu-west-1"))
    with pytest.raises(ParamValidationError):
        targets.send_message(QueueUrl="https://example.com/queue", MessageBody=5)
    assert sent == []


def test_the_trusted_certificates_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections share the certificates, because reading them takes ten times the CPU time of a handshake."""
    tls, trusted = certificate(tmp_path, LOOPBACK)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
    with peer(answering(_EMPTY), tls) as server, patch.object(SSLContext, "load_verify_locations") as read:
        # The test's own certificate is not trusted, because it was not really read.
        for make in (Clients.dynamodb, Clients.sqs):
            client = make(_clients_of(server, monkeypatch))
            for _ in range(2):
                with pytest.raises(SSLError):
                    _called(client)
    read.assert_called_once_with(str(trusted))


def test_only_a_server_with_a_trusted_certificate_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is sent only after the server has shown a certificate for its host from a trusted authority."""
    tls, trusted = certificate(tmp_path, LOOPBACK)
    with peer(answering(_EMPTY), tls) as server:
        with pytest.raises(SSLError):
            _called(Clients.sqs(_clients_of(server, monkeypatch)))
        assert server.requests == []
        monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
        _called(Clients.sqs(_clients_of(server, monkeypatch)))
        assert len(server.requests) == 1
    tls, trusted = certificate(tmp_path, "elsewhere.example.org")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(trusted))
    with peer(answering(_EMPTY), tls) as server, pytest.raises(SSLError):
        _called(Clients.sqs(_clients_of(server, monkeypatch)))


def _clients_of(server: Peer, monkeypatch: pytest.MonkeyPatch) -> Clients:
    """Return clients that call a server on loopback and do not wait between retries."""
    for name, value in (("ACCESS_KEY_ID", "AKIAEXAMPLE"), ("SECRET_ACCESS_KEY", "secret"), ("DEFAULT_REGION", "x")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://{LOOPBACK}:{server.port}")
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    return Clients()


def _called(client: Any) -> None:  # noqa: ANN401 - boto3's own
    if hasattr(client, "list_queues"):
        client.list_queues()
    else:
        client.list_tables()


def _recorded(make: Callable[[Clients], object]) -> tuple[Any, list[Any]]:
    """Return a client whose requests are recorded, with arbitrary responses."""
    client = cast("Any", make(Clients(boto3.Session("AKIAEXAMPLE", "secret", region_name="eu-west-1"))))
    sent = []

    def answer(request: object, **_about: object) -> AWSResponse:
        sent.append(request)
        return AWSResponse("https://example.com", 200, HTTPHeaders(), HTTPResponse(BytesIO(b"{}")))

    client.meta.events.register("before-send", answer)
    return client, sent
