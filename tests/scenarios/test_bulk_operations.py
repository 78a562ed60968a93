"""Requests for many tasks return soon, and are completed even if any process crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from duetime.adapters.dynamodb import schema
from duetime.domain.ids import TaskId
from duetime.domain.limits import BULK_RETENTION, MAX_DEADLINE_SECONDS
from duetime.domain.operating_parameters import BULK_INLINE_NODES
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

SOON = 2 * SECOND
BOUND = 3 * MINUTE
"""A request that was answered with 202 continues within this time after a crash."""
CANCEL = "/v1/tasks/cancel"
MANY = BULK_INLINE_NODES + 1
SOME = 60
"""More tasks than are handled concurrently, so that a slow task leaves work for later."""


@pytest.fixture
def scenario() -> Iterator[Scenario]:
    """An account whose DynamoDB queries return full-size pages."""
    with Scenario() as scenario:
        scenario.dynamodb.page = 1000
        yield scenario


def graph_of(scenario: Scenario, count: int) -> str:
    """Create a topology with this many nodes that are not due yet; return its id."""
    nodes = {f"n{number}": {"type": PLAIN, "delay_seconds": 7200} for number in range(count)}
    created = scenario.ask("POST", "/v1/topologies", {"nodes": nodes})
    assert created.status == 201
    assert scenario.run_until(lambda: states_of(scenario) == {"scheduled": count}, 5 * MINUTE, 5 * SECOND)
    return str(created.body["id"])


def tasks_of(scenario: Scenario, count: int) -> list[str]:
    """Create this many tasks that are not due yet; return their ids."""
    body = [{"type": PLAIN, "delay_seconds": 7200 + number} for number in range(count)]
    answer = scenario.ask("POST", "/v1/tasks/batch", {"tasks": body})
    return [result["task"]["id"] for result in answer.body["results"]]


def states_of(scenario: Scenario) -> dict[str, int]:
    """The number of topology nodes in each state."""
    states: dict[str, int] = {}
    for task in scenario.watching.tasks():
        if task.node_ref:
            states[task.state] = states.get(task.state, 0) + 1
    return states


def asked_soon(scenario: Scenario, path: str, body: object = None, headers: dict[str, str] | None = None) -> Reply:
    """The response to a request; asserts that the response arrives soon."""
    began = scenario.now
    answer = scenario.ask("POST", path, body, headers=headers)
    assert scenario.now - began <= SOON, f"{path} took {scenario.now - began} ms"
    return answer


def controlled_slowly(scenario: Scenario, topology: str, verb: str) -> Reply:
    """Control a topology whose first node is written so slowly that others are left to a background operation."""

    def writes_a_node(call: Call) -> bool:
        is_write = call.machine.function == "api" and call.operation == "update_item"
        return is_write and call.request["Key"][schema.SORT_KEY]["S"] != topology

    scenario.slow(writes_a_node, 1300)
    return scenario.ask("POST", f"/v1/topologies/{topology}/{verb}")


def operations_of(scenario: Scenario) -> list[dict[str, Any]]:
    """All bulk operations, newest first."""
    found: list[dict[str, Any]] = scenario.ask("GET", "/v1/bulk-operations").body["operations"]
    return found


def killing(function: str, number: int, calls: list[Call]) -> Callable[[Call], None]:
    """Return a hook that kills a function once, at its nth call, and adds all its calls to `calls`."""

    def strike(call: Call) -> None:
        if call.machine.function == function:
            calls.append(call)
            if len(calls) == number:
                call.machine.die()

    return strike


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "state"), [("pause", "paused"), ("cancel", "cancelled")])
def test_a_large_topology_is_controlled_in_the_background(scenario: Scenario, verb: str, state: str) -> None:
    """A topology's bulk request is answered soon and starts one operation, which the topology shows."""
    topology = graph_of(scenario, MANY)
    answer = asked_soon(scenario, f"/v1/topologies/{topology}/{verb}")
    assert (answer.status, answer.body["requested_action"]) == (202, verb)
    operation = scenario.ask("GET", f"/v1/topologies/{topology}").body["operation"]
    assert (operation["kind"], operation["state"], operation["topology_id"]) == (verb, "running", topology)
    again = asked_soon(scenario, f"/v1/topologies/{topology}/{verb}")
    assert (again.status, len(operations_of(scenario))) == (202, 1)
    assert scenario.run_until(lambda: states_of(scenario) == {state: MANY}, MINUTE, 2 * SECOND)
    scenario.run(20 * SECOND)
    operation = scenario.ask("GET", f"/v1/bulk-operations/{operation['id']}").body
    assert (operation["state"], operation["affected"], operation["matched"]) == ("succeeded", MANY, MANY)


