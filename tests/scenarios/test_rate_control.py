"""Owners can see, pause, reset and pin their rates, and every later start follows these settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.rates import MOST_PARTS
from duetime.domain.tasks.states import State
from duetime.domain.times import DAY
from duetime_testing.simulation.faults import Call
from tests.scenarios.scenario import MINUTE, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from tests.simulation.users import Reply

CRM = {"key": "crm", "limit": 2, "per_seconds": 10}
"""A rate of two starts per ten seconds, which are five seconds apart."""
SLOW = {"key": "crm", "limit": 1, "per_seconds": 600}


def create(tasks: Tasks, number: int, rate: dict[str, Any] = CRM) -> list[str]:
    """Create tasks that use the rate."""
    return [tasks.create(rate=rate) for _ in range(number)]


def rate(tasks: Tasks, key: str = "crm") -> Any:  # noqa: ANN401 - JSON
    """A rate as the API returns it."""
    found = tasks.ask("GET", f"/v1/rates/{key}")
    assert found.status == 200, found.body
    return found.body


def act(tasks: Tasks, verb: str, key: str = "crm") -> Reply:
    """Act on a rate."""
    return tasks.ask("POST", f"/v1/rates/{key}/{verb}")


def started(tasks: Tasks, since: int = 0) -> int:
    """The number of starts at or after a time."""
    return sum(1 for effect in tasks.effects if effect.at >= since)


def test_a_rate_shows_its_usage_and_its_waiting_tasks() -> None:
    """A rate shows its limit, window and usage, and when each waiting task starts."""
    with Tasks() as tasks:
        made = create(tasks, 4)
        tasks.run(2 * SECOND)
        found = rate(tasks)
        assert (found["limit"], found["per_seconds"], found["burst"]) == (2, 10, 0)
        assert (found["used"], found["available"], found["waiting"]) == (1, 0, 3)
        assert (found["pinned"], found["paused_at"]) == (None, None)
        assert [each["task_id"] for each in found["waiters"]] == made[1:]
        turns = [each["next_at"] for each in found["waiters"]]
        assert found["next_free_at"] > turns[-1] > turns[0]
        listed = tasks.ask("GET", "/v1/rates").body
        assert listed == {"rates": [{name: found[name] for name in found if name != "waiters"}], "next_token": None}
        tasks.run(MINUTE)
        after = rate(tasks)
        assert (after["used"], after["available"], after["waiting"], after["waiters"]) == (0, 1, 0, [])


def test_a_rate_is_listed_after_its_first_use() -> None:
    """An owner's rate is listed after a single use; a switch's rate has no owner and is not listed."""
    with Tasks() as tasks:
        tasks.ask("PUT", "/v1/switches/type/report", {"rate": {"limit": 5, "per_seconds": 1}})
        tasks.run(MINUTE)
        assert tasks.ask("GET", "/v1/rates").body["rates"] == []
        create(tasks, 1)
        tasks.run(2 * SECOND)
        assert [each["key"] for each in tasks.ask("GET", "/v1/rates").body["rates"]] == ["crm"]


def test_lists_of_rates_continue_after_a_page() -> None:
    """Pages list the caller's rates by key."""
    with Tasks() as tasks:
        for key in ("c", "a", "b"):
            create(tasks, 3, {**CRM, "key": key})
        tasks.run(2 * SECOND)
        first = tasks.ask("GET", "/v1/rates", query="limit=2").body
        assert [each["key"] for each in first["rates"]] == ["a", "b"]
        rest = tasks.ask("GET", "/v1/rates", query=f"limit=2&next_token={first['next_token']}").body
        assert ([each["key"] for each in rest["rates"]], rest["next_token"]) == (["c"], None)


def test_an_unused_rate_is_not_found() -> None:
    """Reading, resuming, resetting or unpinning an unused rate returns 404."""
    with Tasks() as tasks:
        answers = [
            tasks.ask("GET", "/v1/rates/crm"),
            act(tasks, "resume"),
            act(tasks, "reset"),
            tasks.ask("DELETE", "/v1/rates/crm"),
        ]
        assert [(each.status, each.body["code"]) for each in answers] == [(404, "rate_not_found")] * 4


