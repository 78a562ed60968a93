"""Heartbeats to an external monitor are sent only after complete ticks, and never delay a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.environment_variables import Variable
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.tasks import Tasks
from tests.simulation.account import EGRESS

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

MONITOR = "https://monitor.example.org/ping/1234"


@pytest.fixture
def tasks() -> Tasks:
    """An account with an external monitor."""
    made = Tasks()
    made.faulty = True
    made.environ |= {Variable.HEARTBEAT_URL: MONITOR, Variable.EGRESS_FUNCTION: EGRESS}
    return made


def _beats(call: Call) -> bool:
    return call.operation == "invoke"


def test_each_complete_tick_sends_one_heartbeat_to_the_monitor(tasks: Tasks) -> None:
    """With a monitor, the egress function fetches the monitor's URL about once a minute."""
    with tasks:
        tasks.run(10 * MINUTE)
        assert set(tasks.fetched) == {MONITOR}
        assert 9 <= len(tasks.fetched) <= 11
        assert tasks.counts()["heartbeats"] == len(tasks.fetched)


def test_no_heartbeat_is_sent_without_a_monitor_url() -> None:
    """Without a monitor URL the trigger invokes nothing."""
    with Tasks() as tasks:
        tasks.run(5 * MINUTE)
        assert not [line for line in tasks.lines if line[2] == "invoke"]


def test_no_heartbeat_is_sent_by_ticks_that_cannot_read(tasks: Tasks) -> None:
    """Heartbeats stop while the table refuses the trigger's queries, and start again afterwards."""
    with tasks:
        tasks.run(2 * MINUTE)
        before = len(tasks.fetched)
        tasks.refuse(lambda call: call.operation == "query" and call.machine.function == "trigger")
        tasks.run(5 * MINUTE)
        assert len(tasks.fetched) <= before + 1
        tasks.before_call = None
        tasks.run(5 * MINUTE)
        assert len(tasks.fetched) >= before + 4


def test_no_heartbeat_is_sent_without_ticks(tasks: Tasks) -> None:
    """Without ticks there are no heartbeats, so that the monitor notices the outage."""
    with tasks:
        tasks.run(2 * MINUTE)
        tasks.ticking = False
        tasks.run(MINUTE)
        before = len(tasks.fetched)
        tasks.run(10 * MINUTE)
        assert len(tasks.fetched) == before


def test_a_trigger_with_a_wrong_clock_sends_no_heartbeat(tasks: Tasks) -> None:
    """A trigger with a wrong clock reads no tasks, so it sends no heartbeat."""
    with tasks:
        tasks.run(2 * MINUTE)

        def off(call: Call) -> None:
            if call.machine.function == "trigger":
                call.machine.clock.skew = 45 * SECOND

        tasks.before_call = off
        tasks.run(MINUTE)
        before, calls = len(tasks.fetched), len(tasks.lines)
        tasks.run(5 * MINUTE)
        assert len(tasks.fetched) == before
        by_trigger = {line[2] for line in tasks.lines[calls:] if str(line[1]).startswith("trigger")}
        assert by_trigger
        assert "query" not in by_trigger


def test_a_throttled_heartbeat_fails_no_tick_and_delays_no_task(tasks: Tasks) -> None:
    """If the egress function is throttled, tasks are still on time, and the unsent heartbeats are counted."""
    with tasks:
        tasks.refuse(_beats)
        made = [tasks.create(minutes * MINUTE) for minutes in range(1, 9)]
        tasks.run(10 * MINUTE)
        assert all((tasks.done(task_id).lateness or 0) < SECOND for task_id in made)
        assert tasks.counts()["heartbeats"] == 0
        assert tasks.counts()["heartbeats_unsent"] >= 9


def test_a_slow_heartbeat_delays_no_task(tasks: Tasks) -> None:
    """A heartbeat that takes forty seconds delays no task."""
    with tasks:

        def slow(call: Call) -> None:
            if _beats(call):
                tasks.take(40 * SECOND)

        tasks.before_call = slow
        made = [tasks.create(seconds * SECOND) for seconds in range(30, 600, 7)]
        tasks.run(12 * MINUTE)
        assert tasks.fetched
        assert all((tasks.done(task_id).lateness or 0) < SECOND for task_id in made)
