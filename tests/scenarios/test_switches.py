"""Switches and circuits hold tasks, which continue once the stop is lifted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.limits import MAX_SWITCHES
from duetime.domain.operating_parameters import (
    CIRCUIT_THRESHOLD,
    LOCK_CHECK_INTERVAL,
    LONGEST_STOP,
    SHORTEST_STOP,
    SWITCHES_LIFE,
)
from duetime.environment_variables import Variable
from duetime.handlers import Accepted
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation.endpoints import BATCH_URL, URL

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

PATH = "/v1/switches"
ALL = f"{PATH}/all/all"
PLAINS = f"{PATH}/type/{PLAIN}"
MINE = f"{PATH}/owner/local"


class Switched(Tasks):
    """An account whose operator sets switches."""

    def __init__(self) -> None:
        super().__init__()
        self.faulty = True

    def put(self, path: str, **fields: Any) -> Reply:  # noqa: ANN401 - JSON
        """Set a switch."""
        return self.ask("PUT", path, fields)

    def stop(self, path: str) -> None:
        """Stop the tasks to which a switch applies."""
        assert self.put(path, stopped=True, reason="an incident").status == 200

    def lift(self, path: str) -> Reply:
        """Delete a switch."""
        return self.ask("DELETE", path)


@pytest.mark.parametrize("path", [ALL, PLAINS, MINE], ids=["all", "type", "owner"])
def test_stopped_tasks_run_within_ninety_seconds_after_the_stop_is_lifted(path: str) -> None:
    """Stopped tasks show the reason and use up no attempt, and all of them run soon after the stop is lifted."""
    with Switched() as tasks:
        tasks.stop(path)
        made = [tasks.create() for _ in range(4)]
        tasks.run(HOUR // 2)
        assert not tasks.effects
        held = tasks.record(made[0])
        assert (held.state, held.attempt, held.started_at) == ("waiting", 0, None)
        assert (held.waiting_for or "").endswith("is stopped: an incident")
        assert HOUR // 2 // (LONGEST_STOP + 5 * SECOND) <= held.fence <= HOUR // 2 // SHORTEST_STOP
        assert tasks.lift(path).status == 200
        tasks.run(90 * SECOND)
        assert tasks.tally() == {"succeeded": 4}
        task = tasks.done(made[0])
        assert (task.attempt, task.waiting_for, len(task.attempt_history)) == (1, None, 1)


def test_a_stop_does_not_hold_tasks_of_other_types_or_owners() -> None:
    """A stop for another type or owner does not hold a task."""
    with Switched() as tasks:
        tasks.stop(f"{PATH}/type/{UNDONE}")
        tasks.stop(f"{PATH}/owner/you")
        task_id = tasks.create()
        tasks.run(SECOND)
        assert tasks.state(task_id) == "succeeded"


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "not_stopped"])
def test_a_worker_that_has_never_read_the_switches_starts_no_task(*, is_stopped: bool) -> None:
    """Until a worker has read the switches, tasks wait without using up an attempt."""
    with Switched() as tasks:
        if is_stopped:
            tasks.stop(PLAINS)
        back_at = tasks.now + 3 * MINUTE

        def refuse(call: Call) -> None:
            is_reading = call.operation == "query" and call.partition == schema.SWITCH_PREFIX
            if is_reading and call.machine.function == "worker" and tasks.now < back_at:
                call.refuse()

        tasks.before_call = refuse
        task_id = tasks.create(retry=ONCE)
        tasks.run(2 * MINUTE)
        waiting = tasks.record(task_id)
        assert (waiting.state, waiting.attempt, tasks.effects) == ("waiting", 0, [])
        assert waiting.waiting_for == "the switches could not be read yet"
        tasks.run(back_at + 2 * SWITCHES_LIFE + 2 * SECOND - tasks.now)
        if is_stopped:
            assert (tasks.record(task_id).waiting_for or "").endswith("is stopped: an incident")
            tasks.lift(PLAINS)
            tasks.run(90 * SECOND)
        assert tasks.done(task_id).attempt == 1


def test_a_stop_takes_effect_within_seconds_and_interrupts_no_running_attempt() -> None:
    """Workers read new switches within seconds, but no running attempt is interrupted."""
    with Switched() as tasks:
        tasks.last(60)
        running = tasks.create(timeout_seconds=100)
        tasks.run(SECOND)
        tasks.stop(PLAINS)
        later = tasks.create(SWITCHES_LIFE)
        tasks.run(2 * MINUTE)
        assert (tasks.state(running), tasks.state(later)) == ("succeeded", "waiting")


def test_a_stop_also_holds_rollbacks() -> None:
    """A stop also holds rollbacks, which wait until the stop is lifted."""
    with Switched() as tasks:
        path = f"{PATH}/type/{UNDONE}"

        def fail(phase: str, _context: Context) -> str:
            if phase == "run":
                tasks.take(SWITCHES_LIFE + 3 * SECOND)
                raise ValueError
            return "done"

        tasks.target = fail
        task_id = tasks.create(kind=UNDONE, rollback_on_failure=True, retry=ONCE)
        tasks.run(SECOND)
        tasks.stop(path)
        tasks.run(10 * MINUTE)
        assert (tasks.phases(), tasks.state(task_id)) == (["run"], "rolling_back")
        tasks.lift(path)
        tasks.run(90 * SECOND)
        assert tasks.state(task_id) == "rolled_back"


def test_a_task_held_by_a_switch_can_be_cancelled() -> None:
    """A task that a switch holds can be cancelled, and does not run later."""
    with Switched() as tasks:
        tasks.stop(PLAINS)
        task_id = tasks.create()
        tasks.run(10 * SECOND)
        assert tasks.cancel(task_id).body["state"] == "cancelled"
        tasks.lift(PLAINS)
        tasks.run(5 * MINUTE)
        assert not tasks.effects


def test_a_limit_of_three_lets_three_tasks_of_a_type_run() -> None:
    """With a limit of three, at most three of twelve tasks run at once, and other types are not delayed."""
    with Switched() as tasks:
        tasks.put(PLAINS, max_concurrent=3)
        running = [0, 0]

        def work(_phase: str, context: Context) -> str:
            if tasks.record(context.task_id).type == PLAIN:
                running[0] += 1
                running[1] = max(running)
                tasks.take(SECOND)
                running[0] -= 1
            return "done"

        tasks.target = work
        for _ in range(12):
            tasks.create(2 * SECOND)
        other = tasks.create(2 * SECOND, kind=UNDONE)
        tasks.run(3 * SECOND)
        assert tasks.state(other) == "succeeded"
        tasks.run(10 * MINUTE)
        assert tasks.tally() == {"succeeded": 13}
        assert running == [0, 3]


def test_a_new_limit_does_not_interrupt_running_tasks() -> None:
    """A task that started before a limit was set continues and ends as usual."""
    with Switched() as tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create()
        tasks.run(SECOND)
        tasks.put(PLAINS, max_concurrent=1)
        tasks.run(SWITCHES_LIFE)
        assert tasks.do(task_id, "heartbeat", {"fence": 1}).status == 200
        assert tasks.do(task_id, "notify", {"fence": 1, "outcome": "succeeded", "result": 1}).status == 200
        tasks.run(SECOND)
        assert tasks.state(task_id) == "succeeded"


def test_waiting_tasks_start_soon_after_a_limit_is_lifted() -> None:
    """After a limit is lifted, waiting tasks start within the lock check interval."""
    with Switched() as tasks:
        tasks.put(PLAINS, max_concurrent=1)
        tasks.target = lambda _phase, _context: tasks.take(13 * MINUTE if len(tasks.effects) == 1 else 0)
        for _ in range(5):
            tasks.create(timeout_seconds=840)
        tasks.run(SECOND)
        tasks.lift(PLAINS)
        tasks.run(LOCK_CHECK_INTERVAL + SECOND)
        assert tasks.tally()["succeeded"] == 4  # type: ignore[index]  # a state is a string


def test_no_switch_can_be_added_above_the_maximum_number() -> None:
    """Above the maximum number, no switch can be added, but existing switches can be changed and deleted."""
    with Switched() as tasks:
        for number in range(MAX_SWITCHES):
            assert tasks.put(f"{PATH}/type/type-{number}", stopped=True).status == 200
        assert tasks.put(PLAINS, stopped=True).body["code"] == "switches_full"
        first = f"{PATH}/type/type-0"
        assert tasks.put(first, max_concurrent=1).status == 200
        assert tasks.lift(first).status == 200
        assert tasks.lift(first).body["code"] == "switch_not_found"
        assert tasks.put(ALL, stopped=True).status == 200


def test_all_tasks_can_be_stopped_at_the_maximum_number_of_switches() -> None:
    """All tasks can be stopped even if the maximum number of switches is reached."""
    with Switched() as tasks:
        for number in range(MAX_SWITCHES):
            assert tasks.put(f"{PATH}/type/type-{number}", stopped=True).status == 200
        assert tasks.put(ALL, stopped=True).status == 200
        assert tasks.lift(ALL).status == 200


def test_concurrent_changes_of_two_switches_do_not_overwrite_each_other() -> None:
    """Concurrent changes to two switches do not overwrite each other."""
    with Switched() as tasks:
        tasks.stop(f"{PATH}/type/first")

        def put_first(_call: Call) -> None:
            tasks.users.ask("PUT", ALL, {"stopped": True})

        first = tasks.once(
            lambda call: call.operation in {"put_item", "update_item"} and call.partition == schema.SWITCH_PREFIX,
            put_first,
        )
        tasks.stop(PLAINS)
        assert first
        assert len(tasks.ask("GET", PATH).body["switches"]) == 3


def test_a_change_of_switches_with_repeated_conflicts_returns_503() -> None:
    """If another operator writes before each try, the request gets 503, and the other changes are kept."""
    with Switched() as tasks:
        count = 0
        is_others = False

        def put_first(call: Call) -> None:
            nonlocal count, is_others
            if is_others or call.operation != "put_item" or call.partition != schema.SWITCH_PREFIX:
                return
            count += 1
            is_others = True
            tasks.users.ask("PUT", ALL, {"stopped": True, "reason": f"change {count}"})
            is_others = False

        tasks.before_call = put_first
        answer = tasks.put(PLAINS, stopped=True)
        tasks.before_call = None
        assert (answer.status, answer.body["code"]) == (503, "unavailable")
        (switch,) = tasks.ask("GET", PATH).body["switches"]
        assert (switch["scope"], switch["reason"]) == ("all", f"change {count}")
        assert tasks.put(PLAINS, stopped=True).status == 200


def test_owners_do_not_see_other_owners_switches() -> None:
    """Operators see all switches; owners see the switches for all tasks, for types and for themselves."""
    with Switched() as tasks:
        tasks.environ |= {Variable.OPERATORS: "boss", Variable.ADMINS: ""}
        boss, you = {"X-Duetime-Owner": "boss"}, {"X-Duetime-Owner": "you"}
        yours = f"{PATH}/owner/you"
        every = [ALL, MINE, yours, PLAINS]
        for path in every:
            assert tasks.ask("PUT", path, {"stopped": True}, headers=boss).status == 200

        def seen(headers: dict[str, str]) -> list[str]:
            switches = tasks.ask("GET", PATH, headers=headers).body["switches"]
            listed = [f"{PATH}/{switch['scope']}/{switch['name']}" for switch in switches]
            assert listed == [path for path in every if tasks.ask("GET", path, headers=headers).status == 200]
            return listed

        assert seen(boss) == every
        assert seen({}) == [path for path in every if path != yours]
        assert seen(you) == [path for path in every if path != MINE]


def test_an_owner_cannot_lift_an_operators_stop() -> None:
    """An owner can neither delete nor replace an operator's stop, but can lift a stop that it set itself."""
    with Switched() as tasks:
        tasks.environ |= {Variable.OPERATORS: "boss", Variable.ADMINS: ""}
        assert tasks.ask("PUT", MINE, {"stopped": True}, headers={"X-Duetime-Owner": "boss"}).status == 200
        for refused in (tasks.lift(MINE), tasks.put(MINE), tasks.put(MINE, stopped=True)):
            assert (refused.status, refused.body["code"]) == (403, "operator_required")
        assert tasks.ask("DELETE", MINE, headers={"X-Duetime-Owner": "boss"}).status == 200
        assert tasks.put(MINE, stopped=True).status == 200
        assert tasks.lift(MINE).status == 200


