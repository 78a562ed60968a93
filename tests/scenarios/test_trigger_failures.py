"""If a trigger cannot do its work, its invocation fails, which an alarm detects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.scenario import MINUTE, PLAIN, Scenario

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call
    from tests.simulation.account import Invocation


def _tick(scenario: Scenario) -> Invocation:
    """Invoke the trigger once, and wait for the invocation's end."""
    invocation = scenario.invoke("trigger", {})
    scenario.run(MINUTE // 2)
    assert invocation.strand is not None
    assert invocation.strand.done
    return invocation


def _refuse(scenario: Scenario, operation: str) -> None:
    """Have the table throttle one of the trigger's operations from now on."""

    def refuse(call: Call) -> None:
        if call.machine.function == "trigger" and call.operation == operation:
            call.refuse()

    scenario.before_call = refuse


@pytest.mark.parametrize("operation", ["query", "update_item"])
def test_a_tick_that_cannot_read_its_minutes_fails(operation: str) -> None:
    """Lambda counts an error if the table refuses the trigger's read or its claim of the shard group."""
    with Scenario() as scenario:
        scenario.run(2 * MINUTE)
        scenario.ticking = False
        scenario.run(MINUTE)
        _refuse(scenario, operation)
        assert _tick(scenario).failed


def test_a_tick_that_reads_everything_does_not_fail() -> None:
    """A complete tick is not counted as an error."""
    with Scenario() as scenario:
        scenario.run(2 * MINUTE)
        scenario.ticking = False
        scenario.run(MINUTE)
        assert not _tick(scenario).failed


def test_a_failed_tick_sends_the_tasks_of_readable_shards() -> None:
    """A shard that cannot be read fails the tick but delays no task in other shards; the next tick reads that shard."""
    with Scenario() as scenario:
        made = [scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": 600}).body["id"] for _ in range(20)]
        scenario.run(2 * MINUTE)
        scenario.ticking = False
        scenario.run(6 * MINUTE)

        def refuse(call: Call) -> None:
            if call.machine.function == "trigger" and call.operation == "query":
                values = call.request["ExpressionAttributeValues"].values()
                if any(each.get("S", "").endswith("#0001") for each in values):
                    call.refuse()

        scenario.before_call = refuse
        before = _waiting(scenario)
        assert _tick(scenario).failed
        some = _waiting(scenario)
        assert before < some < len(made)
        scenario.before_call = None
        assert not _tick(scenario).failed
        assert _waiting(scenario) == len(made)


def _waiting(scenario: Scenario) -> int:
    """The number of messages on the work queues."""
    return sum(len(queue.messages) for queue in scenario.sqs.queues.values())
