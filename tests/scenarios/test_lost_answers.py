"""The answer of a write is lost, others write the record, and the SDK sends the write again: the work goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.scenario import MINUTE, PHASED, SECOND, Scenario

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call


@pytest.mark.parametrize(("state", "phases"), [("running", []), ("preparing", ["prepare"])])
def test_an_attempt_goes_on_when_its_step_to_the_next_phase_is_sent_again(state: str, phases: list[str]) -> None:
    """A sign of life comes between a step to another phase and its second sending: no attempt is spent on that."""
    with Scenario() as scenario:
        called: list[str] = []
        scenario.target = lambda phase, _context: called.append(phase)
        fields = {"type": PHASED, "lock": {"key": "db"}, "retry": {"max_attempts": 1}, "timeout_seconds": 60}
        created = scenario.ask("POST", "/v1/tasks", fields).body

        def is_step(call: Call) -> bool:
            is_write = call.operation == "update_item" and call.request["Key"]["s"]["S"] == created["id"]
            is_worker = call.machine.function == "worker"
            return is_worker and is_write and called == phases and scenario.record(created["id"]).state == state

        def send_twice(call: Call) -> None:
            scenario.dynamodb.update_item(**call.request)
            scenario.send("POST", f"/v1/tasks/{created['id']}/heartbeat", {"fence": 1})
            scenario.take(SECOND)

        met = scenario.once(is_step, send_twice)
        scenario.run(5 * MINUTE)
        task = scenario.record(created["id"])
        assert len(met) == 1
        assert called[:2] == ["prepare", "run"]
        assert (task.state, task.attempt, [str(line.outcome) for line in task.attempt_history]) == (
            "succeeded",
            1,
            ["succeeded"],
        )
