"""Tests payloads that are uploaded because they are too large for a request."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from duetime_client import Binary, InvalidRequest, NewTask
from duetime_client.errors import ApiError
from duetime_client.uploads import PayloadTooLarge
from duetime_common.limits import MAX_PAYLOAD_BYTES, MAX_UPLOAD_BYTES
from duetime_testing import HttpReply
from duetime_testing.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.handlers import Context
    from duetime_testing import Duetime

URL = "https://worker.example.org/do"
LARGE = Binary(Random(1).randbytes(MAX_UPLOAD_BYTES), "video/mp4")  # noqa: S311 - an example, not a secret
SMALL = b"0123456789"


@pytest.fixture
def received(duetime: Duetime) -> list[Any]:
    """Record the payloads that the handler of `cut` gets."""
    found: list[Any] = []

    def cut(_context: Context, payload: bytes) -> int:
        found.append(payload)
        return len(payload)

    duetime.register("cut", cut)
    return found


def requested(duetime: Duetime, body: object) -> httpx.Response:
    """Return the response to the request to upload a payload."""
    transport = InProcessTransport(duetime._begin, lambda: None)
    with httpx.Client(transport=transport) as http:
        return http.post("http://localhost/v1/uploads", json=body)


def begun(duetime: Duetime, upload_id: str = "u-1", size: int = len(SMALL)) -> dict[str, Any]:
    """Return the response to the start of an upload."""
    body = {"id": upload_id, "size": size, "content_type": "text/plain"}
    answer = requested(duetime, body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def sent(duetime: Duetime, upload: Mapping[str, Any], body: bytes = SMALL, content_type: str = "text/plain") -> int:
    """Return the status of the request that uploads the bytes."""
    headers = {**upload["headers"], "Content-Type": content_type}
    status, _ = duetime._account.s3.send_signed(upload["method"], upload["url"], headers, body)
    return status


def refusal(duetime: Duetime) -> tuple[str, str]:
    """Return the field for which creating a task with an upload is refused, with the code."""
    with pytest.raises(InvalidRequest) as refused:
        duetime.client.tasks.create("cut", payload={"$upload": "u-1"})
    return refused.value.errors[0].field, refused.value.errors[0].code


def test_the_client_uploads_a_large_payload(duetime: Duetime, received: list[Any]) -> None:
    """The handler gets the bytes with their content type, and the client can download them again."""
    task = duetime.client.tasks.create("cut", payload=LARGE)
    duetime.run_until_idle()
    assert received == [LARGE]
    assert received[0].content_type == "video/mp4"
    read = duetime.client.tasks.get(task.id)
    assert read.result == MAX_UPLOAD_BYTES
    payload: Any = duetime.client.tasks.download_payload(read)
    assert (payload, payload.content_type) == (LARGE, "video/mp4")


def test_the_asynchronous_client_uploads_and_downloads(duetime: Duetime) -> None:
    """The asynchronous client uploads a large payload, and downloads it unchanged."""

    async def create() -> object:
        task = await duetime.async_client.tasks.create("cut", payload=LARGE, delay_seconds=60)
        return await duetime.async_client.tasks.download_payload(await duetime.async_client.tasks.get(task.id))

    assert asyncio.run(create()) == LARGE


def test_a_batch_can_use_an_earlier_upload(duetime: Duetime, received: list[Any]) -> None:
    """`create_upload` returns the payload for a task in a batch."""
    payloads = [duetime.client.tasks.create_upload(each) for each in (b"one", b"two")]
    tasks: list[NewTask] = [{"type": "cut", "payload": each} for each in payloads]
    duetime.client.tasks.create_batch(tasks)
    duetime.run_until_idle()
    assert sorted(received) == [b"one", b"two"]


def test_the_api_returns_a_link_to_an_uploaded_payload(duetime: Duetime) -> None:
    """Responses have the payload's size, type and link, but not its bytes."""
    task = duetime.client.tasks.create("cut", payload=LARGE, delay_seconds=60)
    shown: Any = duetime.client.tasks.get(task.id).payload
    assert shown["$binary"].keys() == {"url", "size", "content_type"}
    assert shown["$binary"]["size"] == MAX_UPLOAD_BYTES
    (listed,) = duetime.client.tasks.list(expand=["payload"])
    assert listed.payload["$binary"]["size"] == MAX_UPLOAD_BYTES  # type: ignore[index]  # any JSON


def test_a_repeated_creation_creates_one_task(duetime: Duetime, received: list[Any]) -> None:
    """Repeating the call with the same idempotency key creates no second task, even after the upload was used."""
    first = duetime.client.tasks.create("cut", payload=LARGE, idempotency_key="order-17")
    again = duetime.client.tasks.create("cut", payload=LARGE, idempotency_key="order-17")
    duetime.run_until_idle()
    assert first.id == again.id
    assert len(received) == 1