def test_a_paced_cancel_continues_after_its_response(scenario: Scenario) -> None:
    """A paced cancel is answered at once, keeps its pace and shows progress; a repeat starts no second operation."""
    tasks = tasks_of(scenario, 20)
    body, key = {"filter": {"type": PLAIN}, "per_second": 1}, {"Idempotency-Key": "once"}
    answer = asked_soon(scenario, CANCEL, body, key)
    assert (answer.status, answer.body["state"]) == (202, "running")
    assert asked_soon(scenario, CANCEL, body, key).body["id"] == answer.body["id"]
    scenario.run(10 * SECOND)
    path = f"/v1/bulk-operations/{answer.body['id']}"
    assert 5 <= scenario.ask("GET", path).body["affected"] <= 12
    scenario.run(MINUTE)
    end = scenario.ask("GET", path).body
    assert (end["state"], end["affected"], end["refused"]) == ("succeeded", 20, {})
    assert {scenario.record(task).state for task in tasks} == {"cancelled"}
    later = tasks_of(scenario, 1)
    repeated = scenario.ask("POST", CANCEL, body, headers=key)
    assert (repeated.status, repeated.body["affected"]) == (200, 20)
    assert scenario.record(later[0]).state == "scheduled"
    assert scenario.ask("POST", CANCEL, {**body, "per_second": 2}, headers=key).status == 422


def test_a_repeated_small_bulk_request_does_not_affect_newer_tasks(scenario: Scenario) -> None:
    """A repeated request gets the first response, and does not affect tasks created since."""
    tasks_of(scenario, 3)
    body, key = {"filter": {"type": PLAIN}}, {"Idempotency-Key": "once"}
    first = asked_soon(scenario, CANCEL, body, key)
    later = tasks_of(scenario, 2)
    again = asked_soon(scenario, CANCEL, body, key)
    assert (first.status, again.status, first.body) == (200, 200, again.body)
    assert {scenario.record(task).state for task in later} == {"scheduled"}


def test_a_cancelled_bulk_operation_stops_and_is_not_restarted(scenario: Scenario) -> None:
    """A cancelled operation stops within seconds; neither a second cancel nor a repeated request restarts it."""
    tasks = tasks_of(scenario, 20)
    body, key = {"filter": {"type": PLAIN}, "per_second": 1}, {"Idempotency-Key": "once"}
    path = f"/v1/bulk-operations/{asked_soon(scenario, CANCEL, body, key).body['id']}"
    scenario.run(4 * SECOND)
    assert scenario.ask("POST", f"{path}/cancel").body["state"] == "cancelled"
    scenario.run(6 * SECOND)
    done = sum(scenario.record(task).state == "cancelled" for task in tasks)
    assert done < 15
    repeated = scenario.ask("POST", CANCEL, body, headers=key)
    assert (repeated.status, f"/v1/bulk-operations/{operations_of(scenario)[0]['id']}") == (202, path)
    assert scenario.ask("POST", f"{path}/cancel").status == 200
    scenario.run(5 * MINUTE)
    assert sum(scenario.record(task).state == "cancelled" for task in tasks) == done
    assert len(operations_of(scenario)) == 1


