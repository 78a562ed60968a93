"""Tests binary payloads for every way to create a task and every kind of target."""

from __future__ import annotations

import base64
import json
from copy import copy
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_PAYLOAD_BYTES
from duetime.handlers import Binary
from duetime_client import Binary as ClientBinary
from duetime_client import InvalidRequest
from duetime_client.run_context import Context as PullContext
from duetime_client.worker_functions import TaskFunction
from duetime_common.payload_codecs import json_of_bytes
from duetime_testing import HttpReply

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing import Duetime

URL = "https://worker.example.org/do"
PNG = Binary(b"\x89PNG\r\n\x1a\n\x00\xff", "image/png")
PNG_JSON = {"$binary": {"base64": "iVBORw0KGgoA/w==", "content_type": "image/png"}}


@pytest.fixture
def received(duetime: Duetime) -> list[Any]:
    """Record the payloads that the handler of `resize` gets."""
    found: list[Any] = []

    def resize(_context: Context, payload: object) -> int:
        found.append(payload)
        return len(payload) if isinstance(payload, bytes) else -1

    duetime.register("resize", resize)
    return found


def refused(duetime: Duetime, payload: object) -> list[tuple[str, str]]:
    """Return the fields for which creating a task with this payload is refused, each with its code."""
    with pytest.raises(InvalidRequest) as refusal:
        duetime.client.tasks.create("resize", payload=payload)
    return [(each.field, each.code) for each in refusal.value.errors]


def test_a_handler_gets_the_bytes_and_their_content_type(duetime: Duetime, received: list[Any]) -> None:
    """The handler gets the bytes that the client has sent, and the client reads the task's payload as bytes."""
    task = duetime.client.tasks.create("resize", payload=PNG)
    duetime.run_until_idle()
    assert received == [b"\x89PNG\r\n\x1a\n\x00\xff"]
    assert received[0].content_type == "image/png"
    read = duetime.client.tasks.get(task.id)
    assert (read.payload, read.result) == (PNG, 10)
    assert isinstance(read.payload, ClientBinary)
    assert read.payload.content_type == "image/png"
    assert read.document["payload"] == PNG_JSON
    assert json.loads(read.model_dump_json())["payload"] == PNG_JSON


def test_plain_bytes_have_the_default_content_type(duetime: Duetime, received: list[Any]) -> None:
    """Bytes without a content type are sent as `application/octet-stream`, also by the API."""
    duetime.client.tasks.create("resize", payload=b"\x00")
    duetime.client.tasks.create("resize", payload={"$binary": {"base64": "AA=="}})
    duetime.run_until_idle()
    assert received == [b"\x00", b"\x00"]
    assert {each.content_type for each in received} == {"application/octet-stream"}


def test_every_way_of_creating_tasks_accepts_bytes(duetime: Duetime, received: list[Any]) -> None:
    """Batches, schedules and their requested runs, nodes of topologies, and updates accept bytes."""
    client = duetime.client
    client.tasks.create_batch([{"type": "resize", "payload": b"batch"}])
    client.schedules.create("hourly", rate="1 hour", task={"type": "resize", "payload": b"schedule"})
    client.schedules.run("hourly")
    client.schedules.run("hourly", payload=b"requested")
    client.topologies.create({"nodes": {"one": {"type": "resize", "payload": b"node"}}})
    updated = client.tasks.create("resize", payload={"a": 1}, delay_seconds=60)
    client.tasks.update(updated.id, payload=b"updated")
    duetime.advance(minutes=5)
    assert sorted(set(received)) == [b"batch", b"node", b"requested", b"schedule", b"updated"]
    shown: Any = client.schedules.get("hourly").task
    assert shown["payload"]["$binary"]["base64"] == base64.b64encode(b"schedule").decode()


def test_a_custom_request_sends_the_bytes_with_their_content_type(duetime: Duetime) -> None:
    """With a custom method, the endpoint gets the bytes with their content type; otherwise duetime sends JSON."""
    duetime.http.respond_with(URL, lambda _request: HttpReply(200))
    duetime.client.tasks.create("send", payload=PNG, target={"kind": "http", "url": URL, "method": "POST"})
    duetime.client.tasks.create("send", payload=PNG, target={"kind": "http", "url": URL})
    duetime.run_until_idle()
    own, ours = sorted(duetime.http.requests, key=lambda request: request.method)
    assert (own.body, own.headers["Content-Type"]) == (bytes(PNG), "image/png")
    assert (ours.json["payload"], ours.headers["Content-Type"]) == (PNG_JSON, "application/json")


