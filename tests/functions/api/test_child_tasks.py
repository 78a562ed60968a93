"""Tests of child tasks: their parent, their list, and their cancellation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime.domain.times import DAY
from duetime.environment_variables import Variable
from duetime.services.topologies import child_tasks
from tests.functions.api.gateway import Gateway
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clocks import StandingClock
    from tests.fakes.session import FakeSession

PULLED = "pulled"
LEASE = "X-Duetime-Lease"
LATER = {"type": "part", "delay_seconds": 600}


@pytest.fixture
def environ(environ: dict[str, str], session: FakeSession) -> dict[str, str]:
    """The function's environment, with one type that everyone may pull, and one type that only Ann may pull."""
    sqs = session.client("sqs")
    urls = {name: sqs.create_queue(QueueName=f"{name}-{uuid4().hex[:8]}")["QueueUrl"] for name in (PULLED, "anns")}
    pullers = {PULLED: ["*"], "anns": ["ann"]}
    return {**environ, Variable.PULLED_QUEUES: json.dumps(urls), Variable.PULLERS: json.dumps(pullers)}


def as_owner(name: str) -> Gateway:
    """A gateway that sends requests for this owner."""
    return Gateway(headers={"x-duetime-owner": name})


def child_of(api: Gateway, parent: str, **fields: Any) -> str:  # noqa: ANN401 - JSON
    """Create a task with a parent, and return its id."""
    task_id: str = api.create({**LATER, "parent_task_id": parent, **fields})["id"]
    return task_id


def children_of(api: Gateway, parent: str) -> list[str]:
    """The ids of a task's children, as the API lists them."""
    return api.listed(f"parent_task_id={parent}")


def state_of(api: Gateway, task_id: str) -> str:
    """The state of a task, as the API shows it."""
    state: str = api.send("GET", f"/v1/tasks/{task_id}").body["state"]
    return state


def cancelled(api: Gateway, task_id: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Cancel a task with its children, and return the response's counts."""
    answer = api.send("POST", f"/v1/tasks/{task_id}/cancel", {"include_children": True, **fields})
    assert answer.status in {200, 202}, answer.text
    done: dict[str, Any] = answer.body["children"]
    return done


def done(cancelled: int = 0, stopping: int = 0, running: int = 0, *, has_more: bool = False) -> dict[str, Any]:
    """The expected counts of children in a cancellation's response."""
    return {"cancelled": cancelled, "stopping": stopping, "running": running, "has_more": has_more}


def test_a_task_shows_its_parent(api: Gateway) -> None:
    """A task shows its parent, and the filter `parent_task_id` lists exactly the parent's children."""
    parent, other = (api.create(LATER)["id"] for _ in range(2))
    children = [child_of(api, parent.lower(), delay_seconds=600 + number) for number in range(5)]
    grandchild = child_of(api, children[0])
    assert api.send("GET", f"/v1/tasks/{children[0]}").body["parent_task_id"] == parent
    assert children_of(api, parent) == children[::-1]
    assert children_of(api, children[0]) == [grandchild]
    assert children_of(api, other) == []
    page = api.send("GET", "/v1/tasks", query=f"parent_task_id={parent}&limit=3&order=asc").body
    rest = api.send(
        "GET", "/v1/tasks", query=f"parent_task_id={parent}&limit=3&order=asc&next_token={page['next_token']}"
    ).body
    assert [each["id"] for each in page["tasks"] + rest["tasks"]] == children
    assert api.listed(f"parent_task_id={parent}&state=cancelled") == []


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/topologies"])
def test_a_parent_has_to_be_a_task_of_the_owner(api: Gateway, path: str) -> None:
    """A parent must be the owner's task; the error does not reveal whether another owner has a task with this id."""
    body: dict[str, Any] = LATER if path == "/v1/tasks" else {"nodes": {"a": {"type": "part"}}}
    foreign = as_owner("ann").create(LATER)["id"]
    for parent in (foreign, "01KB8Z4QYJ0000GH3V5TZK7M2P"):
        answer = api.send("POST", path, {**body, "parent_task_id": parent})
        assert answer.status == 422, answer.text
        assert answer.faults == {"parent_task_id": "is not the id of an existing task"}
    assert api.send("POST", path, {**body, "parent_task_id": "nonsense"}).faults == {
        "parent_task_id": "should be a task id"
    }
    assert as_owner("ann").listed(f"parent_task_id={foreign}") == []


def test_an_invalid_parent_in_a_batch_does_not_affect_other_tasks(api: Gateway) -> None:
    """In a batch, a task with an invalid parent does not prevent the creation of the other tasks."""
    parent = api.create(LATER)["id"]
    tasks = [{**LATER, "parent_task_id": each} for each in (parent, "01KB8Z4QYJ0000GH3V5TZK7M2P")]
    results = api.send("POST", "/v1/tasks/batch", {"tasks": tasks}).body["results"]
    assert [each["status"] for each in results] == [201, 422]
    assert results[1]["problem"]["errors"][0]["field"] == "tasks[1].parent_task_id"
    assert children_of(api, parent) == [results[0]["task"]["id"]]


def test_a_repeated_creation_returns_its_task_even_if_the_parent_was_deleted(api: Gateway) -> None:
    """Repeating a creation returns the same task, even if the parent has been deleted."""
    parent = api.create(LATER)["id"]
    body, key = {**LATER, "parent_task_id": parent}, {"Idempotency-Key": "k"}
    first = api.create(body, key)
    assert api.send("DELETE", f"/v1/tasks/{parent}").status == 204
    assert api.create(body, key)["id"] == first["id"]
    assert api.send("POST", "/v1/tasks", body).status == 422


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/schedules", {"name": "n", "cron": "0 9 * * *", "task": {"type": "part"}}, "task"),
        ("/v1/topologies", {"nodes": {"a": {"type": "part"}}}, "nodes.a"),
    ],
)
def test_schedule_templates_and_nodes_cannot_have_a_parent(
    api: Gateway, path: str, body: dict[str, Any], field: str
) -> None:
    """Schedule templates and nodes cannot have a parent, because their tasks are not created by the request itself."""
    parent, place = api.create(LATER)["id"], body
    for part in field.split("."):
        place = place[part]
    place["parent_task_id"] = parent
    answer = api.send("POST", path, body)
    place.pop("parent_task_id")
    assert answer.faults == {f"{field}.parent_task_id": "is allowed only where a task is created"}