def test_a_paused_rate_holds_its_tasks_until_the_resume() -> None:
    """A rate that is paused before its first use holds its tasks until it is resumed, without using up attempts."""
    with Tasks() as tasks:
        assert act(tasks, "pause").body["paused_at"] is not None
        made = create(tasks, 3)
        tasks.run(10 * MINUTE)
        assert not tasks.effects
        assert tasks.record(made[0]).attempt == 0
        found = rate(tasks)
        assert (found["waiting"], found["next_free_at"], found["available"]) == (None, None, 0)
        assert {each["task_id"] for each in found["waiters"]} == set(made)
        assert act(tasks, "resume").body["paused_at"] is None
        tasks.run(2 * SECOND)
        assert started(tasks) == 1
        tasks.run(MINUTE)
        assert started(tasks) == 3


def test_the_items_of_a_paused_rate_do_not_expire() -> None:
    """A paused rate's items do not expire, even if no task uses the rate for long."""
    with Tasks() as tasks:
        create(tasks, 1)
        tasks.run(SECOND)
        assert all(schema.TTL in item for item in tasks.items(schema.RATE_PREFIX))
        act(tasks, "pause")
        create(tasks, 1)
        tasks.run(MINUTE)
        items = tasks.items(schema.RATE_PREFIX)
        assert len(items) == MOST_PARTS
        assert not any(schema.TTL in item for item in items)
        act(tasks, "resume")
        assert all(int(item[schema.TTL]["N"]) * SECOND > tasks.now + DAY for item in tasks.items(schema.RATE_PREFIX))


def test_a_pinned_limit_replaces_the_tasks_limits() -> None:
    """A pinned limit, faster or slower, replaces the tasks' limits at once, until it is unpinned."""
    with Tasks() as tasks:
        create(tasks, 10, SLOW)
        tasks.run(5 * SECOND)
        assert started(tasks) == 1
        pinned = tasks.ask("PUT", "/v1/rates/crm", {"limit": 60, "per_seconds": 60, "reason": "the sale"})
        assert pinned.body["pinned"] == {"limit": 60, "per_seconds": 60, "burst": 0}
        assert (pinned.body["limit"], pinned.body["asked"]["limit"]) == (60, 1)
        tasks.run(30 * SECOND)
        assert started(tasks) == 10
        assert tasks.ask("DELETE", "/v1/rates/crm").body["pinned"] is None
        again = tasks.now
        create(tasks, 3, SLOW)
        tasks.run(MINUTE)
        assert started(tasks, again) <= 1
        tasks.ask("PUT", "/v1/rates/crm", {"limit": 1, "per_seconds": 3_600})
        again = tasks.now
        create(tasks, 5, {"key": "crm", "limit": 100})
        tasks.run(10 * MINUTE)
        assert started(tasks, again) <= 1


@pytest.mark.parametrize(("asked", "pinned"), [(1_000, 2), (2, 1_000)])
def test_a_pinned_limit_may_have_more_or_fewer_parts(asked: int, pinned: int) -> None:
    """A fast rate has several items, and a pinned limit applies to tasks that read any of them."""
    with Tasks() as tasks:
        tasks.ask("PUT", "/v1/rates/crm", {"limit": pinned, "per_seconds": 1})
        create(tasks, 20, {"key": "crm", "limit": asked})
        tasks.run(3 * SECOND)
        assert (started(tasks) < 15) == (pinned < asked)
        tasks.run(MINUTE)
        assert started(tasks) == 20


def test_a_reset_frees_the_limit_at_once() -> None:
    """A reset deletes a rate's counts and line, so one waiting task starts at once, and the others in turn."""
    with Tasks() as tasks:
        create(tasks, 3, SLOW)
        tasks.run(5 * SECOND)
        assert started(tasks) == 1
        assert act(tasks, "reset").status == 200
        tasks.run(5 * SECOND)
        assert started(tasks) == 2
        assert rate(tasks)["waiting"] == 1


