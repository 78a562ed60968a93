"""`timeout_seconds` applies to all phases of an attempt together, and no attempt outlives its function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenarios.scenario import HOUR, MINUTE, PHASED, SECOND, Scenario

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime.handlers import Context


class _Timed:
    """A target whose phases each take some time, and which records the phases that ended."""

    def __init__(self, scenario: Scenario, took: dict[str, Millis]) -> None:
        self.scenario = scenario
        self.took = took
        self.ended: list[tuple[str, str]] = []
        self.deadlines: dict[str, Any] = {}
        self.processes: dict[str, object] = {}
        scenario.target = self

    def __call__(self, phase: str, context: Context) -> str:
        self.deadlines[phase] = context.deadline
        self.processes[phase] = self.scenario.time.process().home
        self.scenario.take(self.took.get(phase, 0))
        self.ended.append((phase, context.task_id))
        return "done"


def _created(scenario: Scenario, timeout: int, attempts: int = 1) -> str:
    body = {"type": PHASED, "timeout_seconds": timeout, "retry": {"max_attempts": attempts, "initial_seconds": 0}}
    task_id: str = scenario.ask("POST", "/v1/tasks", body).body["id"]
    return task_id


def _functions_timed_out(scenario: Scenario) -> list[Any]:
    return [line for line in scenario.lines if "timed out" in line]


@pytest.mark.parametrize("attempts", [1, 2])
def test_the_timeout_covers_all_phases_of_an_attempt(attempts: int) -> None:
    """If prepare and run each take 500 s, the attempt ends with a `Timeout` after its 600 s."""
    with Scenario() as scenario:
        target = _Timed(scenario, {"prepare": 500 * SECOND, "run": 500 * SECOND})
        task_id = _created(scenario, 600, attempts)
        scenario.run(HOUR)
        task = scenario.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type, task.attempt) == ("failed", "Timeout", attempts)
        assert [line.outcome for line in task.attempt_history] == ["retried"] * (attempts - 1) + ["failed"]
        assert all(600 * SECOND <= line.took < 610 * SECOND for line in task.attempt_history)
        assert target.deadlines["prepare"] == target.deadlines["run"] or attempts == 2
        assert _functions_timed_out(scenario) == []


def test_a_task_whose_phases_fit_into_the_timeout_succeeds() -> None:
    """If prepare takes 500 s and run takes 300 s of a timeout of 840 s, the task succeeds."""
    with Scenario() as scenario:
        _Timed(scenario, {"prepare": 500 * SECOND, "run": 300 * SECOND})
        task_id = _created(scenario, 840)
        scenario.run(HOUR)
        assert scenario.record(task_id).state == "succeeded"
        assert _functions_timed_out(scenario) == []


def test_run_is_not_called_if_prepare_uses_up_the_timeout() -> None:
    """If prepare uses up the complete timeout, the attempt fails and `run` is not called."""
    with Scenario() as scenario:
        target = _Timed(scenario, {"prepare": 30 * SECOND})
        task_id = _created(scenario, 30)
        scenario.run(5 * MINUTE)
        task = scenario.record(task_id)
        assert task.error is not None
        assert (task.state, task.error.type) == ("failed", "Timeout")
        assert [phase for phase, _ in target.ended] == ["prepare", "clean"]


@pytest.mark.parametrize("clean", [30, 800])
def test_the_cleanup_runs_in_a_function_with_enough_time_left(clean: int) -> None:
    """After a long attempt, another function does the cleanup, because the first function has too little time left."""
    with Scenario() as scenario:
        took = {"prepare": 400 * SECOND, "run": 400 * SECOND, "clean": clean * SECOND}
        target = _Timed(scenario, took)
        task_id = _created(scenario, 840)
        scenario.run(2 * HOUR)
        task = scenario.record(task_id)
        assert (task.state, task.finished_at is not None, task.attempt) == ("succeeded", True, 1)
        assert [phase for phase, _ in target.ended] == ["prepare", "run", "clean"]
        assert target.processes["clean"] is not target.processes["run"]
        assert _functions_timed_out(scenario) == []
