"""Tests a pull worker with the real API."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from duetime import composition, handlers
from duetime.adapters.aws_clients import Clients
from duetime.adapters.runtime.process import SystemClock
from duetime.composition import Platform
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime_client import Client, Forbidden, Task, Unreachable
from duetime_client.commands.app import app
from duetime_client.pull_attempt import Attempt, acknowledge_within
from duetime_client.worker import (
    AsyncContext,
    ClientMissing,
    Context,
    LeaseLost,
    RetryIn,
    Unretriable,
    Worker,
    secret,
)
from duetime_client.worker_events import DuplicateHandler, WorkerEvent, WorkerIdle
from duetime_common.limits import MAX_CHECKPOINT_BYTES, MAX_STEP_RESULT_BYTES
from duetime_testing.fakes.task_table import new_table
from tests.client.api_server import ApiServer, Door
from tests.fakes.session import FakeSession
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from duetime_client import RetryPolicy
    from duetime_client.leases import LeasedTask, LeaseState

TYPE = "pulled"
AT_ONCE: RetryPolicy = {"max_attempts": 3, "initial_seconds": 0}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """Serve the API with one type that everyone may pull and one type that nobody may pull."""
    session = FakeSession(SystemClock().now)
    session.s3.create_bucket(Bucket="contents")

    def queue() -> str:
        return str(session.sqs.create_queue(QueueName=uuid4().hex)["QueueUrl"])

    environ: dict[str, str] = {
        Variable.TABLE: new_table(session.client("dynamodb")),
        Variable.BUCKET: "contents",
        Variable.AUTHENTICATION: "none",
        **{variable: queue() for variable in QUEUE_VARIABLES.values()},
        Variable.PULLED_QUEUES: json.dumps({TYPE: queue()}),
        Variable.PULLERS: json.dumps({TYPE: ["*"]}),
    }
    composition.use(Platform(environ=environ, clients=Clients(session)))  # type: ignore[arg-type]  # a stand-in
    made = ApiServer()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()
    composition.use(None)


@pytest.fixture
def client(server: ApiServer) -> Iterator[Client]:
    """Return a client of the server."""
    with Client(server.url) as made:
        yield made


class Running:
    """A worker in a separate thread, whose events are recorded."""

    def __init__(self, client: Client, **settings: Any) -> None:  # noqa: ANN401 - any setting of a worker
        self.seen: list[WorkerEvent] = []
        waits = {"wait_seconds": 0, "pause_seconds": 0.02, "lease_seconds": 60, "name": "w1"}
        self.worker = Worker(client, on_event=self.seen.append, **{**waits, **settings})
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.worker.run()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.stop()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def did(self) -> list[str]:
        """The recorded events."""
        return [seen.what for seen in self.seen]


def ended(client: Client, task: Task) -> Task:
    """Return the task after it has ended."""
    until(lambda: client.tasks.get(task.id).is_terminal)
    return client.tasks.get(task.id)


def is_running(client: Client, task: Task) -> bool:
    """Return whether the task is running."""
    return client.tasks.get(task.id).state == "running"


def test_a_handler_can_read_the_inputs_of_its_node(client: Client) -> None:
    """A topology node's handler can read the node's inputs; other tasks have no inputs."""
    client.tasks.create(TYPE)
    (leased,) = client.leases.acquire([TYPE])
    assert Attempt(client, leased, 30).context.inputs is None
    of_a_node = leased.model_copy(update={"inputs": {"top": {"rows": 3}}})
    assert Attempt(client, of_a_node, 30).context.inputs == {"top": {"rows": 3}}


def test_a_worker_runs_the_tasks_of_its_types(client: Client) -> None:
    """Each task runs once with its own payload, and the history names the worker."""
    running = Running(client, concurrency=3)
    done: list[str] = []

    @running.worker.task(TYPE)
    def double(context: Context, payload: dict[str, int]) -> object:
        done.append(context.task_id)
        return {"twice": payload["n"] * 2, "fence": context.fence}

    tasks = [client.tasks.create(TYPE, payload={"n": number}) for number in range(7)]
    with running:
        results = [ended(client, task).result for task in tasks]
    assert results == [{"twice": 2 * number, "fence": 1} for number in range(7)]
    assert sorted(done) == sorted(task.id for task in tasks)
    assert client.tasks.list_attempts(tasks[0].id)[0].worker == "w1"


def test_an_exception_of_a_handler_fails_the_attempt(client: Client) -> None:
    """A handler's ordinary error is retried, an `Unretriable` error is not, and the class and message are reported."""
    running = Running(client)

    @running.worker.task(TYPE)
    def fail(context: Context, payload: object) -> object:
        if payload == "never":
            raise Unretriable("no use")
        if context.attempt == 1:
            raise LookupError("no such row")
        return None

    retry = {"max_attempts": 2, "initial_seconds": 0}
    with running:
        again = ended(client, client.tasks.create(TYPE, retry=retry))  # type: ignore[arg-type] # a plain dictionary
        never = ended(client, client.tasks.create(TYPE, payload="never"))
    assert (again.state, again.attempt) == ("succeeded", 2)
    assert (never.state, never.attempt) == ("failed", 1)
    assert never.error is not None
    assert (never.error.type, never.error.message) == ("Unretriable", "no use")
    assert "waiting" in running.did()


