"""If the SDK repeats a write whose response was lost, and other writes came in between, work continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from tests.scenarios.graphs import DIAMOND, PATH, Graphs
from tests.scenarios.scenario import MINUTE, PHASED, SECOND, Scenario

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime_testing.simulation.faults import Call


@pytest.mark.parametrize(("state", "phases"), [("running", []), ("preparing", ["prepare"])])
def test_repeating_a_phase_change_uses_up_no_attempt(state: str, phases: list[str]) -> None:
    """If a heartbeat comes between the write that begins a phase and its repeat, no attempt is used up."""
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


@pytest.mark.parametrize("versioned", [False, True], ids=["any_version", "this_version"])
def test_a_repeated_cancel_of_a_topology_succeeds(*, versioned: bool) -> None:
    """A topology's repeated cancel succeeds even if a worker did the cancel's follow-up in between."""
    with Graphs() as graphs:
        path = f"{PATH}/{graphs.submit(DIAMOND, delay_seconds=3)}"
        tag = {"If-Match": f'"{graphs.whole().version}"'} if versioned else {}

        def is_cancellation(call: Call) -> bool:
            is_write = call.machine.function == "api" and call.operation == "update_item"
            return is_write and call.request["Key"]["s"]["S"] == graphs.topology

        def send_twice(call: Call) -> None:
            try:
                graphs.dynamodb.update_item(**call.request)
            except ClientError:
                # The first try fails, because the API has not read yet that the task is a topology.
                return
            graphs.take(4 * SECOND)
            met.append(graphs.whole())

        met: list[Task] = []
        graphs.before_call = lambda call: send_twice(call) if is_cancellation(call) else None
        answer = graphs.ask("POST", f"{path}/cancel", headers=tag)
        assert [task.finished_at is not None for task in met] == [True]
        assert (answer.status, answer.body["state"]) == (200, "cancelled")
        assert graphs.ran == []
