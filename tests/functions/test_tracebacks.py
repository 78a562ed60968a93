from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.attempt_contents import DynamoTracebackStore
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.domain.errors import Unavailable
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Expiry
from duetime.domain.tasks.task_options import Priority, RetryPolicy
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, SECOND
from duetime.domain.tracebacks import AttemptTraceback
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Context, Registered, TaskHandler, Unretriable
from tests.functions.api.gateway import Gateway
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.task import Task
    from duetime_testing.fakes.attribute_values import Item

NAME = "traceback"


@pytest.fixture
def gateway() -> Gateway:
    """The API, called by the tasks' owner."""
    return Gateway(authorizer={"jwt": {"claims": {"sub": OWNER}}})


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The Lambda functions, with authentication, so that tasks have owners."""
    yield Stack.faked({Variable.AUTHENTICATION: "jwt"})
    composition.use(None)


def fail(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, run: Callable[[Context, Any], object], attempts: int = 1
) -> Task:
    """Create a task, and let the worker make this many attempts, which fail."""
    monkeypatch.setitem(REGISTRY, "report", Registered({"run": run}))
    task = stack.create(TaskSpec("report", retry=RetryPolicy(max_attempts=3, initial_seconds=1)))
    for _ in range(attempts):
        stack.work(Priority.NORMAL)
        stack.clock.at += 10 * SECOND
    return stack.get(task)


def stored(stack: Stack, task: Task) -> Item | None:
    """The stored item with a task's traceback, if any."""
    key = {
        schema.PARTITION_KEY: {"S": f"{schema.CONTENT_PREFIX}{task.id}"},
        schema.SORT_KEY: {"S": NAME},
    }
    item: Item | None = stack.cloud.dynamodb.get_item(TableName=stack.environ[Variable.TABLE], Key=key).get("Item")  # type: ignore[assignment]  # the error is in the stubs
    return item


def told(gateway: Gateway, task: Task) -> list[str | None]:
    """The tracebacks of a task's attempts, as the API shows them."""
    attempts = gateway.send("GET", f"/v1/tasks/{task.id}/attempts").body["attempts"]
    return [attempt["error"] and attempt["error"]["traceback"] for attempt in attempts]


def boom(_context: Context, _payload: object) -> None:
    """A handler that fails with an error that has a cause."""
    try:
        json.loads("{")
    except ValueError as error:
        raise LookupError("no such report") from error


