"""Tests that payloads, results, steps, checkpoints, progress messages and errors are encrypted with the user's key."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.fernet import Fernet

from duetime.adapters.dynamodb.attribute_values import inflated
from duetime.domain.limits import (
    MAX_CHECKPOINT_BYTES,
    MAX_ENCRYPTED_TEXT_LENGTH,
    MAX_ERROR_MESSAGE_LENGTH,
    MAX_PAYLOAD_BYTES,
    MAX_RESULT_BYTES,
    MAX_STEP_RESULT_BYTES,
)
from duetime.handlers import Context, RetryIn, Unretriable, use_codec
from duetime_client import Binary, Client, DecryptionFailed, Task
from duetime_client.pull_attempt import Attempt
from duetime_common.payload_codecs import ENCRYPTED, ENCRYPTED_TEXT

if TYPE_CHECKING:
    from datetime import datetime

    from duetime_client.run_context import Context as PullContext
    from duetime_testing import Duetime

SECRET = "4111-1111-1111-1111"  # noqa: S105 - an example


class Codec:
    """A codec that encrypts with a key, each time to different bytes."""

    def __init__(self) -> None:
        self._fernet = Fernet(Fernet.generate_key())

    def encode(self, data: bytes) -> bytes:
        """Encrypt a value."""
        return self._fernet.encrypt(data)

    def decode(self, data: bytes) -> bytes:
        """Decrypt a value."""
        return self._fernet.decrypt(data)


@pytest.fixture
def encrypting(duetime: Duetime) -> Duetime:
    """Return an account whose clients and handlers have a codec."""
    duetime.use_codec(Codec())
    return duetime


@pytest.fixture
def received(encrypting: Duetime) -> list[Any]:
    """Record and return the payloads that the handler of `charge` gets."""
    found: list[Any] = []

    def charge(_context: Context, payload: object) -> object:
        found.append(payload)
        return payload

    encrypting.register("charge", charge)
    return found


def seen_by_others(duetime: Duetime, task_id: str) -> Task:
    """Return the task as a client without the codec reads it."""
    return others(duetime).tasks.get(task_id)


def others(duetime: Duetime) -> Client:
    """Return a client without the codec."""
    use_codec(None)
    duetime.__dict__.pop("client").close()
    return duetime.client


def all_seen_by_others(duetime: Duetime, task_id: str) -> str:
    """Return everything that a client without the codec can read about a task, as text."""
    client = others(duetime)
    read = [client.tasks.get(task_id), client.tasks.explain(task_id)]
    read += [
        *client.tasks.list_attempts(task_id),
        *client.tasks.list_steps(task_id),
        client.tasks.list_events(task_id),
    ]
    return json.dumps([each.document for each in read])


def stored_text(duetime: Duetime) -> str:
    """Return everything that was ever stored in the tables, decompressed, as text."""

    def readable(value: Any) -> Any:  # noqa: ANN401 - any attribute
        if isinstance(value, bytes):
            try:
                return inflated(value)
            except zlib.error:
                return value
        if isinstance(value, dict):
            return {name: readable(each) for name, each in value.items()}
        return [readable(each) for each in value] if isinstance(value, list | tuple) else value

    tables = duetime._account.dynamodb.tables.values()
    return repr([readable([table.partitions, table.earlier]) for table in tables])


def test_only_the_handler_and_the_client_can_read_encrypted_values(encrypting: Duetime, received: list[Any]) -> None:
    """The payload and the result are plain in processes with the codec, and encrypted in the API."""
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
    ("payload", "is_uploaded"),
    [
        (Binary(b"\x00\xff", "image/png"), False),
        (Binary(Random(1).randbytes(MAX_PAYLOAD_BYTES), "image/png"), True),  # noqa: S311 - an example
        ("text", False),
        ([1.5, {"a": None}], False),
        ("x" * MAX_PAYLOAD_BYTES, True),
    ],
    ids=["bytes", "uploaded bytes", "text", "json", "uploaded json"],
)
def test_any_payload_is_encrypted(encrypting: Duetime, payload: object, *, is_uploaded: bool) -> None:
    """Bytes keep their content type, and a payload that is too large after encryption is uploaded."""
    found: list[Any] = []
    encrypting.register("keep", lambda _context, given: found.append(given))
    task = encrypting.client.tasks.create("keep", payload=payload)
    encrypting.run_until_idle()
    assert found == [payload]
    assert getattr(found[0], "content_type", "") == getattr(payload, "content_type", "")
    read = encrypting.client.tasks.get(task.id)
    assert encrypting.client.tasks.download_payload(read) == payload
    document: Any = seen_by_others(encrypting, task.id).document["payload"]
    shown = document["$binary"]
    assert (shown["content_type"], "url" in shown) == (ENCRYPTED, is_uploaded)


def test_every_way_of_creating_tasks_encrypts_payloads(encrypting: Duetime, received: list[Any]) -> None:
    """Batches, schedules, their runs, topology nodes and updates are encrypted, but a topology's graph is not."""
    client = encrypting.client
    batch, schedule, requested, node, changed = secrets = [f"{number}: {SECRET}" for number in range(5)]
    client.tasks.create_batch([{"type": "charge", "payload": batch}])
    client.schedules.create("hourly", rate="1 hour", task={"type": "charge", "payload": schedule})
    client.schedules.run("hourly", payload=requested)
    client.topologies.create({"nodes": {"one": {"type": "charge", "payload": node}}})
    graph = {"nodes": {"one": {"type": "charge", "payload": "inner"}}}
    client.tasks.create("graph", payload=graph, target={"kind": "topology"})
    updated = client.tasks.create("charge", delay_seconds=60)
    client.tasks.update(updated.id, payload=changed)
    encrypting.advance(minutes=5)
    assert set(received) == {*secrets, "inner"}
    shown: Any = client.schedules.get("hourly").task
    assert shown["payload"] == schedule
    assert batch in {task.payload for task in client.tasks.list(expand=["payload"], type="charge", include_nodes=True)}
    assert SECRET not in stored_text(encrypting)


