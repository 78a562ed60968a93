"""Tests of a task's path through the deployed stack: API, table, trigger or direct send, queue, worker, and target."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Unpack

import pytest

from duetime.domain.limits import SHORTEST_WORKER_LEASE_SECONDS
from duetime.environment_variables import Variable
from duetime_local import demo_workflow
from duetime_local.demo import Demo
from tests.deployed.processes import processes_of
from tests.deployed.shifted import ShiftedClock, event_of, function_at
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_sqs.type_defs import MessageTypeDef

    from duetime_client import Client, Task, TaskFields
    from duetime_local.demo_receiver import Receiver
    from duetime_local.stack import Stack

TYPE = "ci.job"
IN_TIME = timedelta(minutes=5)
"""The longest allowed lateness of a sent task, even on a busy machine; on an idle machine, it is a few milliseconds.

The permitted lateness is tested in virtual time, where it does not depend on the machine.
"""


def soon(seconds: float) -> datetime:
    """A time in the future, rounded down to milliseconds as the API does."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def calling(counter: Receiver, **fields: Unpack[TaskFields]) -> TaskFields:
    """The fields of a task with an HTTP target."""
    payload = {"job": "probe", "work_ms": 0, "fail_times": 0}
    return {**fields, "target": {"kind": "http", "url": counter.run_url}, "payload": payload}


def reporting(counter: Receiver, *, work_ms: int = 0, **fields: Unpack[TaskFields]) -> TaskFields:
    """The fields of a task for the example's Python handler."""
    payload = {"job": "probe", "work_ms": work_ms, "fail_times": 0, "report_url": counter.report_url}
    return {**fields, "payload": payload}


def ended(client: Client, task: Task) -> Task:
    """Wait for the task's end, and return the task, also if the wait times out."""
    until(lambda: client.tasks.get(task.id).is_terminal)
    return client.tasks.get(task.id)


def starts(counter: Receiver, task: Task) -> list[datetime]:
    """The times when the task started, by the receiver's clock."""
    return [
        datetime.fromtimestamp(one.started_at_ms / 1000, UTC) for one in counter.executions if one.task_id == task.id
    ]


def test_the_demo_keeps_its_promises(client: Client) -> None:
    """By the receiver's own count, no task is lost, repeated, or early, and tasks that fail at first are retried."""
    figures = Demo(count=60, spread_ms=5000).run(client, lambda _: None)

    assert figures.promises_kept
    assert (figures.accepted, figures.succeeded, figures.failed) == (60, 60, 0)
    assert figures.retried > 0
    assert figures.lateness_ms.max < IN_TIME / timedelta(milliseconds=1)


@pytest.mark.slow
def test_the_demos_workflow_keeps_its_promises(client: Client) -> None:
    """By the receiver's own count, each node runs once, and only after all of its parents."""
    figures = demo_workflow.run(client, lambda _: None)

    assert figures.promises_kept, figures
    assert (figures.ran, figures.before_parents) == (58, 0)
    assert figures.ratio >= 1


@pytest.mark.parametrize("fields", [calling, reporting])
def test_a_task_runs_once_when_it_is_due_and_succeeds(
    client: Client, counter: Receiver, fields: Callable[..., TaskFields]
) -> None:
    """With an HTTP target or a Python handler, a task starts at its due time, never earlier, and has one outcome."""
    due = soon(2.5)

    task = ended(client, client.tasks.create(TYPE, **fields(counter, due_at=due)))

    assert (task.state, task.attempt, task.due_at) == ("succeeded", 1, due)
    (start,) = starts(counter, task)
    assert timedelta(0) <= start - due < IN_TIME


@pytest.mark.slow
def test_a_cancelled_task_does_not_run(client: Client, counter: Receiver) -> None:
    """A cancelled task does not run, but a task that is due later runs."""
    taken_back = client.tasks.create(TYPE, **calling(counter, due_at=soon(6)))
    assert client.tasks.cancel(taken_back.id).state == "cancelled"
    later = client.tasks.create(TYPE, **calling(counter, due_at=soon(7)))

    assert ended(client, later).state == "succeeded"
    assert client.tasks.get(taken_back.id).state == "cancelled"
    assert starts(counter, taken_back) == []


@pytest.mark.slow
def test_a_task_moved_away_and_back_runs_once_at_its_due_time(client: Client, counter: Receiver) -> None:
    """After a due time was moved away and back, the task runs once, at its last due time."""
    task = client.tasks.create(TYPE, **calling(counter, due_at=soon(6)))
    client.tasks.update(task.id, due_at=soon(3600))
    due = soon(8)

    changed = client.tasks.update(task.id, due_at=due)
    task = ended(client, changed)

    assert (task.state, task.due_at) == ("succeeded", due)
    (start,) = starts(counter, task)
    assert start >= due


@pytest.mark.slow
def test_a_moved_task_does_not_run_at_its_first_due_time(client: Client, counter: Receiver) -> None:
    """The message that was sent for the first due time of a moved task is dropped."""
    moved = client.tasks.create(TYPE, **calling(counter, due_at=soon(6)))
    client.tasks.update(moved.id, due_at=soon(3600))
    later = client.tasks.create(TYPE, **calling(counter, due_at=soon(7)))

    assert ended(client, later).state == "succeeded"
    assert client.tasks.get(moved.id).state == "scheduled"
    assert starts(counter, moved) == []