def test_a_handler_sets_the_wait_before_the_next_attempt(client: Client) -> None:
    """`RetryIn` replaces the retry policy's wait, and the attempt counts."""
    running = Running(client)

    @running.worker.task(TYPE)
    def fail(context: Context, _payload: object) -> int:
        if context.attempt == 1:
            raise RetryIn(0.001, "the bank is closed")
        return context.attempt

    retry: RetryPolicy = {"max_attempts": 2, "initial_seconds": 86_400, "max_seconds": 86_400}
    with running:
        task = ended(client, client.tasks.create(TYPE, retry=retry))
    assert (task.state, task.result) == ("succeeded", 2)
    first = client.tasks.list_attempts(task.id)[0].error
    assert first is not None
    assert (first.type, first.message) == ("RetryIn", "the bank is closed")


def test_retry_on_and_no_retry_on_select_the_exceptions_to_retry(client: Client) -> None:
    """`retry_on` selects the exceptions to retry, `no_retry_on` excludes some, and `RetryIn` is always retried."""
    running = Running(client)
    raised = {"lost": ConnectionError, "refused": ConnectionRefusedError, "other": LookupError, "later": RetryIn}

    @running.worker.task(TYPE, retry_on=(ConnectionError,), no_retry_on=(ConnectionRefusedError,))
    def fail(_context: Context, payload: str) -> None:
        raise raised[payload](0.001)

    retry: RetryPolicy = {"max_attempts": 2, "initial_seconds": 0}
    with running:
        tasks = {name: ended(client, client.tasks.create(TYPE, payload=name, retry=retry)) for name in raised}
    assert {name: task.attempt for name, task in tasks.items()} == {"lost": 2, "refused": 1, "other": 1, "later": 2}
    assert {task.state for task in tasks.values()} == {"failed"}


@pytest.mark.parametrize("keyword", ["payload", "retry_on", "no_retry_on"])
def test_the_error_for_an_unknown_task_keyword_names_the_keyword(keyword: str) -> None:
    """The error for a wrong keyword names the keyword."""
    register: Any = Worker().task
    with pytest.raises(TypeError, match=f"^{keyword} takes "):
        register(TYPE, **{keyword: "ConnectionError"})


def test_a_result_that_is_not_json_fails_the_task_without_retry(client: Client) -> None:
    """A task whose result is not JSON is not retried, because a retry would return such a result again."""
    running = Running(client)
    running.worker.task(TYPE)(lambda _context, _payload: {1, 2})
    with running:
        task = ended(client, client.tasks.create(TYPE))
    assert task.error is not None
    assert (task.state, task.attempt, task.error.type) == ("failed", 1, "ResultNotJson")


class Mute(BaseException):
    """An error whose message cannot be read."""

    def __str__(self) -> str:
        raise KeyboardInterrupt

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]  # what is tested
        raise GeneratorExit


FILE = "caf\udce9.txt"
"""The result of `os.fsdecode(b"caf\\xe9.txt")`, which cannot be encoded in UTF-8."""


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError("gone"),
        KeyboardInterrupt(),
        GeneratorExit(),
        BaseExceptionGroup("many", [KeyboardInterrupt()]),
        Mute(),
        type("Line\nbreak" * 20, (Exception,), {})("y" * 6_000_000),
        ValueError(f"cannot read {FILE}"),
    ],
    ids=range(7),
)
def test_any_exception_of_a_handler_is_reported(client: Client, error: BaseException) -> None:
    """Whatever a handler raises, the attempt fails with the error's real class and the worker continues."""
    running = Running(client)

    @running.worker.task(TYPE)
    def fail(context: Context, payload: object) -> object:
        context.progress(50, FILE + "\n")
        if payload == "fail":
            raise error
        return "done"

    with running:
        failed = ended(client, client.tasks.create(TYPE, payload="fail", retry={"max_attempts": 1}))
        after = ended(client, client.tasks.create(TYPE))
    assert failed.error is not None
    name = type(error).__name__.replace("\n", "\\n")[:64]
    assert (failed.state, failed.attempt, failed.error.type) == ("failed", 1, name)
    assert FILE not in failed.error.message
    assert after.result == "done"


def test_a_coroutine_that_awaits_its_cancelled_task_fails_the_attempt(client: Client) -> None:
    """If a coroutine cancels and then awaits an asyncio task, the attempt fails with `CancelledError`."""
    running = Running(client)

    @running.worker.task(TYPE)
    async def cancel(_context: Context, _payload: object) -> object:
        work = asyncio.ensure_future(asyncio.sleep(60))
        work.cancel()
        await work
        return None

    with running:
        failed = ended(client, client.tasks.create(TYPE, retry={"max_attempts": 1}))
    assert failed.error is not None
    assert failed.error.type == "CancelledError"


