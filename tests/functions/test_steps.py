"""Tests of stored steps: their contents, their expiry, and their costs, which handlers without steps do not pay."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.attempt_contents import DynamoStepStore
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.domain.errors import Unavailable
from duetime.domain.tasks.states import State
from duetime.domain.tasks.steps import StepResult
from duetime.domain.tasks.task_options import Priority, RetryPolicy
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, SECOND
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Context, LeaseLost, Registered, Unretriable
from duetime_common.handler_retries import RetryRule
from tests.functions.api.gateway import Gateway
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.task import Task

RETENTION = 30 * DAY
STEP = StepResult("run", "charge", 1, 1, 1_000, 20, b'{"id":7}', 9_000)


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions, with authentication, so that tasks have owners."""
    yield Stack.faked({Variable.AUTHENTICATION: "jwt"})
    composition.use(None)


@pytest.fixture
def gateway() -> Gateway:
    """The API, called by the tasks' owner."""
    return Gateway(authorizer={"jwt": {"claims": {"sub": OWNER}}})


def run(stack: Stack, monkeypatch: pytest.MonkeyPatch, handler: Callable[[Context, Any], object]) -> Task:
    """Create a task, and let the worker make one attempt."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": handler}))
    task = stack.create(TaskSpec("report", retry=RetryPolicy(max_attempts=3, initial_seconds=1)))
    stack.work(Priority.NORMAL)
    return stack.get(task)


def steps(task: Task) -> list[StepResult]:
    """The stored steps of a task."""
    return composed(CoreServices).steps.list_of(task.id)


def test_a_step_is_kept_for_longer_than_its_record(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is kept longer than its record, so that the task can still be retried, and is erased with its task."""

    def fail(context: Context, _payload: object) -> None:
        context.step("charge", int)
        raise Unretriable

    task = run(stack, monkeypatch, fail)
    assert task.expires_at is not None
    (step,) = steps(task)
    assert step.expires_at >= task.expires_at + 80 * DAY
    assert gateway.send("DELETE", f"/v1/tasks/{task.id}").status == 204
    assert steps(task) == []


def test_a_step_is_kept_for_longer_than_a_record_of_its_type(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is kept longer than its record even if the records of its type are kept longer than other records."""
    stack.environ[Variable.RETENTION_DAYS_BY_TYPE] = '{"report": 400}'
    task = run(stack, monkeypatch, lambda context, _payload: context.step("charge", int))
    (step,) = steps(task)
    assert task.expires_at is not None
    assert task.expires_at > stack.clock.now() + 399 * DAY
    assert step.expires_at >= task.expires_at + 80 * DAY


def test_reading_a_step_after_half_of_its_time_extends_its_expiry(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step's expiry is extended when the step is read after half of its time has passed, but not at each attempt."""

    def fail(context: Context, _payload: object) -> None:
        context.step("charge", int)
        raise LookupError

    task = run(stack, monkeypatch, fail)
    (first,) = steps(task)
    stack.clock.at += 10 * SECOND
    stack.work(Priority.NORMAL)
    assert steps(task) == [first]
    stack.clock.at += 70 * DAY
    # After 70 days, the queue no longer has a message, so the task is run by a request.
    assert gateway.send("POST", f"/v1/tasks/{task.id}/run").status == 200
    stack.work(Priority.NORMAL)
    assert steps(task) == [replace(first, expires_at=-(-(stack.clock.now() + RETENTION + 90 * DAY) // SECOND) * SECOND)]


def test_the_first_of_two_results_is_kept(stack: Stack) -> None:
    """If a step's result is written again, by the same or another attempt, the first result is kept and returned."""
    task = stack.create(TaskSpec("report", delay=DAY))
    store = composed(CoreServices).steps
    assert store.keep(task.id, STEP) == STEP
    assert store.keep(task.id, STEP) == STEP
    assert store.keep(task.id, replace(STEP, fence=2, result=b"8")) == STEP
    store.keep(task.id, replace(STEP, name="before", finished_at=500))
    store.keep(task.id, replace(STEP, phase="rollback"))
    assert [(each.phase, each.name) for each in store.list_of(task.id)] == [
        ("run", "before"),
        ("rollback", "charge"),
        ("run", "charge"),
    ]
    store.extend(task.id, replace(STEP, name="erased"), 10_000)
    assert len(store.list_of(task.id)) == 3


def test_a_steps_result_is_stored_when_the_store_recovers(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the store fails after a step's work is done, the write is repeated while the lease lasts.

    When the lease has ended, the attempt fails.
    """
    keep, away = DynamoStepStore.keep, [3]

    def sleep_until(at: int) -> None:
        stack.clock.at = at

    def refuse(self: DynamoStepStore, *args: Any) -> StepResult:  # noqa: ANN401 - see `keep`
        away[0] -= 1
        if away[0] >= 0:
            raise Unavailable("throttled")
        return keep(self, *args)

    monkeypatch.setattr(DynamoStepStore, "keep", refuse)
    monkeypatch.setattr(stack.clock, "sleep_until", sleep_until)
    task = run(stack, monkeypatch, lambda context, _payload: context.step("charge", lambda: 5))
    assert (task.state, len(steps(task))) == (State.SUCCEEDED, 1)
    away[0] = 1_000
    task = run(stack, monkeypatch, lambda context, _payload: context.step("charge", lambda: 5))
    assert task.error is not None
    assert (task.state, task.error.type, steps(task)) == (State.WAITING, "Unavailable", [])


@pytest.mark.parametrize("error", [Unavailable("throttled"), LeaseLost()])
def test_a_handlers_retry_rule_does_not_prevent_retries_after_an_outage(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A handler's retry rule that lists only its own exceptions does not prevent a retry after a table outage."""

    def order(_context: Context, _payload: object) -> None:
        raise error

    monkeypatch.setitem(REGISTRY, "report", Registered({"run": order}, retry_rule=RetryRule((OSError,))))
    task = stack.create(TaskSpec("report", retry=RetryPolicy(max_attempts=3, initial_seconds=1)))
    stack.work(Priority.NORMAL)
    assert stack.get(task).state is State.WAITING


def test_an_item_has_the_prefix_of_the_tasks_contents(stack: Stack) -> None:
    """A step's item is in the partition of the task's contents, so that the item is erased with the contents."""
    task = stack.create(TaskSpec("report", delay=DAY))
    composed(CoreServices).steps.keep(task.id, STEP)
    key = {schema.PARTITION_KEY: {"S": f"x#{task.id}"}, schema.SORT_KEY: {"S": "step#run#charge"}}
    item = stack.cloud.dynamodb.get_item(TableName=stack.environ[Variable.TABLE], Key=key)["Item"]
    assert item["b"] == {"S": '{"id":7}'}


def test_a_worker_imports_no_modules_for_steps_at_its_start() -> None:
    """A worker does not import the modules for steps at startup."""
    script = """
import sys
import functions.worker.handler
print([name for name in sys.modules if name.endswith("steps") and "completion" not in name])
"""
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603 - our own code
    assert told.stdout == "[]\n"
