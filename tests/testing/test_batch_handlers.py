"""Tests batch handlers in the testing kit, where one call runs several tasks and each task has a separate outcome."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from duetime.handlers import (
    REGISTRY,
    AttemptCancelled,
    Batch,
    BatchItem,
    Context,
    RetryIn,
    Unretriable,
    handler,
)
from duetime_client import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime_testing import Duetime

ONCE: Any = {"max_attempts": 1}


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Remove the registered handlers after the test."""
    before = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(before)


@dataclass
class Calls:
    """A batch handler's calls, each with its payloads."""

    every: list[list[Any]]

    def note(self, items: Sequence[BatchItem[Any]]) -> None:
        """Record a call."""
        self.every.append([item.payload for item in items])

    @property
    def sizes(self) -> list[int]:
        """The number of tasks in each call."""
        return [len(call) for call in self.every]


@pytest.fixture
def calls() -> Calls:
    """Return an empty record of calls."""
    return Calls([])


def ended(duetime: Duetime, payloads: Sequence[Any], **options: Any) -> list[Task]:  # noqa: ANN401 - of a creation
    """Create tasks with the given payloads at once, and return them when all have ended."""
    new: list[Any] = [{"type": "index.add", "payload": payload, **options} for payload in payloads]
    results = duetime.client.tasks.create_batch(new)
    duetime.run_until_idle()
    return [duetime.client.tasks.get(task.id) for task in results if isinstance(task, Task)]


def test_due_tasks_share_a_call_with_a_result_each(duetime: Duetime, calls: Calls) -> None:
    """The handler is called once with all tasks in a delivery, and the results are in the tasks' order."""

    def add(items: Sequence[BatchItem[int]]) -> list[int]:
        calls.note(items)
        assert len({item.context.task_id for item in items}) == len(items)
        return [item.payload * 2 for item in items]

    duetime.register("index.add", add, batch=Batch())
    tasks = ended(duetime, range(10))
    assert [task.result for task in tasks] == [2 * number for number in range(10)]
    assert calls.sizes == [10]
    assert {task.attempt for task in tasks} == {1}


def test_without_a_return_value_every_task_succeeds(duetime: Duetime) -> None:
    """If a batch handler returns nothing, every task succeeds without a result."""
    duetime.register("index.add", lambda _items: None, batch=Batch())
    assert [(task.state, task.result) for task in ended(duetime, range(3))] == [("succeeded", None)] * 3


def test_no_call_has_more_tasks_than_the_maximum(duetime: Duetime, calls: Calls) -> None:
    """With a maximum size of four, ten tasks share calls of four, four and two tasks."""
    duetime.register("index.add", calls.note, batch=Batch(max_size=4))
    ended(duetime, range(10))
    assert sorted(calls.sizes) == [2, 4, 4]


@pytest.mark.parametrize("key", ["index", lambda payload: payload["index"]])
def test_only_tasks_with_the_same_key_share_a_call(
    duetime: Duetime, calls: Calls, key: str | Callable[[Any], str]
) -> None:
    """Only tasks with equal keys share a call; the key is a field of the payload or computed by a function."""
    duetime.register("index.add", calls.note, batch=Batch(key=key))
    ended(duetime, [{"index": "ab"[number % 2], "number": number} for number in range(6)])
    assert sorted([item["index"] for item in call] for call in calls.every) == [["a"] * 3, ["b"] * 3]


def test_a_task_without_the_key_fails_alone(duetime: Duetime, calls: Calls) -> None:
    """An attempt whose payload lacks the batch key fails with a `KeyError`, and the other tasks share a call."""
    duetime.register("index.add", calls.note, batch=Batch(key="index"))
    tasks = ended(duetime, [{"index": 1}, {}, {"index": 1}], retry=ONCE)
    assert [task.state for task in tasks] == ["succeeded", "failed", "succeeded"]
    assert tasks[1].error is not None
    assert tasks[1].error.type == "KeyError"
    assert calls.sizes == [2]


def test_tasks_with_different_priorities_types_or_timeouts_do_not_share_a_call(duetime: Duetime, calls: Calls) -> None:
    """Tasks with different priorities, which have separate queues, or with different timeouts never share a call."""
    duetime.register("index.add", calls.note, batch=Batch())
    duetime.register("index.drop", calls.note, batch=Batch())
    tasks: list[Any] = [
        {"type": kind, "payload": [kind, priority, timeout], "priority": priority, "timeout_seconds": timeout}
        for kind in ("index.add", "index.drop")
        for priority in ("high", "low")
        for timeout in (10, 20)
        for _ in range(2)
    ]
    duetime.client.tasks.create_batch(tasks)
    duetime.run_until_idle()
    assert calls.sizes == [2] * 8
    assert all(one == other for one, other in calls.every)