@dataclass
class Counts:
    """A result whose class cannot be represented in JSON."""

    by_number: dict[Any, Any]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"file": FILE}, "ResultNotJson"),
        ({1: "a", "1": "b"}, "ResultNotJson"),
        (10**60, "ResultNotJson"),
        (10**5_000, "ResultNotJson"),
        (json.loads("[" * 64 + "]" * 64), "ResultNotJson"),
        (Counts({1: "a", "1": "b"}), "ResultNotJson"),
        (Counts({1: object()}), "ResultNotJson"),
        ("x" * 262_144, "ResultTooLarge"),
        ("x" * 6_000_000, "ResultTooLarge"),
    ],
    ids=range(9),
)
def test_a_result_that_cannot_be_stored_fails_the_task_at_once(client: Client, value: object, kind: str) -> None:
    """A result follows the same rules as in worker functions, even if only the API knows the size limit."""
    running = Running(client)
    running.worker.task(TYPE)(lambda _context, _payload: value)
    with running:
        task = ended(client, client.tasks.create(TYPE))
    assert task.error is not None
    assert (task.state, task.attempt, task.error.type) == ("failed", 1, kind)


@pytest.mark.parametrize(
    ("checkpoint", "kind"),
    [
        ({FILE: 1}, "ResultNotJson"),
        (10**60, "ResultNotJson"),
        ({1, 2}, "ResultNotJson"),
        ("x" * 5_000, "CheckpointTooLarge"),
    ],
)
def test_a_checkpoint_that_cannot_be_stored_fails_the_task_at_once(
    client: Client, checkpoint: object, kind: str
) -> None:
    """A checkpoint follows the same rules as a result."""
    running = Running(client)

    @running.worker.task(TYPE)
    def patient(context: Context, _payload: object) -> object:
        while True:
            context.heartbeat()
            context.stop_if_requested(checkpoint)
            threading.Event().wait(0.05)

    with running:
        task = client.tasks.create(TYPE)
        assert until(partial(is_running, client, task))
        client.tasks.pause(task.id)
        task = ended(client, task)
    assert task.error is not None
    assert (task.state, task.error.type) == ("failed", kind)


def test_a_progress_message_that_cannot_be_encoded_is_escaped(client: Client) -> None:
    """A bad progress message does not lose the attempt, because the lease is still renewed."""
    task = client.tasks.create(TYPE)
    (leased,) = client.leases.acquire([TYPE])
    context = Attempt(client, leased, 30).context
    context.progress(33.7, f"{FILE}\n" * 9)  # type: ignore[arg-type]  # what is tested
    assert context._progress is not None
    assert client.leases.renew(leased.id, *context._progress).state == "running"
    progress = client.tasks.get(task.id).progress
    assert progress is not None
    assert (progress.percent, progress.message) == (33, ("caf\\udce9.txt\\n" * 9)[:64])


@pytest.mark.slow
def test_heartbeats_renew_the_lease_and_report_progress(client: Client) -> None:
    """With heartbeats, a task that takes longer than its lease stays with its worker."""
    running = Running(client, lease_seconds=10)
    release = threading.Event()

    @running.worker.task(TYPE)
    def slow(context: Context, _payload: object) -> object:
        context.progress(40, "half way")
        release.wait(PATIENCE_SECONDS)
        return context.lost

    with running:
        task = client.tasks.create(TYPE)
        first = until(lambda: client.tasks.get(task.id).lease)
        assert first is not None

        def is_renewed() -> bool:
            seen = client.tasks.get(task.id)
            return seen.progress is not None and seen.lease is not None and seen.lease.expires_at > first.expires_at

        assert until(is_renewed)
        release.set()
        task = ended(client, task)
    assert (task.result, task.attempt) == (False, 1)


def test_pause_and_cancel_requests_reach_the_handler(client: Client) -> None:
    """A paused task leaves a checkpoint for the next attempt, and a cancelled task ends."""
    running = Running(client)

    @running.worker.task(TYPE)
    def patient(context: Context, payload: object) -> object:
        if context.checkpoint is not None:
            return context.checkpoint
        while True:
            context.heartbeat()
            context.stop_if_requested({"row": 7} if payload == "pause" else None)
            threading.Event().wait(0.05)

    with running:
        paused, cancelled = client.tasks.create(TYPE, payload="pause"), client.tasks.create(TYPE, payload="cancel")
        for task in (paused, cancelled):
            assert until(partial(is_running, client, task))
        client.tasks.pause(paused.id)
        client.tasks.cancel(cancelled.id, force=True)
        assert until(lambda: client.tasks.get(paused.id).state == "paused")
        client.tasks.resume(paused.id)
        assert ended(client, paused).result == {"row": 7}
        assert ended(client, cancelled).state == "cancelled"


