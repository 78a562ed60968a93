"""Tasks that wait for an event end when a signal with their name and key is sent, or when they time out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.tasks import event_waits
from duetime.handlers import Unretriable
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, RECOVERY
from tests.scenarios.test_topologies import stands
from tests.simulation.account import LEASE_SECONDS

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call

LEASE = LEASE_SECONDS * SECOND
DAY = 24 * HOUR
EVENT = "order.paid"

ORDER: dict[str, dict[str, Any]] = {
    "ask": {"type": PLAIN},
    "paid": {
        "type": "payment",
        "target": {"kind": "wait_for_event", "event": EVENT, "key": "o-17", "timeout_seconds": 7200},
        "depends_on": ["ask"],
    },
    "ship": {
        "type": PLAIN,
        "depends_on": ["paid"],
        "inputs": ["paid"],
        "when": "parents.paid.result.amount > `10`",
    },
    "remind": {"type": PLAIN, "depends_on": ["paid"], "trigger_rule": "one_failed"},
}


def created(graphs: Graphs, key: str = "", **fields: Any) -> str:  # noqa: ANN401 - fields of a request
    """Create a task that waits for an event; return its id."""
    target = {"kind": "wait_for_event", "event": EVENT, "key": key, **fields.pop("target", {})}
    made = graphs.ask("POST", "/v1/tasks", {"type": "payment", "target": target, **fields})
    assert made.status == 201, made.body
    return str(made.body["id"])


def waiting(graphs: Graphs, key: str = "", **fields: Any) -> Task:  # noqa: ANN401 - fields of a request
    """Create a task that waits for an event, and let its wait begin."""
    task_id = created(graphs, key, **fields)
    graphs.run(MINUTE)
    task = graphs.record(task_id)
    assert task.state == "waiting", task
    return task


def signal(graphs: Graphs, key: str = "", payload: object = None, name: str = EVENT) -> Any:  # noqa: ANN401 - any JSON
    """Send a signal; return the body of the response."""
    answer = graphs.ask("POST", "/v1/signals", {"name": name, "key": key, "payload": payload})
    assert answer.status == 200, answer.body
    return answer.body


def shown(graphs: Graphs, task_id: str) -> Any:  # noqa: ANN401 - any JSON
    """A task as the API returns it."""
    return graphs.ask("GET", f"/v1/tasks/{task_id}").body


def test_a_signal_ends_the_tasks_that_wait_for_it() -> None:
    """A signal ends all tasks with its name and key, its payload is their result, and no attempt is counted."""
    with Graphs() as graphs:
        tasks = [waiting(graphs, key) for key in ("o-17", "o-17", "o-18", "")]
        assert shown(graphs, tasks[0].id.text)["waiting_for"] == {
            "reason": "event",
            "text": "the event order.paid o-17",
        }
        assert [task.attempt for task in tasks] == [0] * 4
        assert signal(graphs, "o-17", {"amount": 5})["woken"] == 2
        assert signal(graphs, "o-17", name="order.sent")["woken"] == 0
        graphs.run(MINUTE)
        assert [(graphs.record(task.id.text).state, shown(graphs, task.id.text)["result"]) for task in tasks] == [
            ("succeeded", {"amount": 5}),
            ("succeeded", {"amount": 5}),
            ("waiting", None),
            ("waiting", None),
        ]
        assert signal(graphs, "o-17")["woken"] == 0


def test_a_task_takes_the_first_signal_that_meets_its_condition() -> None:
    """A task takes the first signal that meets its condition; other signals stay available to other tasks."""
    with Graphs() as graphs:
        large, any_amount = "payload.amount > `10`", None
        task = waiting(graphs, target={"when": large})
        assert shown(graphs, task.id.text)["target"]["when"] == large
        assert signal(graphs, payload={"amount": 5})["woken"] == 0
        assert signal(graphs, payload={"total": "none"})["woken"] == 0
        graphs.run(MINUTE)
        assert graphs.record(task.id.text).version == task.version
        late = [created(graphs, target={"when": when, "lookback_seconds": 600}) for when in (large, any_amount)]
        graphs.run(MINUTE)
        assert shown(graphs, late[1])["result"] == {"amount": 5}
        assert signal(graphs, payload={"amount": 11})["woken"] == 2
        graphs.run(MINUTE)
        assert [shown(graphs, each)["result"] for each in (task.id.text, late[0])] == [{"amount": 11}] * 2
        again = created(graphs, target={"when": large, "lookback_seconds": 600})
        graphs.run(MINUTE)
        assert shown(graphs, again)["result"] == {"amount": 11}


@pytest.mark.parametrize(
    ("when", "payload"),
    [
        ("payload.amount", {"amount": 5}),
        ("abs(payload.amount) > `1`", {"amount": "five"}),
        ("payload.amount > `1`", None),
        ("join('', [payload, payload]) != 'x' && length(map(&sort(@), payload.a)) > `0`", {"a": [list(range(9))] * 9}),
    ],
)
def test_a_signal_that_does_not_meet_the_condition_is_ignored(when: str, payload: object) -> None:
    """If a condition is not exactly true for a signal, the task continues to wait until its timeout."""
    with Graphs() as graphs:
        task = waiting(graphs, target={"when": when, "timeout_seconds": 600})
        assert signal(graphs, payload=payload)["woken"] == 0
        graphs.run(MINUTE)
        assert graphs.record(task.id.text).version == task.version
        graphs.run(15 * MINUTE)
        error = graphs.record(task.id.text).error
        assert error is not None
        assert (error.type, error.message) == (
            "EventTimedOut",
            f"there was no signal order.paid within 600 s that meets its condition, {when}",
        )


def test_a_condition_can_be_changed_while_the_task_waits() -> None:
    """After a task's condition is changed, an earlier signal that meets the new condition ends the task."""
    with Graphs() as graphs:
        task = waiting(graphs, target={"when": "payload > `10`"})
        assert signal(graphs, payload=5)["woken"] == 0
        answer = graphs.ask("PATCH", f"/v1/tasks/{task.id}", {"target": {"when": "payload > `4`"}})
        assert answer.status == 200, answer.body
        assert answer.body["target"] == shown(graphs, task.id.text)["target"]
        graphs.run(MINUTE)
        assert shown(graphs, task.id.text)["result"] == 5
        other = waiting(graphs, target={"when": "payload > `10`"})
        assert signal(graphs, payload=6)["woken"] == 0
        assert graphs.ask("PATCH", f"/v1/tasks/{other.id}", {"target": {"when": None}}).status == 200
        graphs.run(MINUTE)
        assert shown(graphs, other.id.text)["result"] == 6


