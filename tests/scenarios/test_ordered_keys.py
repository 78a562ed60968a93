"""The tasks of an ordered key run one at a time, in creation order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.order_lines import DynamoOrderLineStore
from duetime.domain.order_lines import LineName, LinePlace
from duetime.domain.tasks.states import State
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import ONCE, RECOVERY, Tasks
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_testing.simulation.faults import Call

KEY = "customer-17"
QUICK_RETRY = {"max_attempts": 3, "initial_seconds": 5, "max_seconds": 5}


def ordered(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The `order` field of a create request."""
    return {"order": {"key": KEY, **fields}}


def of_the_line(call: Call) -> bool:
    """Whether a call reads or writes a key's line."""
    return (call.partition or "").startswith(schema.ORDER_LINE_PREFIX)


def starts(tasks: Tasks) -> list[str]:
    """The tasks in order of their first starts."""
    return list(dict.fromkeys(each.task_id for each in tasks.effects))


def test_a_turn_of_an_ordered_key_lasts_through_a_tasks_retries() -> None:
    """A turn lasts through a task's retries, and the next task starts within a second of the outcome."""
    with Tasks() as tasks:
        tasks.fail(attempts=2)
        first, second = tasks.create(retry=QUICK_RETRY, **ordered()), tasks.create(retry=ONCE, **ordered())
        other = tasks.create(retry=QUICK_RETRY, order={"key": "customer-18"})
        tasks.run(2 * SECOND)
        assert {each.task_id for each in tasks.effects} == {first, other}
        assert tasks.run_until(lambda: tasks.state(first) is State.SUCCEEDED)
        ended_at = tasks.now
        assert tasks.record(second).started_at is None
        assert tasks.run_until(lambda: tasks.effect_times(second), within=SECOND)
        assert tasks.now - ended_at <= SECOND
        assert starts(tasks)[-1] == second


def test_tasks_of_a_batch_with_one_ordered_key_run_in_order() -> None:
    """The tasks of a batch, which are created and due at the same instant, run in the batch's order."""
    with Tasks() as tasks:
        tasks.last(1)
        body = {"tasks": [{"type": PLAIN, **ordered()} for _ in range(30)]}
        made = tasks.ask("POST", "/v1/tasks/batch", body).body["results"]
        ids = [each["task"]["id"] for each in made]
        assert made[0]["task"]["order"] == {"key": KEY, "on_failure": "continue"}
        assert tasks.run_until(lambda: tasks.tally()[State.SUCCEEDED] == 30, within=10 * MINUTE)
        assert starts(tasks) == ids
        times = [each.at for each in tasks.effects]
        assert max(after - before for before, after in pairwise(times)) <= 2 * SECOND
        assert [item[schema.SORT_KEY]["S"] for item in tasks.items(schema.ORDER_LINE_PREFIX)] == [f"#{KEY}"]


def test_owners_see_the_turn_and_the_line_of_a_key() -> None:
    """Owners see which task has a key's turn, if any, and the open tasks behind that task."""
    with Tasks() as tasks:

        def shown(key: str = KEY) -> tuple[Any, list[str]]:
            found = tasks.ask("GET", f"/v1/ordered-keys/{key}").body
            turn = found["turn"] and (found["turn"]["task_id"], found["turn"]["state"])
            return turn, [each["task_id"] for each in found["waiting"]]

        tasks.last(60)
        ids = [tasks.create(2 * SECOND, timeout_seconds=120, **ordered()) for _ in range(4)]
        other = tasks.create(HOUR, order={"key": "a/b#c%"})
        assert shown() == (None, ids)
        tasks.run(20 * SECOND)
        assert shown() == ((ids[0], "running"), ids[1:])
        assert tasks.do(ids[2], "cancel").status == 200
        assert shown() == ((ids[0], "running"), [ids[1], ids[3]])
        assert shown("a/b#c%25") == (None, [other])
        found = tasks.ask("GET", "/v1/ordered-keys", query="limit=1").body
        rest = tasks.ask("GET", "/v1/ordered-keys", query=f"limit=9&next_token={found['next_token']}").body
        turns = [(each["key"], each["turn"] and each["turn"]["task_id"]) for each in rest["ordered_keys"]]
        assert [each["key"] for each in found["ordered_keys"]] == ["a/b#c%"]
        assert turns == [(KEY, ids[0])]
        tasks.run(5 * MINUTE)
        assert shown() == (None, [])
        for unknown in ("nobody", "a b"):
            gone = tasks.ask("GET", f"/v1/ordered-keys/{unknown}")
            assert (gone.status, gone.body["code"]) == (404, "ordered_key_not_found")


