"""No task runs concurrently with a live lock holder, and no lock is idle while a task waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.handlers import Accepted
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

LOCK = {"key": "db-17"}


def test_a_lock_renewed_for_days_does_not_expire() -> None:
    """Heartbeats of a deferred task keep its lock beyond the lock's time to live."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: Accepted()
        body = {"type": PLAIN, "lock": LOCK, "notify_within_seconds": 3600}
        first = scenario.ask("POST", "/v1/tasks", body).body["id"]
        scenario.run(20 * SECOND)
        second = scenario.ask("POST", "/v1/tasks", body).body["id"]
        fence = scenario.record(first).fence
        scenario.ticking = False  # the lock is checked by queue messages, without ticks
        for _ in range(2 * 30):
            scenario.run(30 * MINUTE)
            scenario.expire()
            assert scenario.ask("POST", f"/v1/tasks/{first}/heartbeat", {"fence": fence}).status == 200
            assert scenario.record(second).started_at is None


STEERINGS: dict[str, tuple[str, str, object, str]] = {
    "cancelled": ("POST", "/cancel", None, ""),
    "cancelled by force": ("POST", "/cancel", {"force": True}, ""),
    "paused": ("POST", "/pause", None, ""),
    "put off": ("PATCH", "", {"delay_seconds": 3600}, ""),
    "changed": ("PATCH", "", {"priority": "low"}, ""),
    "run now": ("POST", "/run", None, ""),
}