def test_an_accepted_bulk_operation_completes_wherever_its_function_is_killed() -> None:
    """If the function is killed at any AWS call, another invocation takes over in time and handles every task."""
    number, most = 0, 1
    while number < most:
        number += 1
        with Scenario() as scenario:
            tasks = tasks_of(scenario, 4)
            calls: list[Call] = []
            scenario.before_call = killing("bulk", number, calls)
            assert asked_soon(scenario, CANCEL, {"filter": {"type": PLAIN}, "per_second": 1}).status == 202
            everything = lambda tasks=tasks, scenario=scenario: all(  # noqa: E731 - read at every step
                scenario.record(task).state == "cancelled" for task in tasks
            )
            assert scenario.run_until(everything, BOUND + 10 * SECOND, 2 * SECOND), f"killed at call {number}"
            scenario.run_until(lambda: operations_of(scenario)[0]["state"] == "succeeded", BOUND, 10 * SECOND)
            assert operations_of(scenario)[0]["state"] == "succeeded", f"killed at call {number}"
            if number == 1:
                most = len([call for call in calls if call.machine is not calls[0].machine])
    # The operation must make about this many calls; if it makes fewer, the kills do not cover all calls.
    assert most > 10


def test_an_accepted_bulk_operation_completes_if_its_invocation_is_lost(scenario: Scenario) -> None:
    """If the invocation of the bulk function is lost, a timer finds the operation, which completes in time."""
    tasks = tasks_of(scenario, 4)

    def lose(_call: Call) -> None:
        raise ConnectTimeoutError(endpoint_url="lambda")

    lost = scenario.once(lambda call: call.operation == "invoke" and call.machine.function == "api", lose)
    assert asked_soon(scenario, CANCEL, {"filter": {"type": PLAIN}, "per_second": 1}).status == 202
    assert lost
    assert scenario.run_until(
        lambda: all(scenario.record(task).state == "cancelled" for task in tasks), BOUND, 2 * SECOND
    )


def test_a_bulk_operation_continues_wherever_the_trigger_dies() -> None:
    """An operation continues even if the trigger dies at any call that it makes for the operation."""
    for operation in ("get_item", "put_item", "invoke"):
        with Scenario() as scenario:
            tasks = tasks_of(scenario, 4)

            def is_met(call: Call, operation: str = operation) -> bool:
                if call.machine.function != "trigger" or call.operation != operation:
                    return False
                return operation == "invoke" or any(
                    mark in str(call.request) for mark in (schema.BULK_MARK, schema.BULK_PREFIX)
                )

            # The bulk function dies at its first call, and the trigger dies at the tested call.
            first = scenario.once(lambda call: call.machine.function == "bulk", lambda call: call.machine.die())
            died = scenario.once(is_met, lambda call: call.machine.die())
            assert asked_soon(scenario, CANCEL, {"filter": {"type": PLAIN}, "per_second": 1}).status == 202
            scenario.run(2 * BOUND)
            assert {scenario.record(task).state for task in tasks} == {"cancelled"}, operation
            assert (len(first), len(died)) == (1, 1), operation


def test_a_bulk_operation_completes_after_throttling(scenario: Scenario) -> None:
    """An operation completes after DynamoDB has refused all of the function's writes for a while."""
    tasks = tasks_of(scenario, 6)
    until = scenario.now + 2 * MINUTE
    refused: list[Call] = []

    def refuse(call: Call) -> None:
        if call.machine.function == "bulk" and call.operation == "update_item" and scenario.now < until:
            refused.append(call)
            call.refuse()

    scenario.before_call = refuse
    answer = asked_soon(scenario, CANCEL, {"filter": {"type": PLAIN}, "per_second": 2})
    assert answer.status == 202
    scenario.run(2 * MINUTE + BOUND)
    assert refused
    assert {scenario.record(task).state for task in tasks} == {"cancelled"}
    assert operations_of(scenario)[0]["state"] == "succeeded"


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/tasks/update", {"update": {"priority": "high"}}), (CANCEL, {})],
    ids=["update", "cancel"],
)
def test_a_task_is_counted_once_although_the_store_failed(scenario: Scenario, path: str, body: dict[str, Any]) -> None:
    """If the store refuses to change one of twelve tasks three times, each task is still counted once."""
    tasks = tasks_of(scenario, 12)
    scenario.faulty = True
    refused: list[Call] = []

    def refuse(call: Call) -> None:
        is_change = call.operation == "update_item" and call.request["Key"][schema.SORT_KEY]["S"] == tasks[5]
        if is_change and len(refused) < 3:
            refused.append(call)
            call.refuse()

    scenario.before_call = refuse
    end = asked_soon(scenario, path, {"filter": {"type": PLAIN}, **body}).body
    scenario.run(BOUND)
    if "id" in end:
        end = scenario.ask("GET", f"/v1/bulk-operations/{end['id']}").body
    assert len(refused) == 3
    assert (end["matched"], end["affected"], end["refused"]) == (12, 12, {})


