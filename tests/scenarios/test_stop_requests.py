"""A forced cancel that got 202 takes effect, whatever the attempt does next or was requested to do before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.handlers import Accepted, AttemptCancelled, AttemptPaused
from tests.scenarios.scenario import HOUR, MINUTE, PHASED, PLAIN, SECOND, Scenario
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

LEASE = {"types": [PULLED], "lease_seconds": 60, "worker": "w", "wait_seconds": 5}


def _cancel(scenario: Scenario, task_id: str, answers: list[Reply]) -> None:
    """Force the cancel of a task between two calls of another process."""
    answer = scenario.users.ask("POST", f"/v1/tasks/{task_id}/cancel", {"force": True})
    assert answer is not None
    answers.append(answer)


def _cancel_answered_202(scenario: Scenario, task_id: str) -> None:
    answer = scenario.ask("POST", f"/v1/tasks/{task_id}/cancel", {"force": True})
    assert (answer.status, answer.body["requested_action"]) == (202, "cancel")


def _created(scenario: Scenario, **body: object) -> str:
    task_id: str = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, **body}).body["id"]
    return task_id


class _Until:
    """A target that runs until it sees a request or is released, and then ends as a test chooses."""

    def __init__(self, scenario: Scenario, ends: Callable[[], object], phase: str = "run") -> None:
        self.scenario = scenario
        self.ends = ends
        self.phase = phase
        self.heard: str | None = None
        self.is_let_go = False
        self.calls = 0
        scenario.target = self

    def __call__(self, phase: str, context: Context) -> object:
        if phase != self.phase:
            return "done"
        self.calls += 1
        while self.heard is None and not self.is_let_go:
            self.scenario.take(200)
            self.heard = context.requested_action
        self.scenario.take(3 * SECOND)
        return self.ends()


def _raise(error: Exception) -> Callable[[], object]:
    def ends() -> object:
        raise error

    return ends


def test_a_cancel_prevails_over_an_earlier_pause_request() -> None:
    """If an attempt obeys a pause after a cancel got 202, the task is cancelled."""
    with Scenario() as scenario:
        target = _Until(scenario, _raise(AttemptPaused({"row": 1})))
        task_id = _created(scenario)
        scenario.run(5 * SECOND)
        assert scenario.ask("POST", f"/v1/tasks/{task_id}/pause").status == 202
        assert scenario.run_until(lambda: target.heard)
        _cancel_answered_202(scenario, task_id)
        scenario.run(10 * SECOND)
        task = scenario.record(task_id)
        assert (task.state, task.requested_action, task.checkpoint) == ("cancelled", None, None)
        assert scenario.ask("POST", f"/v1/tasks/{task_id}/resume").status == 409
        assert target.calls == 1


def test_the_checkpoint_of_an_attempt_that_is_cancelled_expires() -> None:
    """A checkpoint stored for a pause expires if the task is cancelled instead."""
    with Scenario() as scenario:
        target = _Until(scenario, _raise(AttemptPaused(["%08x" % (n * 2654435761 % 2**32) for n in range(200)])))
        task_id = _created(scenario)
        scenario.run(5 * SECOND)
        scenario.ask("POST", f"/v1/tasks/{task_id}/pause")
        assert scenario.run_until(lambda: target.heard)
        _cancel_answered_202(scenario, task_id)
        scenario.run(10 * SECOND)
        contents = scenario.items(schema.CONTENT_PREFIX)
        assert contents
        assert all(schema.TTL in item for item in contents)


def test_a_cancel_prevails_over_the_retry_of_a_failed_attempt() -> None:
    """A failure after a cancel that got 202 ends the task without a retry."""
    with Scenario() as scenario:
        target = _Until(scenario, _raise(ValueError("boom")))
        task_id = _created(scenario, retry={"max_attempts": 5, "initial_seconds": 300})
        scenario.run(5 * SECOND)
        _cancel_answered_202(scenario, task_id)
        target.is_let_go = True
        scenario.run(10 * SECOND)
        task = scenario.record(task_id)
        assert task.state == "cancelled"
        assert task.error is not None
        assert task.error.type == "ValueError"
        for verb in ("pause", "run", "resume"):
            assert scenario.ask("POST", f"/v1/tasks/{task_id}/{verb}").status == 409
        scenario.run(HOUR)
        assert target.calls == 1


def test_a_cancel_prevails_over_a_timeout() -> None:
    """A timeout after a cancel that got 202 ends the task without a retry."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: scenario.take(HOUR)
        task_id = _created(scenario, timeout_seconds=30, retry={"max_attempts": 5, "initial_seconds": 0})
        scenario.run(5 * SECOND)
        _cancel_answered_202(scenario, task_id)
        scenario.run(2 * MINUTE)
        task = scenario.record(task_id)
        assert (task.state, task.attempt) == ("cancelled", 1)
        assert task.finished_at is not None


def test_a_cancel_prevails_while_a_task_is_prepared() -> None:
    """A task that is cancelled during `prepare` does not run."""
    with Scenario() as scenario:
        phases: list[str] = []

        def behave(phase: str, _context: Context) -> object:
            phases.append(phase)
            scenario.take(8 * SECOND)
            return "done"

        scenario.target = behave
        task_id = _created(scenario, type=PHASED)
        assert scenario.run_until(lambda: phases)
        scenario.run(SECOND)
        _cancel_answered_202(scenario, task_id)
        scenario.run(MINUTE)
        assert scenario.record(task_id).state == "cancelled"
        assert phases == ["prepare", "clean"]


