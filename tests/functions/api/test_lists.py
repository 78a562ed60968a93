from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.domain.limits import MAX_EXPANDED_BYTES, MAX_EXPANDED_PAGE, MAX_PAGE
from duetime.domain.operating_parameters import OWNER_SPREAD
from duetime.domain.tasks.attempt_results import Succeeded
from duetime.domain.tasks.creation import Order
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import HOUR, to_iso
from functions.api.requests import LOCAL_OWNER
from tests.functions.api.world import ended_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.fakes.session import FakeSession
    from tests.functions.api.gateway import Gateway

LATER: dict[str, Any] = {"type": "report", "delay_seconds": 3600}


def test_a_list_shows_its_filters_order_and_page_size(api: Gateway) -> None:
    """A list response shows the filters, the order, the page size and the number of tasks that were read."""
    for _ in range(3):
        api.create(LATER)
    api.create({**LATER, "type": "mail"})
    query = "type=mail&state=scheduled,paused&tag=a:b&due_after=2026-11-01T01:00:00%2B01:00&order=asc&limit=7"
    applied = api.send("GET", "/v1/tasks", query=query).body["applied"]
    assert applied == {
        "filters": {
            "due_after": ["2026-11-01T00:00:00.000Z"],
            "state": ["paused", "scheduled"],
            "tag": ["a:b"],
            "type": ["mail"],
        },
        "order": "asc",
        "order_by": "due_at",
        "limit": 7,
        "examined": 4,
        "examined_to": None,
        "last_change_at": None,
        "count": None,
    }
    of_all = {"order": "desc", "order_by": "due_at", "limit": 100, "examined": 4}
    of_all |= {"examined_to": None, "last_change_at": None, "count": None}
    bare = api.send("GET", "/v1/tasks").body["applied"]
    assert bare == {"filters": {}, **of_all}
    topologies = api.send("GET", "/v1/topologies", query="name=n").body
    listed = {"filters": {"name": ["n"]}, **of_all}
    assert topologies["applied"] == listed
    first = api.send("GET", "/v1/tasks", query="limit=1").body
    assert first["applied"]["examined_to"] == first["tasks"][0]["due_at"]


def test_a_full_page_is_read_once_and_shows_whether_more_tasks_exist(api: Gateway, session: FakeSession) -> None:
    """A full page costs one query for each part of the list and one request for its tasks, even if more tasks exist."""
    order = Order(TaskSpec("report", delay=HOUR))
    composed(TaskServices).batch_creator.create_many(LOCAL_OWNER, [order] * MAX_PAGE)
    calls: Counter[str] = Counter()
    session.heard = lambda operation, _request: calls.update([operation])
    page = api.send("GET", "/v1/tasks", query=f"limit={MAX_PAGE}").body
    assert (len(page["tasks"]), page["next_token"]) == (MAX_PAGE, None)
    assert calls == {"query": OWNER_SPREAD, "batch_get_item": 1}
    api.create(LATER)
    calls.clear()
    page = api.send("GET", "/v1/tasks", query=f"limit={MAX_PAGE}").body
    assert calls == {"query": OWNER_SPREAD, "batch_get_item": 1}
    rest = api.send("GET", "/v1/tasks", query=f"limit={MAX_PAGE}&next_token={page['next_token']}").body
    assert (len(page["tasks"]), len(rest["tasks"]), rest["next_token"]) == (MAX_PAGE, 1, None)


def test_a_list_by_ids_shows_the_requested_ids(api: Gateway) -> None:
    """A list by ids shows the requested ids among its filters."""
    task = api.create(LATER)
    answer = api.send("GET", "/v1/tasks", query=f"ids={task['id']}")
    assert answer.body["applied"]["filters"] == {"ids": [task["id"]]}


@pytest.mark.parametrize(
    ("expand", "shown"),
    [
        ("expand=payload", {"payload"}),
        ("expand=result", {"result"}),
        ("expand=payload,result", {"payload", "result"}),
        ("expand=payload&expand=result", {"payload", "result"}),
        ("", set()),
    ],
)
def test_a_list_with_expand_shows_contents_like_a_single_task(
    api: Gateway, clock: StandingClock, expand: str, shown: set[str]
) -> None:
    """With `expand`, a list shows contents in the same way as a single task, even contents outside the record."""
    large = "".join(f"{number:x}" for number in range(9000))
    task = api.create({"type": "report", "payload": {"large": large}})
    ended_by_a_worker(task["id"], clock, Succeeded(b'{"rows":17}'))
    whole = api.send("GET", f"/v1/tasks/{task['id']}").body
    (listed,) = api.send("GET", "/v1/tasks", query=expand).body["tasks"]
    assert shown == {"payload", "result"} & set(listed)
    assert {name: listed[name] for name in shown} == {name: whole[name] for name in shown}
    assert ("content_expired" in listed) == bool(shown)