TWENTY_MINUTES = timedelta(minutes=20)


@pytest.mark.slow
def test_a_task_twenty_minutes_ahead_is_sent_by_the_trigger(deployed: Stack, client: Client, counter: Receiver) -> None:
    """If a task is due beyond the look-ahead, its creation sends no message, but the trigger sends one in time."""
    due = soon(TWENTY_MINUTES.total_seconds())
    sqs = deployed.emulator.client("sqs")
    queue = deployed.deployment.outputs["QueueUrlLow"]
    clock = ShiftedClock((TWENTY_MINUTES - timedelta(seconds=3)) // timedelta(milliseconds=1))
    with undelivered(deployed, "QueueUrlLow") as queue_arn:

        def created() -> Task | None:
            # A tick may send other tests' messages now, so the creation is repeated until the queue stays empty.
            sqs.purge_queue(QueueUrl=queue)
            task = client.tasks.create(TYPE, **calling(counter, due_at=due, priority="low"))
            return task if waiting(deployed, queue) == 0 else None

        task = until(created)
        assert task, "a message was sent at each creation"

        def received() -> list[MessageTypeDef]:
            asked = sqs.receive_message(
                QueueUrl=queue, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"], VisibilityTimeout=30
            )
            return [message for message in asked.get("Messages", []) if task.id in message["Body"]]

        with function_at(deployed, "trigger", clock) as trigger:
            (message,) = until(lambda: received() or trigger({}))
        with function_at(deployed, "worker", clock) as worker:
            answer = worker(event_of(message, queue_arn))

    assert answer == {"batchItemFailures": []}
    assert client.tasks.get(task.id).state == "succeeded"
    (start,) = starts(counter, task)
    assert timedelta(0) <= start + timedelta(milliseconds=clock.ahead_ms) - due < IN_TIME


def waiting(stack: Stack, queue_url: str) -> int:
    """The number of messages in a queue, in any state."""
    attributes = stack.emulator.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])
    held = attributes["Attributes"]
    return (
        int(held["ApproximateNumberOfMessages"])
        + int(held["ApproximateNumberOfMessagesDelayed"])
        + int(held["ApproximateNumberOfMessagesNotVisible"])
    )


@contextmanager
def undelivered(stack: Stack, queue_output: str) -> Iterator[str]:
    """Detach a queue from the deployed worker, whose clock cannot be shifted, and return the queue's ARN."""
    queue_url = stack.deployment.outputs[queue_output]
    found = stack.emulator.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
    queue_arn = found["Attributes"]["QueueArn"]
    functions = stack.emulator.client("lambda")
    mappings = functions.list_event_source_mappings(EventSourceArn=queue_arn)["EventSourceMappings"]
    for mapping in mappings:
        functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
    try:
        yield queue_arn
    finally:
        for mapping in mappings:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)


@pytest.fixture
def short_lease(deployed: Stack) -> Iterator[str]:
    """The name of the worker function, whose lease is short enough for a test to wait."""
    functions = deployed.emulator.client("lambda")
    name = deployed.deployment.outputs["WorkerFunctionName"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    short = {**variables, Variable.LEASE_SECONDS.value: str(SHORTEST_WORKER_LEASE_SECONDS)}
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": short})
    yield name
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})


@pytest.mark.slow
def test_another_attempt_finishes_the_task_of_a_worker_that_was_killed(
    deployed: Stack, client: Client, counter: Receiver, short_lease: str
) -> None:
    """After a worker is killed, its lease expires, and the next attempt completes the task.

    The fast test of this behavior, in virtual time, is in `tests/scenarios/test_attempts.py`.
    """
    task = client.tasks.create(TYPE, **reporting(counter, work_ms=8000))
    assert until(lambda: client.tasks.get(task.id).state == "running")

    for pid in processes_of(deployed.emulator, short_lease):
        # A process without work may already have ended.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    killed_at = datetime.now(UTC)
    task = ended(client, task)

    assert (task.state, task.attempt, task.fence) == ("succeeded", 2, 2)
    (start,) = starts(counter, task)
    assert start > killed_at


@pytest.mark.parametrize("task_type", ["fan-out", "fan-out.async"])
def test_a_handler_starts_tasks(client: Client, task_type: str) -> None:
    """A handler starts tasks through the API's function; a repeated attempt creates no further tasks."""
    retry = {"max_attempts": 2, "initial_seconds": 0.01}
    parent = client.tasks.create(task_type, payload={"parts": 2, "fail_times": 1}, retry=retry)  # type: ignore[arg-type]  # a dict
    done = client.tasks.wait(parent.id, timeout=120)
    assert (done.state, done.attempt) == ("succeeded", 2)
    until(lambda: len(list(client.tasks.list(parent_task_id=parent.id))) == 2)
    children = list(client.tasks.list(parent_task_id=parent.id))
    assert sorted(each.id for each in children) == sorted(done.result)  # type: ignore[call-overload]  # a list
    assert {client.tasks.wait(each.id, timeout=120).state for each in children} == {"succeeded"}