def test_a_pull_worker_decrypts_and_encrypts(encrypting: Duetime) -> None:
    """A pull worker with the codec gets the plain payload, and its result is encrypted."""
    encrypting.pull("vm.backup")
    task = encrypting.client.tasks.create("vm.backup", payload={"card": SECRET})
    encrypting.run_until_idle()
    (lease,) = encrypting.client.leases.acquire(["vm.backup"], wait_seconds=5)
    assert lease.task.payload == {"card": SECRET}
    encrypting.client.leases.complete(lease.id, {"paid": SECRET})
    assert encrypting.client.tasks.get(task.id).result == {"paid": SECRET}
    assert SECRET not in json.dumps(seen_by_others(encrypting, task.id).document)


def test_a_node_reads_the_results_of_its_parents(encrypting: Duetime) -> None:
    """A node's inputs are decrypted for its handler."""
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
    """A node with a condition on an encrypted result fails with an error that says why; conditions on outcomes work."""
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
    """Without the codec, the handler is not called for an encrypted payload, and the error says what is missing."""
    task = encrypting.client.tasks.create("charge", payload={"card": SECRET}, delay_seconds=5)
    use_codec(None)
    encrypting.run_until_idle()
    encrypting.advance(minutes=1)
    failed = encrypting.client.tasks.get(task.id)
    assert failed.error is not None
    assert (failed.state, failed.attempt, failed.error.type) == ("failed", 1, "CodecMissing")
    assert not received


@pytest.mark.parametrize("payload", [{"card": SECRET}, "x" * MAX_PAYLOAD_BYTES], ids=["sent", "uploaded"])
def test_a_repeated_creation_creates_one_task(encrypting: Duetime, payload: object) -> None:
    """The same call with the same idempotency key counts as a repeat, although its encrypted bytes differ."""
    create = encrypting.client.tasks.create
    first, again = (create("charge", payload=payload, delay_seconds=60, idempotency_key="order-17") for _ in range(2))
    assert first.id == again.id


