"""Only one task at a time has a unique key, so later creations keep or replace the task, or are refused."""

from __future__ import annotations

from functools import partial
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.tasks.states import State
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call
    from tests.simulation.users import Reply

KEY = "customer-17"
FREQUENT = [(100, 150), (50, 150), (100, 60), (25, 300)]
"""The intervals between uses of a key, and between deliveries, in milliseconds; each case has hundreds of requests."""


def unique(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The `unique` field of a creation."""
    return {"unique": {"key": KEY, **fields}}


def make(tasks: Tasks, delay: int = 0, *, idempotency: str | None = None, **fields: Any) -> Reply:  # noqa: ANN401 - JSON
    """Create a task; return the response."""
    body = {"type": PLAIN, "timeout_seconds": 60, **fields}
    if "debounce" not in fields:
        body["delay_seconds"] = delay / SECOND
    headers = {} if idempotency is None else {"Idempotency-Key": idempotency}
    return tasks.ask("POST", "/v1/tasks", body, headers=headers)


def held(reply: Reply) -> str | None:
    """How a conflict with the task that holds the key was resolved, or `None` if there was no conflict."""
    return reply.headers.get("Duetime-On-Conflict")


def storm(tasks: Tasks, every: Millis, duration: Millis, *bodies: dict[str, Any]) -> None:
    """Create tasks at the given interval without waiting for responses."""
    until, turns = tasks.now + duration, cycle(bodies)

    def go() -> None:
        while tasks.now < until:
            tasks.send("POST", "/v1/tasks", {"type": PLAIN, "timeout_seconds": 60, **next(turns)})
            tasks.take(every)

    tasks.time.start_process(go)


def writes_with_key(call: Call) -> bool:
    """Whether a call writes a record together with its unique key."""
    return call.operation == "transact_write_items"


def test_a_unique_key_is_held_until_its_task_has_ended() -> None:
    """Until a key's task has ended, creations return the existing task; afterwards, they create a new task."""
    with Tasks() as tasks:
        tasks.last(30)
        first = make(tasks, **unique(), payload={"n": 1})
        assert (first.status, held(first), first.body["unique"]) == (
            201,
            None,
            {"key": KEY, "until": "ended", "on_conflict": "keep"},
        )
        tasks.run(10 * SECOND)
        again = make(tasks, **unique(), payload={"n": 2})
        assert (again.status, held(again)) == (200, "keep")
        assert (again.body["id"], again.body["payload"], again.body["state"]) == (first.body["id"], {"n": 1}, "running")
        tasks.run(MINUTE)
        assert tasks.state(first.body["id"]) is State.SUCCEEDED
        third = make(tasks, **unique())
        assert (third.status, held(third)) == (201, None)
        assert third.body["id"] != first.body["id"]
        tasks.run(MINUTE)
        assert len(tasks.phases()) == 2


def test_a_unique_key_held_until_the_start_is_free_during_the_run() -> None:
    """If a key is held until the start, exactly one more task can wait while a task runs."""
    with Tasks() as tasks:
        tasks.last(30)
        first = make(tasks, 5 * SECOND, **unique(until="started"))
        waiting = make(tasks, **unique(until="started"))
        assert (waiting.status, waiting.body["id"]) == (200, first.body["id"])
        tasks.run(10 * SECOND)
        second = make(tasks, HOUR, **unique(until="started"))
        third = make(tasks, HOUR, **unique(until="started"))
        assert (second.status, third.status) == (201, 200)
        assert third.body["id"] == second.body["id"] != first.body["id"]


def test_the_later_task_has_the_key_of_a_task_put_back() -> None:
    """If a task is put back while another task is created with its key, the later task has the key."""
    with Tasks() as tasks:
        tasks.last(60)
        body = {"type": PLAIN, "timeout_seconds": 120, "lock": {"key": "db-17"}}
        assert tasks.ask("POST", "/v1/tasks", body).status == 201
        tasks.run(2 * SECOND)
        body |= unique(until="started")
        replies: list[list[Reply]] = []

        def create(_call: Call) -> None:
            tasks.slow(writes_with_key, 2 * SECOND)
            replies.append(tasks.send("POST", "/v1/tasks", body))
            tasks.take(SECOND)

        tasks.once(lambda call: call.operation == "update_item" and "lock db-17" in str(call.request), create)
        first = tasks.ask("POST", "/v1/tasks", body)
        tasks.run(5 * SECOND)
        ((second,),) = replies
        assert (first.status, second.status) == (201, 201)
        assert [tasks.state(each.body["id"]) for each in (first, second)] == [State.WAITING, State.WAITING]
        third = tasks.ask("POST", "/v1/tasks", body)
        assert (third.status, third.body["id"]) == (200, second.body["id"])
        assert tasks.cancel(second.body["id"]).status == 200
        fourth = tasks.ask("POST", "/v1/tasks", body)
        assert (fourth.status, tasks.state(first.body["id"])) == (201, State.WAITING)
        tasks.run(5 * MINUTE)
        assert [tasks.state(each.body["id"]) for each in (first, fourth)] == [State.SUCCEEDED, State.SUCCEEDED]


def test_the_error_for_a_held_unique_key_names_its_task() -> None:
    """The error for a held key names the field and the task that holds the key."""
    with Tasks() as tasks:
        first = make(tasks, HOUR, **unique())
        refused = make(tasks, **unique(on_conflict="refuse"))
        assert (refused.status, refused.body["code"]) == (409, "unique_key_held")
        assert first.body["id"] in refused.body["detail"]
        assert [each["field"] for each in refused.body["errors"]] == ["unique.key"]


def test_a_replaced_waiting_task_keeps_its_id() -> None:
    """A waiting task that is replaced keeps its id, and gets all fields of the later creation."""
    with Tasks() as tasks:
        first = make(tasks, HOUR, **unique(), payload={"n": 1}, tags={"a": "1"}, name="old", expires_seconds=5)
        later = make(tasks, MINUTE, **unique(on_conflict="replace"), payload={"n": 2}, priority="high")
        assert (later.status, held(later), later.body["id"]) == (200, "replace", first.body["id"])
        shown = tasks.ask("GET", f"/v1/tasks/{first.body['id']}").body
        assert (shown["payload"], shown["tags"], shown["name"]) == ({"n": 2}, {}, None)
        assert (shown["priority"], shown["expires_seconds"]) == ("high", None)
        assert shown["unique"]["on_conflict"] == "replace"
        tasks.run(2 * MINUTE)
        assert tasks.state(first.body["id"]) is State.SUCCEEDED
        assert len(tasks.phases()) == 1


def test_a_task_that_has_begun_is_not_replaced() -> None:
    """A task that has begun or has another type is not replaced."""
    with Tasks() as tasks:
        tasks.fail(1)
        patient = {"max_attempts": 2, "initial_seconds": 3_600, "max_seconds": 3_600}
        first = make(tasks, **unique(), retry=patient)
        tasks.run(MINUTE)
        refused = make(tasks, **unique(on_conflict="replace"))
        assert (refused.status, refused.body["code"]) == (409, "unique_key_held")
        assert "has begun" in refused.body["detail"]
        assert tasks.record(first.body["id"]).retry.max_attempts == 2
        assert make(tasks, HOUR, unique={"key": "other"}).status == 201
        other = make(tasks, unique={"key": "other", "on_conflict": "replace"}, type=UNDONE)
        assert (other.status, other.body.get("code")) == (409, "unique_key_held")
        assert "is of another type" in other.body["detail"]


@pytest.mark.parametrize("on_conflict", ["keep", "refuse"])
def test_only_one_of_two_concurrent_creations_takes_the_key(on_conflict: str) -> None:
    """If two concurrent creations both read that a key is free, only one creation takes the key."""
    with Tasks() as tasks:
        late: list[Reply] = []
        body = {"type": PLAIN, "delay_seconds": 60, **unique(on_conflict=on_conflict)}
        tasks.once(writes_with_key, lambda _call: late.append(tasks.users.ask("POST", "/v1/tasks", body)))  # type: ignore[arg-type]
        outer = tasks.ask("POST", "/v1/tasks", body)
        assert late[0].status == 201
        assert outer.status == (200 if on_conflict == "keep" else 409)
        assert late[0].body["id"] in str(outer.body)
        assert len(list(tasks.watching.tasks())) == 1


def test_a_creation_repeated_after_a_lost_response_returns_the_kept_task() -> None:
    """A creation repeated with its idempotency key returns the kept task, even after that task has ended."""
    with Tasks() as tasks:
        first = make(tasks, MINUTE, **unique(), idempotency="one")
        kept = make(tasks, MINUTE, **unique(), idempotency="two")
        tasks.run(HOUR)
        assert tasks.state(first.body["id"]) is State.SUCCEEDED
        again = make(tasks, MINUTE, **unique(), idempotency="two")
        assert (again.status, held(again), again.body["id"]) == (kept.status, held(kept), first.body["id"])
        assert again.headers["Idempotent-Replayed"] == "true"
        assert make(tasks, MINUTE, **unique(), idempotency="one").status == 201
        assert len(list(tasks.watching.tasks())) == 1


@pytest.mark.parametrize("field", ["unique", "debounce"])
def test_a_repeated_replacement_returns_the_replaced_task(field: str) -> None:
    """A replacement repeated with its idempotency key returns the replaced task, even after its end."""
    with Tasks() as tasks:
        tasks.faulty = True
        keyed: dict[str, Any] = {
            "unique": unique(on_conflict="replace")["unique"],
            "debounce": {"key": KEY, "seconds": 1},
        }
        first = make(tasks, 10 * MINUTE, **{field: keyed[field]})
        died = tasks.once(
            lambda call: call.machine.function == "api" and call.operation == "send_message_batch",
            lambda call: call.machine.die(),
        )
        body = {"type": PLAIN, "timeout_seconds": 60, "payload": {"n": 2}, field: keyed[field]}
        lost: list[Reply | None] = []
        ask = partial(tasks.users.ask, "POST", "/v1/tasks", body, headers={"Idempotency-Key": "two"})
        tasks.time.start_process(lambda: lost.append(ask()))
        tasks.run(10 * MINUTE)
        assert died
        assert lost == [None] or (lost[0] and lost[0].status >= 500)
        assert tasks.record(first.body["id"]).state is State.SUCCEEDED
        again = tasks.ask("POST", "/v1/tasks", body, headers={"Idempotency-Key": "two"})
        assert (again.status, held(again), again.body["id"]) == (200, "replace", first.body["id"])
        assert again.headers["Idempotent-Replayed"] == "true"
        assert len(list(tasks.watching.tasks())) == 1


def test_only_one_of_two_concurrent_repeats_replaces_the_task() -> None:
    """If a repeated creation is sent twice concurrently, only one replaces the task, and both get the same result."""
    with Tasks() as tasks:
        first = make(tasks, HOUR, **unique())
        late: list[Reply] = []
        body = {"type": PLAIN, "delay_seconds": 1_800, **unique(on_conflict="replace")}
        headers = {"Idempotency-Key": "two"}
        tasks.once(
            writes_with_key,
            lambda _call: late.append(tasks.users.ask("POST", "/v1/tasks", body, headers=headers)),  # type: ignore[arg-type]
        )
        outer = tasks.ask("POST", "/v1/tasks", body, headers=headers)
        assert [each.status for each in (late[0], outer)] == [200, 200]
        assert {each.body["id"] for each in (late[0], outer)} == {first.body["id"]}
        assert outer.headers["Idempotent-Replayed"] == "true"
        assert tasks.record(first.body["id"]).version == 2


def test_a_creation_that_stalls_during_its_repeat_creates_no_task() -> None:
    """If a creation stalls while its retry replaces a task, the stalled creation creates no task.

    This is so even after the key becomes free.
    """
    with Tasks() as tasks:
        first = make(tasks, HOUR, **unique())
        late: list[Reply] = []
        body = {"type": PLAIN, "timeout_seconds": 60, **unique(on_conflict="replace")}
        headers = {"Idempotency-Key": "two"}

        def repeat(_call: Call) -> None:
            late.append(tasks.users.ask("POST", "/v1/tasks", body, headers=headers))  # type: ignore[arg-type]
            tasks.take(5 * SECOND)

        tasks.once(
            lambda call: call.operation == "get_item" and schema.UNIQUE_KEY_PREFIX in str(call.request["Key"]), repeat
        )
        outer = tasks.ask("POST", "/v1/tasks", body, headers=headers)
        assert tasks.state(first.body["id"]) is State.SUCCEEDED
        assert (late[0].status, late[0].body["id"]) == (200, first.body["id"])
        assert (outer.status, held(outer), outer.body["id"]) == (200, "replace", first.body["id"])
        assert len(list(tasks.watching.tasks())) == 1


def test_a_retry_is_rejected_while_another_task_holds_the_key() -> None:
    """A failed task has lost its key, and can be retried once the key is free again."""
    with Tasks() as tasks:
        tasks.fail()
        first = make(tasks, **unique(), retry=ONCE)
        tasks.run(MINUTE)
        assert tasks.state(first.body["id"]) is State.FAILED
        tasks.last(1)
        second = make(tasks, 10 * MINUTE, **unique())
        assert second.status == 201
        refused = tasks.do(first.body["id"], "retry")
        assert (refused.status, refused.body["code"]) == (409, "unique_key_held")
        assert second.body["id"] in refused.body["detail"]
        tasks.run(HOUR)
        assert tasks.do(first.body["id"], "retry").status == 200
        kept = make(tasks, **unique())
        assert (kept.status, kept.body["id"]) == (200, first.body["id"])
        tasks.run(MINUTE)
        assert tasks.state(first.body["id"]) is State.SUCCEEDED


def test_a_concurrent_retry_and_creation_do_not_both_take_the_key() -> None:
    """If a creation takes the key after a retry read that it is free, the retry is refused."""
    with Tasks() as tasks:
        tasks.fail()
        first = make(tasks, **unique(), retry=ONCE)
        tasks.run(MINUTE)
        late: list[Reply] = []
        body = {"type": PLAIN, "delay_seconds": 60, **unique()}
        tasks.once(writes_with_key, lambda _call: late.append(tasks.users.ask("POST", "/v1/tasks", body)))  # type: ignore[arg-type]
        refused = tasks.do(first.body["id"], "retry")
        assert (late[0].status, refused.status) == (201, 409)
        assert tasks.state(first.body["id"]) is State.FAILED


@pytest.mark.parametrize("field", ["unique", "debounce"])
def test_a_retry_of_a_task_that_never_started_takes_a_key_until_the_start(field: str) -> None:
    """The retry of a task that never started is refused if another task has the key or takes it concurrently."""
    with Tasks() as tasks:
        keyed = {"unique": unique(until="started")["unique"], "debounce": {"key": KEY, "seconds": 600}}[field]
        first = make(tasks, 10 * MINUTE, **{field: keyed}, expires_seconds=60)
        path = f"/v1/tasks/{first.body['id']}"
        assert tasks.do(first.body["id"], "pause").status == 200
        tasks.run(15 * MINUTE)
        assert tasks.do(first.body["id"], "resume").status == 200
        tasks.run(MINUTE)
        expired = tasks.record(first.body["id"])
        assert (expired.state, expired.started_at) == (State.FAILED, None)
        second = make(tasks, 10 * MINUTE, **{field: keyed})
        assert second.status == 201
        refused = tasks.ask("POST", f"{path}/retry")
        assert (refused.status, refused.body.get("code")) == (409, "unique_key_held")
        assert second.body["id"] in refused.body["detail"]
        assert tasks.cancel(second.body["id"]).status == 200
        late: list[Reply] = []
        body = {"type": PLAIN, "delay_seconds": 60, **unique(until="started")}
        tasks.once(writes_with_key, lambda _call: late.append(tasks.users.ask("POST", "/v1/tasks", body)))  # type: ignore[arg-type]
        refused = tasks.ask("POST", f"{path}/retry")
        assert (late[0].status, refused.status) == (201, 409)
        assert tasks.cancel(late[0].body["id"]).status == 200
        assert tasks.ask("POST", f"{path}/retry").status == 200
        tasks.run(MINUTE)
        assert tasks.state(first.body["id"]) is State.SUCCEEDED


def test_a_deleted_or_cancelled_task_frees_its_key() -> None:
    """When a task is deleted or cancelled, its key can be used again at once."""
    with Tasks() as tasks:
        first = make(tasks, HOUR, **unique())
        assert tasks.cancel(first.body["id"]).status == 200
        second = make(tasks, HOUR, **unique())
        assert second.status == 201
        assert tasks.ask("DELETE", f"/v1/tasks/{second.body['id']}").status == 204
        assert make(tasks, HOUR, **unique()).status == 201


def test_a_unique_keys_item_expires_only_after_its_task_has_ended() -> None:
    """A key's item expires only after its task has ended, and a retry removes the expiry."""
    with Tasks() as tasks:
        tasks.fail()
        first = make(tasks, 40 * 24 * HOUR, **unique(), retry=ONCE)
        (item,) = tasks.items(schema.UNIQUE_KEY_PREFIX)
        assert schema.TTL not in item
        assert tasks.do(first.body["id"], "run").status == 200
        tasks.run(MINUTE)
        (item,) = tasks.items(schema.UNIQUE_KEY_PREFIX)
        record_goes = tasks.record(first.body["id"]).expires_at
        assert record_goes is not None
        assert int(item[schema.TTL]["N"]) * SECOND > record_goes
        tasks.last(1)
        assert tasks.do(first.body["id"], "retry").status == 200
        (item,) = tasks.items(schema.UNIQUE_KEY_PREFIX)
        assert schema.TTL not in item


def test_a_debounced_task_is_delayed_by_each_creation_up_to_max_seconds() -> None:
    """A debounced task runs once, by `max_seconds`, with the last payload; a later creation makes a new task."""
    with Tasks() as tasks:
        debounce: dict[str, Any] = {"debounce": {"key": KEY, "seconds": 60, "max_seconds": 100}}
        begun = tasks.now
        first = make(tasks, **debounce, payload=0)
        task_id = first.body["id"]
        assert first.status == 201
        for number in range(1, 4):
            tasks.run(20 * SECOND)
            reply = make(tasks, **debounce, payload=number)
            assert (reply.status, held(reply), reply.body["id"]) == (200, "replace", task_id)
        record = tasks.record(task_id)
        assert 100 * SECOND <= record.due_at - begun <= 101 * SECOND
        tasks.run(2 * MINUTE)
        assert tasks.ask("GET", f"/v1/tasks/{task_id}").body["payload"] == 3
        assert [each.task_id for each in tasks.effects] == [task_id]
        assert make(tasks, **debounce).status == 201


@pytest.mark.parametrize(
    ("every", "delivery"),
    [(2000, 300), (400, 150), *(pytest.param(*each, marks=pytest.mark.slow) for each in FREQUENT)],
)
def test_a_debounced_task_starts_by_max_seconds_however_often_recreated(every: Millis, delivery: Millis) -> None:
    """Even if creations come more often than message deliveries, each task starts by its `max_seconds`."""
    with Tasks() as tasks:
        tasks.delivery, began = (delivery, delivery), tasks.now
        storm(tasks, every, 35 * SECOND, {"debounce": {"key": KEY, "seconds": 5, "max_seconds": 10}})
        tasks.run(35 * SECOND)
        starts = [(each.at - began) / SECOND for each in tasks.effects]
        assert len(starts) == 3
        # The key is free once a worker has taken up the task, some milliseconds before the task starts.
        assert all(9.9 * number <= at < 10 * number + 3 for number, at in enumerate(starts, 1)), starts
        tasks.run(MINUTE)
        assert len(tasks.effects) == 4


@pytest.mark.parametrize(("every", "delivery"), [(2000, 300), (100, 150), (50, 300)])
@pytest.mark.parametrize(
    "change", [{}, {"priority": "high"}, {"lock": {"key": "db"}}], ids=["same", "priority", "lock"]
)
def test_a_task_that_is_replaced_continually_still_starts(
    every: Millis, delivery: Millis, change: dict[str, Any]
) -> None:
    """A due task starts when its message arrives, although each creation replaces the task."""
    with Tasks() as tasks:
        tasks.delivery, began = (delivery, delivery), tasks.now
        body = unique(until="started", on_conflict="replace")
        storm(tasks, every, 5 * SECOND, body, {**body, **change})
        tasks.run(5 * SECOND)
        starts = [each.at - began for each in tasks.effects]
        assert starts
        assert starts[0] < SECOND
        assert all(after - before < every + SECOND for before, after in pairwise(starts)), starts


def test_a_task_with_repeated_run_requests_still_starts() -> None:
    """Each request to run a task sends a message, and earlier messages stay valid, so that the task starts."""
    with Tasks() as tasks:
        tasks.delivery = 300, 300
        task_id = tasks.create(HOUR)
        for _ in range(40):
            tasks.send("POST", f"/v1/tasks/{task_id}/run")
            tasks.run(50)
        assert tasks.phases(task_id) == ["run"]


def test_a_run_request_sends_a_due_tasks_lost_message_again() -> None:
    """`run` sends a due task's message again, before the recovery scan."""
    with Tasks() as tasks:
        tasks.receiving = False
        task_id = tasks.create()
        tasks.lose_messages()
        tasks.receive_again()
        tasks.run(5 * SECOND)
        assert tasks.phases(task_id) == []
        assert tasks.do(task_id, "run").status == 200
        tasks.run(SECOND)
        assert tasks.phases(task_id) == ["run"]


def test_replacing_a_due_task_sends_no_message() -> None:
    """Replacing a due task sends no message, and the existing message runs the last creation's payload."""
    with Tasks() as tasks:
        tasks.receiving = False
        first = make(tasks, **unique(on_conflict="replace"), payload=0)
        generation, sent = tasks.record(first.body["id"]).generation, tasks.sent()
        for number in range(1, 4):
            tasks.run(SECOND)
            assert make(tasks, **unique(on_conflict="replace"), payload=number).status == 200
        record = tasks.record(first.body["id"])
        assert (record.generation, tasks.sent()) == (generation, sent)
        assert record.due_at >= record.created_at + 3 * SECOND
        tasks.receive_again()
        tasks.run(SECOND)
        assert tasks.state(first.body["id"]) is State.SUCCEEDED
        assert tasks.ask("GET", f"/v1/tasks/{first.body['id']}").body["payload"] == 3


def test_debounce_excludes_a_due_time_and_a_unique_key() -> None:
    """The errors name each field that is invalid or conflicts with `debounce`."""
    with Tasks() as tasks:
        debounce = {"key": KEY, "seconds": 60}
        asked: list[tuple[dict[str, Any], str]] = [
            ({"debounce": debounce, "delay_seconds": 5}, "delay_seconds"),
            ({"debounce": debounce, "unique": {"key": KEY}}, "unique"),
            ({"debounce": {**debounce, "max_seconds": 59}}, "debounce"),
            ({"unique": {"key": "with space"}}, "unique.key"),
        ]
        for fields, named in asked:
            reply = tasks.ask("POST", "/v1/tasks", {"type": PLAIN, **fields})
            assert (reply.status, [each["field"] for each in reply.body["errors"]]) == (422, [named])


def test_unique_keys_are_rejected_in_nodes_and_templates_but_not_topologies() -> None:
    """A node or template with a key is refused, with an error that says what to use; a topology can have a key."""
    with Tasks() as tasks:
        node = {"nodes": {"a": {"type": PLAIN, **unique()}}}
        refused = tasks.ask("POST", "/v1/topologies", node)
        assert (refused.status, refused.body["errors"][0]["field"]) == (422, "nodes.a.unique")
        template = {"rate": "1 hour", "task": {"type": PLAIN, **unique()}}
        refused = tasks.ask("POST", "/v1/schedules", template)
        assert (refused.status, refused.body["errors"][0]["field"]) == (422, "task.unique")
        assert "overlap" in refused.body["errors"][0]["reason"]
        whole = {"nodes": {"a": {"type": PLAIN}}, **unique()}
        first = tasks.ask("POST", "/v1/topologies", whole)
        again = tasks.ask("POST", "/v1/topologies", whole)
        assert (first.status, again.status, held(again)) == (201, 200, "keep")
        assert again.body["id"] == first.body["id"]
        tasks.run(5 * MINUTE)
        assert tasks.ask("POST", "/v1/topologies", whole).status == 201


def test_a_batch_with_a_repeated_unique_key_creates_one_task() -> None:
    """If a batch has one key twice, one of the two entries gets 200 with the other entry's task."""
    with Tasks() as tasks:
        entry = {"type": PLAIN, "delay_seconds": 60, **unique()}
        reply = tasks.ask("POST", "/v1/tasks/batch", {"tasks": [entry, entry, {"type": PLAIN}]})
        results = reply.body["results"]
        assert sorted(each["status"] for each in results[:2]) == [200, 201]
        assert results[2]["status"] == 201
        assert results[0]["task"]["id"] == results[1]["task"]["id"]


def test_an_event_with_a_unique_key_delivered_again_creates_no_task() -> None:
    """An event that is delivered again after its task has ended creates no other task."""
    with Tasks() as tasks:
        at = "2026-11-21T02:33:00Z"
        tasks.last(30)
        for event in ("e1", "e2"):
            tasks.send_event(event, at, **unique())
            tasks.run(10 * SECOND)
        tasks.run(MINUTE)
        assert [task.state for task in tasks.watching.tasks()] == [State.SUCCEEDED]
        tasks.send_event("e1", at, **unique())
        tasks.run(MINUTE)
        assert len(list(tasks.watching.tasks())) == 1
