"""Payloads and results that are encrypted with the user's own key."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.fernet import Fernet

from duetime.domain.limits import MAX_PAYLOAD_BYTES
from duetime.handlers import Context, use_codec
from duetime_client import Binary, Client, Task
from duetime_common.payload_codecs import ENCRYPTED

if TYPE_CHECKING:
    from duetime_testing import Duetime

SECRET = "4111-1111-1111-1111"  # noqa: S105 - an example


class Codec:
    """Encrypts with a key, each time to other bytes."""

    def __init__(self) -> None:
        self._fernet = Fernet(Fernet.generate_key())

    def encode(self, data: bytes) -> bytes:
        """Encrypt."""
        return self._fernet.encrypt(data)

    def decode(self, data: bytes) -> bytes:
        """Decrypt."""
        return self._fernet.decrypt(data)


@pytest.fixture
def encrypting(duetime: Duetime) -> Duetime:
    """An account whose clients and handlers have a codec."""
    duetime.use_codec(Codec())
    return duetime


@pytest.fixture
def received(encrypting: Duetime) -> list[Any]:
    """The payloads that the handler of `charge` was given; it returns them."""
    found: list[Any] = []

    def charge(_context: Context, payload: object) -> object:
        found.append(payload)
        return payload

    encrypting.register("charge", charge)
    return found


def seen_by_others(duetime: Duetime, task_id: str) -> Task:
    """The task as a client without the codec reads it."""
    use_codec(None)
    duetime.__dict__.pop("client").close()
    return duetime.client.tasks.get(task_id)


def test_the_handler_and_the_client_read_what_nobody_else_can(encrypting: Duetime, received: list[Any]) -> None:
    """The payload and the result are plain in the processes with the codec, and encrypted in the API."""
    task = encrypting.client.tasks.create("charge", payload={"card": SECRET})
    encrypting.run_until_idle()
    assert received == [{"card": SECRET}]
    read = encrypting.client.tasks.get(task.id)
    assert (read.payload, read.result) == ({"card": SECRET}, {"card": SECRET})
    other = seen_by_others(encrypting, task.id)
    assert SECRET not in json.dumps(other.document)
    for found in (other.payload, other.result):
        assert isinstance(found, Binary)
        assert found.content_type == ENCRYPTED


@pytest.mark.parametrize(
    "payload",
    [
        Binary(b"\x00\xff", "image/png"),
        Binary(Random(1).randbytes(MAX_PAYLOAD_BYTES), "image/png"),  # noqa: S311 - an example
        "text",
        [1.5, {"a": None}],
        "x" * MAX_PAYLOAD_BYTES,
    ],
    ids=["bytes", "uploaded bytes", "text", "json", "uploaded json"],
)
def test_any_payload_is_encrypted(encrypting: Duetime, payload: object) -> None:
    """Bytes keep their content type, and a payload that is too large once it is encrypted is uploaded."""
    found: list[Any] = []
    encrypting.register("keep", lambda _context, given: found.append(given))
    task = encrypting.client.tasks.create("keep", payload=payload)
    encrypting.run_until_idle()
    assert found == [payload]
    assert getattr(found[0], "content_type", "") == getattr(payload, "content_type", "")
    read = encrypting.client.tasks.get(task.id)
    assert encrypting.client.tasks.download_payload(read) == payload


def test_every_way_of_creating_tasks_encrypts(encrypting: Duetime, received: list[Any]) -> None:
    """Batches, schedules, their runs, nodes of topologies and updates are encrypted; a graph is not."""
    client = encrypting.client
    client.tasks.create_batch([{"type": "charge", "payload": "batch"}])
    client.schedules.create("hourly", rate="1 hour", task={"type": "charge", "payload": "schedule"})
    client.schedules.run("hourly", payload="requested")
    client.topologies.create({"nodes": {"one": {"type": "charge", "payload": "node"}}})
    graph = {"nodes": {"one": {"type": "charge", "payload": "inner"}}}
    client.tasks.create("graph", payload=graph, target={"kind": "topology"})
    updated = client.tasks.create("charge", delay_seconds=60)
    client.tasks.update(updated.id, payload="updated")
    encrypting.advance(minutes=5)
    assert sorted(set(received)) == ["batch", "inner", "node", "requested", "schedule", "updated"]
    shown: Any = client.schedules.get("hourly").task
    assert shown["payload"] == "schedule"
    kinds = {task.payload: task for task in client.tasks.list(expand=["payload"], type="charge", include_nodes=True)}
    assert "batch" in kinds


def test_a_pull_worker_decrypts_and_encrypts(encrypting: Duetime) -> None:
    """The lease has the plain payload for a client with the codec, and the result is encrypted."""
    encrypting.pull("vm.backup")
    task = encrypting.client.tasks.create("vm.backup", payload={"card": SECRET})
    encrypting.run_until_idle()
    (lease,) = encrypting.client.leases.acquire(["vm.backup"], wait_seconds=5)
    assert lease.task.payload == {"card": SECRET}
    encrypting.client.leases.complete(lease.id, {"paid": SECRET})
    assert encrypting.client.tasks.get(task.id).result == {"paid": SECRET}
    assert SECRET not in json.dumps(seen_by_others(encrypting, task.id).document)


def test_a_node_reads_the_results_of_its_parents(encrypting: Duetime) -> None:
    """Inputs are decrypted for the handler."""
    inputs: list[object] = []

    def work(context: Context, payload: str) -> str:
        inputs.append(context.inputs)
        return payload.upper()

    encrypting.register("step", work)
    nodes = {
        "a": {"type": "step", "payload": "one"},
        "b": {"type": "step", "payload": "two", "depends_on": ["a"], "inputs": ["a"]},
    }
    encrypting.client.topologies.create({"nodes": nodes})
    encrypting.run_until_idle()
    assert inputs == [None, {"a": "ONE"}]


@pytest.mark.usefixtures("received")
def test_a_condition_cannot_read_an_encrypted_result(encrypting: Duetime) -> None:
    """The node fails, and its error says that the result is encrypted; conditions on outcomes work."""
    nodes = {
        "a": {"type": "charge", "payload": {"ok": True}},
        "b": {"type": "charge", "depends_on": ["a"], "when": "parents.a.result.ok"},
        "c": {"type": "charge", "payload": 1, "depends_on": ["a"], "when": "parents.a.outcome == 'succeeded'"},
    }
    task = encrypting.client.topologies.create({"nodes": nodes, "on_failure": "continue"})
    encrypting.run_until_idle()
    found = encrypting.client.topologies.get(task.id).nodes
    assert found["c"].state == "succeeded"
    failed = encrypting.client.tasks.get(str(found["b"].task_id))
    assert failed.error is not None
    assert failed.error.message.endswith("not true or false: the result of a is encrypted")


def test_a_handler_without_the_codec_fails_at_once(encrypting: Duetime, received: list[Any]) -> None:
    """The error says what is missing, and the handler is not called."""
    task = encrypting.client.tasks.create("charge", payload={"card": SECRET}, delay_seconds=5)
    use_codec(None)
    encrypting.run_until_idle()
    encrypting.advance(minutes=1)
    failed = encrypting.client.tasks.get(task.id)
    assert failed.error is not None
    assert (failed.state, failed.attempt, failed.error.type) == ("failed", 1, "CodecMissing")
    assert not received


@pytest.mark.parametrize("payload", [{"card": SECRET}, "x" * MAX_PAYLOAD_BYTES], ids=["sent", "uploaded"])
def test_a_repeated_creation_is_one_task(encrypting: Duetime, payload: object) -> None:
    """The same call with the same idempotency key is a repeat, although its encrypted bytes differ."""
    create = encrypting.client.tasks.create
    first, again = (create("charge", payload=payload, delay_seconds=60, idempotency_key="order-17") for _ in range(2))
    assert first.id == again.id


def test_a_repeated_attempt_creates_its_children_once(encrypting: Duetime, received: list[Any]) -> None:
    """The keys of a handler's creations do not depend on the encrypted bytes."""

    def parent(context: Context, _payload: object) -> None:
        context.client.tasks.create("charge", payload={"card": SECRET})
        if context.attempt == 1:
            raise ConnectionError

    encrypting.register("parent", parent)
    encrypting.client.tasks.create("parent", retry={"initial_seconds": 0})
    encrypting.run_until_idle()
    assert received == [{"card": SECRET}]


def test_what_is_not_encrypted_passes_as_it_is(encrypting: Duetime, received: list[Any]) -> None:
    """Tasks that another client has created, without a codec, run in handlers with one."""
    transport = encrypting.client._runner.http._transport
    with Client("http://localhost", http_transport=transport) as other:
        other.tasks.create("charge", payload={"plain": True})
    encrypting.run_until_idle()
    assert received == [{"plain": True}]