def test_a_pull_worker_gets_the_bytes(duetime: Duetime) -> None:
    """The API gives a pull worker base64 with the content type, which the worker's client decodes."""
    duetime.pull("vm.backup")
    duetime.client.tasks.create("vm.backup", payload=PNG)
    duetime.run_until_idle()
    (lease,) = duetime.client.leases.acquire(["vm.backup"], wait_seconds=5)
    assert (lease.task.payload, getattr(lease.task.payload, "content_type", "")) == (PNG, "image/png")
    function = TaskFunction("vm.backup", lambda _context, payload: len(payload), bytes)
    assert function.run(PullContext.for_test(), lease.task.payload) == 10


def test_a_task_with_the_wrong_kind_of_payload_fails_at_once(duetime: Duetime) -> None:
    """A task with the wrong kind of payload fails at once, and its error quotes no part of the payload."""
    duetime.register("bytes", lambda _context, payload: len(payload), payload=bytes)
    right = duetime.client.tasks.create("bytes", payload=b"12")
    wrong = duetime.client.tasks.create("bytes", payload="12")
    duetime.run_until_idle()
    assert duetime.client.tasks.get(right.id).result == 2
    error = duetime.client.tasks.get(wrong.id).error
    assert error is not None
    assert (error.type, error.message) == ("PayloadInvalid", "the payload is not bytes, but JSON")


@pytest.mark.parametrize(
    ("payload", "field", "code"),
    [
        ({"$binary": {"base64": "!"}}, "payload.$binary.base64", "invalid"),
        ({"$binary": {}}, "payload.$binary.base64", "required"),
        ({"$binary": "AA=="}, "payload.$binary", "wrong_type"),
        ({"$binary": {"base64": "AA==", "content_type": "png"}}, "payload.$binary.content_type", "pattern"),
        ({"$binary": {"base64": "AA==", "content_type": "a/b\r\nX: y"}}, "payload.$binary.content_type", "pattern"),
        ({"$binary": {"base64": "AA=="}, "name": "x"}, "payload.name", "unknown_field"),
        ({"binary": {"base64": "AA=="}, "$binary": None}, "payload.binary", "unknown_field"),
        (json_of_bytes(bytes(MAX_PAYLOAD_BYTES + 1)), "payload.$binary.base64", "too_long"),
    ],
)
def test_an_invalid_binary_payload_is_rejected_with_its_field(
    duetime: Duetime, payload: object, field: str, code: str
) -> None:
    """The error for an invalid binary payload names the payload's field, and no task is created."""
    assert (field, code) in refused(duetime, payload)
    assert not list(duetime.client.tasks.list())


def test_the_limit_applies_to_the_bytes_not_to_their_base64(duetime: Duetime, received: list[Any]) -> None:
    """A payload of exactly the maximum size is accepted and reaches the handler."""
    data = bytes(range(256)) * (MAX_PAYLOAD_BYTES // 256)
    duetime.client.tasks.create("resize", payload=data)
    duetime.run_until_idle()
    assert received == [data]


def test_bytes_are_rejected_as_the_payload_of_a_topology(duetime: Duetime) -> None:
    """A topology's payload must be a graph, so bytes are refused."""
    with pytest.raises(InvalidRequest) as refusal:
        duetime.client.tasks.create("graph", payload=b"x", target={"kind": "topology"})
    assert refusal.value.errors[0].field.startswith("payload")


def test_the_kit_passes_bytes_to_a_handler(duetime: Duetime, received: list[Any]) -> None:
    """`perform` passes bytes to a handler, although JSON could not represent them."""
    assert duetime.perform("resize", PNG) == 10
    assert received[0].content_type == "image/png"


def test_a_copy_has_the_content_type() -> None:
    """Copies of a binary payload, such as those for another process, keep the content type."""
    assert copy(PNG) == PNG
    assert copy(PNG).content_type == "image/png"
