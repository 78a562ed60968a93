"""Tests a pull worker with a batch handler and the real API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from duetime import handlers
from duetime_client import Task
from duetime_client.task_batches import BatchFunction, BatchStopped
from duetime_client.worker import AttemptCancelled, Batch, BatchItem, Context, LeaseLost, RetryIn, Unretriable, Worker
from tests.client.test_worker import TYPE, Running, client, ended, server
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime_client import Client

__all__ = ["client", "server"]
LONG = Batch(max_size=10, max_wait_seconds=60)
"""A batch that waits, even on a slow machine, until as many attempts have joined as the worker runs at a time."""


def created(client: Client, payloads: Sequence[Any], **options: Any) -> list[Task]:  # noqa: ANN401 - of a creation
    """Create tasks with the given payloads."""
    new: list[Any] = [{"type": TYPE, "payload": payload, **options} for payload in payloads]
    return [task for task in client.tasks.create_batch(new) if isinstance(task, Task)]


def test_tasks_that_are_leased_together_share_a_call(client: Client) -> None:
    """Each task in a call has a separate outcome, and a call has as many tasks as the worker runs at a time."""
    running, calls = Running(client, concurrency=4), list[list[Any]]()

    @running.worker.task(TYPE, batch=LONG)
    def add(items: Sequence[BatchItem[dict[str, int]]]) -> list[object]:
        calls.append([item.payload["n"] for item in items])
        for item in items:
            if item.payload["n"] == 1:
                item.fail(Unretriable("the second"))
        return [RetryIn(600) if item.payload["n"] == 2 else {"fence": item.context.fence} for item in items]

    tasks = created(client, [{"n": number} for number in range(4)])
    with running:
        until(lambda: all(client.tasks.get(task.id).state not in {"scheduled", "running"} for task in tasks))
    assert [sorted(call) for call in calls] == [[0, 1, 2, 3]]
    assert [client.tasks.get(task.id).state for task in tasks] == ["succeeded", "failed", "waiting", "succeeded"]
    assert client.tasks.get(tasks[3].id).result == {"fence": 1}


def test_an_exception_fails_every_task_of_a_batch_call(client: Client) -> None:
    """A bad task fails the first call for all tasks, but each task's last attempt is a separate call."""
    running, calls = Running(client, concurrency=2), list[int]()

    @running.worker.task(TYPE, batch=LONG)
    def add(items: Sequence[BatchItem[str]]) -> None:
        calls.append(len(items))
        if any(item.payload == "bad" for item in items):
            raise RetryIn(0.001)

    tasks = created(client, ["good", "bad"], retry={"max_attempts": 2})
    with running:
        states = [ended(client, task).state for task in tasks]
    assert states == ["succeeded", "failed"]
    assert calls == [2, 1, 1]


@dataclass(frozen=True)
class Document:
    """A document in a search index."""

    number: int


def test_a_batch_handler_of_the_worker_functions_runs_in_a_pull_worker(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batch settings, a payload class and a coroutine are supported; a wrong number of results fails tasks at once."""
    monkeypatch.setattr(handlers, "REGISTRY", {})

    @handlers.handler(TYPE, payload=Document, batch=handlers.Batch(max_size=2, max_wait_seconds=60))
    async def add(items: Sequence[handlers.BatchItem[Document]]) -> list[int]:
        return [] if items[0].payload.number < 0 else [len(items)] * len(items)

    running = Running(client)
    running.worker.add_handler(add)
    tasks = created(client, [{"number": 1}, {"number": 1}])
    with running:
        assert [ended(client, task).result for task in tasks] == [2, 2]
        wrong = ended(client, created(client, [{"number": -1}] * 2)[0])
    assert wrong.error is not None
    assert (wrong.state, wrong.attempt, wrong.error.type) == ("failed", 1, "BatchResultInvalid")


def test_the_error_for_an_invalid_batch_names_the_keyword() -> None:
    """The error for a wrong batch names the keyword."""
    wrong: Any = 7
    with pytest.raises(TypeError, match=r"^batch takes a Batch"):
        Worker().task(TYPE, batch=wrong)


def function(body: Callable[[Sequence[BatchItem[Any]]], Any], **batch: Any) -> BatchFunction[Any]:  # noqa: ANN401 - of a `Batch`
    """Return a function for batches of one task, which never waits for other tasks."""
    return BatchFunction(TYPE, body, None, batch=Batch(max_size=1, **batch), concurrency=lambda: 4)


def test_a_waiting_attempt_that_was_cancelled_or_lost_is_not_called() -> None:
    """The function is not called for an attempt that was cancelled or lost while it waited."""
    calls: list[int] = []
    run = function(lambda items: calls.append(len(items))).run
    cancelled, lost = Context.for_test(requested_action="cancel"), Context.for_test(is_lost=True)
    with pytest.raises(AttemptCancelled):
        run(cancelled, None)
    with pytest.raises(LeaseLost):
        run(lost, None)
    assert calls == []


def test_an_attempt_stopped_with_a_cancelled_attempt_is_repeated() -> None:
    """An attempt that was stopped only because another attempt in the call was cancelled is repeated."""

    def stop(_items: Sequence[BatchItem[Any]]) -> None:
        raise AttemptCancelled

    with pytest.raises(BatchStopped):
        function(stop).run(Context.for_test(), None)


def test_a_payload_without_the_batch_key_fails_its_attempt() -> None:
    """A payload without the batch key fails its attempt, and a payload with the key is passed to the function."""
    keyed = function(lambda items: [item.payload["index"] for item in items], key="index")
    assert keyed.run(Context.for_test(), {"index": "a"}) == "a"
    with pytest.raises(KeyError):
        keyed.run(Context.for_test(), {})
