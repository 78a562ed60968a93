"""Pull workers get a lease only with enough time left, and reports after a lease's end are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.contract.http.timestamps import instant_of
from duetime.domain.operating_parameters import SWITCHES_LIFE
from duetime.environment_variables import Variable
from tests.clocks import NOW
from tests.scenarios.scenario import MINUTE, SECOND, Scenario
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

LOCK = {"key": "db-17"}


def _reads_a_lock(call: Call) -> bool:
    values = call.request.get("ExpressionAttributeValues", {}).values()
    return call.operation == "query" and any(value.get("S", "").startswith(schema.LOCK_PREFIX) for value in values)


def _wanted(worker: str, seconds: int, wait: int = 0) -> dict[str, Any]:
    return {"types": [PULLED], "lease_seconds": seconds, "worker": worker, "wait_seconds": wait}


@pytest.mark.parametrize("pause", [1, 2, 4, 12])
def test_a_lease_is_handed_out_with_at_least_half_of_its_time_left(pause: int) -> None:
    """If reading a lock takes over half of the lease's time, the task is put back and can be leased again at once."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": PULLED, "lock": LOCK}).body["id"]
        scenario.slow(_reads_a_lock, pause * SECOND)
        reply = scenario.ask("POST", "/v1/leases", _wanted("X", 5))
        for lease in reply.body["leases"]:
            assert instant_of(lease["expires_at"]) - scenario.now >= 2500 - 50
        assert bool(reply.body["leases"]) == (pause < 2.5)
        if not reply.body["leases"]:
            again = scenario.ask("POST", "/v1/leases", _wanted("Y", 30, wait=20))
            assert [lease["task"]["id"] for lease in again.body["leases"]] == [task]
            assert again.body["leases"][0]["task"]["attempt"] == 1


def test_an_attempt_with_an_ended_lease_does_not_take_the_lock() -> None:
    """A request whose lease ends while it reads the lock does not take the lock from the next worker."""
    with Scenario() as scenario:
        body = {"type": PULLED, "lock": LOCK, "timeout_seconds": 600}
        first = scenario.ask("POST", "/v1/tasks", body).body["id"]
        scenario.ask("POST", "/v1/tasks", body | {"delay_seconds": 30})
        scenario.slow(_reads_a_lock, 12 * SECOND)
        slow = scenario.send("POST", "/v1/leases", _wanted("X", 5))
        scenario.run(SECOND)
        live = scenario.ask("POST", "/v1/leases", _wanted("Y", 300, wait=20))
        assert [lease["task"]["id"] for lease in live.body["leases"]] == [first]
        assert scenario.run_until(lambda: slow)
        assert slow[0].body["leases"] == []
        for _ in range(9):
            assert scenario.ask("POST", "/v1/leases", _wanted("Z", 300, wait=10)).body["leases"] == []
        lease = live.body["leases"][0]["id"]
        assert scenario.ask("POST", f"/v1/leases/{lease}/heartbeat", {}).status == 200


OTHER, THIRD = "other-pulled", "third-pulled"


def _with_three_types(scenario: Scenario) -> None:
    """Add two more pulled types."""
    urls = json.loads(scenario.environ[Variable.PULLED_QUEUES])
    for each in (OTHER, THIRD):
        urls[each] = scenario.sqs.create_queue(QueueName=each)["QueueUrl"]
    scenario.environ[Variable.PULLED_QUEUES] = json.dumps(urls)
    scenario.environ[Variable.PULLERS] = json.dumps({each: ["*"] for each in urls})


@pytest.mark.parametrize("seed", range(8))
def test_leases_have_time_left_when_a_request_waits_for_several_types(seed: int) -> None:
    """A request that waits for the due times of one type after another hands out leases with enough time left."""
    with Scenario(seed) as scenario:
        _with_three_types(scenario)
        for each, delay in ((PULLED, 2), (OTHER, 3.3), (THIRD, 4.3)):
            scenario.ask("POST", "/v1/tasks", {"type": each, "delay_seconds": delay})
        scenario.run(1100)
        seen: dict[str, int] = {}
        while len(seen) < 3 and scenario.now < NOW + MINUTE:
            wanted = _wanted("X", 5, wait=20) | {"types": [PULLED, OTHER, THIRD], "max_tasks": 10}
            for lease in scenario.ask("POST", "/v1/leases", wanted).body["leases"]:
                assert instant_of(lease["expires_at"]) - scenario.now >= 4500
                seen[lease["task"]["type"]] = lease["task"]["attempt"]
        assert seen == {PULLED: 1, OTHER: 1, THIRD: 1}


