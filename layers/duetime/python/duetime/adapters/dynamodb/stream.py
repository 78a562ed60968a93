"""Decodes Lambda events from the table's stream.

Source: AWS Lambda Developer Guide, "Using Lambda with DynamoDB". Bytes in these events are Base64 strings.
"""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.schedule_items import is_schedule, schedule_of
from duetime.adapters.dynamodb.task_items import (
    ATTRIBUTES,
    decoded,
    owner_of,
    require_readable,
    task_of,
    unreadable_as_error,
)
from duetime.adapters.dynamodb.versioned_items import is_deleted
from duetime.domain.archive_objects import RemovedBatch, RemovedTask, UnreadableRecord
from duetime.domain.change_events import Change, ChangeBatch, TaskSnapshot, schedule_snapshot
from duetime.domain.ids import TaskId
from duetime.domain.tasks.targets import TopologyTarget, definition_of
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.dynamodb.attribute_values import StoredItem, Value
    from duetime.domain.change_events import ScheduleSnapshot
    from duetime.ports.runtime import Telemetry


_FIELDS = (
    *("type", "state", "version", "due_at", "created_at", "priority", "name", "tags", "attempt", "progress", "error"),
    *("started_at", "started_late", "finished_at", "schedule_ref", "node_ref", "parent_task_id", "group"),
    *("actions", "erased"),
)
_NEEDED = tuple(ATTRIBUTES[field].name for field in (*_FIELDS, "target"))
"""The attributes that are decoded. The payload, which may be large and is not sent to consumers, is left out."""


def changes_of(event: Mapping[str, Any], telemetry: Telemetry) -> ChangeBatch:
    """The changes in an event. Unreadable records are logged and left out, so that they do not block other records."""
    tasks, schedules = [], []
    for record in event["Records"]:
        try:
            keys = record["dynamodb"]["Keys"]
            if is_schedule(keys):
                schedules.append(_change(record, _schedule))
            elif _is_task(record):
                tasks.append(_change(record, _task))
        except Exception as error:  # noqa: BLE001 - damaged data may cause any error
            telemetry.count("stream_records_unreadable")
            telemetry.note("a record of the stream cannot be read", error=repr(error), record=name_of(record))
    return ChangeBatch(tuple(tasks), tuple(schedules))


def _is_task(record: Mapping[str, Any]) -> bool:
    images = record["dynamodb"]
    return any(schema.STATE in images.get(name, {}) for name in ("NewImage", "OldImage"))


def _change(record: Mapping[str, Any], read: Callable[[StoredItem], Any]) -> Change[Any]:
    images = record["dynamodb"]
    before, after = (read(images[name]) if images.get(name) else None for name in ("OldImage", "NewImage"))
    # The stream rounds this time to the second, so the time is the same in each delivery.
    return Change(record["eventID"], int(images["ApproximateCreationDateTime"]) * SECOND, before, after)


def _task(image: StoredItem) -> TaskSnapshot:
    require_readable(image)
    with unreadable_as_error(image):
        item = {name: with_bytes(image[name]) for name in _NEEDED if name in image}
        fields = {"priority": Priority.NORMAL, **decoded(item, _FIELDS)}
        target = decoded(item, ("target",)).get("target")
        ref = definition_of(target)
        return TaskSnapshot(
            id=TaskId.parse(image[schema.SORT_KEY]["S"]),
            owner=owner_of(image),
            is_topology=isinstance(target, TopologyTarget),
            definition=None if ref is None else ref.name,
            **fields,
        )


def _schedule(image: StoredItem) -> ScheduleSnapshot | None:
    """The schedule in an image; `None` if the schedule is deleted."""
    with unreadable_as_error(image):
        if is_deleted(image):
            return None
        stored = schedule_of({name: with_bytes(value) for name, value in image.items()})
    return schedule_snapshot(stored)


def with_bytes(value: Value) -> Value:
    """An attribute value as boto3 returns it, with bytes instead of Base64 strings."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": b64decode(content, validate=True)}
        case "L":
            return {"L": [with_bytes(each) for each in content]}
        case "M":
            return {"M": {name: with_bytes(each) for name, each in content.items()}}
    return value


def name_of(record: Any) -> str:  # noqa: ANN401 - the record may be damaged
    """A name for a record in log lines. The name does not include the images, which contain users' data."""
    try:
        keys = record["dynamodb"]["Keys"]
        return f"{record['eventID']} {keys[schema.PARTITION_KEY]['S']} {keys[schema.SORT_KEY]['S']}"[:300]
    except Exception:  # noqa: BLE001 - as above
        return "without a key"


def removed_batch(event: Mapping[str, Any], telemetry: Telemetry) -> RemovedBatch:
    """The removed task records in an event.

    Unreadable records are kept unchanged, so that they do not block other records.
    """
    tasks, unreadable = [], []
    for record in event["Records"]:
        try:
            if _is_removed_task(record):
                tasks.append(_removed_task(record))
        except Exception as error:  # noqa: BLE001 - damaged data may cause any error
            unreadable.append(UnreadableRecord(json.dumps(record)))
            telemetry.note("a removed record cannot be read", error=repr(error), record=name_of(record))
    return RemovedBatch(tuple(tasks), tuple(unreadable))


def _is_removed_task(record: Mapping[str, Any]) -> bool:
    """Whether a record says that TTL removed a task. The event source's filter should exclude all other records."""
    by = record.get("userIdentity") or {}
    return by.get("principalId") == schema.TTL_PRINCIPAL and schema.STATE in record["dynamodb"]["OldImage"]


def _removed_task(record: Mapping[str, Any]) -> RemovedTask:
    image = {name: with_bytes(value) for name, value in record["dynamodb"]["OldImage"].items()}
    return RemovedTask(task_of(image), int(record["dynamodb"]["ApproximateCreationDateTime"]) * SECOND)
