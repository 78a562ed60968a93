"""A worker process that stalls past its lease, as on a suspended machine, and then continues, changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.handlers import Accepted
from tests.scenarios.scenario import MINUTE, PHASED, PLAIN, SECOND, Scenario
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.machines import Machine

LOCKS = [{"key": "db-17"}, {"key": "db-17", "scope": "run"}]
STILL: Millis = 5 * MINUTE
"""How long a process stalls: the length of ten leases."""


class Suspended(Scenario):
    """The first worker process stalls at its nth AWS call, or in the nth call of its target.

    Attributes:
        made: the number of calls that the process had made or begun when it stalled.
        begun_late: the phases that the process began after the stall.
    """

    def __init__(self, number: int, *, answered: bool) -> None:
        super().__init__()
        self.faulty = True  # a worker may end its process, and the worker's last work is late
        self.number = number
        self.victim: Machine | None = None
        self.made = 0
        self.went_on_at: Millis | None = None
        self.begun_late: list[str] = []
        self.before_call = None if answered else self._count
        self.after_call = self._count if answered else None
        self.target = self.act_slowly

    def _count(self, call: Call) -> None:
        if call.machine.function == "worker" and self.victim in (None, call.machine):
            self.victim = call.machine
            self.made += 1
            if self.made == self.number:
                self.went_on_at = self.now + STILL
                self.suspend(call.machine, STILL)

    @property
    def is_victim(self) -> bool:
        """Whether the stalled process is the current process."""
        return self.time.process().home is self.victim

    def act_slowly(self, phase: str, _context: Context) -> Any:  # noqa: ANN401 - any JSON
        """A target that records phases that the stalled process begins afterwards, and defers other processes' runs."""
        if self.is_victim and self.went_on_at is not None:
            self.begun_late.append(phase)
        self.take(2 * SECOND)
        if not self.is_victim and phase == "run":
            return Accepted()
        return "done"


def _stored(scenario: Scenario) -> dict[tuple[str, str], Any]:
    """All stored items except timers, which are left out because additional timers do no harm."""
    items = {(item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"]): item for item in scenario.items()}
    return {key: item for key, item in items.items() if schema.TIMER_MARK not in key[1]}


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("number", range(1, 13))
@pytest.mark.parametrize("lock", LOCKS)
def test_a_process_that_stalled_past_its_lease_changes_nothing(
    number: int, lock: dict[str, Any], *, answered: bool
) -> None:
    """A process that was replaced after a stall changes nothing; wherever a process stalls, its task succeeds."""
    with Suspended(number, answered=answered) as scenario:
        body = {"type": PHASED, "lock": lock, "notify_within_seconds": 3600, "retry": {"max_attempts": 5}}
        task = scenario.ask("POST", "/v1/tasks", body).body["id"]
        assert scenario.run_until(lambda: scenario.went_on_at, within=MINUTE)
        scenario.ticking = False
        scenario.run(STILL - SECOND)
        stored = _stored(scenario)
        if scenario.record(task).fence >= 2:
            scenario.run(MINUTE)
            assert scenario.begun_late == []
            assert _stored(scenario) == stored
        else:
            # The task has ended, or no other worker gets its message or finds it in a scan before the stall ends.
            scenario.ticking = True
            scenario.run(20 * MINUTE)
        after = scenario.record(task)
        if after.awaiting_notification:
            end = {"fence": after.fence, "outcome": "succeeded", "result": 1}
            scenario.ask("POST", f"/v1/tasks/{task}/notify", end)
            scenario.run(MINUTE)
        assert scenario.record(task).state == "succeeded"
        assert scenario.ask("GET", "/v1/locks/db-17").body["holders"] == []


SAID_LATE: dict[str, object] = {
    "heartbeat": {"percent": 99, "message": "nearly"},
    "complete": {"result": "late"},
    "fail": {"error": {"type": "Boom", "message": "late"}},
    "release": None,
    "pause": {"checkpoint": {"row": 1}},
    "cancel": None,
}


@pytest.mark.parametrize("asked", ["nothing", "pause", "cancel"])
@pytest.mark.parametrize("verb", SAID_LATE)
def test_the_late_reports_of_a_stalled_pull_worker_are_rejected(verb: str, asked: str) -> None:
    """After a pull worker stalls, its late reports are refused, and the next worker keeps its lease."""
    with Scenario() as scenario:
        wanted = {"types": [PULLED], "lease_seconds": 5, "worker": "X", "wait_seconds": 0}
        body = {"type": PULLED, "lock": LOCKS[0]}
        task = scenario.ask("POST", "/v1/tasks", body).body["id"]
        (old,) = scenario.ask("POST", "/v1/leases", wanted).body["leases"]
        scenario.run(15 * SECOND)
        (new,) = scenario.ask("POST", "/v1/leases", wanted | {"lease_seconds": 300, "wait_seconds": 20}).body["leases"]
        assert new["task"]["id"] == old["task"]["id"] == task
        if asked != "nothing":
            path, stop = ("pause", None) if asked == "pause" else ("cancel", {"force": True})
            scenario.ask("POST", f"/v1/tasks/{task}/{path}", stop)
        before = _stored(scenario)
        assert scenario.ask("POST", f"/v1/leases/{old['id']}/{verb}", SAID_LATE[verb]).status == 409
        assert _stored(scenario) == before
        assert scenario.ask("POST", f"/v1/leases/{new['id']}/heartbeat", {}).status == 200


TOLD_LATE: dict[str, dict[str, Any]] = {
    "notify": {"outcome": "succeeded", "result": "late"},
    "heartbeat": {},
    "progress": {"percent": 99},
}


@pytest.mark.parametrize("verb", TOLD_LATE)
def test_a_stalled_targets_reports_about_an_ended_attempt_are_rejected(verb: str) -> None:
    """After a target stalls, its reports about the ended attempt are refused and change nothing."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: Accepted()
        body = {"type": PLAIN, "lock": LOCKS[0], "notify_within_seconds": 10, "retry": {"initial_seconds": 0}}
        task = scenario.ask("POST", "/v1/tasks", body).body["id"]
        assert scenario.run_until(
            lambda: scenario.record(task).fence == 2 and scenario.record(task).awaiting_notification
        )
        told: dict[str, Any] = {"fence": 1, **TOLD_LATE[verb]}
        before = _stored(scenario)
        assert scenario.ask("POST", f"/v1/tasks/{task}/{verb}", told).status == 409
        assert _stored(scenario) == before