def test_a_step_of_a_pull_worker_runs_once_over_all_attempts(client: Client) -> None:
    """The next attempt gets the stored result of a step, and the same keys for step and task."""
    running = Running(client)
    calls: list[str] = []

    def charge(context: Context, amount: int) -> tuple[int, str]:
        calls.append(context.idempotency_key)
        return amount, context.idempotency_key

    async def ship(context: Context) -> str:
        await asyncio.sleep(0)
        calls.append(context.idempotency_key)
        return context.idempotency_key

    @running.worker.task(TYPE)
    async def order(context: Context, _payload: object) -> object:
        receipt = context.step("charge", charge, context, amount=7)
        sent = await context.step("ship", ship, context)
        assert context.steps == {"charge": receipt, "ship": sent}
        if context.attempt == 1:
            raise ConnectionError("lost")
        return [receipt, sent, context.idempotency_key]

    with running:
        task = ended(client, client.tasks.create(TYPE, retry=AT_ONCE))
    keys = [f"{task.id}:charge", f"{task.id}:ship"]
    assert (calls, task.result) == (keys, [[7, keys[0]], keys[1], task.id])
    steps = client.tasks.list_steps(task.id)
    assert [(step.phase, step.name, step.attempt, step.result) for step in steps] == [
        ("run", "charge", 1, [7, keys[0]]),
        ("run", "ship", 1, keys[1]),
    ]
    assert client.tasks.explain(task.id).steps == ["charge", "ship"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda context: context.step("one", object), "is not JSON"),
        (lambda context: context.step("one", lambda: "x" * MAX_STEP_RESULT_BYTES), "32770 bytes; 32768 are allowed"),
        (lambda context: [context.step("one", int) for _ in range(2)], "was used before"),
        (lambda context: context.save_checkpoint("x" * MAX_CHECKPOINT_BYTES), "4098 bytes; 4096 are allowed"),
        (lambda context: context.save_checkpoint(object), "the checkpoint is not JSON"),
    ],
)
def test_a_step_that_a_pull_worker_cannot_store_fails_the_task(
    client: Client, call: Callable[[Context], object], message: str
) -> None:
    """A task whose step or checkpoint cannot be stored is not retried, because a retry would not help."""
    running = Running(client)
    running.worker.task(TYPE)(lambda context, _payload: call(context))
    with running:
        task = ended(client, client.tasks.create(TYPE, retry=AT_ONCE))
    assert task.error is not None
    assert (task.state, task.attempt) == ("failed", 1)
    assert message in task.error.message


def test_a_saved_checkpoint_of_a_pull_worker_survives_a_failure(client: Client) -> None:
    """The next attempt gets the saved checkpoint, even if it is `None`."""
    running = Running(client)
    seen: list[object] = []

    @running.worker.task(TYPE)
    def index(context: Context, _payload: object) -> None:
        seen.append(context.checkpoint)
        if context.attempt < 3:
            context.save_checkpoint({"row": 7} if context.attempt == 1 else None)
            raise ConnectionError("lost")

    with running:
        task = ended(client, client.tasks.create(TYPE, retry=AT_ONCE))
    assert (task.state, seen) == ("succeeded", [None, {"row": 7}, None])


def test_a_pull_worker_without_its_lease_starts_no_step(client: Client) -> None:
    """An attempt that has lost its lease starts no step and saves nothing, because another worker may have the task."""
    effects: list[int] = []
    client.tasks.create(TYPE)
    (leased,) = client.leases.acquire([TYPE])
    context = Attempt(client, leased, 30).context
    client.leases.complete(leased.id)
    with pytest.raises(LeaseLost):
        context.save_checkpoint(1)
    with pytest.raises(LeaseLost):
        context.step("late", lambda: 1)
    context._until = 0  # by now, the lease has expired
    with pytest.raises(LeaseLost):
        context.step("never", effects.append, 1)
    with pytest.raises(LeaseLost):
        context.save_checkpoint(1)
    assert effects == []


@pytest.mark.parametrize(
    ("handler", "error"),
    [
        (lambda context, _payload: context.step("one", lambda: 10**40), "StepInvalid"),
        (lambda context, _payload: context.save_checkpoint(10**40), "CheckpointInvalid"),
    ],
)
def test_a_value_rejected_by_the_api_fails_the_task_at_once(
    client: Client, handler: Callable[[Context, object], object], error: str
) -> None:
    """If a value breaks a limit that only the API knows, such as the number of digits, the task fails at once."""
    running = Running(client)
    running.worker.task(TYPE)(handler)
    with running:
        task = ended(client, client.tasks.create(TYPE, retry=AT_ONCE))
    assert task.error is not None
    assert (task.state, task.attempt, task.error.type) == ("failed", 1, error)


