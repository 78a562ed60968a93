"""No task is lost if queue calls fail for a long time or the dead-letter function never works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import DAY
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_testing.simulation.faults import Call


def _refuse(scenario: Scenario, matches: Callable[[Call], bool]) -> list[Call]:
    """Refuse every matching call from now on, and add each refused call to the returned list."""
    refused: list[Call] = []

    def refuse(call: Call) -> None:
        if matches(call):
            refused.append(call)
            call.refuse()

    scenario.before_call = refuse
    return refused


def _create(scenario: Scenario, delay: int = 0) -> str:
    return str(scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "delay_seconds": delay}).body["id"])


def test_visibility_changes_that_fail_delay_no_task() -> None:
    """If message visibility cannot be changed, tasks still run once and on time; messages are deleted later."""
    with Scenario() as scenario:
        scenario.faulty = True
        scenario.target = lambda _phase, _context: scenario.take(40 * SECOND)
        refused = _refuse(scenario, lambda call: call.operation == "change_message_visibility_batch")
        made = [_create(scenario, delay) for delay in (0, 20, 250, 400)]
        scenario.run(20 * MINUTE)
        assert refused
        for task_id in made:
            task = scenario.record(task_id)
            assert (task.state, task.attempt) == ("succeeded", 1)
            assert (task.lateness or 0) < SECOND
        scenario.before_call = None
        scenario.run(HOUR)
        assert not any(queue.messages for queue in scenario.sqs.queues.values())


@pytest.mark.slow
def test_a_worker_that_dies_while_visibility_changes_fail_is_replaced() -> None:
    """If visibility cannot be changed, a dead worker's task runs again after the queue's quarter-hour timeout."""
    with Scenario() as scenario:
        scenario.faulty = True
        scenario.target = lambda _phase, _context: scenario.take(10 * MINUTE)
        _refuse(scenario, lambda call: call.operation == "change_message_visibility_batch")
        made = scenario.ask("POST", "/v1/tasks", {"type": PLAIN, "timeout_seconds": 800}).body["id"]
        scenario.run(5 * MINUTE)
        scenario.target = lambda _phase, _context: "done"
        for machine in scenario.machines:
            if machine.function == "worker":
                machine.die()
        assert scenario.run_until(lambda: scenario.record(made).state == "succeeded", within=17 * MINUTE), (
            scenario.record(made)
        )
        assert scenario.record(made).attempt == 2


@pytest.mark.slow
def test_a_dead_letter_function_that_never_works_loses_no_task() -> None:
    """If the dead-letter function never works, scans find the tasks of the dead letters."""
    with Scenario() as scenario:
        scenario.faulty = True
        for queue in scenario.sqs.queues.values():
            queue.most_receives = 3 if queue.dead_letters else 0
        refused = _refuse(
            scenario,
            lambda call: (
                call.machine.function == "deadletter"
                or (call.machine.function == "worker" and call.operation == "update_item")
            ),
        )
        made = [_create(scenario, delay) for delay in (0, 30, 200)]
        scenario.run(20 * MINUTE)
        dead = next(queue for queue in scenario.sqs.queues.values() if not queue.dead_letters)
        assert dead.messages
        refused.clear()
        _refuse(scenario, lambda call: call.machine.function == "deadletter")
        scenario.run(HOUR)
        for task_id in made:
            assert (scenario.record(task_id).state, scenario.record(task_id).attempt) == ("succeeded", 1)
        assert dead.messages


def test_messages_that_expired_in_an_outage_are_sent_again() -> None:
    """After an outage longer than SQS keeps messages, the messages are sent again from the records."""
    with Scenario() as scenario:
        scenario.faulty, scenario.receiving = True, False
        made = [_create(scenario, delay) for delay in (0, 100, 300, 7200)]
        scenario.run(10 * MINUTE)
        scenario.ticking = False
        scenario.run(30 * DAY)
        for queue in scenario.sqs.queues.values():
            queue.messages.clear()
        scenario.expire()
        scenario.ticking = scenario.receiving = True
        assert scenario.run_until(
            lambda: all(scenario.record(task_id).state == "succeeded" for task_id in made), within=HOUR
        )


def test_a_creation_completed_after_its_minute_is_found_by_a_timer() -> None:
    """If a creation is repeated after its minute and its message is refused, a timer starts the task within minutes."""
    with Scenario() as scenario:
        scenario.faulty = True
        refused = _refuse(
            scenario, lambda call: call.operation == "put_item" and (call.partition or "").startswith("20")
        )
        body, headers = {"type": PLAIN}, {"Idempotency-Key": "once"}
        assert scenario.ask("POST", "/v1/tasks", body, headers=headers).status == 503
        assert refused
        scenario.before_call = None
        scenario.run(10 * MINUTE)
        unsent = _refuse(scenario, lambda call: call.operation == "send_message_batch")
        made = scenario.ask("POST", "/v1/tasks", body, headers=headers).body["id"]
        created_at = scenario.now
        assert unsent
        scenario.before_call = None
        assert scenario.run_until(lambda: scenario.record(made).state == "succeeded", within=5 * MINUTE)
        assert scenario.record(made).id.minute * MINUTE < created_at - 8 * MINUTE
