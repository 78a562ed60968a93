from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.handlers import REGISTRY, Registered

if TYPE_CHECKING:
    import pytest

    from tests.functions.stack import Stack


def test_the_dead_letter_of_a_waiting_task_is_replaced_by_a_message(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiting task's dead letter is deleted, and a message with the next generation runs the task."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": lambda _context, _payload: "done"}))
    task = stack.create(TaskSpec("report"))
    letters = stack.receive(Priority.NORMAL)
    assert stack.call("deadletter", letters) == {"batchItemFailures": []}
    assert stack.get(task).generation == 1
    assert stack.work(Priority.NORMAL) == []
    assert stack.get(task).state is State.SUCCEEDED


def test_a_dead_letter_that_names_no_task_is_deleted(stack: Stack) -> None:
    """A dead letter that names no task is deleted."""
    stack.cloud.sqs.send_message(QueueUrl=stack.queues[Priority.NORMAL], MessageBody="poison")
    assert stack.call("deadletter", stack.receive(Priority.NORMAL)) == {"batchItemFailures": []}