def test_a_task_with_a_rate_is_called_alone_at_its_turn(duetime: Duetime, calls: Calls) -> None:
    """A task with a rate is called alone, because a shared call would start tasks before their turns."""
    duetime.register("index.add", calls.note, batch=Batch(max_wait_seconds=60))
    ended(duetime, range(3), rate={"key": "index", "limit": 1, "per_seconds": 10})
    assert calls.sizes == [1, 1, 1]


def test_each_task_has_its_own_outcome(duetime: Duetime, calls: Calls) -> None:
    """Failed tasks are retried by their policies, at a requested time or never, and the other tasks succeed."""

    def add(items: Sequence[BatchItem[str]]) -> list[object]:
        calls.note(items)
        done: list[object] = []
        for item in items:
            if item.payload == "fails" and item.context.attempt == 1:
                item.fail(ConnectionError("busy"))
            if item.payload == "waits" and item.context.attempt == 1:
                done.append(RetryIn(90))
            elif item.payload == "wrong":
                done.append(Unretriable("no such document"))
            elif item.payload == "accepted":
                done.append(item.context.defer())
            else:
                done.append(item.payload.upper())
        return done

    duetime.register("index.add", add, batch=Batch())
    tasks = ended(duetime, ["good", "fails", "waits", "wrong", "accepted"])
    assert [(task.state, task.attempt) for task in tasks] == [
        ("succeeded", 1),
        ("succeeded", 2),
        ("succeeded", 2),
        ("failed", 1),
        ("running", 1),
    ]
    assert [task.result for task in tasks[:3]] == ["GOOD", "FAILS", "WAITS"]
    assert tasks[3].error is not None
    assert (tasks[3].error.type, tasks[3].error.message) == ("Unretriable", "no such document")
    assert calls.every == [["good", "fails", "waits", "wrong", "accepted"], ["fails"], ["waits"]]


def test_an_exception_fails_every_task_of_a_call_by_its_policy(duetime: Duetime, calls: Calls) -> None:
    """After an exception in a batch handler, tasks with a single attempt fail and the other tasks are retried."""

    def add(items: Sequence[BatchItem[Any]]) -> None:
        calls.note(items)
        if len(calls.every) == 1:
            raise ConnectionError("the index is down")

    duetime.register("index.add", add, batch=Batch())
    results = duetime.client.tasks.create_batch(
        [{"type": "index.add", "retry": {"max_attempts": attempts}} for attempts in (1, 3, 3)]
    )
    duetime.run_until_idle()
    tasks = [duetime.client.tasks.get(task.id) for task in results if isinstance(task, Task)]
    assert [(task.state, task.attempt) for task in tasks] == [("failed", 1), ("succeeded", 2), ("succeeded", 2)]
    assert calls.sizes[0] == 3


def test_the_last_attempt_of_a_task_is_a_separate_call(duetime: Duetime, calls: Calls) -> None:
    """A bad task fails every call that it is part of, but each last attempt is a separate call."""

    def add(items: Sequence[BatchItem[str]]) -> None:
        calls.note(items)
        for item in items:
            if item.payload == "bad":
                raise ValueError(item.payload)

    duetime.register("index.add", add, batch=Batch())
    tasks = ended(duetime, ["good", "bad", "fine"], retry={"max_attempts": 2})
    assert [task.state for task in tasks] == ["succeeded", "failed", "succeeded"]
    assert calls.sizes == [3, 1, 1, 1]


@pytest.mark.parametrize("returned", [[1], "ab", {"a": 1, "b": 2}, 7])
def test_a_wrong_number_of_results_fails_every_task_at_once(duetime: Duetime, returned: object) -> None:
    """A wrong number of results fails all tasks for good, as the work is done; an item that failed keeps its error."""

    def add(items: Sequence[BatchItem[int]]) -> object:
        items[0].fail(Unretriable("its own"))
        return returned

    duetime.register("index.add", add, batch=Batch())
    tasks = ended(duetime, [0, 1])
    assert [(task.state, task.attempt, task.error and task.error.type) for task in tasks] == [
        ("failed", 1, "Unretriable"),
        ("failed", 1, "BatchResultInvalid"),
    ]