def test_a_failed_task_that_stops_its_line_has_the_turn() -> None:
    """A failed task that stops its line is shown as having the turn, so that owners see why other tasks wait."""
    with Tasks() as tasks:
        tasks.fail(attempts=1)
        first, second = tasks.create(retry=ONCE, **ordered(on_failure="stop")), tasks.create(**ordered())
        tasks.run(MINUTE)
        found = tasks.ask("GET", f"/v1/ordered-keys/{KEY}").body
        assert (found["turn"]["task_id"], found["turn"]["state"]) == (first, "failed")
        assert [each["task_id"] for each in found["waiting"]] == [second]


def test_ordered_tasks_run_in_creation_order_whatever_their_due_times() -> None:
    """Tasks with an ordered key run in creation order, whatever their due times."""
    with Tasks() as tasks:
        first, second = tasks.create(10 * MINUTE, **ordered()), tasks.create(**ordered())
        tasks.run(9 * MINUTE)
        assert not tasks.effects
        tasks.run(2 * MINUTE)
        assert starts(tasks) == [first, second]


@pytest.mark.parametrize("how", ["cancel", "delete", "expire"])
def test_a_task_starts_when_tasks_ahead_are_cancelled_deleted_or_expire(how: str) -> None:
    """If tasks ahead in the line are cancelled or deleted, or expire, the next task starts."""
    with Tasks() as tasks:
        first = tasks.create(24 * HOUR, **ordered())
        limits: dict[str, Any] = {"expires_seconds": 60} if how == "expire" else {}
        second = tasks.create(**ordered(), **limits)
        third = tasks.create(**ordered())
        tasks.run(10 * SECOND)
        if how == "expire":
            tasks.run(2 * MINUTE)
            assert tasks.state(second) is State.FAILED
        for each in (first,) if how == "expire" else (second, first):
            ask = ("DELETE", f"/v1/tasks/{each}") if how == "delete" else ("POST", f"/v1/tasks/{each}/cancel")
            assert tasks.ask(*ask).status in {200, 204}
        assert tasks.run_until(lambda: tasks.effects, within=SECOND)
        assert starts(tasks) == [third]


def test_a_paused_task_with_the_turn_holds_the_line() -> None:
    """If a task has the turn and is paused, the next task starts only after that task is resumed and has ended."""
    with Tasks() as tasks:
        first, second = tasks.create(MINUTE, **ordered()), tasks.create(**ordered())
        assert tasks.do(first, "pause").status == 200
        tasks.run(2 * HOUR)
        assert not tasks.effects
        assert tasks.do(first, "resume").status == 200
        tasks.run(10 * SECOND)
        assert starts(tasks) == [first, second]


def test_the_next_task_in_line_starts_after_a_final_failure() -> None:
    """By default, a failed task counts as ended, and the next task starts."""
    with Tasks() as tasks:
        tasks.fail()
        first, second = tasks.create(retry=ONCE, **ordered()), tasks.create(retry=ONCE, **ordered())
        tasks.run(10 * SECOND)
        assert starts(tasks) == [first, second]


@pytest.mark.parametrize("how", ["retry", "delete"])
def test_a_failed_task_stops_its_line_until_it_is_retried_or_deleted(how: str) -> None:
    """With `on_failure: stop`, no other task of the key runs until the failed task is retried or deleted."""
    with Tasks() as tasks:
        tasks.fail()
        first, second = tasks.create(retry=ONCE, **ordered(on_failure="stop")), tasks.create(retry=ONCE, **ordered())
        tasks.run(5 * HOUR)
        assert starts(tasks) == [first]
        tasks.last(20)
        if how == "delete":
            assert tasks.ask("DELETE", f"/v1/tasks/{first}").status == 204
            assert tasks.run_until(lambda: tasks.effect_times(second), within=SECOND)
            return
        assert tasks.do(first, "retry").status == 200
        tasks.run(10 * SECOND)
        assert not tasks.effect_times(second)
        tasks.run(20 * SECOND)
        assert tasks.state(first) is State.SUCCEEDED
        assert tasks.effect_times(second)


