"""Tests `context.client` in handlers, in the testing kit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import pytest

from duetime.handlers import AsyncContext, ClientMissing, Context, handler
from duetime.services.topologies import child_tasks
from duetime_client import AsyncClient, Client, InvalidRequest
from duetime_client.attempt_client import PhaseKeys

if TYPE_CHECKING:
    from duetime_client import Task
    from duetime_testing import Duetime


def children_of(duetime: Duetime, parent: Task) -> list[Task]:
    """Return the tasks that a task has created, in order."""
    return list(duetime.client.tasks.list(parent_task_id=parent.id, order="asc"))


def test_a_handler_creates_tasks(duetime: Duetime) -> None:
    """A task that a handler creates runs and has the handler's task as its parent."""

    def sign_up(context: Context, payload: dict[str, Any]) -> str:
        assert_type(context.client, Client)
        return context.client.tasks.create("welcome", payload={"to": payload["user"]}).id

    duetime.register("sign-up", sign_up)
    duetime.register("welcome", lambda _context, payload: payload["to"])
    parent = duetime.client.tasks.create("sign-up", payload={"user": "ada"})
    duetime.run_until_idle()
    (child,) = children_of(duetime, parent)
    assert (child.type, child.state, child.parent_task_id) == ("welcome", "succeeded", parent.id)
    assert duetime.client.tasks.get(parent.id).result == child.id
    assert children_of(duetime, child) == []


def test_a_repeated_attempt_creates_nothing_twice(duetime: Duetime) -> None:
    """Identical requests in one attempt each create a task, and the following attempts get the same tasks."""
    found: list[list[str]] = []

    def fan_out(context: Context, _payload: object) -> None:
        client = context.client
        several = client.tasks.create_batch([{"type": "part"}, {"type": "part"}])
        found.append([client.tasks.create("part", payload=n).id for n in (1, 1, 2)] + [each.id for each in several])  # type: ignore[union-attr]
        if context.attempt < 3:
            raise ConnectionError("after the creations")

    duetime.register("fan-out", fan_out)
    duetime.register("part", lambda _context, _payload: None)
    parent = duetime.client.tasks.create("fan-out")
    duetime.run_until_idle()
    assert len(found) == 3
    assert found[0] == found[1] == found[2]
    assert len(set(found[0])) == 5
    assert {each.id for each in children_of(duetime, parent)} == set(found[0])


def test_an_idempotency_key_of_a_handler_creates_one_child(duetime: Duetime) -> None:
    """An idempotency key that the handler gives creates one child per parent, over all attempts."""

    def order(context: Context, _payload: object) -> str:
        if context.attempt > 1:
            context.client.tasks.create("part", payload="another")
        found = context.client.tasks.create("part", payload="same", idempotency_key="welcome").id
        if context.attempt == 1:
            raise ConnectionError("after the creation")
        return found

    duetime.register("order", order)
    duetime.register("part", lambda _context, _payload: None)
    parents = [duetime.client.tasks.create("order") for _ in range(2)]
    duetime.run_until_idle()
    results = [duetime.client.tasks.get(each.id).result for each in parents]
    assert len({*results}) == 2
    assert [len(children_of(duetime, each)) for each in parents] == [2, 2]


def test_a_coroutine_awaits_its_client(duetime: Duetime) -> None:
    """In a coroutine, the client is asynchronous, and a repeated attempt creates no task twice."""

    async def fan_out(context: AsyncContext, _payload: object) -> list[str]:
        assert_type(context.client, AsyncClient)
        assert isinstance(context.client, AsyncClient)
        found = [(await context.client.tasks.create("part", payload=n)).id for n in range(2)]
        if context.attempt == 1:
            raise ConnectionError("after the creations")
        return found

    duetime.register("fan-out", fan_out)
    duetime.register("part", lambda _context, _payload: None)
    parent = duetime.client.tasks.create("fan-out")
    duetime.run_until_idle()
    result: Any = duetime.client.tasks.get(parent.id).result
    assert sorted(result) == [each.id for each in children_of(duetime, parent)]


def test_every_phase_of_a_class_has_the_client(duetime: Duetime) -> None:
    """Identical requests in two phases create two tasks."""

    class Transfer:
        def prepare(self, context: Context, _payload: object) -> None:
            context.client.tasks.create("audit")

        def run(self, context: Context, _payload: object) -> None:
            assert isinstance(context.client, Client)
            context.client.tasks.create("audit")
            if context.attempt == 1:
                raise ConnectionError("after the creation")

    duetime.register("transfer", Transfer)
    duetime.register("audit", lambda _context, _payload: None)
    parent = duetime.client.tasks.create("transfer")
    duetime.run_until_idle()
    assert len(children_of(duetime, parent)) == 2


