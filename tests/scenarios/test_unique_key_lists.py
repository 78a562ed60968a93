"""Owners can list which of their tasks have unique keys."""

from __future__ import annotations

from tests.scenarios.scenario import HOUR, PLAIN, SECOND
from tests.scenarios.tasks import Tasks


def test_a_key_names_its_task_until_it_is_free() -> None:
    """Keys of `unique` and `debounce` are shown until their task ends."""
    with Tasks() as tasks:
        unique = tasks.create(SECOND, unique={"key": "customer/17"})
        body = {"type": PLAIN, "debounce": {"key": "rebuild", "seconds": 3_600}}
        debounced = tasks.ask("POST", "/v1/tasks", body).body["id"]
        found = tasks.ask("GET", "/v1/unique-keys").body
        shown = [
            (each["key"], each["kind"], each["until"], each["holders"][0]["task_id"]) for each in found["unique_keys"]
        ]
        assert shown == [("customer/17", "unique", "ended", unique), ("rebuild", "debounce", "started", debounced)]
        assert found["next_token"] is None
        assert tasks.ask("GET", "/v1/unique-keys/customer/17").body == found["unique_keys"][0]
        tasks.run(10 * SECOND)
        gone = tasks.ask("GET", "/v1/unique-keys/customer/17")
        assert (gone.status, gone.body["code"]) == (404, "unique_key_not_found")
        assert [each["key"] for each in tasks.ask("GET", "/v1/unique-keys").body["unique_keys"]] == ["rebuild"]


def test_a_long_list_of_keys_has_pages() -> None:
    """The pages of a long list have each key once, ordered by due time."""
    with Tasks() as tasks:
        for number in range(7):
            tasks.create(HOUR + number * SECOND, unique={"key": f"k{number}"})
            tasks.create(HOUR)
        keys: list[str] = []
        query = "limit=3"
        while True:
            page = tasks.ask("GET", "/v1/unique-keys", query=query).body
            assert len(page["unique_keys"]) <= 3
            keys += [each["key"] for each in page["unique_keys"]]
            if page["next_token"] is None:
                break
            query = f"limit=3&next_token={page['next_token']}"
        assert keys == [f"k{number}" for number in range(7)]
