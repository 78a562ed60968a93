"""Calls that functions make rarely, each of which must be granted (see `tests/grants.py`).

None of these tests may be marked slow, because `make test` fails if a grant is not used.
"""

from __future__ import annotations

import json
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ClientError

from duetime.adapters.dynamodb import schema
from duetime.services.topologies import reconciler
from tests import grants
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.machines import Machine

HUGE = ["%08x" % (number * 2654435761 % 2**32) for number in range(60_000)]
"""JSON that is too large for an item and is stored in the bucket."""
LOCK = {"key": "one"}
LATER = 7200


@pytest.fixture
def scenario() -> Iterator[Scenario]:
    """An account whose DynamoDB responses have full-size pages; calls of earlier tests are forgotten meanwhile."""
    before = set(grants.USED)
    for use in before:
        grants.forget(use)
    try:
        with Scenario() as scenario:
            scenario.dynamodb.page = 1000
            yield scenario
    finally:
        grants.USED.update(before)


def create(scenario: Scenario, **body: Any) -> str:  # noqa: ANN401 - any JSON
    """Create a task; return its id."""
    answer = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, **body})
    assert answer.status == 201
    return str(answer.body["id"])


def expiring(scenario: Scenario) -> int:
    """The number of objects that are tagged for removal after their task has ended."""
    return sum("=".join(schema.EXPIRING_TAG) in tag for tag in scenario.s3.tags.values())


def run_bulk(scenario: Scenario, kind: str, body: Mapping[str, Any]) -> None:
    """Request an action by filter, and have the bulk function carry it out because the API has no time for it."""
    scenario.slow(lambda call: call.machine.function == "api" and call.operation == "query", 3 * SECOND)
    answer = scenario.ask("POST", f"/v1/tasks/{kind}", body)
    assert answer.status == 202, answer
    scenario.run(5 * MINUTE)


def test_a_bulk_cancel_sets_an_expiry_on_contents(scenario: Scenario) -> None:
    """A bulk cancel tags the objects of the cancelled tasks for removal."""
    for number in range(3):
        create(scenario, payload=HUGE, delay_seconds=LATER + number)
    run_bulk(scenario, "cancel", {"filter": {"type": PLAIN}})
    assert expiring(scenario) == 3


def test_a_bulk_cancel_passes_on_reserved_locks(scenario: Scenario) -> None:
    """When a bulk cancel passes on a reserved lock, the bulk function removes waiters from the lock's line."""
    scenario.target = lambda _phase, _context: scenario.take(20 * SECOND)
    ids = [create(scenario, lock=LOCK) for _ in range(3)]
    assert scenario.run_until(lambda: [str(scenario.record(each).state) for each in ids].count("waiting") == 2)
    scenario.run(15 * SECOND)
    scenario.receiving = False
    assert scenario.run_until(lambda: any(scenario.record(each).state == "succeeded" for each in ids), MINUTE)
    scenario.run(SECOND)
    removal = ("bulk", "dynamodb:DeleteItem", grants.TABLE)
    grants.forget(removal)
    run_bulk(scenario, "cancel", {"filter": {"type": PLAIN}})
    assert {scenario.record(each).state for each in ids} == {"succeeded", "cancelled"}
    assert removal in grants.USED


def test_a_dead_letter_of_a_task_without_attempts_left_fails_the_task(scenario: Scenario) -> None:
    """If a dead letter fails a task, a worker does the follow-up, and the dead-letter function touches no content."""
    scenario.faulty = True
    scenario.target = lambda _phase, _context: cast("Machine", scenario.time.process().home).die()
    for queue in scenario.sqs.queues.values():
        queue.most_receives = 1 if queue.dead_letters else 0
    task_id = create(scenario, payload=HUGE, retry={"max_attempts": 1})
    assert scenario.run_until(lambda: scenario.record(task_id).state == "failed", HOUR, SECOND)
    scenario.run(5 * MINUTE)
    assert expiring(scenario) == 1
    assert not any(use[0] == "deadletter" and use[1].startswith("s3:") for use in grants.USED)


