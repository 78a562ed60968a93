"""Stores task records and their timers in DynamoDB."""

from __future__ import annotations

import heapq
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.attribute_values import text
from duetime.adapters.dynamodb.batches import insert_items, read_items
from duetime.adapters.dynamodb.owner_index import sort_keys
from duetime.adapters.dynamodb.task_items import (
    ATTRIBUTES,
    decoded,
    encoded,
    item_of,
    key_of,
    owner_of,
    task_of,
    unreadable_as_error,
    update_of,
)
from duetime.adapters.dynamodb.versioned_items import item_of_failed_condition
from duetime.domain.conditional_writes import Applied, ConditionFailed
from duetime.domain.dispatch.enqueue_plan import BulkTimer, Entry, LateTimer, ScheduleTimer, Timer
from duetime.domain.errors import RecordUnreadable
from duetime.domain.ids import NODE_MARK, TaskId, partition_of
from duetime.domain.operating_parameters import MINUTE_PAGE, OWNER_SPREAD, TIMER_LIFE
from duetime.domain.tasks.targets import pull_queue_of
from duetime.domain.tasks.task_options import Priority, fair_share
from duetime.domain.times import MINUTE, minute_of
from duetime.ports.tasks import Insertions, MinutePage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from botocore.exceptions import ClientError
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.conditional_writes import Write, WriteResult
    from duetime.domain.tasks.creation import KeyTaking, KeyWrite
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Executor, Telemetry
    from duetime.ports.tasks import ListQuery, MinuteItem


R = TypeVar("R")
_REPORTED = ATTRIBUTES["sent"].name
"""Attribute of a late timer that says whether the notice has been sent."""
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
    "fair_key",
    "fair_weight",
)
_AFTER = ATTRIBUTES["after"].name
ENTRY_NAMES = (
    schema.SORT_KEY,
    schema.OWNER_KEY,
    schema.TIMER_OWNER,
    schema.TIMER_SCHEDULE,
    *(ATTRIBUTES[name].name for name in _ENTRY_FIELDS),
    _AFTER,
)
"""Names of the attributes that the trigger reads."""
_ENTRY_PLACEHOLDERS = {f"#{name}": name for name in ENTRY_NAMES}


