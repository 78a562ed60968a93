"""Tests how the client's requests are authenticated."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from threading import get_ident
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
from botocore.credentials import Credentials

from duetime_client import AsyncClient, BearerToken, Client, CredentialsMissing
from duetime_client.sigv4 import SigV4, region_of
from tests.client.deployment import Answer, Deployment, Received

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

SECRET = "a secret of nobody"  # noqa: S105 - signs nothing outside this test


def digest(key: bytes, text: str) -> bytes:
    """Compute one of the algorithm's HMACs."""
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def expected_signature(request: Received, signed_headers: str, scope: str) -> str:
    """Compute a received request's signature by AWS's published algorithm."""
    address = urlsplit(request.target)
    headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in signed_headers.split(";"))
    query = "&".join(sorted(address.query.split("&")))
    body = hashlib.sha256(request.body).hexdigest()
    # Every service except S3 encodes the path a second time.
    path = address.path.replace("%", "%25")
    canonical = f"{request.method}\n{path}\n{query}\n{headers}\n{signed_headers}\n{body}"
    text = "\n".join(
        ["AWS4-HMAC-SHA256", request.headers["X-Amz-Date"], scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = f"AWS4{SECRET}".encode()
    for part in scope.split("/"):
        key = digest(key, part)
    return digest(key, text).hex()


def verified_scope(request: Received) -> str:
    """Check a request's signature and return the signature's scope."""
    parts = dict(part.split("=", 1) for part in request.headers["Authorization"].split(" ", 1)[1].split(", "))
    scope = parts["Credential"].split("/", 1)[1]
    assert parts["Signature"] == expected_signature(request, parts["SignedHeaders"], scope)
    return scope


def test_iam_signatures_match_the_published_algorithm(deployment: Deployment) -> None:
    """Signatures of bodies, ids and queries with special characters pass AWS's check."""
    auth = SigV4(Credentials("AKID", SECRET, "session token"), "eu-west-1")
    with Client(deployment.url, auth=auth) as client:
        task = client.tasks.create("report", payload={"größe": "1/2"})
        deployment.tasks["a/b c"] = {**task.document, "id": "a/b c"}
        client.tasks.get("a/b c")
        list(client.tasks.list(tags={"team": "a b+c/~:é"}, state="failed"))
    scopes = {verified_scope(request).split("/", 1)[1] for request in deployment.received}
    assert scopes == {"eu-west-1/execute-api/aws4_request"}
    assert {request.headers["X-Amz-Security-Token"] for request in deployment.received} == {"session token"}


def test_the_asynchronous_client_signs_without_blocking_the_event_loop(deployment: Deployment) -> None:
    """The asynchronous client computes the same signature, and fetches credentials in a thread to avoid blocking."""
    threads: list[int] = []

    class Fetched(Credentials):
        def get_frozen_credentials(self) -> Any:  # noqa: ANN401 - botocore's own
            threads.append(get_ident())
            return super().get_frozen_credentials()

    async def use() -> None:
        auth = SigV4(Fetched("AKID", SECRET, "session token"), "eu-west-1")
        async with AsyncClient(deployment.url, auth=auth) as client:
            await client.tasks.create("report", payload={"größe": "1/2"})
            assert [task.type async for task in client.tasks.list(tags={"team": "a b+c"})] == ["report"]

    asyncio.run(use())
    scopes = {verified_scope(request).split("/", 1)[1] for request in deployment.received}
    assert scopes == {"eu-west-1/execute-api/aws4_request"}
    assert len(threads) == 2
    assert get_ident() not in threads


def test_a_retry_is_signed_with_current_credentials(deployment: Deployment, waits: list[float]) -> None:
    """If credentials rotate between two attempts, the second attempt uses the new credentials."""
    credentials = Credentials("FIRST", SECRET)
    deployment.scripted.append(Answer(500, None))

    def rotate(seconds: float) -> None:
        waits.append(seconds)
        credentials.access_key = "SECOND"

    with Client(deployment.url, auth=SigV4(credentials, "eu-west-1"), sleep=rotate) as client:
        client.tasks.create("report")
    used = [request.headers["Authorization"].split("Credential=")[1].split("/")[0] for request in deployment.received]
    assert used == ["FIRST", "SECOND"]


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("abc123.execute-api.ap-northeast-1.amazonaws.com", "ap-northeast-1"),
        ("abc123.execute-api.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("tasks.example.org", None),
        ("127.0.0.1", None),
    ],
)
def test_the_region_is_read_from_an_api_gateway_host(host: str, region: str | None) -> None:
    """The Region is read from the API Gateway host; other hosts contain no Region."""
    assert region_of(host) == region


def test_the_region_of_other_hosts_is_read_from_the_environment() -> None:
    """For other hosts the environment's Region is used; without a Region, nothing is sent."""
    credentials = Credentials("AKID", SECRET)
    gateway = httpx.Request("GET", "https://a.execute-api.eu-west-1.amazonaws.com/v1/tasks")
    own = httpx.Request("GET", "https://tasks.example.org/v1/tasks")
    scopes = [
        next(SigV4(credentials, "us-west-2").auth_flow(request)).headers["Authorization"].split("/")[2]
        for request in (gateway, own)
    ]
    assert scopes == ["eu-west-1", "us-west-2"]
    with pytest.raises(CredentialsMissing, match="AWS_DEFAULT_REGION"):
        next(SigV4(credentials, None).auth_flow(own))


def test_a_bearer_token_is_sent_in_the_authorization_header(deployment: Deployment) -> None:
    """The token is sent in the Authorization header."""
    with Client(deployment.url, auth=BearerToken("t0ken")) as client:
        client.tasks.create("report")
    assert deployment.received[0].headers["Authorization"] == "Bearer t0ken"


def test_the_command_reads_its_identity_from_the_environment(
    duetime: Callable[..., Result], deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment can set the authentication method, the token and the owner."""
    monkeypatch.setenv("DUETIME_AUTH", "bearer")
    monkeypatch.setenv("DUETIME_TOKEN", "t0ken")
    monkeypatch.setenv("DUETIME_OWNER", "dba")
    assert duetime("tasks", "list").exit_code == 0
    headers = deployment.received[0].headers
    assert (headers["Authorization"], headers["X-Duetime-Owner"]) == ("Bearer t0ken", "dba")


def test_the_command_signs_with_the_aws_credentials_of_the_environment(
    duetime: Callable[..., Result], deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--auth iam`, a request is signed with the credentials that any AWS tool would use."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    assert duetime("tasks", "list", "--auth", "iam").exit_code == 0
    assert verified_scope(deployment.received[0]).endswith("/us-west-2/execute-api/aws4_request")


@pytest.mark.parametrize(
    ("arguments", "token", "message"),
    [
        (["--auth", "bearer"], "", "DUETIME_TOKEN"),
        (["--auth", "bearer"], "naïve", "Authorization"),
        (["--owner", "naïve"], "", "X-Duetime-Owner"),
    ],
)
def test_an_identity_that_cannot_be_sent_is_a_usage_error(
    duetime: Callable[..., Result],
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    token: str,
    message: str,
) -> None:
    """An identity that cannot be sent causes a one-line usage error; nothing is sent and no secret is shown."""
    monkeypatch.setenv("DUETIME_TOKEN", token)
    result = duetime("tasks", "list", *arguments)
    assert (result.exit_code, result.stdout, deployment.received) == (2, "", [])
    assert message in result.stderr
    assert "naïve" not in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["--auth", "key"]])
def test_an_api_key_is_sent_to_paths_below_key(
    duetime: Callable[..., Result], deployment: Deployment, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """An API key is sent as a bearer token to paths below `/key`; a key in the environment needs no option."""
    deployment.scripted += [Answer(200, {"tasks": [], "next_token": None})] * 2
    monkeypatch.setenv("DUETIME_API_KEY", "dtk_1_2")
    assert duetime("tasks", "list", *arguments).exit_code == 0
    with Client(deployment.url, api_key="dtk_1_2") as client:
        assert list(client.tasks.list()) == []
    for request in deployment.received:
        assert (request.path, request.headers["Authorization"]) == ("/stage/key/v1/tasks", "Bearer dtk_1_2")


def test_a_key_in_the_environment_is_ignored_with_another_authentication_method(
    duetime: Callable[..., Result], deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an authentication method is given, the key from the environment is not sent."""
    monkeypatch.setenv("DUETIME_API_KEY", "dtk_1_2")
    monkeypatch.setenv("DUETIME_TOKEN", "t0ken")
    for arguments, header in ((["--auth", "bearer"], "Bearer t0ken"), (["--auth", "none"], None)):
        assert duetime("tasks", "list", *arguments).exit_code == 0
        request = deployment.received.pop()
        assert (request.path, request.headers["Authorization"]) == ("/stage/v1/tasks", header)


def test_a_missing_key_is_a_usage_error(
    duetime: Callable[..., Result], deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing key is a usage error and nothing is sent; `Client` raises `CredentialsMissing` for an empty key."""
    monkeypatch.delenv("DUETIME_API_KEY", raising=False)
    result = duetime("tasks", "list", "--auth", "key")
    assert (result.exit_code, deployment.received) == (2, [])
    assert "DUETIME_API_KEY" in result.stderr
    with pytest.raises(CredentialsMissing):
        Client(deployment.url, api_key="")
    with pytest.raises(ValueError, match="either"):
        AsyncClient(deployment.url, api_key="dtk_1_2", auth=BearerToken("t0ken"))