def test_a_repeated_attempt_creates_its_children_once(encrypting: Duetime, received: list[Any]) -> None:
    """The idempotency keys of a handler's creations do not depend on the encrypted bytes."""

    def parent(context: Context, _payload: object) -> None:
        context.client.tasks.create("charge", payload={"card": SECRET})
        if context.attempt == 1:
            raise ConnectionError

    encrypting.register("parent", parent)
    encrypting.client.tasks.create("parent", retry={"initial_seconds": 0})
    encrypting.run_until_idle()
    assert received == [{"card": SECRET}]


def test_payloads_that_are_not_encrypted_pass_unchanged(encrypting: Duetime, received: list[Any]) -> None:
    """Tasks from a client without a codec run in handlers with a codec."""
    transport = encrypting.client._runner.http._transport
    with Client("http://localhost", http_transport=transport) as other:
        other.tasks.create("charge", payload={"plain": True})
    encrypting.run_until_idle()
    assert received == [{"plain": True}]


def test_a_checkpoint_is_encrypted_outside_of_the_handlers(encrypting: Duetime) -> None:
    """A checkpoint is plain in the handlers, and no part of it is in the task's items in the table."""
    seen: list[object] = []

    def copy(context: Context, _payload: object) -> None:
        seen.append(context.checkpoint)
        context.save_checkpoint({"card": SECRET})
        if context.attempt == 1:
            raise ConnectionError

    encrypting.register("copy", copy)
    encrypting.client.tasks.create("copy", retry={"initial_seconds": 0})
    encrypting.run_until_idle()
    assert seen == [None, {"card": SECRET}]
    assert SECRET not in stored_text(encrypting)


def test_a_checkpoint_of_a_pause_is_encrypted(encrypting: Duetime) -> None:
    """If an attempt stops for a pause with a checkpoint, the checkpoint is encrypted, too."""
    seen: list[object] = []

    def copy(context: Context, _payload: object) -> None:
        seen.append(context.checkpoint)
        if context.checkpoint is None:
            encrypting.client.tasks.pause(context.task_id)
            encrypting.sleep(60)
            context.stop_if_requested({"card": SECRET})

    encrypting.register("copy", copy)
    task = encrypting.client.tasks.create("copy", timeout_seconds=120)
    encrypting.run_until_idle()
    assert encrypting.client.tasks.get(task.id).state == "paused"
    assert SECRET not in stored_text(encrypting)
    encrypting.client.tasks.resume(task.id)
    encrypting.run_until_idle()
    assert seen == [None, {"card": SECRET}]


def test_results_of_steps_are_encrypted(encrypting: Duetime) -> None:
    """Both attempts and the client get a step's plain result, and other clients get the encrypted result."""
    calls: list[int] = []
    seen: list[object] = []

    def charge(number: int) -> dict[str, object]:
        calls.append(number)
        return {"card": SECRET, "number": number}

    def order(context: Context, _payload: object) -> None:
        seen.append(context.step("charge", charge, context.attempt))
        seen.append(context.step("nothing", lambda: None))
        if context.attempt == 1:
            raise ConnectionError
        seen.append(context.steps)

    encrypting.register("order", order)
    task = encrypting.client.tasks.create("order", retry={"initial_seconds": 0})
    encrypting.run_until_idle()
    result = {"card": SECRET, "number": 1}
    assert (seen, calls) == ([result, None, result, None, {"charge": result, "nothing": None}], [1])
    assert [step.result for step in encrypting.client.tasks.list_steps(task.id)] == [result, None]
    assert SECRET not in all_seen_by_others(encrypting, task.id) + stored_text(encrypting)


