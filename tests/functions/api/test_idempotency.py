from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import DAY, MINUTE, SECOND

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

BODY = {"type": "report", "payload": {"a": 1, "b": [2]}, "delay_seconds": 300}
KEY = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}


def test_a_repeated_request_returns_the_same_task(api: Gateway, clock: StandingClock) -> None:
    """Repeating a request with the same key and body returns the same task with its original due time."""
    first = api.send("POST", "/v1/tasks", BODY, KEY)
    clock.at += MINUTE
    again = api.send("POST", "/v1/tasks", BODY, KEY)
    assert (again.status, again.body) == (201, first.body)
    own = {"Idempotent-Replayed", "Request-Id"}
    assert {name: value for name, value in again.headers.items() if name not in own} == {
        name: value for name, value in first.headers.items() if name not in own
    }
    assert len(api.listed()) == 1


def test_bodies_that_differ_only_in_field_order_and_spaces_are_the_same(api: Gateway) -> None:
    """Two bodies count as the same if they differ only in field order, spaces and escapes."""
    first = api.create(BODY, KEY)
    raw = '{"delay_seconds":300 , "payload": {"b":[2],"\\u0061":1},\n"type": "report"}'
    assert api.send("POST", "/v1/tasks", raw=raw, headers=KEY).body == first


@pytest.mark.parametrize("change", [{"payload": None}, {"delay_seconds": 301}, {"type": "other"}, {"name": "n"}])
def test_a_key_with_another_body_is_refused(api: Gateway, change: dict[str, object]) -> None:
    """A key with a different body returns a 422 error with its own code, and no task is created."""
    api.create(BODY, KEY)
    answer = api.send("POST", "/v1/tasks", BODY | change, KEY)
    assert (answer.status, answer.problem["code"]) == (422, "idempotency_key_reused")
    assert list(answer.faults) == ["Idempotency-Key"]
    assert len(api.listed()) == 1


def test_a_key_belongs_to_its_owner(api: Gateway) -> None:
    """Two owners can use the same key for different tasks."""
    ids = {api.create(BODY, KEY | {"X-Duetime-Owner": owner})["id"] for owner in ("mine", "yours", "mine")}
    assert len(ids) == 2


def test_a_key_is_forgotten_after_a_day(api: Gateway, clock: StandingClock) -> None:
    """A key expires after a day, and can then be used for another request."""
    first = api.create(BODY, KEY)
    clock.at += DAY + MINUTE
    assert api.create(BODY, KEY)["id"] != first["id"]


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/tasks/batch", "/v1/topologies"])
def test_idempotency_key_seconds_sets_how_long_a_key_is_kept(api: Gateway, clock: StandingClock, path: str) -> None:
    """`Idempotency-Key-Seconds` keeps a key for up to a week, for every kind of resource."""
    body = {"/v1/tasks": BODY, "/v1/tasks/batch": {"tasks": [BODY]}}.get(path, {"nodes": {"a": {"type": "report"}}})
    headers = {**KEY, "Idempotency-Key-Seconds": str(7 * DAY // SECOND)}
    first = api.send("POST", path, body, headers)
    clock.at += 7 * DAY - MINUTE
    again = api.send("POST", path, body, headers)
    assert (again.status, again.headers.get("Idempotent-Replayed")) == (first.status, "true")
    clock.at += 2 * MINUTE
    assert "Idempotent-Replayed" not in api.send("POST", path, body, headers).headers


@pytest.mark.parametrize("seconds", ["59", "999999999", "1h", "-60", "1e3", ""])
def test_a_key_lifetime_beyond_the_retention_is_rejected(api: Gateway, seconds: str) -> None:
    """An invalid key lifetime is refused, and the error names the header and its range, up to the retention."""
    answer = api.send("POST", "/v1/tasks", BODY, {**KEY, "Idempotency-Key-Seconds": seconds})
    assert (answer.status, answer.problem["code"]) == (400, "parameters_invalid")
    assert "60 to 2592000" in answer.faults["Idempotency-Key-Seconds"]
    assert api.listed() == []


def test_a_key_lifetime_without_a_key_is_rejected(api: Gateway) -> None:
    """`Idempotency-Key-Seconds` is refused without a key, and by operations that would ignore the header."""
    alone = {"Idempotency-Key-Seconds": "600"}
    assert api.send("POST", "/v1/tasks", BODY, alone).status == 400
    schedule = {"name": "n", "cron": "0 1 * * *", "task": {"type": "report"}}
    assert list(api.send("POST", "/v1/schedules", schedule, {**KEY, **alone}).faults) == ["Idempotency-Key-Seconds"]


def test_a_key_outlives_its_tasks_end(api: Gateway) -> None:
    """Repeating a request after its task was cancelled returns the cancelled task."""
    task = api.create(BODY, KEY)
    api.send("POST", f"/v1/tasks/{task['id']}/cancel")
    again = api.send("POST", "/v1/tasks", BODY, KEY)
    assert (again.status, again.body["id"], again.body["state"]) == (201, task["id"], "cancelled")


def test_a_refused_request_does_not_use_up_its_key(api: Gateway) -> None:
    """A refused request does not use up its key, so that a corrected request can use the key."""
    assert api.send("POST", "/v1/tasks", {"type": 5}, KEY).status == 422
    api.create(BODY, KEY)


@pytest.mark.parametrize("key", ["", "k" * 256, "two words", "ключ", "tab\t", "nul\x00"])
def test_an_error_for_an_invalid_idempotency_key_names_the_header(api: Gateway, key: str) -> None:
    """A key must be 1 to 255 visible ASCII characters; otherwise, the error names the header."""
    answer = api.send("POST", "/v1/tasks", BODY, {"Idempotency-Key": key})
    assert (answer.status, list(answer.faults)) == (400, ["Idempotency-Key"])
    assert api.listed() == []
    api.create(BODY, {"Idempotency-Key": "k" * 255})


def test_a_repeated_batch_creates_only_the_missing_tasks(api: Gateway) -> None:
    """A key applies to each task in a batch, so that a repeat keeps accepted tasks and can correct refused tasks."""
    first = api.send("POST", "/v1/tasks/batch", {"tasks": [BODY, {"type": 5}]}, KEY).body["results"]
    again = api.send("POST", "/v1/tasks/batch", {"tasks": [BODY, BODY]}, KEY).body["results"]
    assert [result["status"] for result in (*first, *again)] == [201, 422, 201, 201]
    assert again[0] == first[0]
    conflict = api.send("POST", "/v1/tasks/batch", {"tasks": [BODY | {"name": "x"}, BODY]}, KEY).body["results"]
    assert [result.get("problem", {}).get("code") for result in conflict] == ["idempotency_key_reused", None]
    assert len(api.listed()) == 2


def test_a_batch_and_a_single_request_do_not_share_keys(api: Gateway) -> None:
    """The key of a single request never equals the key of a task in a batch."""
    api.send("POST", "/v1/tasks/batch", {"tasks": [BODY]}, {"Idempotency-Key": "k"})
    for key in ("k", "k0", "k#0", "k-0"):
        api.create({"type": "other"}, {"Idempotency-Key": key})