def test_the_traceback_of_the_last_failed_attempt_can_be_read(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API shows the last failed attempt's traceback, with the error's cause, from the handler's own frame on."""
    task = fail(stack, monkeypatch, boom, attempts=2)
    first, second = told(gateway, task)
    assert first is None
    assert second is not None
    assert second.endswith("LookupError: no such report\n")
    assert "json.decoder.JSONDecodeError" in second
    _, of_error = second.split("direct cause")
    assert of_error.splitlines()[3].endswith("in boom")


async def boom_later(context: Context, payload: object) -> None:
    """A handler that fails in an event loop."""
    await asyncio.sleep(0)
    boom(context, payload)


def test_a_traceback_of_a_coroutine_begins_in_the_handler(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coroutine's traceback omits the frames of the event loop and of the code that waits for it."""
    decorated = TaskHandler("report", boom_later)
    for handler in (boom_later, decorated):
        (text,) = told(gateway, fail(stack, monkeypatch, handler))
        assert text is not None
        _, of_error = text.split("direct cause")
        assert of_error.splitlines()[3].endswith("in boom_later")
        assert "asyncio" not in text


def test_a_success_after_a_failure_keeps_the_traceback_with_its_attempt(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an attempt succeeds after a failed attempt, the traceback is shown with the failed attempt."""

    def once(context: Context, payload: object) -> None:
        if context.attempt == 1:
            boom(context, payload)

    task = fail(stack, monkeypatch, once, attempts=2)
    assert task.state is State.SUCCEEDED
    first, second = told(gateway, task)
    assert first is not None
    assert second is None


def test_a_success_writes_no_traceback(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a task never fails, no traceback is written."""
    task = fail(stack, monkeypatch, lambda _context, _payload: None)
    assert task.state is State.SUCCEEDED
    assert stored(stack, task) is None


def test_a_traceback_is_only_logged_if_the_settings_say_so(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the setting `log`, the full traceback is only logged, with the address of the task's page in the console."""
    stack.environ[Variable.TRACEBACKS] = "log"
    stack.environ[Variable.CONSOLE_URL] = "https://example.org/console/index.html"
    task = fail(stack, monkeypatch, boom)
    assert stored(stack, task) is None
    assert told(gateway, task) == [None]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (line,) = [line for line in lines if line.get("message") == "an attempt failed"]
    assert (line["task_id"], line["attempt"]) == (task.id.text, 1)
    assert "in boom" in line["facts"]["traceback"]
    assert line["facts"]["console_url"] == f"https://example.org/console/index.html#/tasks/{task.id}"


def test_a_traceback_fits_one_write_unit_whatever_was_raised(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback that is too long when compressed is cut at its beginning, and a lone surrogate is escaped."""
    noise = "".join(chr(random.Random(1).randrange(0x4E00, 0x9FFF)) for _ in range(50_000))  # noqa: S311 - seeded

    def loud(_context: Context, _payload: object) -> None:
        raise Unretriable(noise + "\ud800 the end")

    task = fail(stack, monkeypatch, loud)
    item = stored(stack, task)
    assert item is not None
    assert sum(len(name) + len(str(next(iter(value.values())))) for name, value in item.items() if name != "b") < 110
    assert len(item["b"]["B"]) <= 900
    (text,) = told(gateway, task)
    assert text is not None
    assert text.startswith("[cut] ")
    assert text.endswith("\\ud800 the end\n")


def test_an_error_whose_message_raises_fails_its_attempt(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an error's `__str__` raises an exception, neither the batch nor the outcome is affected."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    def mute(_context: Context, _payload: object) -> None:
        raise Mute

    task = fail(stack, monkeypatch, mute)
    assert task.error is not None
    assert (task.state, task.error.type) == (State.WAITING, "Mute")
    (text,) = told(gateway, task)
    assert text is not None
    assert "Mute: <exception str() failed>" in text


def test_a_failure_is_recorded_even_if_its_traceback_cannot_be_stored(
    stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store refuses a traceback, the failure is recorded without the traceback."""

    def away(*_: object) -> None:
        raise Unavailable("throttled")

    monkeypatch.setattr(DynamoTracebackStore, "keep", away)
    task = fail(stack, monkeypatch, boom)
    assert task.state is State.WAITING
    assert told(gateway, task) == [None]


def test_an_older_attempt_does_not_replace_a_later_attempts_traceback(stack: Stack) -> None:
    """A worker that was suspended does not replace a later attempt's traceback, and a repeated write has no effect."""
    task = stack.create(TaskSpec("report", delay=DAY))
    store = composed(CoreServices).tracebacks
    expiry = Expiry(stack.clock.now() + DAY)
    store.keep(task.id, AttemptTraceback(3, "third"), expiry)
    store.keep(task.id, AttemptTraceback(3, "third"), expiry)
    store.keep(task.id, AttemptTraceback(2, "second"), expiry)
    assert store.find(task.id) == AttemptTraceback(3, "third")


def test_a_traceback_is_kept_for_the_retention(stack: Stack, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback is kept at least as long as the task's record, and is erased with the task."""
    task = fail(stack, monkeypatch, boom, attempts=3)
    assert task.state is State.FAILED
    assert task.expires_at is not None
    item = stored(stack, task)
    assert item is not None
    assert int(item[schema.TTL]["N"]) * SECOND >= task.expires_at
    assert gateway.send("DELETE", f"/v1/tasks/{task.id}").status == 204
    assert stored(stack, task) is None