def test_a_handler_acts_as_the_owner_of_its_task(duetime: Duetime) -> None:
    """A handler reads, waits for and cancels tasks, and the history names the owner of the handler's task."""

    def work(context: Context, _payload: object) -> object:
        child = context.client.tasks.create("part")
        later = context.client.tasks.create("part", delay_seconds=600)
        context.client.tasks.cancel(later.id, reason="not needed")
        return [context.client.tasks.wait(child.id).result, later.id]

    duetime.register("work", work)
    duetime.register("part", lambda _context, _payload: 7)
    parent = duetime.client.tasks.create("work")
    duetime.run_until_idle()
    result: Any = duetime.client.tasks.get(parent.id).result
    assert result[0] == 7
    events = duetime.client.tasks.list_events(result[1]).events
    (cancelled,) = [each for each in events if each.type == "cancelled"]
    assert cancelled.actor is not None
    assert cancelled.actor.name == f"handler of {parent.id}"


def test_a_topology_that_a_handler_creates_is_a_child(duetime: Duetime) -> None:
    """The topology is a child of the handler's task, and the topology's nodes belong to the topology."""

    def work(context: Context, _payload: object) -> None:
        context.client.topologies.create({"nodes": {"a": {"type": "part"}}})
        if context.attempt == 1:
            raise ConnectionError("after the creation")

    duetime.register("work", work)
    duetime.register("part", lambda _context, _payload: None)
    parent = duetime.client.tasks.create("work")
    duetime.run_until_idle()
    (child,) = children_of(duetime, parent)
    assert child.type == "topology"
    (node,) = duetime.client.tasks.list(parent=child.id)
    assert node.parent_task_id is None


def test_cancelling_children_continues_until_all_are_cancelled(
    duetime: Duetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To cancel children, the client repeats the request until all children are cancelled, and adds up the counts."""
    monkeypatch.setattr(child_tasks, "CHILDREN_AT_ONCE", 1)
    monkeypatch.setattr(child_tasks, "MOST_CHILDREN_CANCELLED", 2)
    parent = duetime.client.tasks.create("part", delay_seconds=600, allow_unknown_type=True)
    for _ in range(5):
        duetime.client.tasks.create("part", delay_seconds=600, allow_unknown_type=True, parent_task_id=parent.id)
    cancelled = duetime.client.tasks.cancel(parent.id, include_children=True)
    assert cancelled.children is not None
    assert (cancelled.state, cancelled.children.cancelled, cancelled.children.has_more) == ("cancelled", 5, False)
    assert {each.state for each in children_of(duetime, parent)} == {"cancelled"}
    assert duetime.client.tasks.cancel(parent.id).children is None


def test_a_performed_handler_has_the_clients_of_the_test(duetime: Duetime) -> None:
    """`perform` calls a handler without a task, so the tasks that the handler creates have no parent."""

    async def in_coroutine(context: AsyncContext, payload: str) -> str:
        return (await context.client.tasks.create("part", payload=payload)).id

    duetime.register("plain", lambda context, payload: context.client.tasks.create("part", payload=payload).id)
    duetime.register("coroutine", in_coroutine)
    duetime.register("part", lambda _context, _payload: None)
    created = [duetime.perform(each, "x") for each in ("plain", "coroutine")]
    assert [duetime.client.tasks.get(each).parent_task_id for each in created] == [None, None]


def test_a_retried_creation_in_a_handler_uses_the_same_key(duetime: Duetime) -> None:
    """If a handler retries a request without a response, the retry uses the same key."""

    def work(context: Context, _payload: object) -> None:
        with pytest.raises(InvalidRequest):
            context.client.tasks.create("part", priority="none")  # type: ignore[arg-type]  # refused by the API
        keys = PhaseKeys()
        first = keys.take("/v1/tasks", b"{}")
        assert keys.take("/v1/tasks", b"{}") != first
        keys.give_back(first)
        assert keys.take("/v1/tasks", b"{}") == first

    duetime.register("work", work)
    duetime.register("part", lambda _context, _payload: None)
    parent = duetime.client.tasks.create("work")
    duetime.run_until_idle()
    assert duetime.client.tasks.get(parent.id).state == "succeeded"


def test_a_context_for_tests_has_the_given_client() -> None:
    """A context for tests has the given client; without a client, the error says how to pass one."""

    @handler("tests.starts-a-task")
    def starts(context: Context, _payload: object) -> object:
        return context.client.tasks

    class Stub:
        tasks = "the tasks"

    assert starts(Context.for_test(client=Stub()), None) == "the tasks"  # type: ignore[arg-type]  # a stub is enough
    with pytest.raises(ClientMissing, match=r"Context\.for_test\(client=\.\.\.\)"):
        starts(Context.for_test(), None)