def test_a_function_that_stalls_past_its_operations_lease_changes_nothing(scenario: Scenario) -> None:
    """A function that stalls past its lease is replaced and, when it resumes, changes nothing."""
    tasks = tasks_of(scenario, 12)
    stalled = scenario.slow(
        lambda call: call.machine.function == "bulk" and call.operation == "update_item", 4 * MINUTE
    )
    assert asked_soon(scenario, CANCEL, {"filter": {"type": PLAIN}, "per_second": 1}).status == 202
    scenario.run(3 * MINUTE)
    assert stalled
    assert {scenario.record(task).state for task in tasks} == {"cancelled"}
    operation = operations_of(scenario)[0]
    scenario.run(5 * MINUTE)
    assert operations_of(scenario)[0] == operation
    assert operation["state"] == "succeeded"


@pytest.mark.parametrize(("later", "state"), [("resume", "scheduled"), ("cancel", "cancelled")])
def test_a_later_request_stops_a_running_pause(scenario: Scenario, later: str, state: str) -> None:
    """A later request stops a running pause, and no node is left paused."""
    topology = graph_of(scenario, SOME)
    # The pausing function stalls at a node, and writes the node after the later request has begun.
    scenario.slow(lambda call: call.machine.function == "bulk" and call.operation == "update_item", 12 * SECOND)
    assert controlled_slowly(scenario, topology, "pause").status == 202
    scenario.run(3 * SECOND)
    answer = asked_soon(scenario, f"/v1/topologies/{topology}/{later}")
    assert answer.status in {200, 202}
    scenario.run(2 * MINUTE)
    assert states_of(scenario) == {state: SOME}
    ended = {operation["kind"]: operation["state"] for operation in operations_of(scenario)}
    assert ended["pause"] == "cancelled"
    assert "running" not in ended.values()


def test_a_node_that_becomes_ready_during_a_pause_does_not_start(scenario: Scenario) -> None:
    """While a pause is still being written, a node that becomes ready does not start."""
    nodes: dict[str, Any] = {f"n{number}": {"type": PLAIN, "delay_seconds": 7200} for number in range(SOME)}
    nodes |= {"first": {"type": PLAIN}, "second": {"type": PLAIN, "depends_on": ["first"]}}
    scenario.target = lambda _phase, _context: scenario.take(20 * SECOND)
    topology = scenario.ask("POST", "/v1/topologies", {"nodes": nodes}).body["id"]
    assert scenario.run_until(lambda: "running" in states_of(scenario), 5 * MINUTE, SECOND)
    stalled = scenario.slow(
        lambda call: call.machine.function == "bulk" and call.operation == "update_item", 25 * SECOND
    )
    assert controlled_slowly(scenario, topology, "pause").status == 202
    scenario.run(2 * MINUTE)
    assert stalled
    assert states_of(scenario) == {"paused": SOME, "succeeded": 1, "blocked": 1}


@pytest.mark.slow
def test_a_failed_node_stops_a_large_topology_in_the_background(scenario: Scenario) -> None:
    """After a node fails, the other nodes are cancelled in the background, and the topology fails."""
    nodes: dict[str, Any] = {f"n{number}": {"type": PLAIN, "delay_seconds": 7200} for number in range(MANY)}
    nodes["bad"] = {"type": PLAIN, "delay_seconds": 90, "retry": {"max_attempts": 1}}

    def fail(_phase: str, _context: object) -> None:
        raise ValueError("bad")

    scenario.target = fail
    topology = scenario.ask("POST", "/v1/topologies", {"nodes": nodes}).body["id"]
    assert scenario.run_until(lambda: states_of(scenario).get("cancelled") == MANY, 6 * MINUTE, 5 * SECOND)
    assert scenario.run_until(lambda: scenario.record(topology).is_terminal, 3 * MINUTE, 5 * SECOND)
    assert scenario.record(topology).state == "failed"
    assert {operation["kind"] for operation in operations_of(scenario)} == {"end"}


