"""Locks over REST: a task names one, its owner sees who holds it and who waits, and frees it by force."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def taken(api: Gateway, clock: StandingClock, key: str = "db-17") -> str:
    """The id of a task that holds a lock."""
    task_id: str = api.create({"type": "report", "lock": {"key": key}})["id"]
    claimed_by_a_worker(task_id, clock)
    lock_manager = composed(LockServices).manager
    task = composed(CoreServices).stores.tasks.read(TaskId(task_id))
    assert task is not None
    (claim,) = lock_manager.claims(task)
    assert lock_manager.take(task, claim) is None
    return task_id


def waiting(api: Gateway, clock: StandingClock) -> str:
    """The id of a task that waits for the lock."""
    task_id: str = api.create(LOCKED)["id"]
    claimed_by_a_worker(task_id, clock)
    task = composed(CoreServices).stores.tasks.read(TaskId(task_id))
    assert task is not None
    held = composed(LockServices).manager.take(task, composed(LockServices).manager.claims(task)[0])
    assert held is not None
    composed(WorkerServices).batch_worker.attempt_runner.phases.outcome_writer.postpone(task, held)
    return task_id


def test_a_task_answers_with_its_lock(api: Gateway) -> None:
    """What was left out of the lock is shown with its default."""
    assert api.create(LOCKED)["lock"] == {"key": "db-17", "max_holders": 1, "scope": "task", "wait_seconds": None}
    assert api.create({"type": "report"})["lock"] is None


def test_a_lock_is_changed_and_taken_off(api: Gateway) -> None:
    """As long as the task has not started; null takes it off."""
    task = api.create({**LOCKED, "delay_seconds": 60})
    path = f"/v1/tasks/{task['id']}"
    lock = {"key": "db-18", "max_holders": 3, "scope": "run", "wait_seconds": 60}
    assert api.send("PATCH", path, {"lock": lock}).body["lock"] == lock
    assert api.send("PATCH", path, {"lock": None}).body["lock"] is None


def test_a_lock_tells_who_holds_it_and_who_waits(api: Gateway, clock: StandingClock) -> None:
    """The holder with its fence and its end, then the line; the waiting task says what it waits for."""
    holder, waiter = taken(api, clock), waiting(api, clock)
    lock = api.send("GET", "/v1/locks/db-17")
    assert lock.status == 200
    assert lock.body["key"] == "db-17"
    assert [(held["task_id"], held["fence"]) for held in lock.body["holders"]] == [(holder, 1)]
    assert [place["task_id"] for place in lock.body["waiters"]] == [waiter]
    shown = api.send("GET", f"/v1/tasks/{waiter}").body
    assert (shown["state"], shown["attempt"]) == ("waiting", 0)
    assert shown["waiting_for"] == {"reason": "lock", "text": "lock db-17"}


def test_a_freed_lock_is_the_next_ones(api: Gateway, clock: StandingClock) -> None:
    """The answer shows it waiting for the first of its line, which is placed at once."""
    taken(api, clock)
    waiter = waiting(api, clock)
    freed = api.send("DELETE", "/v1/locks/db-17")
    assert freed.status == 200
    assert [(held["task_id"], held["fence"]) for held in freed.body["holders"]] == [(waiter, None)]
    assert api.send("GET", "/v1/locks/db-17").body["waiters"] == []


def test_locks_are_listed_page_by_page(api: Gateway, clock: StandingClock) -> None:
    """In the order of their keys; the token of one page asks for the next, and is good for nothing else."""
    for key in ("b", "a", "c"):
        taken(api, clock, key)
    first = api.send("GET", "/v1/locks", query="limit=2").body
    assert [lock["key"] for lock in first["locks"]] == ["a", "b"]
    rest = api.send("GET", "/v1/locks", query=f"limit=2&next_token={first['next_token']}").body
    assert ([lock["key"] for lock in rest["locks"]], rest["next_token"]) == (["c"], None)
    assert api.send("GET", "/v1/tasks", query=f"next_token={first['next_token']}").status == 400


@pytest.mark.parametrize("key", ["nobody", "a b", "%00", "a#b", "é", "x" * 65])
def test_an_unknown_lock_is_not_found(api: Gateway, key: str) -> None:
    """Keys that no lock has, and keys that none can have, are 404 for reading and for freeing."""
    for method in ("GET", "DELETE"):
        answer = api.send(method, f"/v1/locks/{key}")
        # Some letters do not even reach the route.
        assert (answer.status, answer.body["code"] in {"lock_not_found", "path_not_found"}) == (404, True)


def test_another_owners_lock_does_not_exist(api: Gateway, clock: StandingClock) -> None:
    """Not to be read, not to be freed, not in the list."""
    taken(api, clock)
    other = {"x-duetime-owner": "other"}
    assert api.send("GET", "/v1/locks/db-17", headers=other).status == 404
    assert api.send("DELETE", "/v1/locks/db-17", headers=other).status == 404
    assert api.send("GET", "/v1/locks", headers=other).body == {"locks": [], "next_token": None}


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "next_token=x", "next_token=", "after=a"])
def test_a_bad_parameter_is_named(api: Gateway, query: str) -> None:
    """400, and which parameter it is."""
    answer = api.send("GET", "/v1/locks", query=query)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, query.partition("=")[0])