def test_values_stored_without_the_codec_can_be_read(duetime: Duetime) -> None:
    """An attempt with the codec can read the checkpoint and the step of an attempt without the codec."""
    seen: list[object] = []

    def order(context: Context, _payload: object) -> None:
        seen.extend([context.checkpoint, context.step("charge", lambda: context.attempt)])
        if context.attempt == 1:
            context.save_checkpoint({"row": 7})
            use_codec(Codec())
            raise ConnectionError

    duetime.register("order", order)
    duetime.client.tasks.create("order", retry={"initial_seconds": 0})
    duetime.run_until_idle()
    assert seen == [None, 1, {"row": 7}, 1]


@pytest.mark.parametrize("stores", ["checkpoint", "step"])
def test_a_handler_without_the_codec_fails_on_encrypted_steps_or_checkpoints(encrypting: Duetime, stores: str) -> None:
    """A handler without the codec fails at once if an earlier attempt has stored encrypted values."""

    def order(context: Context, _payload: object) -> None:
        if stores == "checkpoint":
            context.save_checkpoint("kept")
        context.step("charge", lambda: SECRET)
        use_codec(None)
        raise ConnectionError

    encrypting.register("order", order)
    task = encrypting.client.tasks.create("order", retry={"initial_seconds": 0})
    encrypting.run_until_idle()
    failed = encrypting.client.tasks.get(task.id)
    assert failed.error is not None
    assert (failed.attempt, failed.error.type) == (2, "CodecMissing")


@pytest.mark.parametrize(
    ("most", "error"), [(MAX_CHECKPOINT_BYTES, "CheckpointInvalid"), (MAX_STEP_RESULT_BYTES, "StepInvalid")]
)
def test_size_limits_apply_to_the_encrypted_values(encrypting: Duetime, most: int, error: str) -> None:
    """A value that is too large only after encryption fails the task, and the message states both sizes."""

    def order(context: Context, _payload: object) -> None:
        value = "x" * (most - 2)
        if most == MAX_CHECKPOINT_BYTES:
            context.save_checkpoint(value)
        context.step("charge", lambda: value)

    encrypting.register("order", order)
    task = encrypting.client.tasks.create("order")
    encrypting.run_until_idle()
    failed = encrypting.client.tasks.get(task.id)
    assert failed.error is not None
    assert (failed.attempt, failed.error.type) == (1, error)
    assert f"{most} are allowed" in failed.error.message


def test_messages_of_progress_are_encrypted(encrypting: Duetime) -> None:
    """The percentage stays readable for the service, and a long message is cut before it is encrypted."""

    def copy(context: Context, _payload: object) -> None:
        context.progress(40, f"card {SECRET} " + "x" * 1_000)

    encrypting.register("copy", copy)
    task = encrypting.client.tasks.create("copy")
    encrypting.run_until_idle()
    progress = encrypting.client.tasks.get(task.id).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (40, f"card {SECRET} {'x' * 39}")
    hidden = seen_by_others(encrypting, task.id).progress
    assert hidden is not None
    assert (hidden.percent, (hidden.message or "").startswith(ENCRYPTED_TEXT)) == (40, True)


def test_messages_and_tracebacks_of_errors_are_encrypted(encrypting: Duetime) -> None:
    """The client reads the errors of all attempts; other clients can only read the type."""

    def charge(context: Context, _payload: object) -> None:
        raise ConnectionError(f"attempt {context.attempt}: {SECRET}")

    encrypting.register("charge", charge)
    task = encrypting.client.tasks.create("charge", retry={"initial_seconds": 0, "max_attempts": 3})
    encrypting.run_until_idle()
    failed = encrypting.client.tasks.wait(task.id)
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("ConnectionError", f"attempt 3: {SECRET}")
    attempts = encrypting.client.tasks.list_attempts(task.id)
    errors = [attempt.error for attempt in attempts if attempt.error]
    assert [error.message for error in errors] == [f"attempt {number}: {SECRET}" for number in (1, 2, 3)]
    assert (errors[-1].traceback or "").endswith(f"ConnectionError: attempt 3: {SECRET}\n")
    assert f"ConnectionError: attempt 3: {SECRET}" in str(encrypting.client.tasks.explain(task.id).document)
    text = all_seen_by_others(encrypting, task.id)
    assert "ConnectionError" in text
    assert SECRET not in text + stored_text(encrypting)


