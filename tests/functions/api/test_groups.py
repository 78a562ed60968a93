"""Tests of groups over REST: which tasks may join, what responses show, and which field an error names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import GROUP_LIFE
from duetime.domain.times import DAY
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from tests.clocks import StandingClock

MEMBER = {"type": "part", "delay_seconds": 600, "group": {"id": "import-17"}}
PATH = "/v1/groups/import-17"
CLOSING = {"on_complete": {"task": {"type": "report"}, "rule": "all_success"}}


def as_owner(name: str) -> Gateway:
    """A gateway that sends requests for this owner."""
    return Gateway(headers={"x-duetime-owner": name})


def test_the_first_task_of_a_group_creates_the_group(api: Gateway) -> None:
    """The first task of a group creates the group, which counts the task and can filter the task list."""
    task, other = api.create(MEMBER), api.create({"type": "part"})
    assert (task["group"], other["group"]) == ({"id": "import-17"}, None)
    shown = api.send("GET", PATH).body
    assert {name: shown[name] for name in ("id", "state", "total", "ended", "counts", "progress", "on_complete")} == {
        "id": "import-17",
        "state": "open",
        "total": 1,
        "ended": 0,
        "counts": {"scheduled": 1},
        "progress": 0,
        "on_complete": None,
    }
    assert api.listed("group=import-17") == [task["id"]]
    assert api.listed("group=other") == []
    assert [each["id"] for each in api.send("GET", "/v1/groups").body["groups"]] == ["import-17"]


def test_members_are_listed_in_order_and_page_by_page(api: Gateway) -> None:
    """A group's members are listed in order across partitions and pages, and can be filtered by state."""
    made = [api.create({**MEMBER, "delay_seconds": 600 + number})["id"] for number in range(12)]
    page = api.send("GET", "/v1/tasks", query="group=import-17&limit=5&order=asc").body
    token = page["next_token"]
    rest = api.send("GET", "/v1/tasks", query=f"group=import-17&limit=50&order=asc&next_token={token}").body
    ids = [each["id"] for each in page["tasks"] + rest["tasks"]]
    assert ids == made
    assert api.listed("group=import-17") == made[::-1]
    assert api.send("POST", f"/v1/tasks/{made[3]}/cancel").status == 200
    assert api.listed("group=import-17&state=cancelled") == [made[3]]
    assert api.listed("group=import-17&state=failed") == []


def test_two_owners_can_use_the_same_group_id(api: Gateway) -> None:
    """Two owners can use the same group id for different groups."""
    api.create(MEMBER)
    ann = as_owner("ann")
    assert ann.send("GET", PATH).problem["code"] == "group_not_found"
    for action in ("cancel", "retry"):
        assert ann.send("POST", f"{PATH}/{action}").problem["code"] == "group_not_found"
    assert ann.listed("group=import-17") == []
    ann.create(MEMBER)
    assert ann.send("PUT", PATH, {}).body["total"] == 1
    assert api.send("GET", PATH).body["state"] == "open"


def test_a_closed_group_rejects_new_members(api: Gateway) -> None:
    """A closed group refuses new members, alone or in a batch, but a repeated creation returns the existing task."""
    first = api.create(MEMBER, {"Idempotency-Key": "one"})
    assert api.send("PUT", PATH, CLOSING).status == 200
    assert api.create(MEMBER, {"Idempotency-Key": "one"})["id"] == first["id"]
    refused = api.send("POST", "/v1/tasks", MEMBER).problem
    assert (refused["status"], refused["code"]) == (409, "group_closed")
    assert "import-17" in refused["detail"]
    results = api.send("POST", "/v1/tasks/batch", {"tasks": [MEMBER, {"type": "part"}]}).body["results"]
    assert [each["status"] for each in results] == [409, 201]
    assert api.send("GET", PATH).body["total"] == 1


def test_closing_again_changes_nothing(api: Gateway) -> None:
    """Closing a group again with the same request returns the same task, and a different request is a conflict."""
    api.create(MEMBER)
    first = api.send("PUT", PATH, CLOSING).body
    assert first["state"] == "closed"
    assert api.send("PUT", PATH, CLOSING).body["on_complete"] == first["on_complete"]
    task = api.send("GET", f"/v1/tasks/{first['on_complete']['task_id']}").body
    assert (task["type"], task["completes_group"], task["group"]) == ("report", "import-17", None)
    for other in ({}, {"on_complete": {"task": {"type": "other"}}}):
        assert api.send("PUT", PATH, other).problem["code"] == "group_closed"


