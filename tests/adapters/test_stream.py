from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.schedule_items import key_of
from duetime.adapters.dynamodb.stream import changes_of
from duetime.adapters.dynamodb.task_items import item_of
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import Content, ContentPlace, NodeRef, Progress
from duetime.domain.tasks.task_options import Priority
from duetime_testing.fakes.stream import FakeStream, is_delivered, record_of
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.adapters.examples import HOME, numbered, task
from tests.upgrades.freezing import FROZEN
from tests.upgrades.life import of_json

if TYPE_CHECKING:
    from pathlib import Path

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.domain.change_events import ChangeBatch

SECRET = "hunter2"  # noqa: S105 - what must not be told


def read(*writes: tuple[Any, Any], telemetry: FakeTelemetry | None = None) -> ChangeBatch:
    """Return the stream records as the stream function reads them."""
    stream = FakeStream(lambda: HOME)
    for old, new in writes:
        stream.add(old, new)
    return changes_of(stream.event(), telemetry or FakeTelemetry())


def test_a_task_write_has_the_state_before_and_after() -> None:
    """All published fields, including compressed fields, are read from the images before and after a write."""
    node_ref = NodeRef(numbered(9), 1, "extract")
    before = task(node_ref=node_ref, tags={"team": "dba"}, name="nightly", priority=Priority.HIGH)
    error = TaskError("ValueError", "too long " * 500)
    after = replace(
        before,
        state=State.FAILED,
        version=4,
        attempt=2,
        error=error,
        started_at=HOME + 20,
        progress=Progress(50, "half"),
    )
    (change,) = read((item_of(before), item_of(after))).tasks
    assert change.before is not None
    assert change.after is not None
    assert (change.before.state, change.before.version, change.before.error) == (State.SCHEDULED, 1, None)
    told = change.after
    assert (told.id, told.owner, told.type, told.state, told.version) == (after.id, "ann", "report", State.FAILED, 4)
    assert (told.due_at, told.lateness, told.attempt, told.error) == (HOME, 20, 2, error)
    assert (told.name, told.tags, told.priority) == ("nightly", {"team": "dba"}, Priority.HIGH)
    assert (told.progress, told.node_ref, told.is_topology) == (Progress(50, "half"), node_ref, False)
    assert change.at == HOME // 1000 * 1000


def test_the_first_write_and_the_removal_have_one_image() -> None:
    """A new task has no image before the write, and a removed task has no image after the removal."""
    item = item_of(task(target=TopologyTarget()))
    created, removed = read((None, item), (item, None)).tasks
    assert (created.before, removed.after) == (None, None)
    assert created.after == removed.before
    assert created.after is not None
    assert created.after.is_topology


def test_payloads_and_results_are_not_published() -> None:
    """Payloads and results stay in the table and are not published."""
    payload = Content(ContentPlace.RECORD, "payload", SECRET.encode())
    result = Content(ContentPlace.RECORD, "result", SECRET.encode())
    assert SECRET not in repr(read((None, item_of(task(payload=payload, result=result)))))


def item_at(partition: str, sort: str) -> Item:
    """Return an item with only its key."""
    return {schema.PARTITION_KEY: {"S": partition}, schema.SORT_KEY: {"S": sort}}


def test_bookkeeping_is_not_delivered() -> None:
    """Only records for tasks and schedules pass the filter; timers and counters cause no invocation."""
    record = item_of(task())
    timer = {**record, schema.SORT_KEY: {"S": f"{numbered(0).text}{schema.TIMER_MARK}1"}}
    timer = {name: timer[name] for name in (schema.PARTITION_KEY, schema.SORT_KEY)}
    assert is_delivered(record_of(1, HOME, None, record))
    assert is_delivered(record_of(1, HOME, record, None))
    assert not is_delivered(record_of(1, HOME, None, timer))
    assert not is_delivered(record_of(1, HOME, timer, None))
    head = key_of("ann", "nightly")
    assert is_delivered(record_of(1, HOME, None, head))
    prefixes = [value for name, value in vars(schema).items() if name.endswith("_PREFIX")]
    for prefix in set(prefixes) - {schema.SCHEDULE_PREFIX}:
        assert not is_delivered(record_of(1, HOME, None, item_at(f"{prefix}ann#1", "#1"))), prefix
    assert not is_delivered(record_of(1, HOME, None, item_at(f"{schema.SCHEDULE_PREFIX}ann#nightly", "a")))