@pytest.mark.parametrize("verb", ["resume", "reset", "pin", "unpin"])
def test_waiting_tasks_still_expire_after_an_action_on_their_rate(verb: str) -> None:
    """If an action on a rate checks waiting tasks early, the tasks still fail at their expiry."""
    with Tasks() as tasks:
        create(tasks, 1, SLOW)
        tasks.run(2 * SECOND)
        act(tasks, "pause") if verb == "resume" else None
        made = [tasks.create(rate=SLOW, expires_seconds=150) for _ in range(3)]
        tasks.run(10 * SECOND)
        if verb == "pin":
            tasks.ask("PUT", "/v1/rates/crm", {"limit": 1, "per_seconds": 500})
        elif verb == "unpin":
            tasks.ask("DELETE", "/v1/rates/crm")
        else:
            act(tasks, verb)
        tasks.run(20 * MINUTE)
        late = [tasks.record(each) for each in made if tasks.effect_times(each) == []]
        assert len(late) == (2 if verb == "reset" else 3)
        assert {(task.state, task.error and task.error.type) for task in late} == {(State.FAILED, "Expired")}


@pytest.mark.parametrize("number", [1, 2, 21])
@pytest.mark.parametrize("how", ["refused", "died"])
def test_a_repeated_pause_reaches_every_part_of_the_rate(how: str, number: int) -> None:
    """If any write of a pause fails, a repeated pause reaches every part of the rate."""
    with Tasks() as tasks:
        create(tasks, 1)
        tasks.run(SECOND)
        seen = 0

        def is_it(call: Call) -> bool:
            nonlocal seen
            is_write = call.operation == "update_item" and (call.partition or "").startswith(schema.RATE_PREFIX)
            seen += is_write
            return is_write and seen == number

        refused = tasks.once(is_it, Call.refuse if how == "refused" else lambda call: call.machine.die())
        tasks.send("POST", "/v1/rates/crm/pause")
        assert tasks.run_until(lambda: refused)
        tasks.run(SECOND)
        assert act(tasks, "pause").status == 200
        since = tasks.now
        create(tasks, 5, {"key": "crm", "limit": 10_000})
        tasks.run(5 * MINUTE)
        assert started(tasks, since) == 0
        assert tasks.tally()[State.WAITING] == 5


def test_the_rates_of_other_owners_are_independent() -> None:
    """A rate is not visible to other owners, whose pauses and pins do not affect the rate."""
    with Tasks() as tasks:
        you = {"X-Duetime-Owner": "you"}
        create(tasks, 3)
        tasks.run(2 * SECOND)
        assert tasks.ask("GET", "/v1/rates/crm", headers=you).status == 404
        assert tasks.ask("GET", "/v1/rates", headers=you).body["rates"] == []
        assert tasks.ask("POST", "/v1/rates/crm/pause", headers=you).status == 200
        assert tasks.ask("PUT", "/v1/rates/crm", {"limit": 1}, headers=you).status == 200
        found = rate(tasks)
        assert (found["paused_at"], found["pinned"], found["waiting"]) == (None, None, 2)
        tasks.run(MINUTE)
        assert started(tasks) == 3


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "limit"),
        ({"limit": 0}, "limit"),
        ({"limit": 1, "per_seconds": 0}, "per_seconds"),
        ({"limit": 1, "burst": -1}, "burst"),
        ({"limit": 1, "key": "crm"}, "key"),
    ],
)
def test_an_error_for_an_invalid_pin_names_the_field(body: dict[str, Any], field: str) -> None:
    """An invalid pin is refused with the field's name, and the rate does not change."""
    with Tasks() as tasks:
        refused = tasks.ask("PUT", "/v1/rates/crm", body)
        assert (refused.status, [each["field"] for each in refused.body["errors"]]) == (422, [field])
        assert tasks.ask("GET", "/v1/rates/crm").status == 404
