"""A setting limits how many requests can wait at once; other requests are answered immediately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from tests.scenarios.scenario import PLAIN, SECOND, Scenario
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

MOST = 2
WAIT = 20
SLEEPS = {"type": PLAIN, "delay_seconds": 7200}


@pytest.fixture
def scenario() -> Iterator[Scenario]:
    """A deployment in which two requests can wait at once."""
    with Scenario() as scenario:
        scenario.environ[Variable.LONG_POLLS] = str(MOST)
        yield scenario


def waiting(scenario: Scenario, count: int) -> list[list[Reply]]:
    """Send requests that create tasks due much later and wait for them; each response is added to its list."""
    return [scenario.send("POST", "/v1/tasks", SLEEPS, query=f"wait_seconds={WAIT}") for _ in range(count)]


def answered(replies: list[list[Any]]) -> int:
    """The number of requests that have been answered."""
    return sum(map(bool, replies))


def test_requests_above_the_limit_on_waits_return_soon(scenario: Scenario) -> None:
    """Requests above the limit are answered soon, as if their wait had timed out, and every task is created."""
    simulation = waiting(scenario, 12)
    scenario.run(3 * SECOND)
    assert answered(simulation) >= 12 - MOST
    early = [replies[0] for replies in simulation if replies]
    assert {(reply.status, reply.body["state"]) for reply in early} == {(202, "scheduled")}
    scenario.run(WAIT * SECOND)
    assert answered(simulation) == 12
    assert len({replies[0].body["id"] for replies in simulation}) == 12


def test_a_requests_place_is_released_when_its_wait_ends(scenario: Scenario) -> None:
    """Each of many successive requests can wait for its task's outcome."""
    for _ in range(3 * MOST):
        reply = scenario.ask("POST", "/v1/tasks", {"type": PLAIN}, query=f"wait_seconds={WAIT}")
        assert (reply.status, reply.body["state"]) == (201, "succeeded")


def test_a_request_that_waits_makes_two_writes(scenario: Scenario) -> None:
    """A request that waits makes two writes, which take and release its place; other requests make no writes."""
    writes: list[str] = []

    def note(call: Call) -> None:
        if str(call.request.get("Key", {}).get("p", {}).get("S", "")).startswith("w#"):
            writes.append(call.operation)

    scenario.before_call = note
    body = {"types": [PULLED], "lease_seconds": 30, "worker": "X", "wait_seconds": WAIT}
    assert scenario.ask("POST", "/v1/leases", body).body["leases"] == []
    assert writes == ["update_item"] * 2
    scenario.ask("POST", "/v1/tasks", {"type": PULLED})
    assert scenario.ask("POST", "/v1/leases", body).body["leases"]
    assert len(writes) == 2


def test_a_dead_process_loses_its_place_when_its_wait_is_over(scenario: Scenario) -> None:
    """The place of a request whose process died can be used again once the request's wait would have ended."""
    scenario.faulty = True
    first = waiting(scenario, 8)
    scenario.run(3 * SECOND)
    for machine in scenario.machines:
        if machine.function == "api" and machine.strand is not None:
            machine.die()
    scenario.run((WAIT + 10) * SECOND)
    assert answered(first) < 8
    reply = scenario.ask("POST", "/v1/tasks", {"type": PLAIN}, query=f"wait_seconds={WAIT}")
    assert (reply.status, reply.body["state"]) == (201, "succeeded")


def test_a_pull_worker_without_a_place_gets_an_empty_response(scenario: Scenario) -> None:
    """A pull worker that gets no place receives an empty response at once."""
    body = {"types": [PULLED], "lease_seconds": 30, "worker": "X", "wait_seconds": WAIT}
    simulation = [scenario.send("POST", "/v1/leases", body) for _ in range(8)]
    scenario.run(3 * SECOND)
    assert answered(simulation) >= 8 - MOST
    assert all(replies[0].body == {"leases": []} for replies in simulation if replies)
    scenario.run(WAIT * SECOND)
    assert answered(simulation) == 8


def test_a_request_without_a_place_is_answered_without_waiting(scenario: Scenario) -> None:
    """If no place can be taken, the task is created and the request is answered without waiting."""
    scenario.faulty = True
    scenario.before_call = lambda call: (
        call.refuse() if str(call.request.get("Key", {}).get("p", {}).get("S", "")).startswith("w#") else None
    )
    began = scenario.now
    reply = scenario.ask("POST", "/v1/tasks", SLEEPS, query=f"wait_seconds={WAIT}")
    assert (reply.status, reply.body["state"]) == (202, "scheduled")
    assert scenario.now - began < WAIT * SECOND / 2
