"""Tests of locks over REST: how tasks name locks, and how owners see holders and waiting tasks and force a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.attempts import LockServices
from duetime.composition.core import CoreServices
from duetime.composition.worker import WorkerServices
from duetime.domain.ids import TaskId
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

LOCKED = {"type": "report", "lock": {"key": "db-17"}}
WHOLE = {"key": "db-17", "mode": "exclusive", "max_holders": 1, "scope": "task", "wait_seconds": None}


def taken(api: Gateway, clock: StandingClock, key: str = "db-17") -> str:
    """Create a task that holds a lock, and return its id."""
    task_id: str = api.create({"type": "report", "lock": {"key": key}})["id"]
    claimed_by_a_worker(task_id, clock)
    lock_manager = composed(LockServices).manager
    task = composed(CoreServices).stores.tasks.read(TaskId(task_id))
    assert task is not None
    (claim,) = lock_manager.claims(task)
    assert lock_manager.take(task, claim) is None
    return task_id


def waiting(api: Gateway, clock: StandingClock) -> str:
    """Create a task that waits for the lock, and return its id."""
    task_id: str = api.create(LOCKED)["id"]
    claimed_by_a_worker(task_id, clock)
    task = composed(CoreServices).stores.tasks.read(TaskId(task_id))
    assert task is not None
    held = composed(LockServices).manager.take(task, composed(LockServices).manager.claims(task)[0])
    assert held is not None
    composed(WorkerServices).batch_worker.attempt_runner.phases.outcome_writer.postpone(task, held)
    return task_id


def test_a_tasks_response_shows_its_lock_with_all_defaults(api: Gateway) -> None:
    """A task's response shows its lock with all defaults."""
    assert api.create(LOCKED)["lock"] == WHOLE
    assert api.create({"type": "report"})["lock"] is None


def test_several_locks_are_in_the_order_of_their_keys(api: Gateway) -> None:
    """A task's locks are shown by key, which is the order in which they are taken.

    A list with one lock is shown as `lock`.
    """
    shared = {"key": "a", "mode": "shared"}
    task = api.create({"type": "report", "locks": [{"key": "db-17"}, shared]})
    assert task["locks"] == [{**WHOLE, **shared, "max_holders": None}, WHOLE]
    assert task["lock"] is None
    one = api.create({"type": "report", "locks": [{"key": "db-17"}]})
    assert (one["lock"], "locks" in one) == (WHOLE, False)


def test_giving_both_lock_and_locks_is_rejected(api: Gateway) -> None:
    """Giving both `lock` and `locks` is refused in creations, updates and type defaults; the error names `locks`."""
    both = {"lock": {"key": "a"}, "locks": [{"key": "b"}, {"key": "c"}]}
    refused = api.send("POST", "/v1/tasks", {"type": "report", **both})
    assert (refused.status, list(refused.faults)) == (422, ["locks"])
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    assert list(api.send("PATCH", path, both).faults) == ["locks"]
    defaults = api.send("PUT", "/v1/types/report", both)
    assert (defaults.status, defaults.faults) == (422, refused.faults)


def test_an_update_with_one_form_of_locks_replaces_the_other(api: Gateway) -> None:
    """An update with `locks` replaces `lock` and vice versa, and null removes only the form that it names."""
    path = f"/v1/tasks/{api.create({**LOCKED, 'delay_seconds': 60})['id']}"

    def keys(patch: dict[str, Any]) -> tuple[str | None, list[str]]:
        body = api.send("PATCH", path, patch).body
        return body["lock"] and body["lock"]["key"], [lock["key"] for lock in body.get("locks", [])]

    assert keys({"locks": [{"key": "b"}, {"key": "a"}]}) == (None, ["a", "b"])
    assert keys({"lock": None}) == (None, ["a", "b"])
    assert keys({"lock": {"key": "c"}}) == ("c", [])
    assert keys({"locks": []}) == ("c", [])
    assert keys({"locks": [{"key": "d"}]}) == ("d", [])
    assert keys({"lock": None}) == (None, [])
    assert keys({"locks": [{"key": "b"}, {"key": "a"}]}) == (None, ["a", "b"])
    assert keys({"locks": None}) == (None, [])


def test_the_mode_of_a_lock_sets_its_default_number_of_holders(api: Gateway) -> None:
    """By default, a shared lock has any number of holders, and an exclusive lock has one holder."""
    path = f"/v1/tasks/{api.create({**LOCKED, 'delay_seconds': 60})['id']}"
    assert api.send("PATCH", path, {"lock": {"mode": "shared"}}).status == 422
    shared = api.send("PATCH", path, {"lock": {"mode": "shared", "max_holders": None}}).body["lock"]
    assert shared == {**WHOLE, "mode": "shared", "max_holders": None}
    assert api.send("PATCH", path, {"lock": {"mode": "exclusive"}}).body["lock"] == WHOLE


def test_the_locks_of_a_type_apply_to_its_tasks(api: Gateway) -> None:
    """A type's locks apply to its tasks, unless a creation gives other locks in either form, or gives no locks."""
    assert api.send("PUT", "/v1/types/report", {"locks": [{"key": "b"}, {"key": "a", "mode": "shared"}]}).status == 200
    task = api.create({"type": "report"})
    assert [(lock["key"], lock["mode"]) for lock in task["locks"]] == [("a", "shared"), ("b", "exclusive")]
    other = api.create(LOCKED)
    assert (other["lock"]["key"], "locks" in other) == ("db-17", False)
    forms: list[dict[str, Any]] = [{"lock": None}, {"locks": []}]
    for none in forms:
        free = api.create({"type": "report", **none})
        assert (free["lock"], "locks" in free) == (None, False)