def test_retry_decisions_work_with_encrypted_errors(encrypting: Duetime) -> None:
    """As without a codec, an error that must not be retried is not retried, and a requested wait is applied."""
    started: list[datetime] = []

    def charge(context: Context, _payload: object) -> None:
        started.append(encrypting.now)
        raise RetryIn(90, SECRET) if context.attempt == 1 else Unretriable(SECRET)

    encrypting.register("charge", charge)
    task = encrypting.client.tasks.create("charge")
    encrypting.run_until_idle()
    failed = encrypting.client.tasks.get(task.id)
    assert failed.error is not None
    assert (failed.state, failed.attempt, failed.error.type) == ("failed", 2, "Unretriable")
    assert (started[1] - started[0]).total_seconds() == 90
    assert [each.id for each in encrypting.client.tasks.list(error_type="Unretriable")] == [task.id]


@pytest.mark.parametrize("length", [0, 1, 80, MAX_ERROR_MESSAGE_LENGTH, 100_000])
def test_a_message_of_any_length_is_readable(encrypting: Duetime, length: int) -> None:
    """A string that is too long is cut before it is encrypted; a traceback is cut at its start."""
    message = ("é" * length)[:length]

    def charge(_context: Context, _payload: object) -> None:
        raise ValueError(message)

    encrypting.register("charge", charge)
    task = encrypting.client.tasks.create("charge", retry={"max_attempts": 1})
    encrypting.run_until_idle()
    (attempt,) = encrypting.client.tasks.list_attempts(task.id)
    assert attempt.error is not None
    shown, raised = attempt.error.message, attempt.error.traceback or ""
    assert shown == message if length <= 80 else shown.startswith("é" * 80)
    assert raised.endswith(f"ValueError{': ' if message else ''}{message[-80:]}\n" if length <= 80 else "é\n")
    hidden = seen_by_others(encrypting, task.id).error
    assert hidden is not None
    assert len(hidden.message) <= MAX_ENCRYPTED_TEXT_LENGTH


class Broken:
    """A codec that fails because its key service does not respond."""

    def encode(self, data: bytes) -> bytes:
        """Fail with a message that quotes the value."""
        raise OSError(data)

    def decode(self, data: bytes) -> bytes:
        """Fail with a message that quotes the value."""
        raise OSError(data)


def test_a_codec_that_fails_reveals_nothing(duetime: Duetime) -> None:
    """If a codec fails, the result is not stored, the attempt is retried, and a message is replaced by a fixed text."""
    client = duetime.client

    def charge(context: Context, _payload: object) -> str:
        context.progress(10, SECRET)
        if context.attempt == 1:
            raise ConnectionError(SECRET)
        return SECRET

    duetime.register("charge", charge)
    use_codec(Broken())
    task = client.tasks.create("charge", retry={"max_attempts": 2, "initial_seconds": 0})
    duetime.run_until_idle()
    first, second = (attempt.error for attempt in client.tasks.list_attempts(task.id))
    assert first is not None
    assert second is not None
    assert (first.type, first.message) == ("ConnectionError", "the text could not be encrypted")
    assert (second.type, second.message) == ("CodecFailed", "the codec could not encrypt the value: OSError")
    assert SECRET not in stored_text(duetime)


def test_a_context_for_tests_does_not_encrypt(encrypting: Duetime) -> None:
    """Unit tests can compare the plain results of steps and checkpoints, even if the package has set a codec."""
    steps: dict[str, object] = {"before": 1}
    checkpoints: list[object] = []
    context = Context.for_test(steps=steps, checkpoints=checkpoints)
    context.save_checkpoint({"row": 7})
    assert [context.step("before", lambda: 2), context.step("charge", lambda: [SECRET])] == [1, [SECRET]]
    assert (steps, checkpoints) == ({"before": 1, "charge": [SECRET]}, [{"row": 7}])
    encrypting.register("keep", lambda context, _payload: context.save_checkpoint("kept"))
    encrypting.perform("keep", call=(call := encrypting.call("keep")))
    assert call.saved_checkpoint == "kept"