class DynamoTaskStore:
    """The `duetime.ports.tasks.TaskStore` that uses the tasks table, and reads an owner's partitions in parallel.

    When many records are read, unreadable records are logged and left out, so that they do not block other records.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        executor: Executor,
        telemetry: Telemetry,
    ) -> None:
        self._client = client
        self._table = table
        self._executor = executor
        self._telemetry = telemetry

    def create(self, task: Task, taking: KeyTaking | None = None) -> bool:
        """Write a new record, unless its id exists.

        If the task has a unique key, the key's item is written in the same transaction.
        """
        if taking is not None:
            return self._create_with_key(task, taking)
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item_of(task),
                    ConditionExpression="attribute_not_exists(#p)",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as refusal:
                existing = _refusing(refusal)
                return existing is not None and existing.nonce == task.nonce
        return True

    def insert(self, tasks: Sequence[Task]) -> Insertions:
        """Write new records with few requests, except records whose ids already exist."""
        tasks = list({task.id: task for task in tasks}.values())
        places = insert_items(self._client, self._table, [item_of(task) for task in tasks], self._executor)
        return Insertions(*([tasks[place] for place in sorted(each)] for each in places))

    def read(self, task_id: TaskId) -> Task | None:
        """Read one record with strong consistency; `None` if it does not exist."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key_of(task_id), ConsistentRead=True)
        item = answer.get("Item")
        return task_of(item) if item else None

    def read_many(self, task_ids: Sequence[TaskId], *, consistent: bool = False) -> dict[TaskId, Task]:
        """Read many records, with eventual consistency by default; missing records are left out."""
        keys = [key_of(task_id) for task_id in dict.fromkeys(task_ids)]
        found = self._readable(task_of, read_items(self._client, self._table, keys, consistent=consistent))
        tasks = {task.id: task for task in found}
        return {task_id: tasks[task_id] for task_id in task_ids if task_id in tasks}

    def apply(self, write: Write, key_write: KeyWrite | None = None) -> WriteResult:
        """Make one conditional write in one request, without an additional read."""
        if key_write is not None:
            return self._apply_with_key(write, key_write)
        with translated():
            try:
                answer = self._client.update_item(**update_of(write, self._table))
            except self._client.exceptions.ConditionalCheckFailedException as refusal:
                existing = _refusing(refusal)
                if existing is not None and existing.nonce == write.nonce:
                    return Applied(existing)
                return ConditionFailed(existing)
        return Applied(task_of(answer["Attributes"]))

    def _create_with_key(self, task: Task, taking: KeyTaking) -> bool:
        from duetime.adapters.dynamodb.keys import write_with_key  # noqa: PLC0415 - few tasks have a key

        put = {
            "TableName": self._table,
            "Item": item_of(task),
            "ConditionExpression": "attribute_not_exists(#p)",
            "ExpressionAttributeNames": {"#p": schema.PARTITION_KEY},
        }
        if write_with_key(self._client, self._table, {"Put": put}, taking, task.nonce):
            return True
        existing = self.read(task.id)
        return existing is not None and existing.nonce == task.nonce

    def _apply_with_key(self, write: Write, key_write: KeyWrite) -> WriteResult:
        from duetime.adapters.dynamodb.keys import write_with_key  # noqa: PLC0415 - few tasks have a key

        update = update_of(write, self._table)
        for returned in ("ReturnValues", "ReturnValuesOnConditionCheckFailure"):
            del update[returned]
        is_applied = write_with_key(self._client, self._table, {"Update": update}, key_write, write.nonce)
        task = self.read(write.task_id)
        if task is not None and (is_applied or task.nonce == write.nonce):
            return Applied(task)
        return ConditionFailed(task)

    def add_timer(self, timer: Timer) -> None:
        """Write a timer into the minute of its check; writing it again changes nothing."""
        with translated():
            self._client.put_item(TableName=self._table, Item=timer_item_of(timer))

    def add_schedule_timer(self, timer: ScheduleTimer) -> None:
        """Write a schedule's timer into the minute of its check; writing it again changes nothing."""
        with translated():
            self._client.put_item(TableName=self._table, Item=schedule_timer_item_of(timer))

    def add_bulk_timer(self, timer: BulkTimer) -> None:
        """Write the timer of a bulk operation into its minute; writing it again changes nothing."""
        with translated():
            self._client.put_item(TableName=self._table, Item=bulk_timer_item_of(timer))

    def add_late_timer(self, timer: LateTimer) -> None:
        """Write the timer that checks whether a task is late; writing it again changes nothing."""
        with translated():
            self._client.put_item(TableName=self._table, Item=late_timer_item_of(timer))

    def is_notified(self, timer: LateTimer) -> bool:
        """Read with strong consistency whether the notice of a late timer was sent or the timer was removed."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=late_timer_key(timer), ConsistentRead=True)
        return "Item" not in answer or _REPORTED in answer["Item"]

    def mark_notified(self, timer: LateTimer) -> None:
        """Mark a late timer's notice as sent, so that later reads ignore the timer. A removed timer is not restored."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=late_timer_key(timer),
                UpdateExpression="SET #reported = :reported",
                ConditionExpression="attribute_exists(#p)",
                ExpressionAttributeNames={"#reported": _REPORTED, "#p": schema.PARTITION_KEY},
                ExpressionAttributeValues={":reported": {"BOOL": True}},
            )

    def read_page(self, minute: int, shard: int, after: str, *, consistent: bool) -> MinutePage:
        """Read the next records and timers in one shard of one minute, with the attributes that the trigger needs."""
        partition = text(partition_of(minute, shard))
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": f"#{schema.PARTITION_KEY} = :partition",
            "ProjectionExpression": ", ".join(_ENTRY_PLACEHOLDERS),
            "ExpressionAttributeNames": _ENTRY_PLACEHOLDERS | {f"#{schema.PARTITION_KEY}": schema.PARTITION_KEY},
            "ExpressionAttributeValues": {":partition": partition},
            "ConsistentRead": consistent,
            "Limit": MINUTE_PAGE,
        }
        if after:
            request["ExclusiveStartKey"] = {schema.PARTITION_KEY: partition, schema.SORT_KEY: text(after)}
        with translated():
            page = self._client.query(**request)
        last = page.get("LastEvaluatedKey")
        items = list(self._readable(lambda item: (item[schema.SORT_KEY]["S"], entry_of(item)), page["Items"]))
        return MinutePage(items, last[schema.SORT_KEY]["S"] if last else None)

    def _readable(self, read: Callable[[StoredItem], R], items: Iterable[StoredItem]) -> Iterator[R]:
        """Yield what `read` returns for each item, without unreadable items."""
        for item in items:
            try:
                yield read(item)
            except RecordUnreadable as error:
                self._telemetry.count("unreadable")
                self._telemetry.note("an item that cannot be read was left out", key=error.key, error=str(error))

    def list_ids(self, query: ListQuery) -> list[TaskId]:
        """The ids of an owner's tasks in order of their home times, with eventual consistency."""
        if query.children_of is not None:
            return self._list_partition(query, query.children_of.text)
        if query.in_group:
            # Few lists show groups, so the module is imported only for lists of groups.
            from duetime.adapters.dynamodb.groups import member_ids  # noqa: PLC0415 - see the line above

            return member_ids(self._client, self._table, self._executor, query)
        if query.part:
            return self._list_partition(query, query.part)
        lists = self._executor.map(self.list_ids, self.parts_of(query))
        merged = heapq.merge(*lists, reverse=query.descending)
        return list(islice(merged, query.limit))

    def parts_of(self, query: ListQuery) -> Sequence[ListQuery]:
        """The parts of a list, one for each partition. A list of children or group members has only one part."""
        if query.children_of is not None or query.in_group:
            return [query]
        marks = ("#", NODE_MARK) if query.with_nodes else ("#",)
        return [replace(query, part=f"{query.owner}{mark}{number}") for mark in marks for number in range(OWNER_SPREAD)]

    def count_listed(self, owner: str, limit: int) -> int:
        """Count an owner's tasks, or nodes if there are more, in a partition, up to a limit (eventual consistency)."""
        partitions = [f"{owner}{mark}0" for mark in ("#", NODE_MARK)]
        return max(len(sort_keys(self._client, self._table, each, limit)) for each in partitions)

    def _list_partition(self, query: ListQuery, partition: str) -> list[TaskId]:
        index = schema.FAILED_INDEX if query.failed_only else schema.OWNER_INDEX
        if query.children_of is not None:
            index = schema.CHILD_INDEX
        after = None if query.after is None else query.after.text
        keys = sort_keys(
            self._client, self._table, partition, query.limit, after, descending=query.descending, index=index
        )
        return [TaskId(key) for key in keys]


