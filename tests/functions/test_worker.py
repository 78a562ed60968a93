from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.task_items import key_of
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime.handlers import REGISTRY, Context, Registered

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.functions.stack import Stack


def register(monkeypatch: pytest.MonkeyPatch, function: Callable[[Context, object], object]) -> None:
    """Register a handler for the type `report` during one test."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": function}))


def test_a_batch_of_messages_is_processed_and_deleted(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker runs and records all tasks of a batch, and reports no message for redelivery."""
    register(monkeypatch, lambda _context, payload: {"got": payload})
    tasks = [stack.create(TaskSpec("report", payload=b'{"n":1}')) for _ in range(3)]
    assert stack.work(Priority.NORMAL) == []
    assert stack.waiting(Priority.NORMAL) == {"ready": 0, "delayed": 0, "received": 0}
    for task in tasks:
        done = stack.get(task)
        assert (done.state, done.attempt) == (State.SUCCEEDED, 1)
        assert done.result is not None
        assert done.result.data == b'{"got":{"n":1}}'


def test_the_worker_holds_a_message_until_its_due_time(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task whose message arrives 1.05 s early is claimed shortly before its due time, and starts exactly on time."""
    started: list[int] = []
    register(monkeypatch, lambda _context, _payload: started.append(stack.clock.now()))
    task = stack.create(TaskSpec("report", delay=1_050))
    assert stack.work(Priority.NORMAL) == []
    assert started == [task.due_at]
    assert stack.get(task).lateness == 0


def test_a_message_that_arrives_a_minute_early_is_redelivered(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that arrives a minute early is reported for redelivery, without a claim."""
    register(monkeypatch, lambda _context, _payload: None)
    task = stack.create(TaskSpec("report"))
    event = stack.receive(Priority.NORMAL)
    stack.clock.at -= MINUTE
    assert len(stack.call("worker", event)["batchItemFailures"]) == 1
    assert stack.get(task).version == 1
    assert stack.waiting(Priority.NORMAL)["received"] == 1


def test_a_message_of_a_leased_task_is_kept(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message for a leased task is reported as failed, so that Lambda keeps the message for the other attempt."""
    register(monkeypatch, lambda _context, _payload: None)
    task = stack.create(TaskSpec("report"))
    event = stack.receive(Priority.NORMAL)
    record = stack.cloud.dynamodb.get_item(TableName=stack.environ["DUETIME_TABLE"], Key=key_of(task.id))["Item"]
    stack.cloud.dynamodb.put_item(
        TableName=stack.environ["DUETIME_TABLE"],
        Item={**record, "z": {"S": "running"}, "l": {"N": str(stack.clock.now() + 30 * SECOND)}},
    )
    answer = stack.call("worker", event)
    assert [failure["itemIdentifier"] for failure in answer["batchItemFailures"]] == [event["Records"][0]["messageId"]]
    assert stack.get(task).state is State.RUNNING


def test_a_failing_handler_leaves_a_message_for_the_next_attempt(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed attempt, the old message is deleted, a new message is sent, and the error is recorded."""

    def boom(context: Context, _payload: object) -> str:
        if context.attempt == 1:
            raise LookupError("not yet")
        return "done"

    register(monkeypatch, boom)
    task = stack.create(TaskSpec("report"))
    assert stack.work(Priority.NORMAL) == []
    failed = stack.get(task)
    assert (failed.state, failed.generation) == (State.WAITING, 1)
    assert failed.error is not None
    assert failed.error.type == "LookupError"
    assert sum(stack.waiting(Priority.NORMAL).values()) == 1
    assert stack.work(Priority.NORMAL) == []
    assert stack.get(task).state is State.SUCCEEDED


def test_messages_that_are_not_from_duetime_are_deleted(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that are not from duetime are deleted, and the other messages in their batch are processed."""
    register(monkeypatch, lambda _context, _payload: None)
    for body in ("not json", "{}", "[]", '{"i":"../../etc","t":0,"d":0}', '{"i":1,"t":"x","d":null}', "[" * 5000):
        stack.cloud.sqs.send_message(QueueUrl=stack.queues[Priority.NORMAL], MessageBody=body)
    task = stack.create(TaskSpec("report"))
    kept = stack.work(Priority.NORMAL)
    assert kept == []
    assert stack.get(task).state is State.SUCCEEDED


def test_a_message_of_a_task_that_does_not_exist_is_deleted(stack: Stack) -> None:
    """A message whose task no longer exists is deleted."""
    body = '{"i":"01JD00000000000000000000AB","t":0,"d":0}'
    stack.cloud.sqs.send_message(QueueUrl=stack.queues[Priority.LOW], MessageBody=body)
    assert stack.work(Priority.LOW) == []
    assert stack.waiting(Priority.LOW)["received"] == 0


def test_a_batch_of_ten_tasks_writes_one_line_of_metrics(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A batch of ten tasks writes one line of metrics, because a line for each task would cost more than the task."""
    register(monkeypatch, lambda _context, _payload: None)
    for _ in range(10):
        stack.create(TaskSpec("report", priority=Priority.HIGH))
    capsys.readouterr()
    stack.work(Priority.HIGH)
    lines = [line for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    assert len(lines) == 1
    assert '"tasks_succeeded":[10.0]' in lines[0].replace(" ", "")