def test_a_waiting_task_with_too_many_signals_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there are too many signals to evaluate, the waiting task fails with `TooManySignals`."""
    monkeypatch.setattr(event_waits, "_ALL_STEPS", 100)
    with Graphs() as graphs:
        for number in range(20):
            signal(graphs, payload=number)
        task_id = created(graphs, target={"when": "payload == `19`", "lookback_seconds": 600})
        graphs.run(MINUTE)
        error = graphs.record(task_id).error
        assert error is not None
        assert (error.type, error.message) == (
            "TooManySignals",
            "its condition takes too many steps on all signals order.paid that were sent meanwhile: payload == `19`",
        )


def test_a_node_waits_for_an_event() -> None:
    """Later nodes' conditions and inputs get the result of a node that waited for an event."""
    with Graphs() as graphs:
        inputs: list[Any] = []
        graphs.target = lambda _phase, context: inputs.append(context.inputs)
        graphs.submit(ORDER)
        graphs.run(HOUR)
        assert (graphs.ran, graphs.node("paid").state) == (["ask"], "waiting")
        signal(graphs, "o-17", {"amount": 17})
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["ask", "ship"]
        assert inputs[-1] == {"paid": {"amount": 17}}
        assert stands(graphs)["remind"] == "skipped"


def test_each_item_of_a_map_waits_for_its_own_event() -> None:
    """A map's event key can have a placeholder for its item, so that each item waits for its own event."""
    with Graphs() as graphs:
        target = {"kind": "wait_for_event", "event": EVENT, "key": "<duetime.item>"}
        nodes: dict[str, dict[str, Any]] = {
            "list": {"type": PLAIN},
            "paid": {"type": "payment", "depends_on": ["list"], "map": {"over": "['a', 'b']"}, "target": target},
        }
        graphs.submit(nodes)
        graphs.run(5 * MINUTE)
        assert [signal(graphs, key)["woken"] for key in ("a", "<duetime.item>", "b")] == [1, 0, 1]
        assert graphs.run_until_ended().state == "succeeded"


