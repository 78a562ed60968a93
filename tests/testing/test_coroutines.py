"""Tests coroutines in virtual time, both handlers and tests that use `AsyncClient`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from duetime_client import WaitTimeout

if TYPE_CHECKING:
    from datetime import datetime

    from duetime.handlers import Context
    from duetime_client import TaskState
    from duetime_testing import Duetime


def test_awaiting_in_a_handler_takes_only_virtual_time(duetime: Duetime) -> None:
    """While a handler awaits something, the worker's other handlers continue."""
    ended: list[tuple[object, datetime]] = []

    async def report(_context: Context, payload: int) -> str:
        await asyncio.sleep(payload)
        ended.append((payload, duetime.now))
        return "done"

    duetime.register("report", report)
    begin = duetime.now
    tasks = [duetime.client.tasks.create("report", payload=seconds, timeout_seconds=100) for seconds in (30, 10, 20)]
    duetime.run_until_idle()
    assert [payload for payload, _ in ended] == [10, 20, 30]
    assert (ended[-1][1] - begin).total_seconds() < 40
    assert {duetime.client.tasks.get(task.id).result for task in tasks} == {"done"}


def test_a_late_coroutine_is_cancelled_without_ending_its_process(duetime: Duetime) -> None:
    """A coroutine that takes too long can clean up, and its attempt fails with `Timeout`; other coroutines continue."""
    cleaned: list[int] = []

    async def slow(context: Context, payload: int) -> int:
        try:
            await asyncio.sleep(payload if context.attempt == 1 else 0)
        finally:
            cleaned.append(context.attempt)
        return context.attempt

    duetime.register("slow", slow)
    late = duetime.client.tasks.create("slow", payload=3600, timeout_seconds=60)
    beside = duetime.client.tasks.create("slow", payload=100, timeout_seconds=600)
    duetime.run_until_idle()
    assert sorted(cleaned) == [1, 1, 2]
    assert duetime.client.tasks.get(late.id).result == 2
    assert duetime.client.tasks.get(beside.id).result == 1
    first, _ = duetime.client.tasks.list_attempts(late.id)
    assert (first.outcome, first.error.type if first.error else "") == ("retried", "Timeout")


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit(), BaseException("x")])
def test_any_exception_of_a_coroutine_fails_its_attempt(duetime: Duetime, error: BaseException) -> None:
    """A coroutine's exception fails the attempt with its own class, as in a deployment, and does not reach the test."""

    async def end(context: Context, _payload: object) -> int:
        await asyncio.sleep(1)
        if context.attempt == 1:
            raise error
        return 1

    duetime.register("ended", end)
    task = duetime.client.tasks.create("ended")
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).result == 1
    first, _ = duetime.client.tasks.list_attempts(task.id)
    assert (first.outcome, first.error.type if first.error else "") == ("retried", type(error).__name__)


def test_a_coroutine_can_await_a_task_that_it_has_cancelled(duetime: Duetime) -> None:
    """If a coroutine awaits a task that it has cancelled, only its attempt fails, with the error `CancelledError`."""

    async def cancel(_context: Context, _payload: object) -> None:
        work = asyncio.ensure_future(asyncio.sleep(100))
        await asyncio.sleep(1)
        work.cancel()
        await work

    duetime.register("cancelled", cancel)
    task = duetime.client.tasks.create("cancelled", retry={"max_attempts": 1})
    begin = duetime.now
    duetime.run_until_idle()
    failed = duetime.client.tasks.get(task.id)
    assert (failed.state, failed.error.type if failed.error else "") == ("failed", "CancelledError")
    assert (duetime.now - begin).total_seconds() < 5


def test_a_test_can_use_the_asynchronous_client(duetime: Duetime) -> None:
    """While a test awaits the client, virtual time passes and coroutines of handlers run."""

    async def report(_context: Context, payload: int) -> int:
        await asyncio.sleep(5)
        return payload + 1

    duetime.register("report", report)

    async def use() -> list[TaskState]:
        client = duetime.async_client
        task = await client.tasks.create("report", payload=1, delay_seconds=60)
        with pytest.raises(WaitTimeout):
            await client.tasks.wait(task.id, timeout=30)
        assert (await client.tasks.wait(task.id)).result == 2
        return [found.state async for found in client.tasks.list()]

    assert asyncio.run(use()) == ["succeeded"]