def test_a_reported_traceback_is_shown_with_the_attempt_and_redacted() -> None:
    """A traceback that a worker reports is shown with likely secrets redacted; otherwise the traceback is null."""
    with Scenario() as scenario:
        task = scenario.ask("POST", "/v1/tasks", {"type": PULLED, "retry": {"max_attempts": 2, "initial_seconds": 1}})
        for text in ("", "panic: no such row\n  at main.go:17 password=hunter2\n"):
            (lease,) = scenario.ask("POST", "/v1/leases", _wanted("X", 60, wait=20)).body["leases"]
            error = {"error": {"type": "Panic", "message": "no such row"}, **({"traceback": text} if text else {})}
            assert scenario.ask("POST", f"/v1/leases/{lease['id']}/fail", error).status == 200
        attempts = scenario.ask("GET", f"/v1/tasks/{task.body['id']}/attempts").body["attempts"]
        told = [each["error"]["traceback"] for each in attempts]
        assert told == [None, "panic: no such row\n  at main.go:17 password=[redacted]\n"]


LIMIT = f"/v1/switches/type/{PULLED}"


def _leased(scenario: Scenario, worker: str) -> str:
    """Have a worker lease the due task; return the lease's id."""
    (lease,) = scenario.ask("POST", "/v1/leases", _wanted(worker, 60, wait=20)).body["leases"]
    return str(lease["id"])


def _complete(scenario: Scenario, lease: str) -> None:
    assert scenario.ask("POST", f"/v1/leases/{lease}/complete", {"result": 1}).status == 200


def test_a_task_that_ended_without_a_limit_takes_no_place_later() -> None:
    """If a task ends while its limit is deleted, it does not count when the limit is set again."""
    with Scenario() as scenario:
        scenario.ask("PUT", LIMIT, {"max_concurrent": 1})
        scenario.ask("POST", "/v1/tasks", {"type": PULLED})
        first = _leased(scenario, "X")
        scenario.ask("DELETE", LIMIT)
        scenario.run(SWITCHES_LIFE + SECOND)
        _complete(scenario, first)
        scenario.ask("PUT", LIMIT, {"max_concurrent": 1})
        scenario.run(SWITCHES_LIFE + SECOND)
        scenario.ask("POST", "/v1/tasks", {"type": PULLED})
        asked_at = scenario.now
        _leased(scenario, "Y")
        assert scenario.now - asked_at < 2 * SECOND


@pytest.mark.parametrize("seed", range(8))
def test_a_report_frees_the_place_under_a_new_limit(seed: int) -> None:
    """If a process reports an end before it knows a new limit, the task's place is still freed soon."""
    with Scenario(seed) as scenario:
        scenario.ask("POST", "/v1/tasks", {"type": PULLED})
        first = _leased(scenario, "X")
        # While the leasing process waits for the next task, another process gets the report without knowing the limit.
        leased = scenario.send("POST", "/v1/leases", _wanted("Y", 60, wait=20))
        scenario.run(SWITCHES_LIFE + SECOND)
        _complete(scenario, first)
        scenario.ask("PUT", LIMIT, {"max_concurrent": 1})
        scenario.run(SECOND)
        scenario.ask("POST", "/v1/tasks", {"type": PULLED})
        assert scenario.run_until(lambda: leased)
        scenario.ask("POST", "/v1/tasks", {"type": PULLED})
        more = scenario.ask("POST", "/v1/leases", _wanted("Z", 60, wait=1))
        for lease in (*leased[0].body["leases"], *more.body["leases"]):
            _complete(scenario, lease["id"])
        scenario.run(SWITCHES_LIFE)
        scenario.ask("POST", "/v1/tasks", {"type": PULLED})
        for _ in range(2 - len(more.body["leases"])):
            asked_at = scenario.now
            _complete(scenario, _leased(scenario, "X"))
            assert scenario.now - asked_at < 2 * SECOND


@pytest.mark.parametrize(("limits", "leased"), [({"stopped": True}, 0), ({"max_concurrent": 1}, 1)])
def test_a_switch_applies_to_all_tasks_of_one_request(limits: dict[str, Any], leased: int) -> None:
    """A switch that was set since the process last read the switches applies to every task in a request."""
    with Scenario() as scenario:
        scenario.ask("POST", "/v1/tasks", {"type": PULLED})
        _complete(scenario, _leased(scenario, "X"))
        scenario.ask("PUT", LIMIT, limits)
        scenario.run(SWITCHES_LIFE + SECOND)
        scenario.ask("POST", "/v1/tasks/batch", {"tasks": [{"type": PULLED}] * 8})
        scenario.run(SECOND)
        reply = scenario.ask("POST", "/v1/leases", _wanted("X", 60, wait=1) | {"max_tasks": 10})
        assert len(reply.body["leases"]) == leased