def test_a_dead_letter_of_an_unclaimed_task_sets_a_timer(scenario: Scenario) -> None:
    """For an unclaimed task whose minute is over, the dead-letter function writes a timer in the next minute."""
    scenario.faulty = True
    for queue in scenario.sqs.queues.values():
        queue.most_receives = 1 if queue.dead_letters else 0

    def dies(call: Call) -> bool:
        return call.machine.function == "worker" and call.operation == "change_message_visibility_batch"

    died = scenario.once(dies, lambda call: call.machine.die())
    timer = ("deadletter", "dynamodb:PutItem", grants.TABLE)
    grants.forget(timer)
    scenario.ticking = False  # otherwise, a recovery scan would come first
    task_id = create(scenario)
    assert scenario.run_until(lambda: scenario.record(task_id).state == "succeeded", HOUR, SECOND)
    assert len(died) == 1
    assert timer in grants.USED


def test_a_topology_retry_removes_the_expiry_of_kept_nodes_contents(scenario: Scenario) -> None:
    """When a topology is retried, the topology function removes the tag that lets kept nodes' contents expire."""
    scenario.faulty = True  # In a retry, a node begins long after the kept parent.
    broken = True

    def run(_phase: str, context: Context) -> None:
        if scenario.record(context.task_id).name == "second":
            if broken:
                raise ValueError
            scenario.take(30 * SECOND)

    scenario.target = run
    nodes = {
        "first": {"type": PLAIN, "payload": HUGE},
        "second": {"type": PLAIN, "depends_on": ["first"], "retry": {"max_attempts": 1}},
    }
    topology = scenario.ask("POST", "/v1/topologies", {"nodes": nodes}).body["id"]
    assert scenario.run_until(lambda: scenario.record(topology).finished_at is not None)
    scenario.run(5 * MINUTE)
    assert expiring(scenario) == len(scenario.s3.objects) == 2
    broken = False
    assert scenario.ask("POST", f"/v1/tasks/{topology}/retry").status == 200
    scenario.run(15 * SECOND)
    assert expiring(scenario) == 0
    assert scenario.run_until(lambda: scenario.record(topology).state == "succeeded")
    assert "s3:PutObjectTagging" in {use[1] for use in grants.USED if use[0] == "topology"}