class Line(Scenario):
    """A task holds the lock for twenty seconds, and two others wait; the first waiter's message is not received."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.began: dict[str, int] = {}
        self.target = self.hold
        self.ids = []
        for _ in range(3):
            self.ids.append(self.ask("POST", "/v1/tasks", {"type": PLAIN, "lock": LOCK} | body).body["id"])
            self.run(2 * SECOND)
        self.receiving = False
        assert self.run_until(lambda: self.record(self.ids[1]).generation >= 2, within=MINUTE)

    def hold(self, _phase: str, context: Context) -> str:
        """A target that takes twenty seconds."""
        self.began.setdefault(context.task_id, self.now)
        self.take(20 * SECOND)
        return "done"

    def receive_again(self) -> None:
        """Have the queues read again."""
        self.receiving = True
        for poller in self._pollers.values():
            self.time.nudge(poller)


@pytest.mark.parametrize("what", STEERINGS)
def test_a_lock_reserved_for_an_unavailable_task_is_passed_on(what: str) -> None:
    """Whatever a user requests for the first waiter when its turn comes, the lock does not stay idle."""
    method, path, body, query = STEERINGS[what]
    with Line({}) as scenario:
        _first, second, third = scenario.ids
        assert scenario.ask(method, f"/v1/tasks/{second}{path}", body, query=query).status == 200
        scenario.receive_again()
        asked_at = scenario.now
        comes = what in {"changed", "run now"}
        assert scenario.run_until(lambda: third in scenario.began, within=HOUR)
        assert scenario.began[third] - asked_at < (2 * SECOND if not comes else 25 * SECOND)
        assert (second in scenario.began) == comes


@pytest.mark.parametrize("unavailable", ["query", "put_item"])
def test_a_cancel_succeeds_even_if_the_lock_cannot_be_passed_on(unavailable: str) -> None:
    """A cancel succeeds even if the lock cannot be passed on; the next task gets it when the reservation ends."""
    with Line({}) as scenario:
        _first, second, third = scenario.ids

        def is_of_the_lock(call: Call) -> bool:
            return call.operation == unavailable and schema.LOCK_PREFIX in str(call.request)

        refused = scenario.once(is_of_the_lock, lambda call: call.refuse())
        assert scenario.ask("POST", f"/v1/tasks/{second}/cancel").status == 200
        assert len(refused) == 1
        scenario.receive_again()
        assert scenario.run_until(lambda: third in scenario.began, within=6 * MINUTE)


@pytest.mark.parametrize(
    ("verb", "path", "stop", "state"),
    [
        ("POST", "/pause", None, "paused"),
        ("POST", "/cancel", {"force": True}, "cancelled"),
    ],
)
def test_a_waiting_task_asked_to_stop_passes_its_lock_on(verb: str, path: str, stop: object, state: str) -> None:
    """A waiting task that is asked to stop passes its turn on without taking the lock."""
    with Scenario() as scenario:
        began: dict[str, int] = {}

        def act(_phase: str, context: Context) -> str:
            began.setdefault(context.task_id, scenario.now)
            scenario.take(20 * SECOND)
            return "done"

        scenario.target = act
        ids = [scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "lock": LOCK}).body["id"]]
        scenario.run(2 * SECOND)

        def puts_back(call: Call) -> bool:
            return call.operation == "update_item" and "lock db-17" in str(call.request)

        def ask(call: Call) -> None:
            task = call.request["Key"][schema.SORT_KEY]["S"]
            scenario.users.ask(verb, f"/v1/tasks/{task}{path}", stop)

        asked = scenario.once(puts_back, ask)
        for _ in range(2):
            ids.append(scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "lock": LOCK}).body["id"])
            scenario.run(2 * SECOND)
        assert len(asked) == 1
        assert scenario.run_until(lambda: ids[2] in began, within=HOUR)
        assert began[ids[2]] - began[ids[0]] < 25 * SECOND
        assert ids[1] not in began
        assert scenario.record(ids[1]).state == state


def test_a_lock_is_kept_despite_the_maximum_clock_difference() -> None:
    """A lock stays with a pull worker until the end of its lease, even if processes' clocks differ.

    One API process writes the lease, and another process, whose clock is ahead by almost the maximum of five seconds,
    reads it.
    """
    behind, ahead = -2400, 2400
    with Scenario() as scenario:
        body = {"type": PULLED, "lock": LOCK, "timeout_seconds": 600}
        scenario.ask("POST", "/v1/tasks", body)
        _set_clocks(scenario, behind)
        wanted = {"types": [PULLED], "lease_seconds": 30, "worker": "X", "wait_seconds": 0}
        asked_at = scenario.now
        assert len(scenario.ask("POST", "/v1/leases", wanted).body["leases"]) == 1
        scenario.time.run_until(asked_at + 27_700)
        _set_clocks(scenario, ahead)
        second = scenario.ask("POST", "/v1/tasks", body).body["id"]
        leases: list[Any] = []
        while not leases and scenario.now < asked_at + MINUTE:
            leases = scenario.ask("POST", "/v1/leases", wanted | {"worker": "Y"}).body["leases"]
        assert scenario.now >= asked_at + 30 * SECOND
        assert [lease["task"]["id"] for lease in leases] == [second]


def _set_clocks(scenario: Scenario, skew: int) -> None:
    for machine in scenario.machines:
        machine.step_clock(skew)


def test_a_forced_release_succeeds_even_if_the_lock_cannot_be_passed_on() -> None:
    """A forced release succeeds even if the lock cannot be passed on, and the next task still gets the lock."""
    with Line({}) as scenario:
        _first, _second, third = scenario.ids
        calls: list[Call] = []

        def strike(call: Call) -> None:
            if call.machine.function == "api" and schema.LOCK_PREFIX in str(call.request):
                calls.append(call)
                if len(calls) > 2:
                    call.refuse()

        scenario.before_call = strike
        answer = scenario.ask("DELETE", "/v1/locks/db-17")
        scenario.before_call = None
        assert (answer.status, len(calls) > 2) == (200, True), answer.body
        scenario.receive_again()
        assert scenario.run_until(lambda: third in scenario.began, within=6 * MINUTE)


def test_an_outcome_is_stored_even_if_the_lock_cannot_be_released() -> None:
    """If the lock cannot be released, the outcome is stored, and a later try releases the lock to the next task."""
    with Scenario() as scenario:
        scenario.faulty = True
        for _ in range(2):
            assert scenario.ask("POST", "/v1/tasks", {"type": PULLED, "lock": LOCK}).status == 201
        scenario.run(10 * SECOND)
        wanted = {"types": [PULLED], "lease_seconds": 30, "worker": "w", "wait_seconds": 20}
        (lease,) = scenario.ask("POST", "/v1/leases", wanted).body["leases"]

        def is_of_the_lock(call: Call) -> bool:
            return call.machine.function == "api" and schema.LOCK_PREFIX in str(call.request)

        refused = scenario.once(is_of_the_lock, lambda call: call.refuse())
        assert scenario.ask("POST", f"/v1/leases/{lease['id']}/complete", {"result": 1}).status == 200
        assert len(refused) == 1
        assert scenario.ask("POST", "/v1/leases", wanted).body["leases"]