def test_an_endpoint_gets_the_uploaded_bytes(duetime: Duetime) -> None:
    """A call with a custom method sends an uploaded payload of five megabytes as its body."""
    duetime.http.respond_with(URL, lambda _request: HttpReply(200))
    duetime.client.tasks.create("send", payload=LARGE, target={"kind": "http", "url": URL, "method": "PUT"})
    duetime.run_until_idle()
    (request,) = duetime.http.requests
    assert (request.body, request.headers["Content-Type"]) == (LARGE, "video/mp4")


def test_a_pull_worker_downloads_the_payload(duetime: Duetime) -> None:
    """The lease contains a link, with which the client downloads the payload."""
    duetime.pull("vm.backup")
    duetime.client.tasks.create("vm.backup", payload=LARGE)
    duetime.run_until_idle()
    (lease,) = duetime.client.leases.acquire(["vm.backup"], wait_seconds=5)
    shown: Any = lease.task.payload
    assert "url" in shown["$binary"]
    assert duetime.client.tasks.download_payload(lease.task) == LARGE


def test_an_upload_is_written_once_and_used_once(duetime: Duetime, received: list[Any]) -> None:
    """A size or type other than requested, a second write, and a second task with the same upload are rejected."""
    upload = begun(duetime)
    assert sent(duetime, upload, b"too long for it") == 403
    assert sent(duetime, upload, content_type="text/html") == 403
    assert refusal(duetime) == ("payload.$upload", "not_allowed")
    assert sent(duetime, upload) == 200
    assert sent(duetime, upload, b"9876543210") == 412
    duetime.client.tasks.create("cut", payload={"$upload": "u-1"})
    assert refusal(duetime) == ("payload.$upload", "not_allowed")
    duetime.run_until_idle()
    assert [(each, each.content_type) for each in received] == [(SMALL, "text/plain")]


def test_each_task_of_a_batch_can_have_an_upload(duetime: Duetime, received: list[Any]) -> None:
    """Each task in a batch can name an upload, and if an upload does not exist, only its task is refused."""
    sent(duetime, begun(duetime))
    tasks: list[NewTask] = [{"type": "cut", "payload": {"$upload": each}} for each in ("u-1", "u-2")]
    first, second = duetime.client.tasks.create_batch(tasks)
    duetime.run_until_idle()
    assert received == [SMALL]
    assert not isinstance(first, ApiError)
    assert isinstance(second, InvalidRequest)


def test_an_upload_is_accepted_only_when_a_task_is_created(duetime: Duetime) -> None:
    """Schedules, nodes, updates, tasks that may replace others, and groups refuse an upload by its field."""
    sent(duetime, begun(duetime))
    client, upload = duetime.client, {"$upload": "u-1"}
    task: Any = {"type": "cut", "payload": upload}
    waiting = client.tasks.create("cut", delay_seconds=60)
    for call, field in (
        (lambda: client.schedules.create("hourly", rate="1 hour", task=task), "task.payload.$upload"),
        (lambda: client.topologies.create({"nodes": {"one": task}}), "nodes.one.payload.$upload"),
        (lambda: client.tasks.update(waiting.id, payload=upload), "payload.$upload"),
        (lambda: client.tasks.create("cut", payload=upload, debounce={"key": "k", "seconds": 5}), "payload.$upload"),
        (lambda: client.groups.close("g", task=task), "on_complete.task.payload.$upload"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            call()
        assert refused.value.errors[0].field == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"size": MAX_UPLOAD_BYTES + 1}, "size"),
        ({"size": 0}, "size"),
        ({}, "size"),
        ({"size": 1, "id": "a/b"}, "id"),
        ({"size": 1, "content_type": "png"}, "content_type"),
        ({"size": 1, "key": "x"}, "key"),
    ],
)
def test_an_invalid_upload_is_rejected_with_its_field(duetime: Duetime, body: object, field: str) -> None:
    """The error for an invalid upload names the field."""
    answer = requested(duetime, body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_the_client_rejects_a_payload_above_the_upload_limit(duetime: Duetime) -> None:
    """A payload above the limit is refused before anything is sent."""
    client, calls = duetime.client, duetime._account.calls
    with pytest.raises(PayloadTooLarge):
        client.tasks.create("cut", payload=bytes(MAX_UPLOAD_BYTES + 1))
    assert (duetime._account.calls, duetime._account.s3.objects) == (calls, {})


def test_a_payload_at_the_request_limit_is_not_uploaded(duetime: Duetime) -> None:
    """Only a payload that is larger than the request limit needs the additional requests of an upload."""
    task = duetime.client.tasks.create("cut", payload=bytes(MAX_PAYLOAD_BYTES), delay_seconds=60)
    assert duetime.client.tasks.get(task.id).payload == bytes(MAX_PAYLOAD_BYTES)


def test_deleting_a_task_deletes_its_uploaded_payload(duetime: Duetime) -> None:
    """The payload's object is deleted with the task; the upload was already deleted when the task was created."""
    task = duetime.client.tasks.create("cut", payload=LARGE, delay_seconds=60)
    objects = duetime._account.s3.objects
    assert [key.partition("/")[0] for _, key in objects] == [task.id]
    duetime.client.tasks.delete(task.id)
    assert not objects