def leased(duetime: Duetime, **options: Any) -> Attempt:  # noqa: ANN401 - fields of a creation
    """Create a task and return a pull worker's attempt."""
    duetime.pull("vm.backup")
    duetime.client.tasks.create("vm.backup", **options)
    duetime.run_until_idle()
    return leased_again(duetime)


def leased_again(duetime: Duetime) -> Attempt:
    """Return the next attempt of the task."""
    (lease,) = duetime.client.leases.acquire(["vm.backup"], wait_seconds=5)
    return Attempt(duetime.client, lease, 30)


def test_a_pull_worker_encrypts_stored_values(encrypting: Duetime) -> None:
    """Checkpoints, steps, progress and errors are plain only for the next attempt and the client."""
    seen: list[object] = []

    def backup(context: PullContext, _payload: object) -> object:
        seen.append([context.checkpoint, context.step("copy", lambda: [SECRET, context.attempt])])
        context.save_checkpoint({"card": SECRET})
        encrypting.client.leases.renew(attempt.leased.id, 40, SECRET)
        if context.attempt == 1:
            raise ConnectionError(f"of {SECRET}")
        return SECRET

    attempt = leased(encrypting, retry={"initial_seconds": 0})
    task_id = attempt.context.task_id
    assert attempt.run(backup) == "waiting"
    (failed,) = encrypting.client.tasks.list_attempts(task_id)
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("ConnectionError", f"of {SECRET}")
    assert (failed.error.traceback or "").endswith(f"ConnectionError: of {SECRET}\n")
    attempt = leased_again(encrypting)
    assert attempt.run(backup) == "succeeded"
    assert seen == [[None, [SECRET, 1]], [{"card": SECRET}, [SECRET, 1]]]
    read = encrypting.client.tasks.get(task_id)
    assert read.progress is not None
    assert (read.result, read.progress.message) == (SECRET, SECRET)
    text = all_seen_by_others(encrypting, task_id)
    assert "ConnectionError" in text
    assert SECRET not in text + stored_text(encrypting)


@pytest.mark.parametrize(
    ("stores", "error"),
    [
        ("checkpoint", f"CheckpointInvalid: the checkpoint has NUMBER bytes; {MAX_CHECKPOINT_BYTES} are allowed"),
        ("step", "StepInvalid: the API rejected the value: result: is larger than 32768 bytes (422 fields_invalid)"),
        ("result", f"ResultTooLarge: the result has NUMBER bytes; {MAX_RESULT_BYTES} are allowed"),
    ],
)
def test_size_limits_of_a_pull_worker_apply_to_the_encrypted_values(
    encrypting: Duetime, stores: str, error: str
) -> None:
    """A value that is too large only after encryption fails the task, and the error states the reason."""

    def backup(context: PullContext, _payload: object) -> object:
        if stores == "checkpoint":
            context.save_checkpoint("x" * (MAX_CHECKPOINT_BYTES - 2))
        if stores == "step":
            context.step("copy", lambda: "x" * (MAX_STEP_RESULT_BYTES - 2))
        return "x" * (MAX_RESULT_BYTES - 2)

    attempt = leased(encrypting)
    assert attempt.run(backup) == "failed"
    failed = encrypting.client.tasks.get(attempt.context.task_id).error
    assert failed is not None
    assert re.sub(r"has \d+ bytes", "has NUMBER bytes", f"{failed.type}: {failed.message}") == error


def test_a_pull_worker_without_the_codec_fails_at_once(encrypting: Duetime) -> None:
    """A pull worker without the codec fails a task with an encrypted payload, checkpoint or step."""

    def backup(context: PullContext, _payload: object) -> object:
        return context.step("copy", lambda: SECRET)

    def fails(context: PullContext, payload: object) -> None:
        backup(context, payload)
        raise ConnectionError

    assert leased(encrypting, retry={"initial_seconds": 0}).run(fails) == "waiting"
    encrypting.client.tasks.create("vm.backup", payload={"card": SECRET})
    others(encrypting)
    for _ in range(2):
        attempt = leased_again(encrypting)
        assert attempt.run(backup) == "failed"
        error = encrypting.client.tasks.get(attempt.context.task_id).error
        assert error is not None
        assert error.type == "CodecMissing"


