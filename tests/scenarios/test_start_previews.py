"""Previews say when a task would start and what it would wait for, without changing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.contract.http.timestamps import instant_of
from duetime.domain.times import to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

CRM = {"key": "crm", "limit": 2, "per_seconds": 10}
_WRITES = {"put_item", "update_item", "delete_item", "transact_write_items", "batch_execute_statement"}


def preview(tasks: Tasks, **fields: Any) -> Any:  # noqa: ANN401 - JSON
    """Preview a task, and check that the preview writes nothing."""
    written: list[str] = []

    def watch(call: Call) -> None:
        # A process that does not know the number of shards stores the number at its first request.
        is_new = not (call.partition or "").startswith(schema.CURSOR_PREFIX)
        if call.machine.function == "api" and call.operation in _WRITES and is_new:
            written.append(call.operation)

    tasks.before_call = watch
    found = tasks.ask("POST", "/v1/tasks/preview", {"type": PLAIN, **fields})
    tasks.before_call = None
    assert found.status == 200, found.body
    assert not written
    return found.body


def names(found: Any) -> list[str]:  # noqa: ANN401 - JSON
    """The names of the reasons in a preview."""
    return [reason["name"] for reason in found["reasons"]]


def test_the_preview_of_a_task_without_conditions_gives_its_due_time() -> None:
    """A task without other conditions is expected to start at its due time, or now if it has no due time."""
    with Tasks() as tasks:
        now = preview(tasks)
        assert (names(now), now["expected_start_at"], now["due_at"]) == ([], now["as_of"], now["as_of"])
        assert now["text"].endswith(", now.")
        due = to_iso(tasks.now + HOUR)
        later = preview(tasks, due_at=due)
        assert (names(later), later["expected_start_at"], later["due_at"]) == (["due"], due, due)
        assert not list(tasks.watching.tasks())


def test_the_preview_with_a_rate_gives_the_next_start_time() -> None:
    """The start time in a preview matches the actual start; a task that is due later does not wait for the rate."""
    with Tasks() as tasks:
        for _ in range(4):
            tasks.create(rate=CRM)
        tasks.run(2 * SECOND)
        found = preview(tasks, rate=CRM)
        assert names(found) == ["rate"]
        assert found["reasons"][0]["waits_for"]["rate"]["limit"] == 2
        made = tasks.create(rate=CRM)
        tasks.run(MINUTE)
        assert abs(tasks.effect_times(made)[0] - instant_of(found["expected_start_at"])) < SECOND
        assert names(preview(tasks, rate=CRM, delay_seconds=60)) == ["due"]


def test_previews_with_a_paused_rate_give_no_start_time() -> None:
    """With a paused rate, previews and explanations give no start time; a pinned limit is shown."""
    with Tasks() as tasks:
        tasks.ask("POST", "/v1/rates/crm/pause")
        found = preview(tasks, rate=CRM)
        assert (names(found), found["expected_start_at"]) == (["rate"], None)
        assert "has been paused since" in found["text"]
        made = tasks.create(rate=CRM)
        tasks.run(2 * SECOND)
        told = tasks.ask("GET", f"/v1/tasks/{made}/explain").body
        assert "The rate crm has been paused since" in told["text"]
        tasks.ask("PUT", "/v1/rates/crm", {"limit": 7, "per_seconds": 60})
        # The task was checked again and put back.
        tasks.run(3 * SECOND)
        waited = tasks.ask("GET", f"/v1/tasks/{made}/explain").body["gates"][-1]["waits_for"]["rate"]
        assert (waited["limit"], waited["is_pinned"], waited["paused_at"] is None) == (7, True, False)


def test_the_preview_names_the_holder_of_a_lock() -> None:
    """The preview names the lock's holder, and gives no start time."""
    with Tasks() as tasks:
        tasks.last(30)
        holder = tasks.create(lock={"key": "db"})
        tasks.run(2 * SECOND)
        found = preview(tasks, lock={"key": "db"})
        assert (names(found), found["expected_start_at"]) == (["lock"], None)
        assert [each["task_id"] for each in found["reasons"][0]["waits_for"]["lock"]["holders"]] == [holder]


