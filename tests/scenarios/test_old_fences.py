"""A report for an ended attempt is refused and changes nothing, in any state of the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.handlers import Accepted, AttemptCancelled, AttemptPaused, Unretriable
from tests.scenarios.scenario import MINUTE, SECOND, UNDONE, Scenario
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context

NOTICES: dict[str, tuple[str, dict[str, Any]]] = {
    "success": ("notify", {"outcome": "succeeded", "result": "old"}),
    "failure": ("notify", {"outcome": "failed", "error": {"type": "Old", "message": "x"}, "retriable": False}),
    "sign of life": ("heartbeat", {}),
    "progress": ("progress", {"percent": 99, "message": "old"}),
}
REPORTS: dict[str, Any] = {
    "complete": {"result": "old"},
    "fail": {"error": {"type": "Old", "message": "x"}, "retriable": False},
    "heartbeat": {"percent": 99, "message": "old"},
    "pause": {"checkpoint": "old"},
    "cancel": None,
    "release": None,
}


def _raise(error: Exception) -> Any:  # noqa: ANN401 - any JSON
    raise error


class _Second:
    """A target whose first attempt accepts the work and never reports; the second attempt behaves as a test chooses."""

    def __init__(self, scenario: Scenario, does: Callable[[Context], Any]) -> None:
        self.scenario = scenario
        self.does = does
        scenario.target = self

    def __call__(self, phase: str, context: Context) -> object:
        """Call the target for a phase."""
        if phase == "rollback":
            self.scenario.take(20 * SECOND)
            return None
        return Accepted() if context.fence == 1 else self.does(context)


def _listens(scenario: Scenario, error: Exception) -> Callable[[Context], Any]:
    """Run until the user requests an action, then raise an error."""

    def run(context: Context) -> object:
        while context.requested_action is None:
            scenario.take(SECOND)
        return _raise(error)

    return run


def _facts(task: Task) -> tuple[object, ...]:
    """The fields that an old attempt must not change."""
    stop = task.requested_action
    return (task.state, task.fence, task.attempt, task.generation, stop, task.progress, task.result, task.error)


def _is_at(scenario: Scenario, task_id: str, state: str) -> bool:
    task = scenario.record(task_id)
    # A rollback is a separate attempt, which has begun by now.
    return task.fence >= (3 if state == "rolling_back" else 2) and task.state == state


STATES: dict[str, tuple[str, Callable[[Scenario], Callable[[Context], Any]], str]] = {
    "running": ("running", lambda scenario: lambda _context: scenario.take(MINUTE), ""),
    "awaiting_notification": ("running", lambda _scenario: lambda _context: Accepted(), ""),
    "waiting": ("waiting", lambda _scenario: lambda _context: _raise(ValueError("boom")), ""),
    "succeeded": ("succeeded", lambda _scenario: lambda _context: "new", ""),
    "failed": ("failed", lambda _scenario: lambda _context: _raise(Unretriable("no")), ""),
    "paused": ("paused", lambda scenario: _listens(scenario, AttemptPaused({"row": 1})), "pause"),
    "cancelled": ("cancelled", lambda scenario: _listens(scenario, AttemptCancelled()), "cancel"),
    "rolling back": ("rolling_back", lambda _scenario: lambda _context: "new", "rollback"),
    "rolled back": ("rolled_back", lambda _scenario: lambda _context: "new", "rollback"),
}


@pytest.mark.parametrize("told", NOTICES)
@pytest.mark.parametrize("at", STATES)
def test_a_report_with_an_old_fence_is_rejected_in_every_state(at: str, told: str) -> None:
    """A deferred task's first attempt cannot report after the second attempt has replaced it."""
    state, behavior, asked = STATES[at]
    with Scenario() as scenario:
        _Second(scenario, behavior(scenario))
        body: dict[str, Any] = {"type": UNDONE, "notify_within_seconds": 10, "timeout_seconds": 300}
        retry = {"max_attempts": 5, "initial_seconds": 600}
        task_id = scenario.ask("POST", "/v1/tasks", body | {"retry": retry}).body["id"]
        path = f"/v1/tasks/{task_id}"
        assert scenario.run_until(lambda: scenario.record(task_id).fence >= 2)
        if asked in {"pause", "cancel"}:
            scenario.run(SECOND)
            answer = scenario.ask("POST", f"{path}/pause") if asked == "pause" else _cancel(scenario, path)
            assert answer.status == 202
        if asked == "rollback":
            assert scenario.run_until(lambda: _is_at(scenario, task_id, "succeeded"))
            scenario.run(SECOND)
            assert scenario.ask("POST", f"{path}/rollback").status in {200, 202}
        assert scenario.run_until(lambda: _is_at(scenario, task_id, state), within=5 * MINUTE)
        before = _facts(scenario.record(task_id))
        verb, notice = NOTICES[told]
        refused = scenario.ask("POST", f"{path}/{verb}", {"fence": 1, **notice})
        assert (refused.status, refused.body["code"]) == (409, "fence_mismatch")
        assert _facts(scenario.record(task_id)) == before
        scenario.run(MINUTE)


def _cancel(scenario: Scenario, path: str) -> Any:  # noqa: ANN401 - a reply
    return scenario.ask("POST", f"{path}/cancel", {"force": True})