def test_a_task_whose_event_does_not_happen_fails_at_its_timeout() -> None:
    """A task whose event does not happen fails at its timeout, and nodes that run after a failure start."""
    with Graphs() as graphs:
        graphs.submit(ORDER, on_failure="continue")
        graphs.run(2 * HOUR - 2 * MINUTE)
        assert graphs.node("paid").state == "waiting"
        graphs.run(5 * MINUTE)
        error = graphs.node("paid").error
        assert error is not None
        assert (error.type, error.message) == (
            "EventTimedOut",
            "there was no signal order.paid with the key o-17 within 7200 s",
        )
        assert graphs.ran == ["ask", "remind"]


@pytest.mark.parametrize(
    ("before", "lookback", "state"), [(10, 0, "waiting"), (10, 60, "succeeded"), (90, 60, "waiting")]
)
def test_earlier_signals_count_only_with_a_look_back_time(before: int, lookback: int, state: str) -> None:
    """Signals sent before a task's creation do not count, unless the task has a look-back time."""
    with Graphs() as graphs:
        assert signal(graphs, "o-17", 1)["woken"] == 0
        graphs.run(before * SECOND)
        task_id = created(graphs, "o-17", target={"lookback_seconds": lookback})
        graphs.run(MINUTE)
        assert graphs.record(task_id).state == state


def test_a_due_task_takes_the_first_signal_since_its_creation() -> None:
    """When a task is due, it takes the first signal sent since its creation."""
    with Graphs() as graphs:
        task_id = created(graphs, "o-17", delay_seconds=3600)
        graphs.run(MINUTE)
        assert [signal(graphs, "o-17", each)["woken"] for each in (1, 2)] == [0, 0]
        graphs.run(HOUR - 2 * MINUTE)
        assert graphs.record(task_id).state == "scheduled"
        graphs.run(5 * MINUTE)
        assert (shown(graphs, task_id)["state"], shown(graphs, task_id)["result"]) == ("succeeded", 1)


