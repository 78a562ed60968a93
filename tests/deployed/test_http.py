"""Tests of HTTP calls that the deployed stack's egress function sends, signed with secrets derived from its secret."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from duetime_client import Binary
from duetime_common.limits import MAX_UPLOAD_BYTES
from tests.adapters.targets.receiver import is_signed_by, secret_for
from tests.functions.receivers import Receiver, receiving
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client import Client, HttpTarget
    from duetime_local.stack import Stack


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint on the loopback address, which the local environment allows."""
    with receiving() as started:
        yield started


def test_calls_queries_and_callbacks_go_through_the_egress(deployed: Stack, client: Client, receiver: Receiver) -> None:
    """A task's run, query, and callback are three calls, each of which is signed with the owner's secret."""
    secrets = deployed.emulator.client("secretsmanager")
    secret_id = deployed.deployment.outputs["SigningSecretArn"]
    secret = secrets.get_secret_value(SecretId=secret_id)["SecretString"]
    assert len(secret) == 64
    receiver.answers["PUT", "/job?action=run"] = (200, b'{"rows": 3}')
    receiver.answers["GET", "/job?action=status"] = (200, b'"fine"')
    task = client.tasks.create(
        "report",
        target={"kind": "http", "url": f"{receiver.url}/job", "queries": ["status"]},
        callback_url=f"{receiver.url}/ended",
        wait_seconds=20,
    )
    assert until(lambda: client.tasks.get(task.id).is_terminal)
    task = client.tasks.get(task.id)
    assert (task.state, task.result, task.error) == ("succeeded", {"rows": 3}, None)
    reply = client.tasks.query(task.id, "status")
    assert (reply.status, reply.body) == (200, "fine")
    # The callback is a separate task.
    assert until(lambda: len(receiver.requests) == 3)
    assert sorted(one.method for one in receiver.requests) == ["GET", "POST", "PUT"]
    for one in receiver.requests:
        assert is_signed_by(secret_for("local", secret), one.headers, one.body)


def test_an_upload_of_five_megabytes_reaches_an_endpoint(client: Client, receiver: Receiver) -> None:
    """An upload of five megabytes is sent to the endpoint as the body of the call, and can be downloaded."""
    data = Binary(Random(1).randbytes(MAX_UPLOAD_BYTES), "video/mp4")  # noqa: S311 - an example, not a secret
    receiver.answers["POST", "/film"] = (200, b"")
    target: HttpTarget = {"kind": "http", "url": f"{receiver.url}/film", "method": "POST"}
    task = client.tasks.create("report", payload=data, target=target)
    assert until(lambda: client.tasks.get(task.id).is_terminal)
    read = client.tasks.get(task.id)
    assert (read.state, read.error) == ("succeeded", None)
    (request,) = receiver.requests
    assert request.headers["Content-Type"] == "video/mp4"
    assert request.body == data
    assert client.tasks.download_payload(read) == data
    client.tasks.delete(task.id)