def test_a_result_that_is_not_json_fails_only_its_task(duetime: Duetime) -> None:
    """If one task's result is not JSON, only this task fails, and the results of the other tasks are stored."""
    duetime.register("index.add", lambda items: [object() if item.payload else 7 for item in items], batch=Batch())
    tasks = ended(duetime, [0, 1])
    assert [(task.state, task.error and task.error.type) for task in tasks] == [
        ("succeeded", None),
        ("failed", "ResultNotJson"),
    ]


@dataclass(frozen=True)
class Document:
    """A document in a search index."""

    number: int


def test_the_payload_class_is_checked_for_each_task_of_a_batch(duetime: Duetime) -> None:
    """An invalid payload fails only its own task, and the handler gets the other payloads as instances of the class."""
    seen: list[Document] = []

    @handler("index.add", payload=Document, batch=Batch())
    def add(items: Sequence[BatchItem[Document]]) -> None:
        seen.extend(item.payload for item in items)

    tasks = ended(duetime, [{"number": 1}, {"number": "one"}, {"number": 2}])
    assert [(task.state, task.error and task.error.type) for task in tasks] == [
        ("succeeded", None),
        ("failed", "PayloadInvalid"),
        ("succeeded", None),
    ]
    assert seen == [Document(1), Document(2)]
    assert add([BatchItem[Document](Context.for_test(), Document(3))]) is None
    assert duetime.client.tasks.of(add).create(Document(4)).payload == {"number": 4}


def test_a_coroutine_can_be_a_batch_handler(duetime: Duetime, calls: Calls) -> None:
    """A batch handler that is a coroutine runs in an event loop during its call."""

    async def add(items: Sequence[BatchItem[int]]) -> list[int]:
        calls.note(items)
        await asyncio.sleep(1)
        return [item.payload for item in items]

    duetime.register("index.add", add, batch=Batch())
    assert [task.result for task in ended(duetime, range(5))] == list(range(5))
    assert calls.sizes == [5]


def test_a_coroutine_that_does_not_end_fails_every_task_with_a_timeout(duetime: Duetime) -> None:
    """If a coroutine does not end in time, each attempt records a separate timeout."""

    async def add(_items: Sequence[BatchItem[int]]) -> None:
        await asyncio.sleep(3600)

    duetime.register("index.add", add, batch=Batch())
    tasks = ended(duetime, range(3), retry=ONCE, timeout_seconds=10)
    assert [task.error and task.error.type for task in tasks] == ["Timeout"] * 3


def test_a_function_that_does_not_end_fails_every_task_with_a_timeout(duetime: Duetime) -> None:
    """Each attempt records a separate timeout before the process is ended."""

    def add(_items: Sequence[BatchItem[int]]) -> None:
        duetime.sleep(3600)

    duetime.register("index.add", add, batch=Batch())
    tasks = ended(duetime, range(3), retry=ONCE, timeout_seconds=10)
    assert [task.error and task.error.type for task in tasks] == ["Timeout"] * 3


def test_all_leases_of_a_call_are_renewed_and_progress_is_separate(duetime: Duetime) -> None:
    """A call that takes longer than a lease keeps the leases of all its tasks, and each task has its own progress."""

    def add(items: Sequence[BatchItem[int]]) -> None:
        for item in items:
            item.context.progress(item.payload, "working")
        duetime.sleep(200)

    duetime.register("index.add", add, batch=Batch())
    tasks = ended(duetime, [10, 20], timeout_seconds=300)
    assert [(task.state, task.attempt) for task in tasks] == [("succeeded", 1)] * 2
    assert [task.progress and task.progress.percent for task in tasks] == [10, 20]


def test_one_task_of_a_batch_is_cancelled_while_the_others_continue(duetime: Duetime) -> None:
    """The handler sees the request to cancel only in the cancelled task's context."""
    ids: list[str] = []

    def add(items: Sequence[BatchItem[int]]) -> list[object]:
        ids.extend(item.context.task_id for item in items)
        duetime.sleep(120)
        return [AttemptCancelled() if item.context.requested_action == "cancel" else "done" for item in items]

    duetime.register("index.add", add, batch=Batch())
    duetime.client.tasks.create_batch([{"type": "index.add", "timeout_seconds": 300} for _ in range(3)])
    duetime.advance(seconds=10)
    duetime.client.tasks.cancel(ids[1], force=True)
    duetime.run_until_idle()
    assert [duetime.client.tasks.get(task).state for task in ids] == ["succeeded", "cancelled", "succeeded"]


