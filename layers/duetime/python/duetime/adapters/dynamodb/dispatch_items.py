"""The items of a minute's partition: entries of tasks, and timers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.attribute_mapping import ATTRIBUTES, decoded, encoded
from duetime.adapters.dynamodb.task_items import owner_of, unreadable_as_error
from duetime.domain.dispatch.enqueue_plan import BulkTimer, LateTimer, ScheduleTimer, Timer
from duetime.domain.dispatch.minute_entries import Entry
from duetime.domain.ids import TaskId, partition_of
from duetime.domain.operating_parameters import TIMER_LIFE
from duetime.domain.tasks.targets import pull_queue_of
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE, minute_of

if TYPE_CHECKING:
    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.ports.tasks import MinuteItem

_ENTRY_FIELDS = (
    "type",
    "target",
    "state",
    "priority",
    "generation",
    "next_at",
    "sent",
    "lease_expires_at",
    "finished_at",
    "traceparent",
)
ENTRY_NAMES = (
    schema.SORT_KEY,
    schema.OWNER_KEY,
    schema.TIMER_OWNER,
    schema.TIMER_SCHEDULE,
    *(ATTRIBUTES[name].name for name in _ENTRY_FIELDS),
)
"""Names of the attributes that the trigger reads."""


def timer_item_of(timer: Timer) -> Item:
    """A timer as an item.

    All that it says is in its key: a change that is rejected has written its timer before, and must not replace that
    of the change which was accepted. What is written twice is still one item.
    """
    sent = "sent" if timer.sent else ""
    said = f"{timer.generation}.{timer.at % MINUTE}.{timer.priority.value}.{sent}.{timer.pull_queue}"
    item = {
        schema.PARTITION_KEY: attribute_values.text(partition_of(minute_of(timer.at), timer.task_id.shard)),
        schema.SORT_KEY: attribute_values.text(f"{timer.task_id}{schema.TIMER_MARK}{said}"),
        schema.TIMER_OWNER: attribute_values.text(timer.owner),
        schema.TTL: attribute_values.expiry(timer.at + TIMER_LIFE),
    }
    for field, value in (
        ("generation", timer.generation),
        ("next_at", timer.at),
        ("priority", timer.priority),
        ("sent", timer.sent),
        # A timer has a type only if somebody pulls it.
        ("type", timer.pull_queue or None),
    ):
        if (stored := encoded(field, value)) is not None:
            item[ATTRIBUTES[field].name] = stored
    return item


def schedule_timer_item_of(timer: ScheduleTimer) -> Item:
    """A schedule's timer as an item, with all that it says in its key: see `timer_item_of`."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(minute_of(timer.at), timer.uid.shard)),
        schema.SORT_KEY: attribute_values.text(
            f"{timer.uid}{schema.SCHEDULE_MARK}{timer.generation}.{timer.at % MINUTE}"
        ),
        schema.TIMER_OWNER: attribute_values.text(timer.owner),
        schema.TIMER_SCHEDULE: attribute_values.text(timer.name),
        schema.TTL: attribute_values.expiry(timer.at + TIMER_LIFE),
        ATTRIBUTES["generation"].name: attribute_values.number(timer.generation),
        ATTRIBUTES["next_at"].name: attribute_values.number(timer.at),
    }


def bulk_timer_item_of(timer: BulkTimer) -> Item:
    """The timer of a bulk operation as an item."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(minute_of(timer.at), timer.operation.shard)),
        schema.SORT_KEY: attribute_values.text(f"{timer.operation}{schema.BULK_MARK}"),
        schema.TTL: attribute_values.expiry(timer.at + TIMER_LIFE),
        ATTRIBUTES["next_at"].name: attribute_values.number(timer.at),
    }


def late_timer_item_of(timer: LateTimer) -> Item:
    """The timer that checks whether a task is late as an item."""
    return {
        **late_timer_key(timer),
        schema.TIMER_OWNER: attribute_values.text(timer.owner),
        schema.TTL: attribute_values.expiry(timer.at + TIMER_LIFE),
        ATTRIBUTES["next_at"].name: attribute_values.number(timer.at),
    }


def late_timer_key(timer: LateTimer) -> Item:
    """The key of a late timer."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(minute_of(timer.at), timer.task_id.shard)),
        schema.SORT_KEY: attribute_values.text(f"{timer.task_id}{schema.LATE_MARK}{timer.late_at}"),
    }


def entry_of(item: StoredItem) -> MinuteItem:
    """What the trigger needs of an item in a minute's partition.

    Raises:
        RecordUnreadable: it is nothing that any duetime writes.
    """
    with unreadable_as_error(item):
        return _entry_of(item)


def _entry_of(item: StoredItem) -> MinuteItem:
    operation, is_bulk, _ = item[schema.SORT_KEY]["S"].partition(schema.BULK_MARK)
    if is_bulk:
        return BulkTimer(TaskId(operation), decoded(item, ("next_at",))["next_at"])
    late_task, is_late_timer, late_at = item[schema.SORT_KEY]["S"].partition(schema.LATE_MARK)
    if is_late_timer:
        facts = decoded(item, ("next_at", "sent"))
        owner, told = item[schema.TIMER_OWNER]["S"], facts.get("sent", False)
        return LateTimer(TaskId(late_task), owner, int(late_at), facts["next_at"], told)
    if (name := item.get(schema.TIMER_SCHEDULE)) is not None:
        uid = TaskId(item[schema.SORT_KEY]["S"].partition(schema.SCHEDULE_MARK)[0])
        due = decoded(item, ("generation", "next_at"))
        return ScheduleTimer(uid, item[schema.TIMER_OWNER]["S"], name["S"], due["generation"], due["next_at"])
    task_id, mark, _said = item[schema.SORT_KEY]["S"].partition(schema.TIMER_MARK)
    fields = decoded(item, _ENTRY_FIELDS)
    generation, next_at = fields["generation"], fields["next_at"]
    priority, sent = fields.get("priority", Priority.NORMAL), fields.get("sent", False)
    if mark:
        owner, pull_queue = item[schema.TIMER_OWNER]["S"], fields.get("type", "")
        return Timer(TaskId(task_id), generation, next_at, priority, owner, sent, pull_queue)
    return Entry(
        task_id=TaskId(task_id),
        owner=owner_of(item),
        state=fields["state"],
        priority=priority,
        generation=generation,
        next_at=next_at,
        sent=sent,
        leased_until=fields.get("lease_expires_at"),
        finished="finished_at" in fields,
        pull_queue=pull_queue_of(fields.get("type", ""), fields.get("target"), fields["state"]),
        traceparent=fields.get("traceparent"),
    )