def test_an_update_of_a_schedule_replaces_either_form_of_its_locks(api: Gateway) -> None:
    """In an update of a schedule, one form of the task's locks also replaces the other form."""
    timing = {"name": "nightly", "rate": "1 hour", "task": LOCKED}
    assert api.send("POST", "/v1/schedules", timing).status == 201
    locks = [{"key": "a"}, {"key": "b", "mode": "shared"}]
    changed = api.send("PATCH", "/v1/schedules/nightly", {"task": {"locks": locks}}).body["task"]
    assert (changed.get("lock"), [lock["key"] for lock in changed["locks"]]) == (None, ["a", "b"])
    changed = api.send("PATCH", "/v1/schedules/nightly", {"task": {"lock": {"key": "c"}}}).body["task"]
    assert (changed["lock"]["key"], changed.get("locks", [])) == ("c", [])


def test_holders_and_waiting_tasks_have_a_mode(api: Gateway, clock: StandingClock) -> None:
    """Holders and waiting tasks are shown with their mode, shared or exclusive."""
    shared = {"type": "report", "lock": {"key": "db-17", "mode": "shared"}}
    manager, core = composed(LockServices).manager, composed(CoreServices)
    task_id = api.create(shared)["id"]
    claimed_by_a_worker(task_id, clock)
    task = core.stores.tasks.read(TaskId(task_id))
    assert task is not None
    assert manager.take(task, manager.claims(task)[0]) is None
    waiting(api, clock)
    lock = api.send("GET", "/v1/locks/db-17").body
    assert [each["mode"] for each in lock["holders"]] == ["shared"]
    assert [each["mode"] for each in lock["waiters"]] == ["exclusive"]


def test_a_tasks_lock_can_be_changed_and_removed_before_its_start(api: Gateway) -> None:
    """Before a task starts, its lock can be changed, and removed with null."""
    task = api.create({**LOCKED, "delay_seconds": 60})
    path = f"/v1/tasks/{task['id']}"
    lock = {"key": "db-18", "mode": "exclusive", "max_holders": 3, "scope": "run", "wait_seconds": 60}
    assert api.send("PATCH", path, {"lock": lock}).body["lock"] == lock
    assert api.send("PATCH", path, {"lock": None}).body["lock"] is None


def test_a_lock_shows_its_holder_and_its_waiting_tasks(api: Gateway, clock: StandingClock) -> None:
    """A lock shows its holder with fence and end, and its waiting tasks; each waiting task names the lock in turn."""
    holder, waiter = taken(api, clock), waiting(api, clock)
    lock = api.send("GET", "/v1/locks/db-17")
    assert lock.status == 200
    assert lock.body["key"] == "db-17"
    assert [(held["task_id"], held["fence"]) for held in lock.body["holders"]] == [(holder, 1)]
    assert [place["task_id"] for place in lock.body["waiters"]] == [waiter]
    shown = api.send("GET", f"/v1/tasks/{waiter}").body
    assert (shown["state"], shown["attempt"]) == ("waiting", 0)
    assert shown["waiting_for"] == {"reason": "lock", "text": "lock db-17"}


def test_a_released_lock_is_reserved_for_the_first_waiting_task(api: Gateway, clock: StandingClock) -> None:
    """After a forced release, the response shows that the lock is reserved for the first waiting task."""
    taken(api, clock)
    waiter = waiting(api, clock)
    freed = api.send("DELETE", "/v1/locks/db-17")
    assert freed.status == 200
    assert [(held["task_id"], held["fence"]) for held in freed.body["holders"]] == [(waiter, None)]
    assert api.send("GET", "/v1/locks/db-17").body["waiters"] == []


def test_locks_are_listed_page_by_page(api: Gateway, clock: StandingClock) -> None:
    """Locks are listed by key, and a page token works only for this list."""
    for key in ("b", "a", "c"):
        taken(api, clock, key)
    first = api.send("GET", "/v1/locks", query="limit=2").body
    assert [lock["key"] for lock in first["locks"]] == ["a", "b"]
    rest = api.send("GET", "/v1/locks", query=f"limit=2&next_token={first['next_token']}").body
    assert ([lock["key"] for lock in rest["locks"]], rest["next_token"]) == (["c"], None)
    assert api.send("GET", "/v1/tasks", query=f"next_token={first['next_token']}").status == 400


@pytest.mark.parametrize("key", ["nobody", "a b", "%00", "a#b", "é", "x" * 65])
def test_an_unknown_lock_is_not_found(api: Gateway, key: str) -> None:
    """Reading or releasing an unknown or invalid lock key returns 404."""
    for method in ("GET", "DELETE"):
        answer = api.send(method, f"/v1/locks/{key}")
        # Paths with some of these letters match no route.
        assert (answer.status, answer.body["code"] in {"lock_not_found", "path_not_found"}) == (404, True)


def test_another_owners_lock_cannot_be_read_released_or_listed(api: Gateway, clock: StandingClock) -> None:
    """Another owner's lock can be neither read nor released, and is not listed."""
    taken(api, clock)
    other = {"x-duetime-owner": "other"}
    assert api.send("GET", "/v1/locks/db-17", headers=other).status == 404
    assert api.send("DELETE", "/v1/locks/db-17", headers=other).status == 404
    assert api.send("GET", "/v1/locks", headers=other).body == {"locks": [], "next_token": None}


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "next_token=x", "next_token=", "after=a"])
def test_an_error_for_an_invalid_query_parameter_names_the_parameter(api: Gateway, query: str) -> None:
    """An error for an invalid list parameter returns 400 and names the parameter."""
    answer = api.send("GET", "/v1/locks", query=query)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, query.partition("=")[0])
