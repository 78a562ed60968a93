"""The helpers for scenarios behave as described."""

from __future__ import annotations

from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario


def test_a_task_in_a_scenario_runs_once() -> None:
    """A task that is created in a scenario runs once, and no invariant is violated."""
    with Scenario() as scenario:
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN})
        scenario.run(20 * SECOND)
        assert scenario.record(created.body["id"]).state == "succeeded"


def test_a_slowed_call_comes_later_by_the_given_time() -> None:
    """A worker's claim that is slowed down is made later by the given time."""
    with Scenario() as scenario:
        slowed = scenario.slow(
            lambda call: call.machine.function == "worker" and call.operation == "update_item", 7 * SECOND
        )
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN})
        scenario.run(MINUTE)
        assert len(slowed) == 1
        assert 6 * SECOND < (scenario.record(created.body["id"]).lateness or 0) < 10 * SECOND


def test_an_expired_record_can_be_removed() -> None:
    """After its retention, an ended task's record can be removed."""
    with Scenario() as scenario:
        created = scenario.ask("POST", "/v1/tasks", {"type": PLAIN})
        scenario.run(20 * SECOND)
        assert scenario.expire() == []
        scenario.ticking = False
        expires_at = scenario.record(created.body["id"]).expires_at
        assert expires_at is not None
        scenario.time.run_until(expires_at + MINUTE)
        assert any(created.body["id"] in key for key in scenario.expire())