def test_a_checkpoint_of_a_heartbeat_is_encrypted(encrypting: Duetime) -> None:
    """A program that sends heartbeats with the client needs no worker for encrypted checkpoints."""
    attempt = leased(encrypting)
    encrypting.client.leases.renew(attempt.leased.id, checkpoint={"card": SECRET})
    encrypting.client.leases.fail(attempt.leased.id, "Lost", retry_in_seconds=1)
    encrypting.advance(seconds=2)
    assert leased_again(encrypting).context.checkpoint == {"card": SECRET}
    assert SECRET not in stored_text(encrypting)


def test_a_failing_codec_makes_a_pull_worker_retry(encrypting: Duetime) -> None:
    """If the codec fails, neither the result nor the error's text is stored unencrypted, and the attempt is retried."""
    attempt = leased(encrypting, retry={"initial_seconds": 0})
    session = attempt._client._runner.session
    attempt._client._runner.session = replace(session, codec=Broken())
    assert attempt.run(lambda _context, _payload: SECRET) == "waiting"
    attempt._client._runner.session = session
    (failed,) = encrypting.client.tasks.list_attempts(attempt.context.task_id)
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == ("CodecFailed", "the text could not be encrypted")
    assert SECRET not in stored_text(encrypting)


def test_reports_of_a_deferred_attempt_are_encrypted(encrypting: Duetime) -> None:
    """A client with the codec encrypts the progress and the failure of a deferred attempt."""
    encrypting.register("charge", lambda context, _payload: context.defer())
    task = encrypting.client.tasks.create("charge", notify_within_seconds=60)
    encrypting.advance(seconds=1)
    encrypting.client.tasks.report_progress(task.id, 1, 40, SECRET)
    encrypting.client.tasks.notify_failure(task.id, 1, "Refused", SECRET, retriable=False)
    failed = encrypting.client.tasks.get(task.id)
    assert failed.error is not None
    assert failed.progress is not None
    assert (failed.error.type, failed.error.message, failed.progress.message) == ("Refused", SECRET, SECRET)
    assert SECRET not in stored_text(encrypting)


def test_assertions_compare_decrypted_executions(encrypting: Duetime, received: list[Any]) -> None:
    """Assertions compare decrypted payloads and report decrypted errors, as the handlers see them."""

    def refuse(_context: Context, _payload: object) -> None:
        raise Unretriable(SECRET)

    encrypting.register("refuse", refuse)
    encrypting.client.tasks.create("charge", payload={"card": SECRET})
    encrypting.client.tasks.create("refuse")
    encrypting.run_until_idle()
    charged, refused = encrypting.executions
    assert received == [charged.payload]
    assert refused.error == f"Unretriable: {SECRET}"


def test_a_client_with_another_key_raises_an_error(encrypting: Duetime, received: list[Any]) -> None:
    """A payload that a client cannot decrypt raises an error, but an encrypted error message is returned unchanged."""
    task = encrypting.client.tasks.create("charge", payload={"card": SECRET}, delay_seconds=60)
    encrypting.register("refuse", lambda _context, _payload: 1 / 0)
    failed = encrypting.client.tasks.create("refuse", retry={"max_attempts": 1})
    encrypting.run_until_idle()
    encrypting.__dict__.pop("client").close()
    use_codec(Codec())
    with pytest.raises(DecryptionFailed, match="InvalidToken"):
        encrypting.client.tasks.get(task.id)
    error = encrypting.client.tasks.get(failed.id).error
    assert error is not None
    assert (error.type, error.message.startswith(ENCRYPTED_TEXT)) == ("ZeroDivisionError", True)
    assert received == []
