"""The retention of ended tasks can be set by type."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime.environment_variables import Variable
from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import PHASED, PLAIN, UNDONE
from tests.scenarios.schedules import NAME, Schedules
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.tasks.task import Task

LARGE = "x".join(str(number * 2654435761 % 2**32) for number in range(5_000))
"""A payload and a result that are stored outside the record."""
DAYS = {PLAIN: 2, PHASED: 90, "*": 7}


@pytest.fixture
def account() -> Iterator[Tasks]:
    """`PLAIN` is kept for two days, `PHASED` for ninety and other types for seven; the default is one day."""
    with Tasks() as made:
        made.environ |= {Variable.RETENTION_DAYS: "1", Variable.RETENTION_DAYS_BY_TYPE: json.dumps(DAYS)}
        made.target = lambda _phase, _context: LARGE
        yield made


def wait(account: Tasks, days: int) -> None:
    """Let days pass without ticks, and let items expire."""
    account.ticking = False
    account.run(days * DAY)
    account.expire()


def days_kept(task: Task) -> float:
    """The number of days that a task is kept after its end."""
    assert task.expires_at is not None
    assert task.finished_at is not None
    return round((task.expires_at - task.finished_at) / DAY, 2)


def kept(account: Tasks, ids: list[str]) -> dict[str, float]:
    """The number of days that tasks are kept after their ends, by type."""
    return {task.type: days_kept(task) for task in map(account.record, ids)}


def test_an_ended_task_is_kept_as_long_as_its_type_says(account: Tasks) -> None:
    """Tasks and their contents are kept by type, whatever their outcome."""
    succeeded = [account.create(0, kind, payload=LARGE) for kind in (PLAIN, UNDONE, PHASED)]
    cancelled = [account.create(HOUR, kind, payload=LARGE) for kind in (PLAIN, UNDONE, PHASED)]
    for each in cancelled:
        assert account.cancel(each).status == 200
    account.run(MINUTE)
    expected = {PLAIN: 2, UNDONE: 7, PHASED: 90}
    assert kept(account, succeeded) == expected
    assert kept(account, cancelled) == expected
    wait(account, 3)
    states = [account.ask("GET", f"/v1/tasks/{each}").status for each in succeeded]
    assert states == [404, 200, 200]
    assert account.ask("GET", f"/v1/tasks/{succeeded[2]}").body["result"] == LARGE
    wait(account, 5)
    assert [account.ask("GET", f"/v1/tasks/{each}").status for each in succeeded] == [404, 404, 200]


def test_a_type_shows_retention_days_and_an_ended_task_kept_until(account: Tasks) -> None:
    """A type shows its `retention_days`, and only an ended task shows `kept_until`."""
    account.fail()
    made = account.create(0, PLAIN, retry={"max_attempts": 1})
    path = f"/v1/tasks/{made}"
    assert account.ask("GET", path).body["kept_until"] is None
    account.run_until(lambda: account.record(made).finished_at)
    found = account.ask("GET", path).body
    ended, kept_until = (datetime.fromisoformat(found[each]) for each in ("finished_at", "kept_until"))
    # TTL is stored in full seconds.
    assert timedelta(days=2) <= kept_until - ended < timedelta(days=2, seconds=1)
    assert account.ask("POST", f"{path}/retry").body["kept_until"] is None
    for kind in (PLAIN, PHASED):
        assert account.ask("PUT", f"/v1/types/{kind}", {"timeout_seconds": 30}).status == 200
    days = {kind: account.ask("GET", f"/v1/types/{kind}").body["retention_days"] for kind in (PLAIN, PHASED)}
    assert days == {PLAIN: 2, PHASED: 90}


def test_a_failed_task_is_kept_as_long_as_its_type_says(account: Tasks) -> None:
    """A failed task's error and traceback are kept as long as the task."""
    account.fail()
    made = [account.create(0, kind, retry={"max_attempts": 1}) for kind in (PLAIN, UNDONE)]
    account.run_until(lambda: all(account.record(each).finished_at for each in made))
    assert kept(account, made) == {PLAIN: 2, UNDONE: 7}
    expiries = {
        item[schema.PARTITION_KEY]["S"]: int(item[schema.TTL]["N"]) * SECOND
        for item in account.items(schema.CONTENT_PREFIX)
        if item[schema.SORT_KEY]["S"] == "traceback"
    }
    first, second = (expiries[f"{schema.CONTENT_PREFIX}{each}"] for each in made)
    assert round((second - first) / DAY, 2) == 5
    wait(account, 6)
    attempts = account.ask("GET", f"/v1/tasks/{made[1]}/attempts").body["attempts"]
    assert "ValueError" in attempts[0]["error"]["traceback"]


def test_a_node_is_kept_as_long_as_its_topology() -> None:
    """A node is kept as long as its topology, even if its type's retention is shorter."""
    with Graphs() as graphs:
        graphs.environ |= {Variable.RETENTION_DAYS: "20", Variable.RETENTION_DAYS_BY_TYPE: json.dumps({PLAIN: 2})}
        graphs.submit({"first": {"type": PLAIN}, "second": {"type": UNDONE, "depends_on": ["first"]}})
        assert graphs.run_until(lambda: graphs.whole().finished_at, HOUR)
        assert days_kept(graphs.whole()) == 20
        graphs.run(MINUTE)
        expires_at = graphs.whole().expires_at or 0
        assert all((graphs.node(key).expires_at or 0) > expires_at for key in ("first", "second"))
        assert graphs.ask("GET", f"{PATH}/{graphs.topology}").status == 200


@pytest.mark.slow
def test_past_runs_expire_after_their_types_retention() -> None:
    """A past run is `expired` after its type's retention, not after the deployment's."""
    with Schedules() as schedules:
        schedules.environ |= {Variable.RETENTION_DAYS: "1", Variable.RETENTION_DAYS_BY_TYPE: json.dumps({PLAIN: 0.1})}
        schedules.make(rate="1 hour")
        schedules.run(6 * HOUR)
        schedules.expire()
        states = [each["status"] for each in schedules.ask("GET", f"/v1/schedules/{NAME}/runs").body["runs"]]
        past = [state for state in states if state != "planned"]
        assert past == ["succeeded"] * 3 + ["expired"] * (len(past) - 3)
        assert len(past) > 4


def test_an_idempotency_key_is_not_kept_longer_than_any_task(account: Tasks) -> None:
    """An idempotency key cannot be kept longer than tasks, because a later repeat would create a task again."""
    account.environ[Variable.RETENTION_DAYS] = "30"
    headers = {"Idempotency-Key": "a", "Idempotency-Key-Seconds": str(3 * DAY // 1000)}
    answer = account.ask("POST", "/v1/tasks", {"type": PLAIN, "due_at": "now"}, headers=headers)
    assert (answer.status, "60 to 172800" in answer.body["detail"]) == (400, True)


def test_the_settings_list_the_retention_by_type_pattern(account: Tasks) -> None:
    """The settings list days by type pattern, in order of precedence."""
    found = account.ask("GET", "/v1/settings").body
    assert found["retention_days"] == 1
    assert found["retention_by_type"] == [{"types": types, "days": days} for types, days in DAYS.items()]
