"""Tests that unreadable data stops neither its batch, nor the trigger, nor a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.task_items import key_of
from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.domain.operating_parameters import MAX_DELAY
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime.handlers import REGISTRY, Registered
from duetime.ports.tasks import ListQuery
from tests.functions.stack import OWNER

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from tests.functions.stack import Stack

TICK = {"version": "0", "source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": "{}"}
ID = "01M7XZ8CGJ0013P2ZBN3YDT3DX"
GARBAGE = [
    "",
    "not json",
    "null",
    "[]",
    "{}",
    "\ud7ff\ufffd",
    '{"i":"../../etc","t":0,"d":0}',
    '{"i":null,"t":0,"d":0}',
    f'{{"i":"{ID}","t":true,"d":0}}',
    f'{{"i":"{ID}","t":-1,"d":0}}',
    f'{{"i":"{ID}","t":0,"d":1e400}}',
    f'{{"i":"{ID}","t":0,"d":NaN}}',
    f'{{"i":"{ID}","t":{10**40},"d":0}}',
    f'{{"i":"{ID}","t":0,"d":{10**40}}}',
    f'{{"i":"{ID}","t":0,"d":-5}}',
    f'{{"i":"{ID}","t":{"9" * 5_000},"d":0}}',
    f'{{"i":"{"7" + "Z" * 25}","t":0,"d":0}}',
    "[" * 100_000,
    "x" * 262_144,
    '{"i":"' + "0" * 250_000 + '","t":0,"d":0}',
]
# The attributes of damaged records, or of records that another version of duetime wrote.
DAMAGES: list[dict[str, Any]] = [
    {"z": {"S": "sleeping"}},
    {"z": {"N": "7"}},
    {"r": {"S": "five times"}},
    {"b": {"B": b"not compressed"}},
    {"u": {"S": "teleport"}},
    {"L": {"B": b"\x00\x01"}},
    {"q": {"S": "urgent"}},
    {"v": {"N": "9"}},
    {"v": {"S": "x"}},
    {"n": {"S": "soon"}},
    {"t": {"S": "first"}},
]


def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a handler for the type `report`."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: "done"}))


def damaged(stack: Stack, task: Task, damage: dict[str, Any]) -> None:
    """Overwrite attributes in a task's record."""
    table, client = stack.environ["DUETIME_TABLE"], stack.cloud.dynamodb
    item = client.get_item(TableName=table, Key=key_of(task.id))["Item"]
    client.put_item(TableName=table, Item={**item, **damage})


def event_of(*bodies: str) -> dict[str, Any]:
    """A batch of messages with these bodies, in the form in which Lambda passes it to a function."""
    return {
        "Records": [
            {"messageId": f"m{number}", "receiptHandle": f"r{number}", "body": body, "attributes": {}}
            for number, body in enumerate(bodies)
        ]
    }


@pytest.mark.parametrize("function", ["worker", "deadletter"])
def test_an_unreadable_message_does_not_affect_the_rest_of_its_batch(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """An unreadable message of any kind is deleted, and the other messages in its batch are processed."""
    registered(monkeypatch)
    task = stack.create(TaskSpec("report"))
    good = stack.receive(Priority.NORMAL)
    bad = event_of(*GARBAGE)
    assert stack.call(function, {"Records": [*bad["Records"], *good["Records"]]}) == {"batchItemFailures": []}
    if function == "deadletter":
        stack.work(Priority.NORMAL)
    assert stack.get(task).state is State.SUCCEEDED


@pytest.mark.parametrize("first", range(0, len(DAMAGES), 6))
def test_a_damaged_record_does_not_affect_the_rest_of_its_batch(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The message of a damaged record is kept or deleted, and the worker runs the other task in the batch."""
    registered(monkeypatch)
    bad = [(stack.create(TaskSpec("report")), damage) for damage in DAMAGES[first : first + 6]]
    good = stack.create(TaskSpec("report"))
    for task, damage in bad:
        damaged(stack, task, damage)
    event = stack.receive(Priority.NORMAL)
    bodies = {record["messageId"]: record["body"] for record in event["Records"]}
    for function in ("worker", "deadletter"):
        answer = stack.call(function, event)
        kept = [bodies[failure["itemIdentifier"]] for failure in answer["batchItemFailures"]]
        assert not any(str(good.id) in body for body in kept)
    assert stack.get(good).state is State.SUCCEEDED
    assert not stack.process.ended


def test_the_message_of_an_unreadable_record_returns_after_the_longest_delay(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable record's message returns after the queue's longest delay, until other code can read the record."""
    registered(monkeypatch)
    task = stack.create(TaskSpec("report"))
    item = stack.cloud.dynamodb.get_item(TableName=stack.environ["DUETIME_TABLE"], Key=key_of(task.id))["Item"]
    damaged(stack, task, {"u": {"S": "teleport"}})
    (kept,) = stack.work(Priority.NORMAL)
    assert kept
    stack.clock.at += MAX_DELAY - SECOND
    assert stack.receive(Priority.NORMAL)["Records"] == []
    stack.clock.at += SECOND
    assert [each["messageId"] for each in stack.receive(Priority.NORMAL)["Records"]] == [kept]
    stack.cloud.dynamodb.put_item(TableName=stack.environ["DUETIME_TABLE"], Item=item)
    assert stack.get(task).state is State.SCHEDULED


def test_damaged_records_do_not_stop_the_trigger(stack: Stack) -> None:
    """If records are damaged, the other tasks in their shards and minute are sent, and the cursor advances."""
    tasks = [stack.create(TaskSpec("report", delay=8 * MINUTE)) for _ in range(len(DAMAGES) + 8)]
    for task, damage in zip(tasks, DAMAGES, strict=False):
        damaged(stack, task, damage)
    stack.clock.at += 6 * MINUTE
    stack.call("trigger", TICK)
    sent = stack.waiting(Priority.NORMAL)["delayed"]
    assert sent >= 8
    stack.call("trigger", TICK)
    assert stack.waiting(Priority.NORMAL)["delayed"] == sent


def test_unknown_items_in_a_minute_do_not_stop_the_trigger(stack: Stack) -> None:
    """Unknown items in a minute, including some that look like timers, are skipped."""
    task = stack.create(TaskSpec("report", delay=8 * MINUTE))
    for sort_key in ("junk", f"{task.id}{schema.TIMER_MARK}0", f"{task.id}{schema.SCHEDULE_MARK}0", "\u00e9#w#x"):
        item = {schema.PARTITION_KEY: {"S": task.id.partition}, schema.SORT_KEY: {"S": sort_key}}
        stack.cloud.dynamodb.put_item(TableName=stack.environ["DUETIME_TABLE"], Item=item)
    stack.clock.at += 6 * MINUTE
    stack.call("trigger", TICK)
    assert stack.waiting(Priority.NORMAL)["delayed"] == 1


def test_a_list_omits_damaged_records(stack: Stack) -> None:
    """A list omits damaged records and shows the other tasks."""
    damages = [damage for damage in DAMAGES if "g" not in damage]
    tasks = [stack.create(TaskSpec("report")) for _ in range(len(damages) + 3)]
    for task, damage in zip(tasks, damages, strict=False):
        damaged(stack, task, damage)
    page = composed(TaskServices).reader.list(ListQuery(OWNER, None, descending=False, limit=100), TaskFilter())
    assert [task.id for task in page.tasks] == sorted(task.id for task in tasks[len(damages) :])