def test_a_cancellation_includes_all_descendants(api: Gateway) -> None:
    """A cancellation with children cancels open descendants at any depth, and a repeated request changes nothing."""
    parent = api.create(LATER)["id"]
    child = child_of(api, parent)
    ended = child_of(api, parent)
    api.send("POST", f"/v1/tasks/{ended}/cancel")
    below = [child_of(api, each) for each in (child, ended)]
    topology = api.send("POST", "/v1/topologies", {"nodes": {"a": {"type": "part"}}, "parent_task_id": child}).body[
        "id"
    ]
    assert cancelled(api, parent, reason="no more") == done(4)
    assert {state_of(api, each) for each in (parent, child, *below, topology)} == {"cancelled"}
    assert cancelled(api, parent) == done()
    assert "children" not in api.send("POST", f"/v1/tasks/{parent}/cancel").body


def test_running_children_are_asked_to_stop_only_with_force(api: Gateway, clock: StandingClock) -> None:
    """Running tasks and topologies are asked to stop only with `force`, also as the children of an ended task."""
    parent = api.create(LATER)["id"]
    graph = {"nodes": {"a": {"type": "part"}}, "parent_task_id": parent}
    children = [
        api.create({"type": "part", "parent_task_id": parent})["id"],
        api.send("POST", "/v1/topologies", graph).body["id"],
    ]
    for child in children:
        claimed_by_a_worker(child, clock)
    assert cancelled(api, parent) == done(running=2)
    assert state_of(api, parent) == "cancelled"
    assert cancelled(api, parent, force=True) == done(stopping=2)
    for child in children:
        assert api.send("GET", f"/v1/tasks/{child}").body["requested_action"] == "cancel"


def test_a_running_parent_and_its_children_are_not_cancelled_without_force(api: Gateway, clock: StandingClock) -> None:
    """If the parent is running, a cancellation without `force` cancels neither the parent nor its children."""
    parent = api.create()["id"]
    child = child_of(api, parent)
    claimed_by_a_worker(parent, clock)
    answer = api.send("POST", f"/v1/tasks/{parent}/cancel", {"include_children": True})
    assert (answer.status, answer.problem["code"], state_of(api, child)) == (409, "state_conflict", "scheduled")
    assert cancelled(api, parent, force=True) == done(1)


