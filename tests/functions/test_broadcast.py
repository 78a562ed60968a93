"""Tests of the function that reads the table's stream, over AWS fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.stream import BroadcastServices
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.environment_variables import Variable
from duetime_testing.fakes.stream import FakeStream
from tests.functions.stack import Stack


def stream_of(stack: Stack) -> FakeStream:
    """Start recording the stream of a stack's table."""
    fakes: Any = stack.cloud.dynamodb
    stream = FakeStream(stack.clock.now)
    (table,) = fakes.fake.tables.values()
    stream.watch(table)
    return stream


@pytest.mark.usefixtures("noop")
def test_the_stream_has_each_change_of_a_task_in_order(stack: Stack) -> None:
    """The stream has one change for each write of a record, and each change begins where the previous one ended."""
    stream = stream_of(stack)
    task = stack.create(TaskSpec(type="canary.noop"))
    stack.call("worker", stack.receive(Priority.NORMAL))
    changes = composed(BroadcastServices).changes(stream.event()).tasks
    assert [change.after.version for change in changes if change.after] == [1, 2, 3]
    assert {change.after.id for change in changes if change.after} == {task.id}
    assert changes[-1].after is not None
    assert changes[-1].after.state is stack.get(task).state is State.SUCCEEDED
    assert [change.before for change in changes] == [None, *(change.after for change in changes[:-1])]


def test_with_every_optional_consumer_off_the_function_only_queries_watchers(stack: Stack) -> None:
    """Without optional consumers, the function only queries which clients watch tasks, even for unreadable items."""
    stream = stream_of(stack)
    stack.create(TaskSpec(type="canary.noop"))
    stream.records.append({"eventID": "poison"})
    event, calls = stream.event(), list[str]()
    fakes: Any = stack.cloud.dynamodb
    fakes._session.heard = lambda operation, _request: calls.append(operation)
    assert stack.call("broadcast", event) is None
    assert calls == ["query"]


def test_a_failed_task_sends_events_for_its_end_and_final_failure() -> None:
    """A failed task sends one event for its end and one for the final failure, but no event for creation or claim."""
    stack = Stack.faked({Variable.EVENT_BUS: "default"})
    stream = stream_of(stack)
    task = stack.create(TaskSpec(type="nobody-handles"))
    stack.work(Priority.NORMAL)
    stack.call("broadcast", stream.event())
    fakes: Any = stack.cloud.dynamodb
    taken = fakes._session.events.taken
    assert [entry["DetailType"] for entry in taken] == ["duetime.task.ended.v1", "duetime.task.failed.v1"]
    assert {json.loads(entry["Detail"])["task_id"] for entry in taken} == {task.id.text}
    composition.use(None)