def test_a_bulk_operation_can_be_read_after_its_end(scenario: Scenario) -> None:
    """A running operation does not expire; an operation that has ended can be read for a week."""
    tasks_of(scenario, 4)
    assert asked_soon(scenario, CANCEL, {"filter": {"type": PLAIN}, "per_second": 0.5}).status == 202
    (item,) = scenario.items(schema.BULK_PREFIX)
    assert schema.TTL not in item
    scenario.run(20 * SECOND)
    ended_at = scenario.now
    (item,) = scenario.items(schema.BULK_PREFIX)
    assert int(item[schema.TTL]["N"]) * SECOND >= ended_at - 20 * SECOND + BULK_RETENTION


def test_the_pointer_to_a_topologys_latest_operation_is_kept(scenario: Scenario) -> None:
    """The pointer to the latest operation is kept as long as the topology can run and the operation can be read."""
    topology = graph_of(scenario, SOME)
    began = scenario.now
    assert controlled_slowly(scenario, topology, "pause").status == 202
    (item,) = [item for item in scenario.items(schema.TOPOLOGY_PREFIX) if item[schema.SORT_KEY]["S"] == "bulk"]
    assert int(item[schema.TTL]["N"]) * SECOND >= began + MAX_DEADLINE_SECONDS * SECOND + BULK_RETENTION


def test_an_operation_of_another_owner_is_not_found(scenario: Scenario) -> None:
    """An operation of another owner can be neither read nor stopped, as if the operation did not exist."""
    tasks_of(scenario, 3)
    answer = asked_soon(scenario, CANCEL, {"filter": {"type": PLAIN}, "per_second": 0.5})
    path, you = f"/v1/bulk-operations/{answer.body['id']}", {"X-Duetime-Owner": "you"}
    unknown = TaskId.of(scenario.now, 0, 7)
    for reply in (
        scenario.ask("GET", path, headers=you),
        scenario.ask("POST", f"{path}/cancel", headers=you),
        scenario.ask("GET", f"/v1/bulk-operations/{unknown}"),
    ):
        assert (reply.status, reply.body["code"]) == (404, "bulk_operation_not_found")
    assert scenario.ask("GET", "/v1/bulk-operations", headers=you).body == {"operations": []}


def test_a_repeated_request_of_a_cancelled_operation_returns_cancelled(scenario: Scenario) -> None:
    """A repeat of a cancelled operation's request returns the operation as `cancelled`, with its partial count."""
    ids = tasks_of(scenario, 5)
    body, key = {"filter": {"type": PLAIN}, "per_second": 0.1}, {"Idempotency-Key": "once"}
    operation = scenario.ask("POST", CANCEL, body, headers=key).body["id"]
    scenario.run(12 * SECOND)
    assert scenario.ask("POST", f"/v1/bulk-operations/{operation}/cancel").status == 200
    repeated = scenario.ask("POST", CANCEL, body, headers=key)
    assert (repeated.status, repeated.body["id"], repeated.body["state"]) == (202, operation, "cancelled")
    assert repeated.body["affected"] < len(ids)


@pytest.mark.parametrize("body", [{}, {"per_second": 1}], ids=["at-once", "paced"])
def test_a_repeated_lost_bulk_request_does_not_affect_newer_tasks(body: dict[str, Any]) -> None:
    """If the API dies after it stored the key, a repeated request does not affect a task created in between."""
    with Scenario() as scenario:
        scenario.faulty = True
        ids = tasks_of(scenario, 5)
        wanted, key = {"filter": {"type": PLAIN}, **body}, {"Idempotency-Key": "once"}
        dies = scenario.once(
            lambda call: call.machine.function == "api" and call.operation == "query", lambda call: call.machine.die()
        )
        scenario.send("POST", CANCEL, wanted, headers=key)
        scenario.run(SECOND)
        assert dies
        (later,) = tasks_of(scenario, 1)
        repeated = scenario.ask("POST", CANCEL, wanted, headers=key)
        assert repeated.status in {200, 202}, repeated.body
        scenario.run(MINUTE)
        assert {scenario.record(task).state for task in ids} == {"cancelled"}
        assert scenario.record(later).state == "scheduled"
