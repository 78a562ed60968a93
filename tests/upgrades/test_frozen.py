"""Tests that the current code reads and finishes records that earlier code wrote."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.stream import removed_batch
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.contract.archive import JsonLines
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import from_datetime, minute_of
from duetime_testing.fakes.stream import record_of
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.functions.stack import OWNER
from tests.minutes import items_of
from tests.upgrades.freezing import DEFINITIONS, FROZEN, SCENES
from tests.upgrades.life import Life

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = sorted(FROZEN.glob("v*/*.json"))
NAMES = [f"{path.parent.name}-{path.stem}" for path in FILES]
PRESENT = f"v{schema.SCHEMA_VERSION}"
PASSING = frozenset(
    {
        *(schema.LONG_POLL_PREFIX, schema.WATCH_TICKET_PREFIX, schema.WATCH_CONNECTION_PREFIX),
        *(schema.WATCH_SUBSCRIPTION_PREFIX, schema.SUMMARY_PREFIX, schema.LIST_PREFIX),
    }
)
"""Kinds of items that are not frozen, because they last only as long as a connection or are derived from the tasks.
"""
UNKNOWN = {"zz": {"S": "of a newer version"}, "zn": {"N": "7"}, "zm": {"M": {"a": {"L": [{"BOOL": True}]}}}}
"""Attributes that the current code does not know."""


@pytest.fixture
def life() -> Iterator[Life]:
    """Return an empty deployment."""
    yield Life.faked()
    composition.use(None)


def thawed(life: Life, path: Path, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """Put a frozen scene into the table at the scene's time, with these attributes added to every item."""
    scene: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    life.stack.clock.at = scene["clock"]
    life.put({**item, **(extra or {})} for item in scene["items"])
    for _ in range(100):
        # The frozen nonces were also counted from one, so a write with the same nonce would be mistaken for a repeat.
        composed().runtime.random_source.nonce()
    return scene


def tasks_in(scene: dict[str, Any]) -> list[str]:
    """Return the ids of a scene's tasks that can be finished here; tasks that call other systems are only read."""
    ids = [item["s"]["S"] for item in scene["items"] if "z" in item and "u" not in item]
    # Blocked tasks continue when other tasks end.
    return [each for each in ids if scene["answers"][f"/v1/tasks/{each}"]["state"] != State.BLOCKED]