def test_a_cancel_prevails_over_the_wait_for_a_lock() -> None:
    """A cancel that gets 202 before the task is put back to wait for its lock takes effect at once."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: scenario.take(10 * MINUTE)
        lock = {"lock": {"key": "db"}, "timeout_seconds": 800}
        _created(scenario, **lock)
        scenario.run(5 * SECOND)
        answers: list[Reply] = []
        task_id = _created(scenario, delay_seconds=10, **lock)

        def is_return(call: Call) -> bool:
            values = str(call.request.get("ExpressionAttributeValues"))
            is_write = call.machine.function == "worker" and call.operation == "update_item"
            return is_write and task_id in str(call.request["Key"]) and "lock db" in values

        scenario.once(is_return, lambda _call: _cancel(scenario, task_id, answers))
        assert scenario.run_until(lambda: answers)
        assert answers[0].status == 202
        scenario.run(5 * SECOND)
        task = scenario.record(task_id)
        assert (task.state, task.attempt, task.attempt_history) == ("cancelled", 0, ())


@pytest.mark.parametrize("told", [{"type": "Boom", "message": "x"}, None])
def test_a_cancel_prevails_over_a_deferred_targets_reported_failure(told: Mapping[str, str] | None) -> None:
    """After a cancel, a deferred target's reported failure is not retried, but a reported success still counts."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: Accepted()
        task_id = _created(scenario, retry={"max_attempts": 5, "initial_seconds": 60})
        scenario.run(5 * SECOND)
        _cancel_answered_202(scenario, task_id)
        notice = {"outcome": "succeeded"} if told is None else {"outcome": "failed", "error": told}
        path = f"/v1/tasks/{task_id}/notify"
        first, again = (scenario.ask("POST", path, {"fence": 1, **notice}) for _ in range(2))
        assert (first.status, again.status) == (200, 200)
        assert first.body["state"] == again.body["state"] == ("succeeded" if told is None else "cancelled")
        scenario.run(5 * MINUTE)
        assert scenario.record(task_id).attempt == 1


@pytest.mark.parametrize("end", ["pause", "fail", "release", "cancel"])
def test_a_cancel_prevails_over_a_pull_workers_report(end: str) -> None:
    """However a pull worker ends an attempt after a cancel, the task is cancelled."""
    with Scenario() as scenario:
        task_id = _created(scenario, type=PULLED)
        lease = scenario.ask("POST", "/v1/leases", LEASE).body["leases"][0]["id"]
        path = f"/v1/leases/{lease}"
        scenario.ask("POST", f"/v1/tasks/{task_id}/pause")
        assert scenario.ask("POST", f"{path}/heartbeat", {}).body["requested_action"] == "pause"
        _cancel_answered_202(scenario, task_id)
        body = {"pause": {"checkpoint": {"row": 1}}, "fail": {"error": {"type": "Boom", "message": "x"}}}.get(end)
        first, again = (scenario.ask("POST", f"{path}/{end}", body) for _ in range(2))
        assert [(first.status, first.body["state"]), (again.status, again.body["state"])] == 2 * [(200, "cancelled")]
        scenario.run(5 * MINUTE)
        assert scenario.ask("POST", "/v1/leases", LEASE).body["leases"] == []


def test_a_cancel_prevails_over_the_loss_of_the_last_attempt() -> None:
    """If the last attempt's worker is lost after a cancel, the task is cancelled and not failed."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: scenario.take(10 * MINUTE)
        task_id = _created(scenario, retry={"max_attempts": 1}, timeout_seconds=800)
        scenario.run(5 * SECOND)
        _cancel_answered_202(scenario, task_id)
        worker = next(each for each in scenario.machines if each.function == "worker" and each.strand)
        worker.die()
        scenario.run(5 * MINUTE)
        task = scenario.record(task_id)
        assert (task.state, task.attempt, [line.outcome for line in task.attempt_history]) == ("cancelled", 1, ["lost"])


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_pause_or_resume_that_loses_a_race_replaces_no_cancel(verb: str) -> None:
    """A pause or resume that loses a race against a forced cancel does not replace the cancel."""
    with Scenario() as scenario:

        def behave(_phase: str, context: Context) -> object:
            until = scenario.now + 10 * MINUTE
            while scenario.now < until:
                scenario.take(SECOND)
                if context.requested_action == "cancel":
                    raise AttemptCancelled
            return "done"

        scenario.target = behave
        task_id = _created(scenario, timeout_seconds=800)
        scenario.run(5 * SECOND)
        if verb == "resume":
            assert scenario.ask("POST", f"/v1/tasks/{task_id}/pause").status == 202
        answers: list[Reply] = []

        def is_request(call: Call) -> bool:
            is_write = call.machine.function == "api" and call.operation == "update_item"
            return is_write and task_id in str(call.request["Key"])

        scenario.once(is_request, lambda _call: _cancel(scenario, task_id, answers))
        scenario.ask("POST", f"/v1/tasks/{task_id}/{verb}")
        assert answers[0].status == 202
        assert scenario.record(task_id).requested_action == "cancel"
        scenario.run(MINUTE)
        assert scenario.record(task_id).state == "cancelled"