@pytest.mark.slow
def test_tasks_of_an_unavailable_host_are_postponed_and_succeed_later() -> None:
    """If a host is down, the circuit postpones the host's tasks, which all succeed later."""
    with Switched() as tasks:
        tasks.endpoint_down_until = tasks.now + 10 * MINUTE
        made = [
            tasks.create(
                100 * number, target={"kind": "http", "url": URL}, retry={"max_attempts": 10, "initial_seconds": 1}
            )
            for number in range(50)
        ]
        tasks.run(5 * MINUTE)
        assert tasks.faults["endpoint down"] <= 100
        assert {tasks.state(task_id) for task_id in made} == {"waiting"}
        assert any((tasks.record(task_id).waiting_for or "").startswith("the circuit of") for task_id in made)
        tasks.run(15 * MINUTE)
        assert tasks.tally() == {"succeeded": 50}
        assert tasks.counts()["circuits_closed"] == 1


def test_a_failed_request_for_many_tasks_counts_as_one_failed_call() -> None:
    """One failed request for ten tasks opens no circuit."""
    with Switched() as tasks:
        batch = {"max_size": 10, "max_wait_seconds": 3}
        target = {"kind": "http", "url": BATCH_URL, "batch": batch}
        retry = {"max_attempts": 10, "initial_seconds": 30}
        body = {"tasks": [{"type": "job", "target": target, "delay_seconds": 20, "retry": retry}] * 10}
        made = [each["task"]["id"] for each in tasks.ask("POST", "/v1/tasks/batch", body).body["results"]]
        tasks.endpoint_down_until = tasks.now + 25 * SECOND
        tasks.run(29 * SECOND)
        assert tasks.faults["endpoint down"] < CIRCUIT_THRESHOLD
        assert {tasks.record(task_id).attempt for task_id in made} == {1}
        assert tasks.counts()["circuits_opened"] == 0


