"""What Lambda hands to a function that reads the table's stream.

Source: AWS Lambda Developer Guide, "Using Lambda with DynamoDB"; there, bytes are Base64 texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.attribute_mapping import ATTRIBUTES, decoded
from duetime.adapters.dynamodb.schedule_items import is_schedule, schedule_of
from duetime.adapters.dynamodb.stream_values import name_of, with_bytes
from duetime.adapters.dynamodb.task_items import owner_of, require_readable, unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import is_deleted
from duetime.domain.change_events import Change, ChangeBatch, TaskSnapshot, schedule_snapshot
from duetime.domain.ids import TaskId
from duetime.domain.tasks.targets import TopologyTarget, definition_of
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.dynamodb.attribute_values import StoredItem
    from duetime.domain.change_events import ScheduleSnapshot
    from duetime.ports.runtime import Telemetry

_FIELDS = (
    *("type", "state", "version", "due_at", "created_at", "priority", "name", "tags", "attempt", "progress", "error"),
    *("started_at", "started_late", "finished_at", "schedule_ref", "node_ref", "actions", "erased"),
)
_NEEDED = tuple(ATTRIBUTES[field].name for field in (*_FIELDS, "target"))
"""Not the payload: it may be large, and nobody is told of it."""


def changes_of(event: Mapping[str, Any], telemetry: Telemetry) -> ChangeBatch:
    """The changes in an event. A record that cannot be read is noted and left out: no other should wait for it."""
    tasks, schedules = [], []
    for record in event["Records"]:
        try:
            keys = record["dynamodb"]["Keys"]
            if is_schedule(keys):
                schedules.append(_change(record, _schedule))
            elif _is_task(record):
                tasks.append(_change(record, _task))
        except Exception as error:  # noqa: BLE001 - damage has no bounds
            telemetry.count("stream_records_unreadable")
            telemetry.note("a record of the stream cannot be read", error=repr(error), record=name_of(record))
    return ChangeBatch(tuple(tasks), tuple(schedules))


def _is_task(record: Mapping[str, Any]) -> bool:
    images = record["dynamodb"]
    return any(schema.STATE in images.get(name, {}) for name in ("NewImage", "OldImage"))


def _change(record: Mapping[str, Any], read: Callable[[StoredItem], Any]) -> Change[Any]:
    images = record["dynamodb"]
    before, after = (read(images[name]) if images.get(name) else None for name in ("OldImage", "NewImage"))
    # It is rounded to the second, and so is the same at each delivery.
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
    """A schedule; one that was deleted is none."""
    with unreadable_as_error(image):
        if is_deleted(image):
            return None
        stored = schedule_of({name: with_bytes(value) for name, value in image.items()})
    return schedule_snapshot(stored)