@pytest.mark.parametrize(
    "damage",
    [
        {"z": {"S": "unheard-of"}},
        {"z": {"N": "7"}},
        {"e": {"N": "many"}},
        {"s": {"S": "no-task-id"}},
        {"v": {"N": "99"}},
        {"T": {"B": "no base64!"}},
        {"q": {"S": "urgent"}, "g": {"S": "ann#1"}},
        {"E": {"L": []}},
        {"E": 7},
    ],
    ids=repr,
)
def test_an_unreadable_record_is_skipped_and_logged(damage: dict[str, Any]) -> None:
    """An unreadable record is counted and logged without its content, and the other records are reported."""
    stream, telemetry = FakeStream(lambda: HOME), FakeTelemetry()
    for number in range(3):
        payload = Content(ContentPlace.RECORD, "payload", SECRET.encode())
        stream.add(None, item_of(task(id=numbered(number), payload=payload)))
    stream.records[1]["dynamodb"]["NewImage"].update(damage)
    found = changes_of(stream.event(), telemetry)
    assert [change.after.id for change in found.tasks if change.after] == [numbered(0), numbered(2)]
    assert telemetry.counts == {"stream_records_unreadable": 1}
    assert SECRET not in repr(telemetry.notes)


@pytest.mark.parametrize("record", [None, 7, "", {}, {"dynamodb": None}, {"eventID": 1, "dynamodb": {"Keys": {}}}])
def test_a_value_that_is_not_a_record_is_left_out(record: Any) -> None:  # noqa: ANN401 - anything
    """An item that is not a record is left out without an error."""
    telemetry = FakeTelemetry()
    assert not changes_of({"Records": [record]}, telemetry).tasks
    assert telemetry.counts == {"stream_records_unreadable": 1}


@pytest.mark.parametrize("path", sorted(FROZEN.glob("v*/*.json")), ids=lambda path: path.stem)
def test_frozen_records_are_read(path: Path) -> None:
    """Records stored by the frozen version are reported like current records."""
    items = [of_json(item) for item in json.loads(path.read_text())["items"]]
    telemetry = FakeTelemetry()
    found = read(*((None, item) for item in items), telemetry=telemetry)
    assert not telemetry.notes
    assert len(found.tasks) == sum(schema.STATE in item for item in items)
    heads = [item for item in items if item["p"]["S"].startswith("r#") and item["s"]["S"].startswith("#")]
    assert len(found.schedules) == len(heads)


def test_the_filters_are_short_enough_for_lambda() -> None:
    """Lambda accepts five filters of 4,096 characters (Source: AWS Lambda Developer Guide, event filtering)."""
    assert len(schema.STREAM_FILTERS) <= 5
    assert all(len(json.dumps(pattern)) <= 4096 for pattern in schema.STREAM_FILTERS)


def test_the_fake_stream_returns_bytes_as_base64() -> None:
    """The fake stream returns bytes as base64, as Lambda does, so that these tests are realistic."""
    long = "x" * 2000
    item = {**item_of(task()), "E": {"L": [{"S": "E"}, attribute_values.packed(long.encode())]}}
    stored = record_of(1, HOME, None, item)["dynamodb"]["NewImage"]["E"]["L"][1]
    assert isinstance(stored["B"], str)
    assert TaskId.parse(item["s"]["S"]) == numbered(0)