@pytest.mark.parametrize(("pause", "status"), [(SECOND // 4, 200), (5 * SECOND, 202)])
def test_a_signal_during_a_workers_check_repeats_the_check(pause: int, status: int) -> None:
    """If a signal arrives during a worker's check, the check is repeated, in the background if necessary."""
    with Graphs() as graphs:
        task = waiting(graphs)
        name = task.id.text

        def is_put_back(call: Call) -> bool:
            is_write = call.machine.function == "worker" and call.operation == "update_item"
            return is_write and call.request["Key"]["s"]["S"] == name and graphs.record(name).state == "running"

        met = graphs.slow(is_put_back, pause)
        assert graphs.ask("POST", f"/v1/tasks/{name}/run").status == 200
        assert graphs.run_until(lambda: met, MINUTE, 10)
        assert graphs.ask("POST", "/v1/signals", {"name": EVENT, "payload": 1}).status == status
        graphs.run(MINUTE)
        assert (graphs.record(name).state, shown(graphs, name)["result"]) == ("succeeded", 1)


@pytest.mark.parametrize("operation", ["query", "put_item", "update_item"])
def test_a_worker_lost_before_an_event_wait_uses_up_no_attempt(operation: str) -> None:
    """If a worker dies at any step before the wait, no attempt is used up, and a signal sent meanwhile is found."""
    with Graphs() as graphs:
        graphs.faulty = True

        def die(call: Call) -> None:
            if call.machine.function == "worker" and call.operation == operation:
                graphs.after_call = None
                call.machine.die()

        graphs.after_call = die
        task_id = created(graphs, retry=ONCE)
        graphs.run(SECOND * 5)
        assert graphs.after_call is None
        assert graphs.ask("POST", "/v1/signals", {"name": EVENT, "payload": 1}).status in {200, 202}
        graphs.run(RECOVERY + LEASE)
        assert (graphs.record(task_id).state, shown(graphs, task_id)["result"]) == ("succeeded", 1)


def test_a_paused_task_takes_its_signal_when_it_is_resumed() -> None:
    """A signal does not wake a paused task, which takes the signal when it is resumed."""
    with Graphs() as graphs:
        task = waiting(graphs)
        assert graphs.ask("POST", f"/v1/tasks/{task.id}/pause").status == 200
        assert signal(graphs, payload=1)["woken"] == 0
        graphs.run(MINUTE)
        assert graphs.record(task.id.text).state == "paused"
        assert graphs.ask("POST", f"/v1/tasks/{task.id}/resume").status == 200
        graphs.run(MINUTE)
        assert graphs.record(task.id.text).state == "succeeded"


def test_a_task_changed_to_another_event_waits_only_for_that_event() -> None:
    """A task that is changed to another event is woken by a signal for the new event only."""
    with Graphs() as graphs:
        task = waiting(graphs, "o-17")
        answer = graphs.ask("PATCH", f"/v1/tasks/{task.id}", {"target": {"key": "o-18"}})
        assert (answer.status, answer.body["target"]["key"]) == (200, "o-18")
        graphs.run(MINUTE)
        assert [signal(graphs, key)["woken"] for key in ("o-17", "o-18")] == [0, 1]


def test_a_postponed_task_takes_an_earlier_signal_at_its_new_time() -> None:
    """A signal sent before a postponed task's new due time is kept, and the task takes it at that time."""
    with Graphs() as graphs:
        task = waiting(graphs)
        assert graphs.ask("PATCH", f"/v1/tasks/{task.id}", {"delay_seconds": 3600}).status == 200
        assert signal(graphs, payload=1)["woken"] == 0
        graphs.run(HOUR - MINUTE)
        assert graphs.record(task.id.text).state in {"scheduled", "waiting"}
        graphs.run(2 * MINUTE)
        assert shown(graphs, task.id.text)["result"] == 1


def test_a_retried_task_needs_a_signal_sent_after_the_retry() -> None:
    """A retried task ends only with a signal that was sent after the retry."""
    with Graphs() as graphs:
        task = waiting(graphs, target={"timeout_seconds": 120})
        graphs.run(3 * MINUTE)
        assert graphs.record(task.id.text).state == "failed"
        assert signal(graphs)["woken"] == 0
        graphs.run(MINUTE)
        assert graphs.ask("POST", f"/v1/tasks/{task.id}/retry").status == 200
        graphs.run(SECOND * 30)
        assert graphs.record(task.id.text).state == "waiting"
        assert signal(graphs)["woken"] == 1
        graphs.run(SECOND * 30)
        assert graphs.record(task.id.text).state == "succeeded"


def test_a_signal_does_not_wake_a_cancelled_task() -> None:
    """A waiting task is cancelled at once, and a later signal does not wake the task."""
    with Graphs() as graphs:
        task = waiting(graphs)
        assert graphs.ask("POST", f"/v1/tasks/{task.id}/cancel").body["state"] == "cancelled"
        assert signal(graphs)["woken"] == 0
        graphs.run(MINUTE)
        assert graphs.record(task.id.text).state == "cancelled"


def test_a_rollback_skips_nodes_that_waited_for_an_event() -> None:
    """A topology's rollback skips nodes that waited for an event."""
    with Graphs() as graphs:

        def behave(phase: str, context: Context) -> str:
            if phase == "run":
                raise Unretriable(context.type)
            return "undone"

        graphs.target = behave
        nodes = {"paid": ORDER["paid"] | {"depends_on": []}, "bad": {"type": UNDONE, "depends_on": ["paid"]}}
        graphs.submit(nodes, on_failure="rollback")
        graphs.run(MINUTE)
        signal(graphs, "o-17")
        graphs.run_until_ended()
        assert stands(graphs) == {"paid": "rolled_back", "bad": "rolled_back"}
        assert graphs.undone == ["bad"]


def test_a_signal_repeated_with_its_idempotency_key_wakes_no_later_task() -> None:
    """A signal repeated with its idempotency key does not wake later tasks; a changed body is refused."""
    with Graphs() as graphs:
        first = waiting(graphs)
        headers = {"idempotency-key": "payment-1"}
        answers = [graphs.ask("POST", "/v1/signals", {"name": EVENT, "payload": 1}, headers=headers) for _ in range(2)]
        assert [(each.status, each.body["woken"]) for each in answers] == [(200, 1), (200, 0)]
        assert answers[0].body["id"] == answers[1].body["id"]
        graphs.run(MINUTE)
        second = waiting(graphs)
        assert graphs.ask("POST", "/v1/signals", {"name": EVENT, "payload": 1}, headers=headers).body["woken"] == 0
        graphs.run(MINUTE)
        assert [graphs.record(each.id.text).state for each in (first, second)] == ["succeeded", "waiting"]
        refused = graphs.ask("POST", "/v1/signals", {"name": EVENT, "payload": 2}, headers=headers)
        assert (refused.status, refused.body["code"]) == (422, "idempotency_key_reused")


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_signal_wakes_many_tasks(count: int) -> None:
    """A signal wakes every waiting task once, in the background if there are many tasks."""
    with Graphs() as graphs:
        target = {"kind": "wait_for_event", "event": EVENT}
        tasks: list[str] = []
        for _ in range(0, count, 50):
            body = {"tasks": [{"type": "payment", "target": target}] * 50}
            tasks += [each["task"]["id"] for each in graphs.ask("POST", "/v1/tasks/batch", body).body["results"]]
        graphs.run(5 * MINUTE)
        assert {graphs.record(each).state for each in tasks} == {"waiting"}
        answer = graphs.ask("POST", "/v1/signals", {"name": EVENT, "payload": 1})
        graphs.run(5 * MINUTE)
        assert {graphs.record(each).state for each in tasks} == {"succeeded"}
        if answer.status == 200:
            assert answer.body["woken"] == count
        else:
            shown = graphs.ask("GET", f"/v1/bulk-operations/{answer.body['id']}").body
            assert (shown["state"], shown["kind"], shown["affected"]) == ("succeeded", "signal", count)


def test_a_signal_is_kept_for_as_long_as_a_task_can_wait() -> None:
    """A signal is kept for 30 days for tasks that become due later."""
    with Graphs() as graphs:
        created(graphs, delay_seconds=20 * 86_400)
        sent_at = graphs.now
        signal(graphs, payload=1)
        (stored,) = graphs.items(schema.EVENT_PREFIX)
        assert 30 * DAY <= int(stored[schema.TTL]["N"]) * SECOND - sent_at < 30 * DAY + MINUTE


def test_the_item_of_a_waiting_task_is_kept_past_its_wait() -> None:
    """The item by which a signal finds a waiting task is kept longer than the wait."""
    with Graphs() as graphs:
        task = waiting(graphs, "o-17", target={"timeout_seconds": 3600})
        (note,) = graphs.items(schema.EVENT_PREFIX)
        assert int(note[schema.TTL]["N"]) * SECOND >= task.next_at + DAY
        assert task.next_at == task.due_at + HOUR


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({}, "target.event"),
        ({"event": "a b"}, "target.event"),
        ({"event": "a", "key": "\u0007"}, "target.key"),
        ({"event": "a", "key": "x" * 257}, "target.key"),
        ({"event": "a", "timeout_seconds": 0}, "target.timeout_seconds"),
        ({"event": "a", "lookback_seconds": 2_592_001}, "target.lookback_seconds"),
        ({"event": "a", "on_timeout": "fail"}, "target.on_timeout"),
        ({"event": "a", "when": ""}, "target.when"),
        ({"event": "a", "when": "payload.amount >"}, "target.when"),
        ({"event": "a", "when": "amount > `10`"}, "target.when"),
        ({"event": "a", "when": "sum(payload.a, payload.b) > `10`"}, "target.when"),
        ({"event": "a", "when": "payload.a == '" + "x" * 1_000 + "'"}, "target.when"),
        ({"event": "a", "when": "[@,@]|" * 20 + "[@,@]"}, "target.when"),
        ({"event": "a", "when": 5}, "target.when"),
        ({"event": "a", "when": "payload == '\ud800'"}, "target.when"),
    ],
)
def test_an_error_for_an_invalid_event_wait_names_the_field(target: dict[str, Any], field: str) -> None:
    """The error for an invalid wait names the invalid field."""
    with Graphs() as graphs:
        answer = graphs.ask("POST", "/v1/tasks", {"type": "t", "target": {"kind": "wait_for_event", **target}})
        assert (answer.status, [each["field"] for each in answer.body["errors"]]) == (422, [field])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a", "key": 5}, "key"),
        ({"name": "a", "payload": "x" * 262_145}, "payload"),
        ({"name": "a", "owner": "ann"}, "owner"),
    ],
)
def test_an_error_for_an_invalid_signal_names_the_field(body: dict[str, Any], field: str) -> None:
    """The error for an invalid signal names the invalid field."""
    with Graphs() as graphs:
        answer = graphs.ask("POST", "/v1/signals", body)
        assert (answer.status, [each["field"] for each in answer.body["errors"]]) == (422, [field])
