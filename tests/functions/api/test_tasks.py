from __future__ import annotations

from random import Random
from string import ascii_letters
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from duetime.adapters.aws_clients import Clients
from duetime.domain.ids import TaskId
from duetime.domain.times import DAY, MINUTE
from tests.clocks import NOW
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

UNKNOWN = TaskId.of(NOW, 7, 42)
DUE = "2026-11-21T11:33:07.250+09:00"


def test_a_created_task_is_returned_and_can_be_read(api: Gateway) -> None:
    """A creation returns 201 with id, location and version, and the created task can be read at the location."""
    answer = api.send(
        "POST", "/v1/tasks", {"type": "report", "payload": {"month": "2026-11"}, "due_at": DUE, "name": "Nov"}
    )
    task = answer.body
    assert answer.status == 201
    assert answer.headers["ETag"] == '"1"'
    assert answer.location == f"/v1/tasks/{task['id']}"
    assert task | {"state": "scheduled", "due_at": "2026-11-21T02:33:07.250Z", "payload": {"month": "2026-11"}} == task
    found = api.send("GET", answer.location)
    assert (found.status, found.body, found.headers["ETag"]) == (200, task, '"1"')
    assert found.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("size", [10, 3_000, 500_000, 1_048_574])
def test_a_payload_of_any_size_is_returned_unchanged(api: Gateway, size: int) -> None:
    """A payload of any size is returned unchanged, no matter where the payload is stored."""
    # The string cannot be compressed, so the payload is stored outside the record.
    payload = "".join(chr(33 + (index * index // 7) % 900) for index in range(size // 2))
    payload = payload.encode()[: size - 2].decode(errors="ignore").replace('"', "q").replace("\\", "b")
    task = api.create({"type": "report", "payload": payload, "delay_seconds": 60})
    assert task["payload"] == payload
    assert api.send("GET", f"/v1/tasks/{task['id']}").body["payload"] == payload
    assert api.send("PATCH", f"/v1/tasks/{task['id']}", {"name": "n"}).body["payload"] == payload
    assert api.send("POST", f"/v1/tasks/{task['id']}/cancel").body["payload"] == payload


def test_a_small_payload_creates_no_s3_client(api: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The S3 client, which takes an eighth of the startup time, is created only for payloads in the bucket."""
    made: list[object] = []
    make = Clients.s3

    def counted(clients: Clients) -> object:
        made.append(make(clients))
        return made[-1]

    monkeypatch.setattr(Clients, "s3", counted)
    task = api.create({"type": "report", "payload": "x" * 2_000, "delay_seconds": 60})
    assert api.send("GET", f"/v1/tasks/{task['id']}").status == 200
    assert made == []
    large = "".join(Random(1).choices(ascii_letters, k=400_000))  # noqa: S311 - not a secret
    for _ in range(2):
        assert api.create({"type": "report", "payload": large, "delay_seconds": 60})["payload"] == large
    assert len(made) == 1


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.9Z", "2016-12-31T23:59:60Z"])
def test_a_due_time_in_the_past_is_accepted(api: Gateway, at: str) -> None:
    """A task with a due time in the past is due now, and keeps its due time."""
    task = api.create({"type": "report", "due_at": at})
    assert task["next_at"] == "2026-11-21T02:33:07.250Z"
    assert task["due_at"] < "2026-11-21"


@pytest.mark.parametrize("due", [{"due_at": "2036-11-22T02:33:07.251Z"}, {"due_at": "9999-12-31T23:59:59.999Z"}])
def test_a_due_time_more_than_ten_years_ahead_is_rejected(api: Gateway, due: dict[str, str]) -> None:
    """A due time more than ten years ahead is refused, and the error names the field."""
    api.create({"type": "report", "due_at": "2036-11-21T02:33:07.250Z"})
    answer = api.send("POST", "/v1/tasks", {"type": "report", **due})
    assert (answer.status, list(answer.faults)) == (422, ["due_at"])
    assert len(api.listed()) == 1


def test_another_owners_task_is_not_listed_and_returns_404(api: Gateway) -> None:
    """Another owner's task is not listed, and reading, changing or cancelling the task returns 404."""
    task = api.create({"type": "report", "delay_seconds": 60}, {"X-Duetime-Owner": "mine"})
    path = f"/v1/tasks/{task['id']}"
    for answer in (api.send("GET", path), api.send("PATCH", path, {"name": "x"}), api.send("POST", f"{path}/cancel")):
        assert (answer.status, answer.problem["code"]) == (404, "task_not_found")
    assert api.listed() == []
    assert api.listed(f"ids={task['id']}") == []
    assert api.send("GET", path, headers={"X-Duetime-Owner": "mine"}).body == task


@pytest.mark.parametrize("text", [str(UNKNOWN), "1", str(UNKNOWN).lower(), "%00", "..", "a" * 5_000, "ä", "8" * 26])
def test_unknown_and_invalid_task_ids_return_404(api: Gateway, text: str) -> None:
    """A request with an unknown or an invalid id returns 404."""
    for answer in (api.send("GET", f"/v1/tasks/{text}"), api.send("POST", f"/v1/tasks/{text}/cancel")):
        assert (answer.status, answer.problem["status"]) == (404, 404)


def test_a_get_of_a_task_with_its_current_etag_returns_304(api: Gateway) -> None:
    """`If-None-Match` with the current ETag returns 304."""
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    same = api.send("GET", path, headers={"If-None-Match": 'W/"1"'})
    assert (same.status, same.text, same.headers["ETag"]) == (304, "", '"1"')
    api.send("PATCH", path, {"name": "other"})
    assert api.send("GET", path, headers={"If-None-Match": '"1"'}).status == 200


def test_an_ended_task_may_be_cached_privately(api: Gateway) -> None:
    """Caches may store an ended task privately, but must revalidate it."""
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    api.send("POST", f"{path}/cancel")
    for headers in ({}, {"If-None-Match": '"2"'}):
        assert api.send("GET", path, headers=headers).headers["Cache-Control"] == "private, no-cache"


def test_an_update_changes_the_given_fields_and_increases_the_version(api: Gateway) -> None:
    """Before a task starts, an update changes the given fields, keeps omitted fields, and increases the version."""
    task = api.create({"type": "report", "delay_seconds": 60, "name": "old", "tags": {"a": "b"}, "payload": 1})
    path = f"/v1/tasks/{task['id']}"
    change = {
        "delay_seconds": 600.5,
        "priority": "low",
        "payload": {"new": True},
        "retry": {"max_attempts": 1},
        "timeout_seconds": 5,
        "notify_within_seconds": 7,
        "rollback_on_failure": True,
        "target": {"kind": "http", "url": "https://example.org/", "phases": ["rollback", "prepare"]},
        "tags": {"a": None},
    }
    answer = api.send("PATCH", path, change, {"If-Match": '"1"'})
    changed = answer.body
    assert (answer.status, answer.headers["ETag"]) == (200, '"2"')
    assert (changed["name"], changed["tags"], changed["payload"]) == ("old", {}, {"new": True})
    assert (changed["due_at"], changed["next_at"]) == ("2026-11-21T02:43:07.750Z", "2026-11-21T02:43:07.750Z")
    assert (changed["priority"], changed["retry"]["max_attempts"], changed["timeout_seconds"]) == ("low", 1, 5)
    assert (changed["notify_within_seconds"], changed["rollback_on_failure"]) == (7, True)
    assert changed["target"]["phases"] == ["prepare", "rollback"]
    assert api.send("GET", path).body == changed


def test_a_change_for_another_version_is_refused(api: Gateway) -> None:
    """A change or cancel with a different version in `If-Match` returns 412, and the task does not change."""
    task = api.create({"type": "report", "delay_seconds": 60})
    path = f"/v1/tasks/{task['id']}"
    for tag in ('"2"', 'W/"1"', '"other"'):
        for answer in (
            api.send("PATCH", path, {"name": "x"}, {"If-Match": tag}),
            api.send("POST", f"{path}/cancel", headers={"If-Match": tag}),
        ):
            assert (answer.status, answer.problem["code"], list(answer.faults)) == (
                412,
                "version_mismatch",
                ["If-Match"],
            )
    assert api.send("GET", path).body == task
    assert api.send("PATCH", path, {"name": "x"}, {"If-Match": "*"}).status == 200


def test_an_update_to_a_due_time_beyond_ten_years_is_rejected(api: Gateway) -> None:
    """The limit of ten years for the due time is the same in updates as in creations."""
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    answer = api.send("PATCH", path, {"due_at": "2037-01-01T00:00:00Z"})
    assert (answer.status, list(answer.faults)) == (422, ["due_at"])


def test_a_second_cancel_returns_the_cancelled_task_unchanged(api: Gateway) -> None:
    """A second cancel returns the cancelled task unchanged, and an update of a cancelled task is a conflict."""
    path = f"/v1/tasks/{api.create({'type': 'report', 'delay_seconds': 60})['id']}"
    first, again = api.send("POST", f"{path}/cancel"), api.send("POST", f"{path}/cancel")
    assert (first.status, first.body["state"], first.body["next_at"]) == (200, "cancelled", None)
    assert (again.status, again.body) == (200, first.body)
    late = api.send("PATCH", path, {"name": "x"})
    assert (late.status, late.problem["code"]) == (409, "state_conflict")


def test_a_running_task_can_no_longer_be_changed_or_cancelled(api: Gateway, clock: StandingClock) -> None:
    """A running task cannot be changed, nor cancelled without `force`."""
    task_id = api.create()["id"]
    claimed_by_a_worker(task_id, clock)
    path = f"/v1/tasks/{task_id}"
    assert api.send("GET", path).body["state"] == "running"
    for answer in (
        api.send("PATCH", path, {"name": "x"}),
        api.send("POST", f"{path}/cancel"),
        api.send("POST", f"{path}/cancel", {"force": False}),
    ):
        assert (answer.status, answer.problem["code"]) == (409, "state_conflict")
        assert "running" in answer.problem["detail"]


def test_a_running_task_is_asked_to_stop_with_force(api: Gateway, clock: StandingClock) -> None:
    """With `force`, cancelling a running task always returns 202, and cancelling an unstarted task returns 200."""
    task_id = api.create()["id"]
    claimed_by_a_worker(task_id, clock)
    for _ in range(2):
        asked = api.send("POST", f"/v1/tasks/{task_id}/cancel", {"force": True})
        assert (asked.status, asked.body["state"], asked.body["requested_action"]) == (202, "running", "cancel")
    waiting = api.create({"type": "report", "delay_seconds": 60})["id"]
    taken = api.send("POST", f"/v1/tasks/{waiting}/cancel", {"force": True})
    assert (taken.status, taken.body["state"], taken.body["requested_action"]) == (200, "cancelled", None)


def test_a_cancel_with_force_requires_the_owner_and_the_version(api: Gateway, clock: StandingClock) -> None:
    """A cancel with `force` changes nothing for another owner, for a different version, or if `force` is invalid."""
    task_id = api.create()["id"]
    claimed_by_a_worker(task_id, clock)
    path = f"/v1/tasks/{task_id}"
    for body, headers, status, code in (
        ({"force": True}, {"X-Duetime-Owner": "other"}, 404, "task_not_found"),
        ({"force": True}, {"If-Match": '"1"'}, 412, "version_mismatch"),
        ({"force": "yes"}, {}, 422, "fields_invalid"),
        ({"force": True, "now": True}, {}, 422, "fields_invalid"),
    ):
        answer = api.send("POST", f"{path}/cancel", body, headers=headers)
        assert (answer.status, answer.problem["code"]) == (status, code)
    assert api.send("GET", path).body["requested_action"] is None


def test_pages_show_each_task_once_in_order_of_due_time(api: Gateway) -> None:
    """The pages of a list show each task once, ordered by due time in either direction."""
    ids = [api.create({"type": "report", "delay_seconds": 60 * number})["id"] for number in range(7)]
    for order, expected in (("asc", ids), ("desc", ids[::-1])):
        seen: list[str] = []
        token = ""
        while True:
            page = api.send("GET", "/v1/tasks", query=f"limit=3&order={order}{token}").body
            assert len(page["tasks"]) <= 3
            seen += [task["id"] for task in page["tasks"]]
            if page["next_token"] is None:
                break
            token = f"&next_token={page['next_token']}"
        assert seen == expected


def test_a_list_is_narrowed_by_its_filters(api: Gateway, clock: StandingClock) -> None:
    """Each filter of a list leaves only matching tasks, and listed tasks have no payload."""
    one = api.create(
        {"type": "report", "name": "Monatsabschluß", "tags": {"a": "1", "b": "2"}, "due_at": "2026-12-01T00:00:00Z"}
    )["id"]
    two = api.create({"type": "backup", "tags": {"a": "1"}, "due_at": "2026-12-02T00:00:00Z"})["id"]
    clock.at += MINUTE
    api.send("POST", f"/v1/tasks/{two}/cancel")
    for query, expected in (
        ("", [two, one]),
        ("order=asc", [one, two]),
        ("type=report", [one]),
        (f"name={quote('Monatsabschluß')}", [one]),
        ("name_contains=ABSCHLUSS", [one]),
        ("name_contains=abschluss&state=cancelled", []),
        ("name_contains=close", []),
        ("error_contains=Boom", []),
        ("tag=a:1", [two, one]),
        ("tag=a:1&tag=b:2", [one]),
        ("state=cancelled", [two]),
        ("state=failed", []),
        ("due_after=2026-12-02T00:00:00Z", [two]),
        ("state=scheduled&state=cancelled", [two, one]),
        ("state=scheduled,cancelled", [two, one]),
        ("created_after=2026-11-21T02:33:08Z", []),
        ("created_before=2026-11-21T02:33:08Z", [two, one]),
        ("finished_after=2026-11-21T00:00:00Z", [two]),
        ("finished_before=2026-11-21T00:00:00Z", []),
        ("error_type=Boom", []),
        ("schedule=nightly", []),
        ("due_before=2026-12-02T00:00:00Z", [one]),
        (f"ids={one},{two},{UNKNOWN}", [one, two]),
    ):
        assert api.listed(query) == expected, query
    entry = api.send("GET", "/v1/tasks").body["tasks"][0]
    assert not {"payload", "result"} & set(entry)


def test_a_token_of_another_owner_or_list_is_refused(api: Gateway) -> None:
    """A page token works only for its own list."""
    for _ in range(2):
        api.create({"type": "report", "delay_seconds": 60})
    token = api.send("GET", "/v1/tasks", query="limit=1").body["next_token"]
    for query, headers in (
        (f"limit=1&order=asc&next_token={token}", {}),
        (f"limit=1&next_token={token}", {"X-Duetime-Owner": "other"}),
        (f"limit=1&next_token={token[:-1]}", {}),
        ("next_token=%00", {}),
    ):
        answer = api.send("GET", "/v1/tasks", query=query, headers=headers)
        assert (answer.status, list(answer.faults)) == (400, ["next_token"])


def test_a_task_due_in_years_can_be_read_long_after_its_creation(api: Gateway, clock: StandingClock) -> None:
    """A task that is due in some years can be read and listed long after its creation."""
    task = api.create({"type": "report", "delay_seconds": 9 * 365 * 86_400})
    clock.at += 365 * DAY
    assert api.send("GET", f"/v1/tasks/{task['id']}").body == task
    assert api.listed() == [task["id"]]