ENDS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "running": ("", None),
    "succeeded": ("complete", {"result": "new"}),
    "waiting": ("fail", {"error": {"type": "New", "message": "x"}}),
    "failed": ("fail", {"error": {"type": "New", "message": "x"}, "retriable": False}),
    "paused": ("pause", {"checkpoint": "new"}),
    "cancelled": ("cancel", None),
}


@pytest.mark.parametrize("told", REPORTS)
@pytest.mark.parametrize("state", ENDS)
def test_a_report_with_an_old_lease_is_rejected_in_every_state(state: str, told: str) -> None:
    """A pull worker whose lease was replaced can neither renew the lease nor end the task."""
    with Scenario() as scenario:
        retry = {"max_attempts": 5, "initial_seconds": 600}
        task_id = scenario.ask("POST", "/v1/tasks", {"type": PULLED, "retry": retry}).body["id"]
        wanted = {"types": [PULLED], "lease_seconds": 5, "worker": "w", "wait_seconds": 20}
        old = scenario.ask("POST", "/v1/leases", wanted).body["leases"][0]
        new = scenario.ask("POST", "/v1/leases", wanted | {"lease_seconds": 300}).body["leases"][0]
        assert (old["task"]["fence"], new["task"]["fence"]) == (1, 2)
        if state in {"paused", "cancelled"}:
            path = f"/v1/tasks/{task_id}"
            answer = scenario.ask("POST", f"{path}/pause") if state == "paused" else _cancel(scenario, path)
            assert answer.status == 202
        verb, body = ENDS[state]
        if verb:
            assert scenario.ask("POST", f"/v1/leases/{new['id']}/{verb}", body).status == 200
        assert scenario.record(task_id).state == state
        before = _facts(scenario.record(task_id))
        refused = scenario.ask("POST", f"/v1/leases/{old['id']}/{told}", REPORTS[told])
        assert (refused.status, refused.body["code"]) == (409, "fence_mismatch")
        assert _facts(scenario.record(task_id)) == before


def test_a_crash_counts_as_an_attempt_and_a_pause_does_not() -> None:
    """A lost attempt counts as one of the allowed attempts, but an attempt that is paused and resumed does not."""
    with Scenario() as scenario:

        def behave(_phase: str, context: Context) -> object:
            if context.fence == 1:
                scenario.take(10 * MINUTE)
            while context.fence == 2 and context.requested_action is None:
                scenario.take(SECOND)
            if context.fence == 2:
                raise AttemptPaused
            raise ValueError("boom")

        scenario.target = behave
        retry = {"max_attempts": 3, "initial_seconds": 0}
        body = {"type": UNDONE, "timeout_seconds": 800, "retry": retry}
        task_id = scenario.ask("POST", "/v1/tasks", body).body["id"]
        scenario.run(5 * SECOND)
        next(each for each in scenario.machines if each.function == "worker" and each.strand).die()
        assert scenario.run_until(lambda: scenario.record(task_id).fence == 2)
        scenario.run(SECOND)
        assert scenario.ask("POST", f"/v1/tasks/{task_id}/pause").status == 202
        assert scenario.run_until(lambda: scenario.record(task_id).state == "paused")
        assert scenario.record(task_id).attempt == 1
        assert scenario.ask("POST", f"/v1/tasks/{task_id}/resume").status == 200
        scenario.run(MINUTE)
        task = scenario.record(task_id)
        assert (task.state, task.attempt, task.fence) == ("failed", 3, 4)
        assert [(line.attempt, line.outcome) for line in task.attempt_history] == [
            (1, "lost"),
            (2, "paused"),
            (2, "retried"),
            (3, "failed"),
        ]


def test_lock_waits_and_released_leases_use_up_no_attempt() -> None:
    """Neither a wait for a lock nor a released lease uses up a task's only attempt."""
    with Scenario() as scenario:
        once = {"type": PULLED, "retry": {"max_attempts": 1}, "lock": {"key": "db"}}
        first, second = (scenario.ask("POST", "/v1/tasks", once).body["id"] for _ in range(2))
        wanted = {"types": [PULLED], "lease_seconds": 60, "worker": "w", "wait_seconds": 10}
        (held,) = scenario.ask("POST", "/v1/leases", wanted).body["leases"]
        other = second if held["task"]["id"] == first else first
        # The test is about the second task, which has to wait for the lock.
        assert scenario.ask("POST", "/v1/leases", wanted).body["leases"] == []
        assert scenario.record(other).waiting_for == "lock db"
        assert scenario.ask("POST", f"/v1/leases/{held['id']}/complete", {"result": 1}).status == 200
        for _ in range(3):
            (lease,) = scenario.ask("POST", "/v1/leases", wanted).body["leases"]
            assert (lease["task"]["id"], lease["task"]["attempt"]) == (other, 1)
            assert scenario.ask("POST", f"/v1/leases/{lease['id']}/release").status == 200
        (lease,) = scenario.ask("POST", "/v1/leases", wanted).body["leases"]
        assert scenario.ask("POST", f"/v1/leases/{lease['id']}/complete", {"result": 1}).status == 200
        task = scenario.record(other)
        assert (task.state, task.attempt, len(task.attempt_history)) == ("succeeded", 1, 1)