def test_a_limit_above_the_maximum_is_rejected_with_expand(api: Gateway) -> None:
    """With `expand`, a `limit` above the maximum is refused, and the default page has the maximum size."""
    for _ in range(MAX_EXPANDED_PAGE + 1):
        api.create(LATER)
    refused = api.send("GET", "/v1/tasks", query=f"expand=payload&limit={MAX_EXPANDED_PAGE + 1}")
    assert (refused.status, list(refused.faults)) == (400, ["limit"])
    first = api.send("GET", "/v1/tasks", query="expand=payload").body
    assert (len(first["tasks"]), first["applied"]["limit"]) == (MAX_EXPANDED_PAGE, MAX_EXPANDED_PAGE)
    rest = api.send("GET", "/v1/tasks", query=f"expand=payload&next_token={first['next_token']}").body
    assert (len(rest["tasks"]), rest["next_token"]) == (1, None)
    for query, field in (("expand=tags", "expand"), ("expand=", "expand"), ("expand=payload&ids=x", "ids")):
        answer = api.send("GET", "/v1/tasks", query=query)
        assert (answer.status, field in answer.faults or "expand[0]" in answer.faults) == (400, True), answer.body


def test_a_page_ends_before_its_contents_become_too_large(api: Gateway) -> None:
    """A page ends before its contents become too large, and the following pages have all other tasks."""
    size = MAX_EXPANDED_BYTES // 3
    made = [api.create({**LATER, "payload": str(number) * size})["id"] for number in range(5)]
    found: list[dict[str, Any]] = []
    token, pages = "", 0
    while token is not None:
        page = api.send("GET", "/v1/tasks", query="expand=payload" + (f"&next_token={token}" if token else "")).body
        assert len(json.dumps(page)) < MAX_EXPANDED_BYTES + 20_000
        found += page["tasks"]
        token, pages = page["next_token"], pages + 1
    assert sorted(each["id"] for each in found) == sorted(made)
    assert pages > 1
    assert {each["payload"][0] for each in found} == set("01234")


def test_a_search_for_part_of_a_name_shows_the_examined_task_count(
    api: Gateway, clock: StandingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search for part of a name shows how many tasks were examined and where the search ended.

    The next page continues there.
    """
    monkeypatch.setattr("duetime.services.tasks.read.MAX_EXAMINED", 20)
    old = api.create({"type": "report", "name": "Month close"})
    clock.at += HOUR
    since = to_iso(clock.at)
    composed(TaskServices).batch_creator.create_many(LOCAL_OWNER, [Order(TaskSpec("report", name="other"))] * 30)
    query = "name_contains=CLOSE&limit=5"
    pages: list[dict[str, Any]] = []
    while not pages or pages[-1]["next_token"]:
        token = f"&next_token={pages[-1]['next_token']}" if pages else ""
        pages.append(api.send("GET", "/v1/tasks", query=query + token).body)
    assert [[task["id"] for task in page["tasks"]] for page in pages] == [[], [old["id"]]]
    assert [page["applied"]["examined"] for page in pages] == [20, 11]
    assert [page["applied"]["examined_to"] for page in pages] == [since, None]
    bounded = api.send("GET", "/v1/tasks", query=f"name_contains=CLOSE&created_after={since}&limit=100").body
    assert (bounded["tasks"], bounded["applied"]["examined"], bounded["next_token"]) == ([], 30, None)


def test_a_list_with_count_shows_how_many_tasks_match(api: Gateway) -> None:
    """With `count`, each page shows the number and the cost of all matching tasks."""
    costs = [api.create(LATER)["cost_dollars"] for _ in range(5)]
    api.create({**LATER, "type": "mail"})
    first = api.send("GET", "/v1/tasks", query="type=report&limit=2&count=true").body
    counted = {"tasks": 5, "is_exact": True, "cost_dollars": pytest.approx(sum(costs))}
    assert first["applied"]["count"] == counted
    query = f"type=report&limit=2&count=true&next_token={first['next_token']}"
    assert api.send("GET", "/v1/tasks", query=query).body["applied"]["count"] == counted
    assert api.send("GET", "/v1/topologies", query="count=true").body["applied"]["count"]["tasks"] == 0