def test_the_preview_names_a_stop_or_a_used_up_concurrency_limit() -> None:
    """The preview names a stop or a used-up concurrency limit for the task's type."""
    with Tasks() as tasks:
        tasks.last(30)
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", {"max_concurrent": 1}).status == 200
        tasks.run(10 * SECOND)
        tasks.create()
        tasks.run(2 * SECOND)
        assert names(preview(tasks)) == ["concurrency_limit"]
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", {"stopped": True, "reason": "a leak"}).status == 200
        found = preview(tasks)
        assert (names(found)[0], found["expected_start_at"]) == ("switch", None)
        assert "a leak" in found["text"]


@pytest.mark.parametrize("conflict", ["keep", "replace", "refuse"])
def test_the_preview_with_a_held_unique_key_names_the_existing_task(conflict: str) -> None:
    """If another task holds the unique key, the preview gives no start time, because no task would be created."""
    with Tasks() as tasks:
        unique = {"key": "customer-17", "on_conflict": conflict}
        assert names(preview(tasks, unique=unique)) == []
        holder = tasks.create(HOUR, unique=unique)
        found = preview(tasks, unique=unique)
        assert (names(found), found["expected_start_at"]) == (["unique_key"], None)
        assert [each["task_id"] for each in found["reasons"][0]["waits_for"]["tasks"]] == [holder]


def test_the_preview_of_a_debounced_task_counts_the_delay_from_now() -> None:
    """In the preview of a debounced task, the delay counts from now."""
    with Tasks() as tasks:
        found = preview(tasks, debounce={"key": "k", "seconds": 60})
        assert instant_of(found["due_at"]) - instant_of(found["as_of"]) == MINUTE


def test_the_preview_gives_a_queues_backlog_as_a_reason() -> None:
    """The preview gives messages that wait in the queue of the task's priority as a reason."""
    with Tasks() as tasks:
        tasks.receiving = False
        for _ in range(3):
            tasks.create(priority="low")
        tasks.run(SECOND)
        found = preview(tasks, priority="low")
        assert names(found) == ["queue"]
        assert found["text"].endswith("3 messages wait in the queue low; those that are due earlier start first.")
        assert found["expected_start_at"] == found["as_of"]
        assert names(preview(tasks, priority="high")) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "type"),
        ({"type": PLAIN, "due_at": "never"}, "due_at"),
        ({"type": PLAIN, "delay_seconds": 400_000_000}, "delay_seconds"),
        ({"type": PLAIN, "nothing": 1}, "nothing"),
        ({"type": PLAIN, "parent_task_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "parent_task_id"),
    ],
)
def test_a_preview_has_the_same_errors_as_a_creation(body: dict[str, Any], field: str) -> None:
    """A preview's status and errors are the same as for a create request."""
    with Tasks() as tasks:
        found, created = (tasks.ask("POST", path, body) for path in ("/v1/tasks/preview", "/v1/tasks"))
        assert found.status == created.status == 422
        assert found.body["errors"] == created.body["errors"]
        assert [each["field"] for each in found.body["errors"]] == [field]


def test_the_preview_of_a_task_with_dependencies_gives_no_start_time() -> None:
    """The preview of a task with dependencies names only the open dependencies, and gives no start time."""
    with Tasks() as tasks:
        ended, far = tasks.create(), tasks.create(HOUR)
        tasks.run(SECOND)
        found = preview(tasks, after=[ended, far])
        assert (names(found), found["expected_start_at"]) == (["parents"], None)
        assert [each["task_id"] for each in found["reasons"][0]["waits_for"]["tasks"]] == [far]
        assert names(preview(tasks, after=[ended])) == []


def test_the_preview_of_an_ordered_task_names_the_task_ahead() -> None:
    """The preview of a task with an ordered key names the task ahead, and takes no place in the line."""
    with Tasks() as tasks:
        first = tasks.create(HOUR, order={"key": "k"})
        found = preview(tasks, order={"key": "k"})
        assert (names(found), found["expected_start_at"]) == (["order"], None)
        assert [each["task_id"] for each in found["reasons"][0]["waits_for"]["order"]["tasks"]] == [first]
        assert names(preview(tasks, order={"key": "other"})) == []