def test_a_retried_task_runs_after_the_task_with_the_turn() -> None:
    """A retried task runs after the task that has the turn, and before the tasks behind that task."""
    with Tasks() as tasks:
        tasks.fail()
        first = tasks.create(retry=ONCE, **ordered())
        tasks.run(10 * SECOND)
        tasks.last(30)
        second, third = tasks.create(**ordered()), tasks.create(**ordered())
        tasks.run(5 * SECOND)
        tasks.effects.clear()
        assert tasks.do(first, "retry").status == 200
        tasks.run(2 * MINUTE)
        assert tasks.state(second) is State.SUCCEEDED
        assert starts(tasks) == [first, third]


def test_runs_of_a_schedule_with_an_ordered_key_run_in_order() -> None:
    """A schedule's runs with an ordered key run one at a time even if `overlap` allows more."""
    with Tasks() as tasks:
        tasks.last(90)
        task = {"type": PLAIN, "timeout_seconds": 300, **ordered()}
        body = {"name": "often", "rate": "1 minute", "overlap": "allow_all", "task": task}
        assert tasks.ask("POST", "/v1/schedules", body).status == 201
        tasks.run(10 * MINUTE)
        runs = sorted(tasks.watching.tasks(), key=lambda task: task.due_at)
        begun = [task for task in runs if task.started_at is not None]
        assert len(begun) >= 5
        for before, after in pairwise(begun):
            assert (before.outcome_at if before.is_terminal else tasks.now) <= (after.started_at or 0)
        changed = tasks.ask("PATCH", "/v1/schedules/often", {"task": {"order": None}})
        assert (changed.status, changed.body["task"]["order"]) == (200, None)


def test_a_topology_can_have_an_ordered_key_but_a_node_cannot() -> None:
    """A topology can have an ordered key; a node cannot, because it might wait forever for another node's turn."""
    with Tasks() as tasks:
        tasks.last(20)
        tasks.create(**ordered())
        graph = {"nodes": {"only": {"type": PLAIN}}}
        made = tasks.ask("POST", "/v1/topologies", {**graph, **ordered()})
        assert made.status == 201
        tasks.run(10 * SECOND)
        assert tasks.record(made.body["id"]).waiting_for == f"order {KEY}"
        refused = tasks.ask("POST", "/v1/topologies", {"nodes": {"only": {"type": PLAIN, **ordered()}}})
        assert (refused.status, refused.body["errors"][0]["field"]) == (422, "nodes.only.order")
        tasks.run(MINUTE)
        assert tasks.state(made.body["id"]) is State.SUCCEEDED


def test_pulled_tasks_with_an_ordered_key_are_leased_one_after_another() -> None:
    """A pulled task is leased only after the key's previous task has been completed."""
    with Tasks() as tasks:
        ids = [tasks.create(kind=PULLED, **ordered()) for _ in range(2)]
        wanted = {"types": [PULLED], "worker": "X", "max_tasks": 10, "wait_seconds": 5, "lease_seconds": 60}
        leased = tasks.ask("POST", "/v1/leases", wanted).body["leases"]
        assert [each["task"]["id"] for each in leased] == ids[:1]
        done = tasks.ask("POST", f"/v1/leases/{leased[0]['id']}/complete", {"result": 1})
        assert done.status == 200
        tasks.run(2 * SECOND)
        leased = tasks.ask("POST", "/v1/leases", wanted).body["leases"]
        assert [each["task"]["id"] for each in leased] == ids[1:]


CALLS: dict[str, Callable[[Call], bool]] = {
    "leave": lambda call: call.operation == "delete_item" and of_the_line(call),
    "read": lambda call: call.operation == "query" and of_the_line(call),
    "turn": lambda call: call.operation == "update_item" and of_the_line(call),
    "message": lambda call: call.operation == "send_message_batch",
    "close": lambda call: call.operation == "update_item" and not of_the_line(call),
}