def test_an_empty_group_is_complete_when_it_is_closed(api: Gateway) -> None:
    """A group without members is complete as soon as the group is closed."""
    shown = api.send("PUT", "/v1/groups/empty", {}).body
    assert (shown["state"], shown["total"], shown["progress"]) == ("completed", 0, 0)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"on_complete": {}}, "on_complete.task"),
        ({"on_complete": {"task": {"type": "a"}, "callback_url": "https://example.org"}}, "on_complete.callback_url"),
        ({"on_complete": {"task": {"type": "a"}, "rule": "always"}}, "on_complete.rule"),
        ({"on_complete": {"task": {"type": "a", "due_at": "2026-12-01T09:00:00Z"}}}, "on_complete.task.due_at"),
        ({"on_complete": {"task": {"type": "a", "group": {"id": "b"}}}}, "on_complete.task.group"),
        ({"on_complete": {"task": {"type": "a", "unique": {"key": "b"}}}}, "on_complete.task.unique"),
        ({"on_complete": {"task": {"type": "a", "target": {"kind": "pull"}}}}, "on_complete.task.target"),
        ({"closed": True}, "closed"),
    ],
)
def test_an_error_for_an_invalid_closing_request_names_the_field(
    api: Gateway, body: dict[str, Any], field: str
) -> None:
    """An error for an invalid closing request names the field, and the group stays open."""
    api.create(MEMBER)
    answer = api.send("PUT", PATH, body)
    assert answer.status == 422, answer.text
    assert field in answer.faults
    assert api.send("GET", PATH).body["state"] == "open"


def test_invalid_group_ids_are_rejected(api: Gateway) -> None:
    """Invalid group ids are refused in fields, queries and paths, and an unknown group returns 404."""
    assert "group.id" in api.send("POST", "/v1/tasks", {"type": "part", "group": {"id": "a#b"}}).faults
    assert "group" in api.send("GET", "/v1/tasks", query="group=a%23b").faults
    assert "group_id" in api.send("PUT", "/v1/groups/a%23b", {}).faults
    assert api.send("GET", "/v1/groups/a%23b").problem["code"] == "group_not_found"
    assert api.send("GET", "/v1/groups/unknown").problem["code"] == "group_not_found"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (
            "/v1/schedules",
            {"name": "n", "cron": "0 9 * * *", "task": {"type": "a", "group": {"id": "b"}}},
            "task.group",
        ),
        ("/v1/topologies", {"nodes": {"a": {"type": "a", "group": {"id": "b"}}}}, "nodes.a.group"),
    ],
)
def test_only_tasks_that_are_created_join_a_group(api: Gateway, path: str, body: dict[str, Any], field: str) -> None:
    """Schedule templates and nodes cannot join a group, but a topology can."""
    assert api.send("POST", path, body).faults == {field: "is allowed only where a task is created"}
    topology = api.send("POST", "/v1/topologies", {"nodes": {"a": {"type": "a"}}, "group": {"id": "import-17"}}).body
    assert api.listed("group=import-17") == [topology["id"]]


def test_each_task_that_joins_a_group_renews_its_expiry(api: Gateway, clock: StandingClock) -> None:
    """Each task that joins renews the group's expiry. After the expiry, the same id denotes a new group."""
    api.create(MEMBER)
    created = api.send("GET", PATH).body["created_at"]
    clock.at += GROUP_LIFE - DAY
    api.create(MEMBER)
    clock.at += GROUP_LIFE - DAY
    assert api.send("GET", PATH).body["created_at"] == created
    clock.at += 2 * DAY
    assert api.send("GET", PATH).status == 404
    api.create(MEMBER)
    assert api.send("GET", PATH).body["created_at"] != created


def test_a_page_of_groups_is_full_although_some_have_expired(api: Gateway, clock: StandingClock) -> None:
    """A page of groups is filled with later groups if some of its groups have expired."""
    for name in ("a", "b"):
        api.create({**MEMBER, "group": {"id": name}})
    clock.at += GROUP_LIFE - DAY
    for name in ("c", "d", "e"):
        api.create({**MEMBER, "group": {"id": name}})
    clock.at += 2 * DAY
    page = api.send("GET", "/v1/groups", query="limit=2").body
    rest = api.send("GET", "/v1/groups", query=f"limit=2&next_token={page['next_token']}").body
    assert [each["id"] for each in page["groups"] + rest["groups"]] == ["c", "d", "e"]


def test_many_open_members_are_counted_without_their_states(api: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a group has many open members, they are counted together; if it has few, they are counted by state."""
    monkeypatch.setattr("duetime.services.group_admin.MAX_COUNTED_OPEN", 2)
    tasks = [api.create({**MEMBER, "delay_seconds": 600 + number})["id"] for number in range(4)]
    assert api.send("GET", PATH).body["counts"] == {"open": 4}
    for task in tasks[:2]:
        assert api.send("POST", f"/v1/tasks/{task}/cancel").status == 200
    assert api.send("GET", PATH).body["counts"] == {"cancelled": 2, "scheduled": 2}
