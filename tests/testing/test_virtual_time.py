"""Tests that the testing kit's time starts at a fixed instant and passes only when the test says so."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from duetime_testing import Duetime, NotIdle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.handlers import Context
    from duetime_client import RetryPolicy


def test_every_test_starts_at_the_same_instant(duetime: Duetime) -> None:
    """Reading the virtual time does not advance it, and the virtual time is not the wall clock's time."""
    assert duetime.now == datetime(2026, 1, 5, 9, tzinfo=UTC)
    task = duetime.client.tasks.create("report")
    assert task.created_at == task.due_at == duetime.now == datetime(2026, 1, 5, 9, tzinfo=UTC)


def test_the_wall_clock_has_no_effect(duetime: Duetime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are created and run without sleeping, while the wall clock stands still in 1970."""
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    monkeypatch.setattr(time, "sleep", lambda _seconds: pytest.fail("slept"))
    duetime.register("report", lambda _context, _payload: "done")
    task = duetime.client.tasks.create("report", delay_seconds=90)
    duetime.advance(minutes=2)
    assert duetime.client.tasks.get(task.id).result == "done"


def test_tasks_run_in_order_of_their_due_times(duetime: Duetime) -> None:
    """Tasks run by due time and not in the order in which they were created."""
    ran: list[tuple[str, datetime, datetime | None]] = []
    duetime.register("report", lambda context, payload: ran.append((payload, duetime.now, context.due_at)))
    begin = duetime.now
    for delay in (7200, 0, 90, 86_400.5):
        duetime.client.tasks.create("report", payload=str(delay), delay_seconds=delay)
    duetime.advance(days=2)
    expected = [begin + timedelta(seconds=delay) for delay in (0, 90, 7200, 86_400.5)]
    assert [at for _, at, _ in ran] == [due for _, _, due in ran] == expected
    assert [payload for payload, _, _ in ran] == ["0", "90", "7200", "86400.5"]


def test_advancing_ends_exactly_at_the_given_instant(duetime: Duetime) -> None:
    """A task that is due a millisecond after the end of the advance has not run."""
    duetime.register("report", lambda _context, _payload: None)
    due = duetime.now + timedelta(days=1)
    duetime.client.tasks.create("report", due_at=due)
    duetime.at(due - timedelta(milliseconds=1))
    duetime.assert_ran("report", times=0)
    duetime.at(due)
    duetime.assert_ran("report", times=1)


def test_a_test_can_start_in_the_past_but_not_move_backward(duetime: Duetime) -> None:
    """Before its first action, a test can choose the start time; afterward, moving time backward raises an error."""
    duetime.register("report", lambda _context, _payload: None)
    duetime.at("1999-12-31T23:59:59+00:00")
    duetime.client.tasks.create("report", delay_seconds=1)
    duetime.advance(seconds=1)
    duetime.assert_ran("report", times=1)
    with pytest.raises(ValueError, match="time only moves forward"):
        duetime.at("1999-12-31T23:59:59+00:00")
    with pytest.raises(ValueError, match="no UTC offset: write 2030-01-01T00:00:00"):
        duetime.at("2030-01-01T00:00:00")
    with pytest.raises(ValueError, match="only moves forward"):
        duetime.advance(seconds=-1)


def test_preparations_before_at_are_kept(duetime: Duetime) -> None:
    """Handlers, endpoints, faults, pulled types and the client can be set up before `at`."""
    client, ran = duetime.client, list[int]()
    duetime.register("report", lambda context, _payload: ran.append(context.attempt))
    duetime.faults.crash_before_finish(type="report")
    duetime.http.respond("https://hooks.example.org/")
    duetime.pull("vm.backup")
    duetime.at("2031-01-01T00:00:00+00:00")
    client.tasks.create("report", callback_url="https://hooks.example.org/done")
    client.tasks.create("vm.backup")
    duetime.run_until_idle()
    assert ran == [1, 2]
    assert len(duetime.http.requests) == 1
    assert len(client.leases.acquire(["vm.backup"])) == 1
    assert duetime.now.year == 2031


def test_a_year_without_tasks_passes_quickly(duetime: Duetime) -> None:
    """Months without a task need no more invocations than one night."""
    duetime.register("report", lambda _context, _payload: None)
    duetime.client.tasks.create("report", delay_seconds=360 * 86_400)
    calls = duetime._account.calls
    duetime.advance(days=365)
    duetime.assert_ran("report", times=1)
    assert duetime.executions[0].at == duetime.executions[0].due_at
    assert duetime._account.calls - calls < 100


@pytest.mark.slow
def test_skipping_empty_minutes_changes_nothing() -> None:
    """The same tasks run at the same instants, whether or not the trigger's empty ticks are simulated."""

    def run(*, leaves_out: bool) -> Sequence[object]:
        duetime = Duetime()
        duetime._account.leaves_out_idle_ticks = leaves_out
        duetime.register("report", lambda context, _payload: _fail_first(context))
        retry: RetryPolicy = {"max_attempts": 3, "initial_seconds": 5_000, "max_seconds": 9_000}
        duetime.client.schedules.create(
            name="nightly", cron="30 1 * * *", timezone="Europe/London", task={"type": "report", "retry": retry}
        )
        duetime.client.tasks.create("report", delay_seconds=7 * 3600, name="late", retry=retry)
        duetime.advance(hours=40)
        # A retry's delay is random within limits.
        found = [(each.due_at, each.attempt, each.outcome, each.attempt > 1 or each.at) for each in duetime.executions]
        duetime.close()
        return found

    every = run(leaves_out=False)
    assert len(every) == 4
    assert run(leaves_out=True) == every


def _fail_first(context: Context) -> None:
    if context.attempt == 1:
        raise OSError("not yet")


def test_virtual_time_passes_while_a_handler_sleeps(duetime: Duetime) -> None:
    """Time passes for a handler that sleeps, while other handlers run and the handler's lease is renewed."""
    order: list[str] = []

    def work(_context: Context, payload: str) -> None:
        order.append(f"{payload} begins")
        duetime.sleep(50 if payload == "slow" else 1)
        order.append(f"{payload} ends")

    duetime.register("report", work)
    for name in ("slow", "quick"):
        duetime.client.tasks.create("report", payload=name, timeout_seconds=120)
    duetime.run_until_idle()
    assert order == ["slow begins", "quick begins", "quick ends", "slow ends"]
    duetime.assert_ran("report", times=2)


def test_a_handler_can_use_the_client_but_not_advance_time(duetime: Duetime) -> None:
    """The tasks that a handler creates run, too, but calling `advance` in a handler is refused."""

    def work(_context: Context, payload: str) -> str:
        duetime.client.tasks.create("second", payload=payload)
        with pytest.raises(RuntimeError, match="a handler cannot call advance"):
            duetime.advance(seconds=1)
        return "created"

    duetime.register("first", work)
    duetime.register("second", lambda _context, payload: payload)
    first = duetime.client.tasks.create("first", payload="x")
    duetime.run_until_idle()
    assert duetime.client.tasks.get(first.id).result == "created"
    duetime.assert_ran("second", times=1, payload="x")


def test_threads_have_separate_clocks() -> None:
    """Two tests in two threads of a process are independent, and using a test's clock in another thread is refused."""
    together = Barrier(2)

    def run(days: int) -> tuple[int, datetime]:
        duetime = Duetime()
        duetime.register("report", lambda _context, _payload: None)
        duetime.client.schedules.create(name="hourly", rate="1h", task={"type": "report"})
        for _ in range(days):
            together.wait(30)
            duetime.advance(days=1)
        for _ in range(3 - days):
            together.wait(30)
        found = len(duetime.executions), duetime.now
        duetime.close()
        return found

    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(run, (1, 3))
    begin = datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert one == (25, begin + timedelta(days=1))
    assert two == (73, begin + timedelta(days=3))
    made = Duetime()
    with ThreadPoolExecutor(1) as threads, pytest.raises(RuntimeError, match="works only in the thread of its test"):
        threads.submit(made.advance, days=1).result()
    made.close()


def test_the_error_for_a_task_that_does_not_end_lists_executions(duetime: Duetime) -> None:
    """If a task waits for more than two days, the error names the task and its last error."""

    def fail(_context: Context, _payload: object) -> None:
        raise OSError("the printer is on fire")

    duetime.register("print", fail)
    retry: RetryPolicy = {"max_attempts": 9, "initial_seconds": 86_400, "multiplier": 2, "max_seconds": 86_400}
    duetime.client.tasks.create("print", retry=retry)
    with pytest.raises(NotIdle) as told:
        duetime.run_until_idle()
    assert "not idle after 2 days" in str(told.value)
    assert "print waiting, due 2026-01-05T09:00:00+00:00" in str(told.value)
    assert "OSError: the printer is on fire" in str(told.value)