@pytest.mark.parametrize("at", CALLS)
def test_the_next_task_in_line_starts_soon_after_a_worker_dies(at: str) -> None:
    """If a worker dies at any step after an outcome, the next tasks still start soon."""
    with Tasks() as tasks:
        # A message that is not sent makes its task late.
        tasks.faulty = True
        tasks.last(20)
        first, second, third = (tasks.create(**ordered()) for _ in range(3))
        tasks.run(10 * SECOND)

        def dies(call: Call) -> bool:
            return call.machine.function == "worker" and tasks.record(first).is_terminal and CALLS[at](call)

        died = tasks.once(dies, lambda call: call.machine.die())
        assert tasks.run_until(lambda: tasks.state(third) is State.SUCCEEDED, within=RECOVERY + 2 * MINUTE)
        assert len(died) == 1
        assert starts(tasks) == [first, second, third]


@pytest.mark.parametrize("at", ["turn", "leave", "read"])
def test_the_next_task_in_line_starts_after_an_interrupted_cancel(at: str) -> None:
    """If a cancel's process dies before it starts the next task, that task checks the line again later and starts."""
    with Tasks() as tasks:
        first, second = tasks.create(24 * HOUR, **ordered()), tasks.create(**ordered())
        tasks.run(10 * SECOND)

        def dies(call: Call) -> bool:
            return call.machine.function == "api" and tasks.record(first).is_terminal and CALLS[at](call)

        died = tasks.once(dies, lambda call: call.machine.die())
        tasks.send("POST", f"/v1/tasks/{first}/cancel")
        assert tasks.run_until(lambda: tasks.effects, within=HOUR + 2 * MINUTE)
        assert (len(died), starts(tasks)) == (1, [second])


def test_an_interrupted_creation_holds_the_line_only_briefly() -> None:
    """If a creation dies before writing its record, its place blocks the line for at most a write's maximum time."""
    with Tasks() as tasks:

        def is_record(call: Call) -> bool:
            return call.operation == "put_item" and schema.STATE in call.request["Item"]

        died = tasks.once(is_record, lambda call: call.machine.die())
        tasks.send("POST", "/v1/tasks", {"type": PLAIN, **ordered()})
        tasks.run(SECOND)
        second = tasks.create(**ordered())
        tasks.run(30 * SECOND)
        assert (len(died), tasks.effects) == (1, [])
        assert tasks.run_until(lambda: tasks.effects, within=3 * MINUTE)
        assert starts(tasks) == [second]


def test_a_task_whose_place_was_removed_takes_it_again_in_turn() -> None:
    """A task whose place was removed takes its place again, ahead of all others, after the current task's turn."""
    with Tasks() as tasks:
        tasks.last(60)
        late = tasks.create(30 * SECOND, timeout_seconds=120, **ordered())
        (place,) = [
            item for item in tasks.items(schema.ORDER_LINE_PREFIX) if not item[schema.SORT_KEY]["S"].startswith("#")
        ]
        tasks.table.write(tasks.now, (place[schema.PARTITION_KEY]["S"], place[schema.SORT_KEY]["S"]), None)
        first, second = (tasks.create(timeout_seconds=120, **ordered()) for _ in range(2))
        tasks.run(4 * MINUTE)
        assert starts(tasks) == [first, late, second]
        times = [each.at for each in tasks.effects]
        assert all(after - before >= MINUTE for before, after in pairwise(times))
        # The simulation's watcher does not know that the task's place was removed.
        assert len(tasks.violations) == 1
        tasks.watching.violations.clear()


def test_the_places_in_line_are_kept_after_the_turn_expires() -> None:
    """A key's counter and turn can expire, but the places of open tasks stay and keep the order."""
    with Tasks() as tasks:
        first = tasks.create(MINUTE, **ordered())
        assert tasks.do(first, "pause").status == 200
        assert [schema.TTL in item for item in tasks.items(schema.ORDER_LINE_PREFIX)] == [True, False]
        tasks.run(10 * MINUTE)
        (line,) = {item[schema.PARTITION_KEY]["S"] for item in tasks.items(schema.ORDER_LINE_PREFIX)}
        tasks.table.write(tasks.now, (line, f"#{KEY}"), None)
        second = tasks.create(**ordered())
        tasks.run(10 * MINUTE)
        assert not tasks.effects
        assert tasks.do(first, "resume").status == 200
        tasks.run(10 * SECOND)
        assert starts(tasks) == [first, second]