def _refusing(refusal: ClientError) -> Task | None:
    item = item_of_failed_condition(refusal)
    return task_of(item) if item else None


def timer_item_of(timer: Timer) -> Item:
    """A timer as an item.

    The key contains all of the timer's data. A change that is rejected has already written its timer, which must not
    replace the accepted change's timer. A timer that is written again replaces the same item.
    """
    sent = "sent" if timer.sent else ""
    said = f"{timer.generation}.{timer.at % MINUTE}.{timer.priority.value}.{sent}.{timer.pull_queue}"
    said += f".{timer.fair_share}" if timer.fair_share else ""
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
        # A timer stores the type only if the type is pulled.
        ("type", timer.pull_queue or None),
        # A timer stores its fair share in this field.
        ("fair_key", timer.fair_share or None),
    ):
        if (stored := encoded(field, value)) is not None:
            item[ATTRIBUTES[field].name] = stored
    return item


def schedule_timer_item_of(timer: ScheduleTimer) -> Item:
    """A schedule's timer as an item, whose key contains all of the timer's data (see `timer_item_of`)."""
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
    """A bulk operation's timer as an item."""
    return {
        schema.PARTITION_KEY: attribute_values.text(partition_of(minute_of(timer.at), timer.operation.shard)),
        schema.SORT_KEY: attribute_values.text(f"{timer.operation}{schema.BULK_MARK}"),
        schema.TTL: attribute_values.expiry(timer.at + TIMER_LIFE),
        ATTRIBUTES["next_at"].name: attribute_values.number(timer.at),
    }


def late_timer_item_of(timer: LateTimer) -> Item:
    """The timer for a lateness check as an item."""
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
    """Read the data that the trigger needs from an item in a minute's partition.

    Raises:
        RecordUnreadable: no version of duetime writes items in this form.
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
        owner, is_reported = item[schema.TIMER_OWNER]["S"], facts.get("sent", False)
        return LateTimer(TaskId(late_task), owner, int(late_at), facts["next_at"], is_reported)
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
        share = fields.get("fair_key", "")
        return Timer(TaskId(task_id), generation, next_at, priority, owner, sent, pull_queue, share)
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
        is_dependent=_AFTER in item,
        fair_share=fair_share(TaskId(task_id), fields.get("fair_key"), fields.get("fair_weight", 1)),
    )