def test_no_task_starts_while_the_item_with_the_switches_is_damaged() -> None:
    """If the item with the switches is damaged, workers start no task until it is repaired."""
    with Switched() as tasks:
        task_id = tasks.create(2 * MINUTE, retry=ONCE)
        key = (schema.SWITCH_PREFIX, "operators")
        damaged: Item = {
            schema.PARTITION_KEY: {"S": key[0]},
            schema.SORT_KEY: {"S": key[1]},
            "b": {"S": '[["planet","mars",true,null,"",0,""]]'},
        }
        tasks.table.write(tasks.now, key, damaged)
        tasks.run(10 * MINUTE)
        waiting = tasks.record(task_id)
        assert (waiting.state, waiting.attempt, tasks.effects) == ("waiting", 0, [])
        tasks.table.write(tasks.now, key, None)
        tasks.run(5 * MINUTE)
        assert tasks.done(task_id).attempt == 1


def test_an_idle_worker_starts_no_task_with_outdated_switches() -> None:
    """If the switches cannot be read, a worker starts no task based on switches that it read minutes ago."""
    with Switched() as tasks:
        tasks.create()
        tasks.run(6 * MINUTE)
        tasks.stop(PLAINS)
        tasks.run(MINUTE)
        refused = tasks.refuse(lambda call: call.partition == "s#" and call.machine.function == "worker")
        made = tasks.create()
        tasks.run(4 * SECOND)
        assert refused
        tasks.before_call = None
        tasks.run(3 * MINUTE)
        assert tasks.effect_times(made) == []
        assert (tasks.record(made).waiting_for or "").endswith("is stopped: an incident")