def test_a_request_that_stops_the_call_cancels_only_its_task(duetime: Duetime) -> None:
    """If the handler stops the call, the cancelled task ends, and the attempts of other tasks fail and are repeated."""

    def add(items: Sequence[BatchItem[int]]) -> None:
        if items[0].context.attempt == 1:
            ids.extend(item.context.task_id for item in items)
            duetime.sleep(120)
            for item in items:
                item.context.stop_if_requested()

    ids: list[str] = []
    duetime.register("index.add", add, batch=Batch())
    duetime.client.tasks.create_batch([{"type": "index.add", "timeout_seconds": 300} for _ in range(2)])
    duetime.advance(seconds=10)
    duetime.client.tasks.cancel(ids[1], force=True)
    duetime.run_until_idle()
    tasks = [duetime.client.tasks.get(task) for task in ids]
    assert [(task.state, task.attempt) for task in tasks] == [("succeeded", 2), ("cancelled", 1)]


def test_every_task_of_a_crashed_call_is_run_again(duetime: Duetime, calls: Calls) -> None:
    """After a crash, every task in the call runs again in its next attempt."""
    duetime.register("index.add", calls.note, batch=Batch())
    duetime.faults.crash_before_finish()
    tasks = ended(duetime, range(4))
    assert [(task.state, task.attempt) for task in tasks] == [("succeeded", 2)] * 4
    assert sorted(number for call in calls.every for number in call) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_lost_lease_rejects_the_outcomes_of_its_call(duetime: Duetime, calls: Calls) -> None:
    """If a suspended process loses its leases, the tasks have the results from the second call."""

    def add(items: Sequence[BatchItem[int]]) -> list[int]:
        calls.note(items)
        return [item.context.fence for item in items]

    duetime.register("index.add", add, batch=Batch())
    duetime.faults.lose_lease()
    tasks = ended(duetime, range(3))
    assert [(task.state, task.result) for task in tasks] == [("succeeded", task.fence) for task in tasks]
    assert all(task.attempt == 2 for task in tasks)


@pytest.mark.parametrize("start", ["2026-11-21T09:00:00Z", None])
def test_a_large_delivery_shares_one_call(duetime: Duetime, calls: Calls, start: str | None) -> None:
    """With the setting `worker_batches`, tasks that are due within its window share calls of up to a hundred.

    The setting also has effect if the test sets the start time afterward.
    """
    duetime.deliver_in_batches(100, 5)
    if start is not None:
        duetime.at(start)
    duetime.register("index.add", calls.note, batch=Batch(max_size=100))
    for second in range(4):
        duetime.client.tasks.create_batch([{"type": "index.add", "payload": second} for _ in range(20)])
        duetime.advance(seconds=1)
    duetime.run_until_idle()
    assert calls.sizes == [80]
    duetime.assert_ran("index.add", times=80)


@pytest.mark.parametrize(("seconds", "every"), [(1, [[0, 1]]), (0.1, [[0], [1]])])
def test_a_task_waits_for_other_tasks_held_by_its_worker(
    duetime: Duetime, calls: Calls, seconds: float, every: list[list[int]]
) -> None:
    """A task shares its call with a task that the worker holds for another 0.3 s if the maximum wait allows this."""
    duetime.deliver_in_batches(100, 1.2)
    duetime.register("index.add", calls.note, batch=Batch(max_wait_seconds=seconds))
    later = duetime.now + timedelta(seconds=1.5)
    new: list[Any] = [{"type": "index.add", "payload": 0}, {"type": "index.add", "payload": 1, "due_at": later}]
    duetime.client.tasks.create_batch(new)
    duetime.advance(seconds=10)
    assert calls.every == every


def test_perform_calls_a_batch_handler_with_one_item(duetime: Duetime) -> None:
    """`perform` returns the item's result, or raises the error with which the item failed."""

    def add(items: Sequence[BatchItem[int]]) -> list[object]:
        return [ValueError("odd") if item.payload % 2 else item.payload for item in items]

    duetime.register("index.add", add, batch=Batch())
    assert duetime.perform("index.add", 2) == 2
    with pytest.raises(ValueError, match="odd"):
        duetime.perform("index.add", 3)


def test_pytest_fail_in_a_batch_handler_ends_the_test(duetime: Duetime) -> None:
    """`pytest.fail` in a batch handler ends the test, as in any handler, and does not fail the attempt."""

    def add(_items: Sequence[BatchItem[int]]) -> None:
        pytest.fail("the test's own")

    duetime.register("index.add", add, batch=Batch())
    with pytest.raises(pytest.fail.Exception, match="the test's own"):
        ended(duetime, range(2))
