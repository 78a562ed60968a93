"""A bulk operation acts on a task only if the task matches the filter at the moment when it is handled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.handlers import AttemptCancelled
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply


class Boom(Exception):
    """An error whose class is in the filter."""


class Other(Exception):
    """An error whose class is not in the filter."""


def _fill(scenario: Scenario, count: int, **body: object) -> list[str]:
    filled = [{"type": PLAIN, "name": "old", **body, "delay_seconds": 3600 + number} for number in range(count)]
    return [scenario.ask("POST", "/v1/tasks", each).body["id"] for each in filled]


def _change_meanwhile(scenario: Scenario, method: str, path: str, body: object) -> list[Call]:
    """Send a request about a task just before a bulk operation's first write of the task."""
    task_id = path.split("/")[3]

    def is_write(call: Call) -> bool:
        return call.machine.function != "worker" and call.operation == "update_item" and task_id in str(call.request)

    def ask(_call: Call) -> None:
        reply = scenario.users.ask(method, path, body)
        assert reply is not None
        assert reply.status == 200, reply.body

    return scenario.once(is_write, ask)


def _outcome(scenario: Scenario, replies: list[Reply]) -> dict[str, Any]:
    """The final result of a request by filter, even if the bulk operation continues after the response."""
    assert scenario.run_until(lambda: replies)
    told: dict[str, Any] = replies[0].body
    while told.get("state") == "running":
        scenario.run(SECOND)
        told = scenario.ask("GET", f"/v1/bulk-operations/{told['id']}").body
    return told


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [("cancel", {}), ("cancel", {"force": True}), ("update", {"update": {"priority": "high"}})],
    ids=["cancel", "cancel by force", "change"],
)
def test_a_bulk_operation_by_name_skips_a_task_renamed_meanwhile(operation: str, wanted: dict[str, Any]) -> None:
    """A task that is renamed during a paced operation by name, even just before its write, is not affected."""
    with Scenario() as scenario:
        ids = _fill(scenario, 30)
        body = {"filter": {"name": "old"}, "per_second": 5, **wanted}
        renamed = [ids[0], ids[15], ids[20]]
        beaten = _change_meanwhile(scenario, "PATCH", f"/v1/tasks/{renamed[2]}", {"name": "keep"})
        bulk = scenario.send("POST", f"/v1/tasks/{operation}", body)
        scenario.run(SECOND)
        for each in renamed[:2]:
            answer = scenario.ask("PATCH", f"/v1/tasks/{each}", {"name": "keep"})
            assert answer.status == 200
        told = _outcome(scenario, bulk)
        assert beaten
        for each in renamed:
            task = scenario.record(each)
            assert (task.state, task.name, task.priority) == ("scheduled", "keep", "normal")
        assert {key: told[key] for key in ("examined", "matched", "affected", "refused")} == {
            "examined": 30,
            "matched": 27,
            "affected": 27,
            "refused": {},
        }


def test_a_bulk_operation_includes_a_changed_task_that_still_matches() -> None:
    """A task that has changed since the list was read but still matches the filter is cancelled."""
    with Scenario() as scenario:
        ids = _fill(scenario, 10)
        changed = _change_meanwhile(scenario, "PATCH", f"/v1/tasks/{ids[0]}", {"delay_seconds": 7200})
        told = _outcome(scenario, scenario.send("POST", "/v1/tasks/cancel", {"filter": {"name": "old"}}))
        assert changed
        assert (told["matched"], told["affected"]) == (10, 10)
        assert scenario.record(ids[0]).state == "cancelled"


def test_a_forced_bulk_cancel_stops_an_attempt_despite_its_heartbeats() -> None:
    """A running task whose version changes with every heartbeat still matches the filter and is cancelled."""
    with Scenario() as scenario:

        def behave(_phase: str, context: Any) -> Any:  # noqa: ANN401 - any context
            while context.requested_action is None:
                scenario.take(SECOND)
            raise AttemptCancelled

        scenario.target = behave
        running = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "name": "old", "timeout_seconds": 800}).body["id"]
        _fill(scenario, 30)
        assert scenario.record(running).state == "running"
        body = {"filter": {"name": "old"}, "per_second": 2, "force": True}
        beaten = _change_meanwhile(scenario, "POST", f"/v1/tasks/{running}/heartbeat", {"fence": 1})
        told = _outcome(scenario, scenario.send("POST", "/v1/tasks/cancel", body))
        assert (len(beaten), told["matched"], told["affected"]) == (1, 31, 31)
        scenario.run(MINUTE)
        assert scenario.record(running).state == "cancelled"


def test_a_redrive_by_error_class_skips_a_task_with_a_new_error() -> None:
    """A redrive by error class skips a task that was retried and then failed with a different error."""
    with Scenario() as scenario:
        errors: list[Exception] = [Boom("first")]

        def behave(_phase: str, _context: object) -> Any:  # noqa: ANN401 - any JSON
            raise errors[-1]

        scenario.target = behave
        once = {"type": PLAIN, "retry": {"max_attempts": 1}}
        ids = [scenario.ask("POST", "/v1/tasks", once).body["id"] for _ in range(20)]
        scenario.run(10 * SECOND)
        errors.append(Other("second"))
        body = {"filter": {"error_type": "Boom"}, "per_second": 2}
        redriven = scenario.send("POST", "/v1/tasks/retry", body)
        scenario.run(SECOND)
        # The list begins with the latest tasks, so the first task is reached last.
        assert scenario.ask("POST", f"/v1/tasks/{ids[0]}/retry").status == 200
        told = _outcome(scenario, redriven)
        scenario.run(10 * SECOND)
        task = scenario.record(ids[0])
        assert (task.state, task.fence, told["affected"]) == ("failed", 2, 19)
