"""What Lambda hands to the function that archives: the records that TTL removed from the table.

Source: DynamoDB Developer Guide, "DynamoDB Streams and Time to Live".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.stream_values import name_of, with_bytes
from duetime.adapters.dynamodb.task_items import task_of
from duetime.domain.archive_objects import RemovedBatch, RemovedTask, UnreadableRecord
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.ports.runtime import Telemetry


def removed_batch(event: Mapping[str, Any], telemetry: Telemetry) -> RemovedBatch:
    """The records of tasks in an event. One that cannot be read is kept as it is: no other should wait for it."""
    tasks, unreadable = [], []
    for record in event["Records"]:
        try:
            if _is_removed_task(record):
                tasks.append(_removed_task(record))
        except Exception as error:  # noqa: BLE001 - damage has no bounds
            unreadable.append(UnreadableRecord(json.dumps(record)))
            telemetry.note("a removed record cannot be read", error=repr(error), record=name_of(record))
    return RemovedBatch(tuple(tasks), tuple(unreadable))


def _is_removed_task(record: Mapping[str, Any]) -> bool:
    """Whether TTL removed a task. The filter of the event source lets nothing else through in the first place."""
    by = record.get("userIdentity") or {}
    return by.get("principalId") == schema.TTL_PRINCIPAL and schema.STATE in record["dynamodb"]["OldImage"]


def _removed_task(record: Mapping[str, Any]) -> RemovedTask:
    image = {name: with_bytes(value) for name, value in record["dynamodb"]["OldImage"].items()}
    return RemovedTask(task_of(image), int(record["dynamodb"]["ApproximateCreationDateTime"]) * SECOND)