def test_the_plan_of_a_cancelled_large_topology_stops_nodes_in_the_background(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the API dies during a cancel, the topology function invokes the bulk function to stop the nodes."""
    scenario.faulty = True
    monkeypatch.setattr(reconciler, "BULK_INLINE_NODES", 5)  # hundreds of nodes would take half a minute
    nodes = {f"n{number}": {"type": PLAIN, "delay_seconds": LATER} for number in range(6)}
    topology = scenario.ask("POST", "/v1/topologies", {"nodes": nodes}).body["id"]

    def states() -> set[str]:
        return {str(task.state) for task in scenario.watching.tasks() if task.node_ref}

    assert scenario.run_until(lambda: states() == {"scheduled"}, 5 * MINUTE, 5 * SECOND)
    scenario.run(5 * SECOND)

    def notes_an_operation(call: Call) -> bool:
        return call.machine.function == "api" and call.operation == "put_item"

    died = scenario.once(notes_an_operation, lambda call: call.machine.die())
    scenario.send("POST", f"/v1/topologies/{topology}/cancel")
    scenario.run(2 * SECOND)
    assert len(died) == 1
    invocation = ("topology", "lambda:InvokeFunction", grants.function("bulk"))
    grants.forget(invocation)
    scenario.invoke("topology", {"state": "plan", "task_id": topology, "fence": 1, "looks": 0})
    assert scenario.run_until(lambda: states() == {"cancelled"}, MINUTE, SECOND)
    assert invocation in grants.USED


def test_the_topology_function_sets_and_removes_expiries_of_node_payloads(scenario: Scenario) -> None:
    """The topology function reads a large graph, keeps node payloads, and lets the payloads of stopped nodes expire."""

    def fail(_phase: str, _context: Context) -> None:
        raise ValueError

    scenario.target = fail
    nodes = {
        "first": {"type": PLAIN, "retry": {"max_attempts": 1}},
        "late": {"type": PLAIN, "payload": HUGE, "delay_seconds": LATER},
    }
    created = scenario.ask("POST", "/v1/topologies", {"nodes": nodes})
    assert created.status == 201
    assert scenario.run_until(lambda: scenario.record(created.body["id"]).state == "failed")
    scenario.run(5 * MINUTE)
    assert expiring(scenario) == len(scenario.s3.objects) == 2
    assert ("topology", "s3:PutObject") in {use[:2] for use in grants.USED}


def test_the_topology_function_passes_on_a_paused_nodes_reserved_lock(scenario: Scenario) -> None:
    """If the API dies while it pauses nodes, the topology function completes the pause and passes on the lock."""
    scenario.faulty = True
    scenario.target = lambda _phase, _context: scenario.take(20 * SECOND)
    nodes = {key: {"type": PLAIN, "lock": LOCK} for key in "abc"}
    topology = scenario.ask("POST", "/v1/topologies", {"nodes": nodes}).body["id"]

    def states() -> list[str]:
        return sorted(str(task.state) for task in scenario.watching.tasks() if task.node_ref)

    assert scenario.run_until(lambda: states() == ["running", "waiting", "waiting"])
    scenario.run(15 * SECOND)
    scenario.receiving = False
    assert scenario.run_until(lambda: "succeeded" in states(), MINUTE)
    scenario.run(SECOND)
    writes: list[Call] = []

    def die_at_the_second_write(call: Call) -> None:
        if call.machine.function == "api" and call.operation == "update_item":
            writes.append(call)
            if len(writes) > 1:
                call.machine.die()

    scenario.before_call = die_at_the_second_write
    scenario.send("POST", f"/v1/topologies/{topology}/pause")
    scenario.run(2 * SECOND)
    scenario.before_call = None
    assert len(writes) == 2
    assert "paused" not in states()
    taken_out = ("topology", "dynamodb:DeleteItem", grants.TABLE)
    grants.forget(taken_out)
    scenario.invoke("topology", {"state": "finish", "task_id": topology, "fence": 1, "looks": 0})
    scenario.run(2 * SECOND)
    assert states() == ["paused", "paused", "succeeded"]
    assert taken_out in grants.USED


def test_the_trigger_copies_a_schedules_large_payload_to_the_task(scenario: Scenario) -> None:
    """The trigger reads a schedule's payload object, and writes and tags the payload object of the task."""
    body = {"name": "big", "rate": "1 minute", "task": {"type": PLAIN, "payload": HUGE}}
    assert scenario.ask("POST", "/v1/schedules", body).status == 201
    assert scenario.run_until(lambda: expiring(scenario) >= 2, HOUR, SECOND)
    for action in ("s3:GetObject", "s3:PutObject", "s3:PutObjectTagging"):
        assert action in {use[1] for use in grants.USED if use[0] == "trigger"}


def test_an_event_with_a_large_payload_becomes_a_task(scenario: Scenario) -> None:
    """For an event with a large payload, the intake writes the payload's object and never reads objects."""
    event = {"detail": {"type": PLAIN, "payload": HUGE}, "id": "one", "source": "tests", "time": "2026-11-21T00:00:00Z"}
    scenario.sqs.send_message(QueueUrl=scenario.intake, MessageBody=json.dumps(event))
    assert scenario.run_until(lambda: expiring(scenario) == 1, HOUR, SECOND)
    assert {use[1] for use in grants.USED if use[0] == "intake" and use[1].startswith("s3:")} == {
        "s3:ListBucket",
        "s3:PutObject",
        "s3:PutObjectTagging",
    }


def test_calls_of_concurrent_threads_are_attributed_to_the_right_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread of a worker invokes the egress, calls of other threads count as the worker's calls."""
    monkeypatch.setattr(grants, "_ACTING", [])
    asked: list[str | None] = []

    def ask() -> None:
        asked.append(grants.acting_function())

    def invoke() -> None:
        with grants.acting("egress"):
            ask()
            in_thread(ask)

    def in_thread(target: Callable[[], None]) -> None:
        thread = Thread(target=target)
        thread.start()
        thread.join()

    ask()
    with grants.acting("worker"):
        ask()
        in_thread(invoke)
        in_thread(ask)
        with grants.acting("bulk"):
            ask()
        ask()
    assert asked == [None, "worker", "egress", "worker", "worker", "bulk", "worker"]


def test_a_call_without_a_grant_is_rejected(scenario: Scenario) -> None:
    """In tests, functions have the same grants as in a deployment, and a call without a grant is refused."""
    with pytest.raises(ClientError, match="not authorized to perform: dynamodb:Scan on resource"):
        grants.check("worker", scenario.environ, "dynamodb", "scan", {"TableName": "tasks"})
    with pytest.raises(ClientError, match=r"not authorized to perform: dynamodb:GetItem on resource: .*/other"):
        grants.check("worker", scenario.environ, "dynamodb", "get_item", {"TableName": "other"})