def test_a_step_not_stored_because_the_api_is_unavailable_is_retried(client: Client) -> None:
    """If the API is unavailable, the task is retried, because the handler's rules apply only to its own exceptions."""
    running = Running(client)
    away = [Unreachable("https://example.org", "no answer", sent=True)]
    putting = client.leases.put_step

    def put_step(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - as the client's
        if away:
            raise away.pop()
        return putting(*given, **more)

    client.leases.put_step = put_step
    running.worker.task(TYPE, retry_on=(OSError,))(lambda context, _payload: context.step("one", lambda: 1))
    with running:
        task = ended(client, client.tasks.create(TYPE, retry=AT_ONCE))
    assert (task.state, task.attempt, task.result) == ("succeeded", 2, 1)


def test_unit_tests_of_a_pull_worker_handler_keep_steps_in_memory() -> None:
    """A unit test can pass an earlier attempt's steps, and can read the new steps and checkpoints afterward."""
    steps: dict[str, Any] = {"charge": 7}
    saved: list[Any] = []
    context = Context.for_test(steps=steps, checkpoints=saved)
    assert (context.step("charge", int), context.step("ship", lambda: (1, 2))) == (7, [1, 2])
    context.save_checkpoint((3,))
    assert (steps, saved) == ({"charge": 7, "ship": [1, 2]}, [[3]])


@pytest.mark.slow
def test_without_network_the_handler_is_stopped_when_its_lease_ends(server: ApiServer, client: Client) -> None:
    """When the lease ends without a network, the handler is asked to stop, and the task is not completed."""
    running = Running(client, lease_seconds=5)
    lost = threading.Event()

    @running.worker.task(TYPE)
    def cut_off(context: Context, _payload: object) -> object:
        server.dead = True
        assert until(lambda: context.lost)
        lost.set()
        return "too late"

    with running:
        task = client.tasks.create(TYPE)
        assert lost.wait(PATIENCE_SECONDS)
        assert until(lambda: "lost" in running.did())
        assert until(lambda: "unreachable" in running.did())
    # The network returns only now, because after the lease's end the next request would lease the task again.
    server.dead = False
    seen = client.tasks.get(task.id)
    assert (seen.state, seen.attempt) == ("running", 1)


def test_a_worker_continues_when_the_api_is_reachable_again(server: ApiServer, client: Client) -> None:
    """While the API is unreachable, the worker keeps polling, and later runs the tasks that are due."""
    running = Running(client)
    running.worker.task(TYPE)(lambda _context, _payload: None)
    task = client.tasks.create(TYPE)
    server.dead = True
    with running:
        assert until(lambda: "unreachable" in running.did())
        server.dead = False
        assert ended(client, task).state == "succeeded"


def test_a_stopped_worker_finishes_running_tasks_and_leases_no_more(client: Client) -> None:
    """A stopped worker leases nothing more, and `run` returns when the running handler has ended."""
    running = Running(client, concurrency=1)
    begun, release = threading.Event(), threading.Event()

    @running.worker.task(TYPE)
    def slow(_context: Context, _payload: object) -> object:
        begun.set()
        release.wait(PATIENCE_SECONDS)
        return "finished"

    with running:
        first = client.tasks.create(TYPE)
        assert begun.wait(PATIENCE_SECONDS)
        second = client.tasks.create(TYPE)
        running.worker.stop()
        release.set()
    assert client.tasks.get(first.id).result == "finished"
    assert client.tasks.get(second.id).state == "scheduled"


def test_a_lease_that_arrives_while_the_worker_stops_is_released(client: Client) -> None:
    """A lease that arrives after the worker was stopped is released and does not count as an attempt."""
    running = Running(client)
    running.worker.task(TYPE)(lambda _context, _payload: None)
    task = client.tasks.create(TYPE)
    leasing = client.leases.acquire

    def stop_meanwhile(*types: Iterable[str], **options: Any) -> list[LeasedTask]:  # noqa: ANN401 - handed on
        leases = leasing(*types, **options)
        if leases:
            running.worker.stop()
        return leases

    client.leases.acquire = stop_meanwhile  # no other test setup hits this moment
    with running:
        assert until(lambda: "released" in running.did())
    seen = client.tasks.get(task.id)
    assert (seen.state, seen.attempt) == ("waiting", 0)


def test_a_worker_releases_a_task_whose_handler_exceeds_the_stop_time(client: Client) -> None:
    """When its stop time is over, the worker releases the task, and the attempt does not count."""
    running = Running(client, stop_seconds=0.2)
    begun, release = threading.Event(), threading.Event()
    seen: list[Context] = []

    @running.worker.task(TYPE)
    def stuck(context: Context, _payload: object) -> object:
        seen.append(context)
        begun.set()
        release.wait(PATIENCE_SECONDS)
        return "too late"

    with running:
        task = client.tasks.create(TYPE)
        assert begun.wait(PATIENCE_SECONDS)
    # On a busy machine, the response may arrive after the worker's stop time.
    assert until(lambda: "released" in running.did())
    assert seen[0].lost
    stored = client.tasks.get(task.id)
    assert (stored.state, stored.attempt) == ("waiting", 0)
    assert running.did() == ["leased", "stopping", "released"]
    release.set()
    assert until(lambda: "lost" in running.did())
    assert client.tasks.get(task.id).state == "waiting"


def test_a_stopping_worker_fails_a_started_task_with_one_attempt(client: Client) -> None:
    """A task with one attempt whose handler has started fails, because no other worker may start the task again."""
    running = Running(client, stop_seconds=0.2)
    begun, release = threading.Event(), threading.Event()

    @running.worker.task(TYPE)
    def stuck(_context: Context, _payload: object) -> None:
        begun.set()
        release.wait(PATIENCE_SECONDS)

    with running:
        task = client.tasks.create(TYPE, retry={"max_attempts": 1})
        assert begun.wait(PATIENCE_SECONDS)
    assert until(lambda: client.tasks.get(task.id).error is not None)
    release.set()
    stored = client.tasks.get(task.id)
    assert stored.error is not None
    assert (stored.state, stored.attempt, stored.error.type) == ("failed", 1, "WorkerStopped")


def test_a_worker_acknowledges_a_task_with_one_attempt_before_starting_it(client: Client) -> None:
    """A task's only attempt is acknowledged before the handler starts; other attempts are not."""
    running = Running(client)
    renewed: list[str] = []
    renewing = client.leases.renew

    def renew(lease: str, percent: int | None = None, message: str = "", **more: object) -> LeaseState:
        renewed.append(lease)
        return renewing(lease, percent, message, **more)

    client.leases.renew = renew
    started_after: dict[str, int] = {}

    @running.worker.task(TYPE)
    def count(context: Context, _payload: object) -> None:
        started_after[context.task_id] = len(renewed)

    with running:
        often = ended(client, client.tasks.create(TYPE))
        once = ended(client, client.tasks.create(TYPE, retry={"max_attempts": 1}))
    assert (started_after[often.id], started_after[once.id]) == (0, 1)
    assert len(renewed) == 1


def test_a_worker_acknowledges_a_task_after_an_unacknowledged_lease(client: Client) -> None:
    """After a lease that no worker acknowledged, the next worker acknowledges the task before it starts the handler."""
    client.tasks.create(TYPE)
    (leased,) = client.leases.acquire([TYPE])
    started: list[str] = []
    attempt = Attempt(client, leased.model_copy(update={"unacknowledged_leases": 1}), 30)
    client.leases.release(leased.id)
    assert attempt.run(lambda context, _payload: started.append(context.task_id)) == "lost"
    assert started == []


@pytest.mark.parametrize(("lease", "within", "first"), [(5, 5, 5 / 3), (30, 15, 10.0), (900, 15, 10.0)])
def test_the_first_heartbeat_is_sent_before_the_acknowledgement_deadline(
    client: Client, lease: int, within: int, first: float
) -> None:
    """The first heartbeat is sent in time to acknowledge the lease, and by default at the usual interval."""
    client.tasks.create(TYPE)
    (leased,) = client.leases.acquire([TYPE], lease_seconds=lease, acknowledge_within_seconds=within)
    assert acknowledge_within(lease) == within
    # The response's `Date` header is in whole seconds.
    assert within - 1 < leased.lasts.total_seconds() <= within + 1
    assert Attempt(client, leased, lease)._first_interval == pytest.approx(first)


def test_a_worker_that_may_not_pull_a_type_stops(client: Client) -> None:
    """If a worker may not pull a type, the worker stops instead of repeating the request."""
    running = Running(client)
    running.worker.task("unheard-of")(lambda _context, _payload: None)
    with running:
        assert until(lambda: running.error)
    assert isinstance(running.error, Forbidden)


def test_a_worker_without_functions_or_client_raises_an_error(client: Client) -> None:
    """A worker without functions or client, or with two functions for a type, raises an error at once."""
    with pytest.raises(WorkerIdle):
        Worker(client).run()
    worker = Worker()
    register: Callable[..., object] = worker.task(TYPE)
    register(lambda _context, _payload: None)
    with pytest.raises(WorkerIdle):
        worker.run()
    with pytest.raises(DuplicateHandler):
        worker.task(TYPE)(lambda _context, _payload: None)
    bare: Any = worker.task

    def resize(_context: Context, _payload: object) -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match=r"write @worker.task\(\"resize\"\)"):
        bare(resize)