def test_a_task_that_gets_the_turn_during_its_check_starts() -> None:
    """If a task gets the turn between its check and its postponement, it still starts at once."""
    with Tasks() as tasks:
        tasks.last(20)
        first = tasks.create(**ordered())
        tasks.run(19 * SECOND)

        def puts_back(call: Call) -> bool:
            return call.operation == "update_item" and f"order {KEY}" in str(call.request)

        slowed = tasks.slow(puts_back, 5 * SECOND)
        second = tasks.create(**ordered())
        tasks.run(8 * SECOND)
        assert len(slowed) == 1
        assert tasks.state(first) is State.SUCCEEDED
        assert tasks.effect_times(second)


def test_the_explanation_shows_the_place_in_line_and_the_task_ahead() -> None:
    """The explanation names a waiting task's place in line and the tasks ahead."""
    with Tasks() as tasks:
        tasks.last(60)
        first, second, third = (tasks.create(timeout_seconds=120, **ordered(on_failure="stop")) for _ in range(3))
        tasks.run(10 * SECOND)
        found = tasks.ask("GET", f"/v1/tasks/{third}/explain").body
        gate = next(each for each in found["gates"] if each["name"] == "order" and each["state"] == "waiting")
        line = gate["waits_for"]["order"]
        assert (line["key"], line["position"], line["is_stopped"]) == (KEY, 3, False)
        assert [(each["task_id"], each["state"]) for each in line["tasks"]] == [(first, "running"), (second, "waiting")]
        assert f"It is number 3 in the line of its ordered key {KEY}: the task {first} (running)" in found["text"]
        assert tasks.ask("GET", f"/v1/tasks/{third}").body["waiting_for"]["reason"] == "order"


def test_the_explanation_says_that_a_failed_task_stops_the_line() -> None:
    """If a failed task stops the line, the explanation names that task and says to retry or delete it."""
    with Tasks() as tasks:
        tasks.fail()
        first, second = tasks.create(retry=ONCE, **ordered(on_failure="stop")), tasks.create(**ordered())
        tasks.run(10 * SECOND)
        text = tasks.ask("GET", f"/v1/tasks/{second}/explain").body["text"]
        assert f"which the task {first} (failed) stops: retry or delete that task." in text


def test_an_event_can_name_an_ordered_key() -> None:
    """A task that is created from an event can have an ordered key, and then waits for its turn."""
    with Tasks() as tasks:
        tasks.last(20)
        tasks.create(**ordered())
        tasks.send_event("one", "2026-11-21T02:00:00Z", **ordered())
        tasks.run(10 * SECOND)
        assert [task.waiting_for for task in tasks.watching.tasks() if task.state is State.WAITING] == [f"order {KEY}"]


def test_two_retried_tasks_of_a_key_do_not_wait_for_each_other() -> None:
    """If two tasks are retried and the later task had the last turn, both run, in order."""
    with Tasks() as tasks:
        tasks.fail()
        ids = tasks.create(retry=ONCE, **ordered()), tasks.create(retry=ONCE, **ordered())
        assert tasks.run_until(lambda: all(tasks.state(each) is State.FAILED for each in ids), within=MINUTE)
        tasks.run(2 * SECOND)
        tasks.last(1)
        tasks.effects.clear()
        tasks.receiving = False
        assert [tasks.do(each, "retry").status for each in ids] == [200, 200]
        # The first task checked the line before the second task's follow-up, and now writes its place.
        first = tasks.record(ids[0])
        place = LinePlace(first.order_number or 0, first.id, tasks.now)
        lines = DynamoOrderLineStore(tasks.dynamodb, "tasks", tasks.time)  # type: ignore[arg-type]  # a fake
        lines.join(LineName(first.owner, KEY), place)
        tasks.receiving = True
        assert tasks.run_until(lambda: all(tasks.state(each) is State.SUCCEEDED for each in ids), within=MINUTE)
        assert starts(tasks) == [*ids]