def test_cancelling_many_children_takes_several_requests(api: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cancellation request cancels a limited number of children, and says whether more children are left."""
    monkeypatch.setattr(child_tasks, "CHILDREN_AT_ONCE", 2)
    monkeypatch.setattr(child_tasks, "MOST_CHILDREN_CANCELLED", 3)
    parent = api.create(LATER)["id"]
    children = [child_of(api, parent) for _ in range(7)]
    assert [cancelled(api, parent) for _ in range(3)] == [done(4, has_more=True), done(3, has_more=True), done()]
    assert {state_of(api, each) for each in children} == {"cancelled"}


def leased(api: Gateway, worker: Gateway, task_type: str = PULLED) -> tuple[str, str]:
    """Create a task, lease the task, and return the ids of the task and the lease."""
    task_id = api.create({"type": task_type})["id"]
    (lease,) = worker.send("POST", "/v1/leases", {"types": [task_type]}).body["leases"]
    return task_id, lease["id"]


def test_a_worker_creates_tasks_for_the_owner_of_its_lease(api: Gateway) -> None:
    """A task that a worker creates with its lease has the leased task's owner, and is a child of the leased task."""
    worker = as_owner("worker")
    parent, lease = leased(api, worker)
    key = {LEASE: lease, "Idempotency-Key": "step"}
    ids = [worker.create(LATER, key)["id"], worker.create(LATER, {LEASE: lease})["id"]]
    assert worker.create(LATER, key)["id"] == ids[0]
    batch = worker.send("POST", "/v1/tasks/batch", {"tasks": [LATER]}, {LEASE: lease})
    ids.append(batch.body["results"][0]["task"]["id"])
    ids.append(worker.send("POST", "/v1/topologies", {"nodes": {"a": {"type": "part"}}}, {LEASE: lease}).body["id"])
    assert sorted(children_of(api, parent)) == sorted(ids)
    assert worker.listed() == []
    # A leased task's idempotency keys are separate from the owner's keys.
    assert api.create(LATER, {"Idempotency-Key": "step"})["id"] not in ids


def test_a_worker_with_another_owners_lease_may_only_create_tasks(api: Gateway) -> None:
    """With a lease on another owner's task, a worker may only create tasks.

    The owner's own worker keeps all its rights.
    """
    worker = as_owner("worker")
    parent, lease = leased(api, worker)
    for method, path in (("GET", f"/v1/tasks/{parent}"), ("GET", "/v1/tasks"), ("POST", f"/v1/tasks/{parent}/cancel")):
        answer = worker.send(method, path, headers={LEASE: lease})
        assert (answer.status, answer.problem["code"]) == (403, "lease_only_creates")
    assert api.send("GET", f"/v1/tasks/{parent}", headers={LEASE: lease}).status == 200


def test_an_invalid_lease_or_another_callers_lease_creates_no_tasks(api: Gateway) -> None:
    """No task can be created with an ended or unknown lease, or by a caller that does not hold the lease."""
    ann = as_owner("ann")
    _, lease = leased(api, ann, "anns")
    refused = as_owner("bob").send("POST", "/v1/tasks", LATER, {LEASE: lease})
    assert (refused.status, refused.problem["code"]) == (403, "type_not_pulled")
    assert ann.send("POST", "/v1/tasks", LATER, {LEASE: "nonsense"}).problem["code"] == "lease_not_found"
    ann.send("POST", f"/v1/leases/{lease}/complete", {"result": None})
    late = ann.send("POST", "/v1/tasks", LATER, {LEASE: lease})
    assert (late.status, late.problem["code"]) == (409, "fence_mismatch")


@pytest.mark.parametrize("authentication", ["none", "iam", "jwt"])
def test_a_handler_acts_for_its_task(
    environ: dict[str, str], compose: Callable[[], None], clock: StandingClock, authentication: str
) -> None:
    """A handler's requests act for its task and owner under any authentication.

    The task's idempotency keys last as long as ended tasks.
    """
    environ[Variable.AUTHENTICATION] = authentication
    compose()
    parent = "01KB8Z4QYJ0000GH3V5TZK7M2P"
    handler = Gateway({"duetime": {"owner": "123456789012:role/Reports", "task_id": parent}})
    first = handler.create(LATER, {"Idempotency-Key": "step"})
    assert first["parent_task_id"] == parent
    assert handler.listed() == [first["id"]]
    assert Gateway({"duetime": {"owner": "somebody", "task_id": parent}}).listed() == []
    clock.at += 3 * DAY
    assert handler.create(LATER, {"Idempotency-Key": "step"})["id"] == first["id"]
    clock.at += 30 * DAY
    assert handler.create(LATER, {"Idempotency-Key": "step"})["id"] != first["id"]


@pytest.mark.parametrize("header", ["duetime", "x-duetime-handler", "authorizer"])
def test_no_header_makes_a_caller_a_handler(api: Gateway, header: str) -> None:
    """No header can make a caller a handler, because only the worker's role may invoke the function as a handler."""
    claim = json.dumps({"owner": "ann", "task_id": "01KB8Z4QYJ0000GH3V5TZK7M2P"})
    assert api.create(LATER, {header: claim})["parent_task_id"] is None