MODULE = """
import time
from pathlib import Path
from duetime_client.worker import Worker
worker = Worker(wait_seconds=0, pause_seconds=0.05, name="from a file")
not_a_worker = 1

@worker.task("pulled")
def greet(context, payload):
    Path("begun").touch()
    while not Path("over").exists():
        time.sleep(0.02)
    return "hello " + payload["secret"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a module that contains a worker."""
    (tmp_path / "jobs.py").write_text(textwrap.dedent(MODULE))
    return tmp_path


def command(server: ApiServer, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run the `duetime` command in the folder."""
    return subprocess.Popen(  # noqa: S603 - our own command
        [Path(sys.executable).with_name("duetime"), "worker", "run", *arguments, "--url", server.url],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_runs_a_worker_until_sigterm(server: ApiServer, client: Client, folder: Path) -> None:
    """The worker logs actions without payloads or results, finishes running tasks after SIGTERM, and exits normally."""
    task = client.tasks.create(TYPE, payload={"secret": "sesame"})
    with command(server, folder, "jobs:worker", "--concurrency", "2") as process:
        # The task must also have started, because a worker that is stopped earlier releases the task.
        assert until((folder / "begun").exists)
        process.send_signal(signal.SIGTERM)
        (folder / "over").touch()
        said = process.communicate(timeout=PATIENCE_SECONDS)[1]
    assert process.returncode == 0
    assert client.tasks.get(task.id).result == "hello sesame"
    assert "worker from a file: polling pulled, concurrency 2" in said
    assert re.search(rf"succeeded pulled {task.id} attempt 1 after \d+\.\d", said)
    assert "stopping" in said
    assert "sesame" not in said


class Silent(Door):
    """Handles requests and never responds to a request for leases."""

    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        """Wait until the client has disconnected."""
        assert isinstance(self.server, SilentServer)
        self.server.polled.set()
        self.connection.recv(1 << 16)
        self.connection.recv(1)
        self.close_connection = True


class SilentServer(ApiServer):
    """Serves the API, except that requests for leases never get a response.

    Attributes:
        polled: set when a request for leases was received.
    """

    def __init__(self) -> None:
        super().__init__(Silent)
        self.polled = threading.Event()


@pytest.mark.parametrize(
    "stop_seconds", [0.5, pytest.param(None, marks=pytest.mark.slow, id="the time that it takes by default")]
)
def test_the_command_exits_in_time_although_its_poll_is_pending(folder: Path, stop_seconds: float | None) -> None:
    """Docker kills a process ten seconds after SIGTERM; the default stop time leaves the process a second to exit."""
    server = SilentServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    options = () if stop_seconds is None else ("--stop-seconds", str(stop_seconds))
    with command(server, folder, "jobs:worker", *options) as process:
        assert server.polled.wait(PATIENCE_SECONDS)
        process.send_signal(signal.SIGTERM)
        sent_at = time.monotonic()
        said = process.communicate(timeout=PATIENCE_SECONDS)[1]
        took = time.monotonic() - sent_at
    server.shutdown()
    server.server_close()
    thread.join()
    assert (process.returncode, "Traceback" in said) == (0, False), said
    assert took < 10
    assert Worker().wait_seconds < Worker().stop_seconds < 10


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("jobs", "is not MODULE:WORKER"),
        ("nowhere:worker", "No module named 'nowhere'"),
        ("jobs:nothing", "nothing"),
        ("jobs:not_a_worker", "is a int, not a Worker"),
    ],
)
def test_a_worker_that_cannot_be_found_is_a_usage_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, reason: str
) -> None:
    """A worker that cannot be found is a usage error that states the reason."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "jobs", raising=False)
    result = CliRunner().invoke(app, ["worker", "run", where, "--url", "http://127.0.0.1:1"])
    sys.modules.pop("jobs", None)
    assert result.exit_code == 2
    assert reason in " ".join(result.output.replace("\u2502", " ").split())


def test_a_worker_pauses_after_an_immediate_empty_response() -> None:
    """After an immediate empty response, which means that too many requests are waiting, the worker pauses."""
    worker = Worker(wait_seconds=20)
    assert worker._pause(0.1) == 2.0
    assert worker._pause(20.0) == 0.0
    assert Worker(wait_seconds=0, pause_seconds=0.5)._pause(0.1) == 0.5
    assert Worker(wait_seconds=20, pause_seconds=5.0)._pause(0.1) == 5.0


@dataclass
class _Film:
    """A payload."""

    number: int


def test_a_handler_of_the_worker_functions_runs_in_a_pull_worker(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull worker supports handlers with a payload class, progress, coroutines, `Unretriable` and retry settings."""
    monkeypatch.setattr(handlers, "REGISTRY", {})

    @handlers.handler(TYPE, payload=_Film, no_retry_on=(LookupError,))
    async def encode(context: handlers.Context, film: _Film) -> dict[str, int]:
        context.progress(50, "half way")
        context.stop_if_requested()
        if film.number < 0:
            raise handlers.Unretriable("no such film")
        if film.number == 0:
            raise KeyError(film.number)
        if film.number == 1 and context.attempt == 1:
            raise handlers.RetryIn(0.001)
        return {"encoded": film.number}

    running = Running(client)
    running.worker.add_handler(encode)
    with running:
        done = ended(client, client.tasks.create(TYPE, payload={"number": 7}))
        never = ended(client, client.tasks.create(TYPE, payload={"number": -1}))
        missing = ended(client, client.tasks.create(TYPE, payload={"number": 0}))
        later = ended(client, client.tasks.create(TYPE, payload={"number": 1}))
    assert (missing.state, missing.attempt) == ("failed", 1)
    assert (later.state, later.attempt) == ("succeeded", 2)
    assert done.result == {"encoded": 7}
    assert never.error is not None
    assert (never.state, never.attempt, never.error.type) == ("failed", 1, "Unretriable")


@pytest.mark.parametrize("is_coroutine", [False, True])
def test_a_class_of_the_worker_functions_runs_in_a_pull_worker(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    is_coroutine: bool,  # noqa: FBT001 - a parameter of a test
) -> None:
    """A handler class is instantiated once and supports steps, checkpoints, children, a payload class and retries."""
    monkeypatch.setattr(handlers, "REGISTRY", {})

    class Encoder:
        def __init__(self) -> None:
            self.calls = 0

        def encode(self, context: handlers.Context, film: _Film) -> dict[str, object]:
            self.calls += 1
            step = context.step("key", lambda: [context.attempt, context.idempotency_key])
            before = context.checkpoint
            context.save_checkpoint({"attempt": context.attempt})
            if context.attempt == 1:
                raise handlers.RetryIn(0.001)
            return {"film": film.number, "phase": context.phase, "step": step, "before": before, "calls": self.calls}

    class Sync(Encoder):
        def run(self, context: handlers.Context, film: _Film) -> dict[str, object]:
            child = context.client.tasks.create("later", delay_seconds=600)
            return {**self.encode(context, film), "child": child.id}

    class Async(Encoder):
        async def run(self, context: handlers.AsyncContext, film: _Film) -> dict[str, object]:
            child = await context.client.tasks.create("later", delay_seconds=600)
            return {**self.encode(context, film), "child": child.id}

    decorated: type[Encoder] = handlers.handler(TYPE, payload=_Film, retry_on=())(Async if is_coroutine else Sync)
    running = Running(client)
    running.worker.add_handler(decorated)
    with running:
        done = ended(client, client.tasks.create(TYPE, payload={"number": 7}))
    (child,) = client.tasks.list(parent_task_id=done.id)
    assert done.result == {
        "film": 7,
        "phase": "run",
        "step": [1, f"{done.id}:key"],
        "before": {"attempt": 1},
        "calls": 2,
        "child": child.id,
    }


def test_a_traceback_begins_in_the_handler(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's and the event loop's frames are removed from tracebacks, even for handlers in worker functions."""
    monkeypatch.setattr(handlers, "REGISTRY", {})

    @handlers.handler(TYPE)
    async def encode(_context: handlers.Context, _payload: object) -> None:
        raise handlers.Unretriable("no such film")

    running = Running(client)
    running.worker.add_handler(encode)
    with running:
        task = ended(client, client.tasks.create(TYPE))
    (attempt,) = client.tasks.list_attempts(task.id)
    assert attempt.error is not None
    assert attempt.error.traceback is not None
    assert attempt.error.traceback.splitlines()[1].endswith("in encode")


def test_a_secret_of_a_pull_worker_is_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret is read from an environment variable, also with `duetime.handlers`; an error names the variable."""
    monkeypatch.setenv("DUETIME_SECRET_MAIL_KEY", "k1")
    assert (secret("mail-key"), secret("mail-key", fresh=True), handlers.secret("mail-key")) == ("k1", "k1", "k1")
    with pytest.raises(handlers.SecretMissing, match="set the environment variable DUETIME_SECRET_STRIPE"):
        secret("stripe")


def test_the_error_for_an_unsupported_handler_names_feature_and_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a handler uses an unsupported feature, the error names the feature and the fix, and nothing is registered."""
    monkeypatch.setattr(handlers, "REGISTRY", {})

    @handlers.handler(TYPE)
    class Transfer:
        def run(self, context: handlers.Context, payload: object) -> None: ...

        def clean(self, context: handlers.Context, payload: object) -> None: ...

        def rollback(self, context: handlers.Context, payload: object) -> None: ...

    class Inherits(Transfer): ...

    def plain(context: Context, payload: object) -> None: ...

    worker: Any = Worker()
    with pytest.raises(TypeError, match="Transfer has clean and rollback, but a pull worker has only the phase run"):
        worker.add_handler(Transfer)
    for undecorated in (Inherits, plain):
        with pytest.raises(TypeError, match=rf"{undecorated.__name__} is not a handler: decorate it with @handler"):
            worker.add_handler(undecorated)
    with pytest.raises(TypeError, match="takes functions: Transfer is a class"):
        worker.task(TYPE)(Transfer)
    assert worker.types == ()


@pytest.mark.parametrize("is_coroutine", [False, True])
def test_a_worker_starts_tasks_for_the_owner_of_the_task(server: ApiServer, client: Client, is_coroutine: bool) -> None:  # noqa: FBT001 - a parameter of a test
    """A child belongs to the owner of the worker's task, and a repeated attempt creates no second child."""
    created: list[str] = []

    def start(context: Context, _payload: object) -> None:
        created.append(context.client.tasks.create("later", delay_seconds=600).id)
        with pytest.raises(Forbidden, match="can only create"):
            context.client.tasks.get(created[0])
        if context.attempt == 1:
            raise ConnectionError("after the creation")

    async def start_later(context: AsyncContext, _payload: object) -> None:
        created.append((await context.client.tasks.create("later", delay_seconds=600)).id)
        if context.attempt == 1:
            raise ConnectionError("after the creation")

    with Client(server.url, owner="worker") as own:
        running = Running(own)
        running.worker.task(TYPE)(start_later if is_coroutine else start)
        with running:
            task = ended(client, client.tasks.create(TYPE, retry={"max_attempts": 2, "initial_seconds": 0.01}))
    assert (task.state, len(created), len(set(created))) == ("succeeded", 2, 1)
    assert [each.id for each in client.tasks.list(parent_task_id=task.id)] == created[:1]


def test_a_function_under_test_requires_an_explicit_client(client: Client) -> None:
    """If a context for tests has no client, the error shows how to pass a client."""
    assert Context.for_test(client=client).client is client
    with pytest.raises(ClientMissing, match=r"Context\.for_test\(client=\.\.\.\)"):
        _ = Context.for_test().client