def covers(now: Any, then: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a current response has everything that an earlier response had."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(key in now and covers(now[key], value) for key, value in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and len(now) == len(then) and all(map(covers, now, then))
    return bool(now == then)


def end_of(then: dict[str, Any]) -> set[str]:
    """Return the states in which a task with this response may end."""
    if then["state"] in TERMINAL:
        return {then["state"]}
    return {"succeeded"}


def test_every_scene_of_the_current_schema_is_frozen() -> None:
    """Every scene is frozen with the current schema, because otherwise only an upgrade would show what it breaks."""
    frozen = {path.stem for path in (FROZEN / PRESENT).glob("*.json")}
    assert {scene.__name__ for scene in SCENES} <= frozen


def test_every_kind_of_item_is_frozen() -> None:
    """The scenes with the current schema contain each kind of partition, each kind of timer, and a deletion marker."""
    kinds = {value for name, value in vars(schema).items() if name.endswith("_PREFIX")} - PASSING
    marks = {schema.TIMER_MARK, schema.SCHEDULE_MARK, schema.LATE_MARK, schema.BULK_MARK}
    scenes = [json.loads(path.read_text(encoding="utf-8")) for path in FILES if path.parent.name == PRESENT]
    items = [item for scene in scenes for item in scene["items"]]
    assert {kind for kind in kinds if any(item["p"]["S"].startswith(kind) for item in items)} == kinds
    assert {mark for mark in marks if any(mark in item["s"]["S"] for item in items)} == marks
    assert any(schema.DELETED in item for item in items)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_frozen_records_have_their_earlier_responses(life: Life, path: Path) -> None:
    """Every earlier response is contained in the current response, which may have additional fields."""
    scene = thawed(life, path)
    for asked, then in scene["answers"].items():
        now = life.api.send("GET", asked)
        assert now.status == 200
        assert covers(now.body, then), asked


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_frozen_records_are_found_in_their_minutes(life: Life, path: Path) -> None:
    """Every record and timer is found under its minute and can be read."""
    scene = thawed(life, path)
    facts = FakeTelemetry()
    composed(CoreServices).stores.tasks._telemetry = facts
    for item in scene["items"]:
        minute, _, shard = item["p"]["S"].partition("#")
        if len(minute) == len("2026-11-21T02:33"):
            at = minute_of(from_datetime(datetime.fromisoformat(f"{minute}:00+00:00")))
            assert items_of(composed(CoreServices).stores.tasks, at, int(shard, 16))
    assert facts.notes == []


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_frozen_tasks_continue_and_end(life: Life, path: Path) -> None:
    """Each task continues from its state and ends as expected, and a repeated message changes nothing."""
    scene = thawed(life, path)
    for task_id in tasks_in(scene):
        then = scene["answers"][f"/v1/tasks/{task_id}"]
        assert life.finish(task_id) in end_of(then), then
        task = life.read(task_id)
        assert task.finished_at is not None
        assert task.fence >= then["fence"]
        life.work(task_id)
        assert life.read(task_id) == task


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_attributes_of_a_newer_version_are_kept(life: Life, path: Path) -> None:
    """Code that was rolled back finishes newer code's records, and keeps attributes that it does not know."""
    scene = thawed(life, path, UNKNOWN)
    for task_id in tasks_in(scene):
        life.finish(task_id)
        item = life.item(task_id)
        assert {name: item.get(name) for name in UNKNOWN} == UNKNOWN, task_id
        assert life.read(task_id).finished_at is not None


def test_a_failed_task_of_an_earlier_version_is_redriven(life: Life) -> None:
    """A task that failed in an earlier version is in the list of dead letters, and can be run again."""
    thawed(life, FROZEN / "v1" / "ended.json")
    (letter,) = life.api.send("GET", "/v1/tasks", query="state=failed").body["tasks"]
    assert letter["error"]["type"] == "ValueError"
    assert life.api.send("POST", "/v1/tasks/retry", {"filter": {}, "all": True}).body["affected"] == 1
    assert life.read(letter["id"]).state is State.SCHEDULED
    assert life.finish(letter["id"]) == "failed"


def test_an_idempotency_key_of_an_earlier_version_is_recognized(life: Life) -> None:
    """Repeating an earlier request returns the earlier task, and a different body with the same key is refused."""
    scene = thawed(life, FROZEN / "v1" / "keyed.json")
    (task_id,) = tasks_in(scene)
    key = {"Idempotency-Key": "frozen-1"}
    assert life.api.create({"type": "report", "delay_seconds": 60}, key)["id"] == task_id
    assert life.api.send("POST", "/v1/tasks", {"type": "mail"}, key).status == 422


def test_cursors_of_an_earlier_version_continue(life: Life) -> None:
    """The trigger continues where the earlier code stopped, and sends the task that is due soon."""
    scene = thawed(life, FROZEN / "v1" / "ticked.json")
    before = [item for item in life.items() if item["p"]["S"].startswith(schema.CURSOR_PREFIX)]
    life.stack.clock.at = scene["clock"] + 3_600_000 - 60_000
    life.stack.call("trigger", {})
    after = [item for item in life.items() if item["p"]["S"].startswith(schema.CURSOR_PREFIX)]
    assert [item["p"] for item in before] == [item["p"] for item in after]
    assert before != after
    assert sum(sum(life.stack.waiting(priority).values()) for priority in life.stack.queues) == 1


def test_a_schedule_of_an_earlier_version_continues(life: Life) -> None:
    """The next ticks place occurrences of an earlier version's schedule, and the first occurrence's task succeeds."""
    scene = thawed(life, FROZEN / "v1" / "recurring.json")
    before = {item["s"]["S"] for item in scene["items"] if "z" in item}
    for _ in range(4):
        life.stack.clock.at += 60_000
        life.stack.call("trigger", {})
    made = {item["s"]["S"] for item in life.items() if "z" in item} - before
    assert made
    assert {life.finish(task_id) for task_id in sorted(made)[:1]} == {"succeeded"}
    assert life.api.send("GET", "/v1/schedules/often", headers={"X-Duetime-Owner": OWNER}).status == 200


def test_a_graph_of_an_earlier_version_continues(life: Life) -> None:
    """Each ending node still releases its children, and the graph is finished at its state machine's next check."""
    scene = thawed(life, FROZEN / "v1" / "graphs.json")
    (path,) = (path for path in scene["answers"] if path.startswith("/v1/topologies/"))
    nodes = scene["answers"][path]["nodes"]
    assert [nodes[key]["state"] for key in ("top", "left", "bottom")] == ["succeeded", "scheduled", "blocked"]
    for key in ("left", "bottom"):
        assert life.finish(nodes[key]["task_id"]) == "succeeded"
    topology = path.rpartition("/")[2]
    assert life.stack.call("topology", {"state": "finish", "task_id": topology, "fence": 1, "looks": 0})["over"]
    assert life.api.send("GET", path).body["counts"] == {"succeeded": 3}
    assert life.finish(topology) == "succeeded"


def test_a_name_deleted_by_an_earlier_version_can_be_reused(life: Life) -> None:
    """A name with a deletion marker is not found, and a new schedule, calendar or definition can have it."""
    thawed(life, FROZEN / "v1" / "removed.json")
    for path in ("/v1/schedules/gone", "/v1/calendars/gone", f"{DEFINITIONS}/gone"):
        assert life.api.send("GET", path).status == 404
    body = {"name": "gone", "cron": "0 * * * *", "task": {"type": "report"}}
    assert life.api.send("POST", "/v1/schedules", body).status == 201
    assert life.api.send("PUT", "/v1/calendars/gone", {"weekdays": ["sun"]}).status == 201
    assert life.api.send("PUT", f"{DEFINITIONS}/gone", {"nodes": {"a": {"type": "report"}}}).status == 201


def test_a_bulk_operation_of_an_earlier_version_continues(life: Life) -> None:
    """A bulk operation from an earlier version continues, and changes its tasks."""
    scene = thawed(life, FROZEN / "v1" / "bulk.json")
    (operation,) = scene["answers"]["/v1/bulk-operations"]["operations"]
    life.stack.clock.at += 60_000
    life.stack.call("bulk", {"operation": operation["id"]})
    life.stack.clock.at += 60_000
    life.stack.call("bulk", {"operation": operation["id"]})
    assert life.api.send("GET", f"/v1/bulk-operations/{operation['id']}").body["state"] == "succeeded"
    assert {life.read(task_id).priority for task_id in tasks_in(scene)} == {Priority.HIGH}


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_frozen_records_can_be_archived(life: Life, path: Path) -> None:
    """If TTL removes an earlier record, its archive line has the API's current response, except for the contents."""
    scene = thawed(life, path, UNKNOWN)
    telemetry = FakeTelemetry()
    by = {"type": "Service", "principalId": schema.TTL_PRINCIPAL}
    records = [
        {**record_of(1, scene["clock"], item, None), "userIdentity": by} for item in scene["items"] if "z" in item
    ]
    batch = removed_batch({"Records": records}, telemetry)
    assert (len(batch.tasks), batch.unreadable, telemetry.notes) == (len(records), (), [])
    for each in batch.tasks:
        line = json.loads(JsonLines().line(each.task, ()))
        now = life.api.send("GET", f"/v1/tasks/{each.task.id}").body
        outside = {"payload", "result", "content_expired"}
        assert {name: line[name] for name in now.keys() - outside} == {name: now[name] for name in now.keys() - outside}
