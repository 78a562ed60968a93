"""Stores schedules in DynamoDB.

Each schedule has a partition, with its definition in one item and its active runs in another item.

The trigger writes the definition, and workers write the active runs, so that their writes do not conflict. A calendar
is one item.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import listed, place_in_list, read_listed
from duetime.adapters.dynamodb.schedule_items import (
    ACTIVE,
    ACTIVITY,
    BEGUN,
    BY_HAND,
    COUNTED,
    LATEST,
    UID,
    WAITING,
    activity_form,
    activity_key,
    activity_of,
    calendar_form,
    item_of,
    key_of,
    marker_of,
    packed,
    partition_of,
    read_calendar,
    removed_of,
    stored_of,
    unpacked,
)
from duetime.adapters.dynamodb.versioned_items import (
    VERSION,
    Identity,
    delete_next,
    deletion_marker,
    is_deleted,
    save_next,
    version_of,
)
from duetime.domain.conditional_writes import Incarnation
from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.schedules.run_history import NO_ACTIVITY, Activity

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.schedules.schedule_record import RemovedSchedule, StoredSchedule
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor


class DynamoScheduleStore:
    """The `duetime.ports.stores.ScheduleStore` that uses the tasks table.

    It reads an owner's partitions in parallel.
    """

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def read(self, owner: str, name: str) -> tuple[StoredSchedule | None, Activity]:
        """Read a schedule and its activity in one request with strong consistency."""
        with translated():
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                ExpressionAttributeValues={":p": attribute_values.text(partition_of(owner, name))},
                ConsistentRead=True,
            )
        stored, activity = None, Activity()
        for item in answer["Items"]:
            if item[schema.SORT_KEY]["S"] == ACTIVITY:
                activity = activity_of(item)
            elif not is_deleted(item):
                stored = stored_of(owner, item)
        if stored is not None:
            stored = replace(stored, activity=activity.of(stored.uid))
        return stored, activity

    def vacancy(self, owner: str, name: str) -> int | None:
        """Read the edition for creating a schedule with this name; `None` if the name is taken."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key_of(owner, name), ConsistentRead=True)
        if "Item" not in answer:
            return 0
        return version_of(answer["Item"]) if is_deleted(answer["Item"]) else None

    def read_removed(self, owner: str, name: str) -> RemovedSchedule | None:
        """Read the data left over from the last schedule deleted under a name; `None` if the name is used again."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key_of(owner, name), ConsistentRead=True)
        return removed_of(answer["Item"]) if "Item" in answer and is_deleted(answer["Item"]) else None

    def save(self, stored: StoredSchedule, nonce: str) -> bool:
        """Store a schedule, if its identity and edition are as read; store a new schedule, if its name is free."""
        item, identity = item_of(stored), Identity(UID, stored.uid.text)
        return save_next(self._client, self._table, item, stored.incarnation, nonce, identity)

    def remove(self, stored: StoredSchedule, nonce: str, expires_at: Millis) -> bool:
        """Remove a schedule and its activity if its edition has not changed since it was read.

        If the schedule is already deleted, only its activity is removed.

        Deletion markers replace the schedule and its activity. Another schedule that now has the same name is not
        changed.
        """
        marker = deletion_marker(marker_of(stored), expires_at)
        identity = Identity(UID, stored.uid.text)
        if not delete_next(self._client, self._table, marker, stored.incarnation, nonce, identity):
            return False
        self._end_activity(stored, expires_at)
        return True

    def _end_activity(self, stored: StoredSchedule, expires_at: Millis) -> None:
        """Remove the activity and increase its version, so that late writes to the activity are rejected."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=activity_key(stored.owner, stored.name),
                ConditionExpression="attribute_not_exists(#u) OR (#u = :u AND attribute_not_exists(#x))",
                UpdateExpression="SET #u = :u, #x = :x, #v = :v ADD #e :one REMOVE #a, #w, #b, #h, #c, #r",
                ExpressionAttributeNames={
                    "#u": UID,
                    "#x": schema.TTL,
                    "#v": schema.VERSION_OF_SCHEMA,
                    "#e": VERSION,
                    "#a": ACTIVE,
                    "#w": WAITING,
                    "#b": BEGUN,
                    "#h": BY_HAND,
                    "#c": COUNTED,
                    "#r": LATEST,
                },
                ExpressionAttributeValues={
                    ":u": attribute_values.text(stored.uid.text),
                    ":x": attribute_values.expiry(expires_at),
                    ":v": attribute_values.number(schema.SCHEMA_VERSION),
                    ":one": attribute_values.number(1),
                },
            )

    def save_activity(self, owner: str, name: str, activity: Activity, nonce: str) -> bool:
        """Store the activity, if the stored activity still has the version that was read."""
        item = {
            **activity_key(owner, name),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            **activity_form(activity),
        }
        return save_next(self._client, self._table, item, activity.version, nonce)

    def count(self, owner: str, most: int) -> int:
        """Count an owner's schedules, up to `most`, with eventual consistency."""
        place = (owner, schema.SCHEDULE_LIST_MARK, schema.SCHEDULE_HEAD_MARK)
        return len(listed(self._client, self._table, self._executor, place, most))

    def list_after(self, owner: str, after: str, limit: int) -> list[StoredSchedule]:
        """Read the schedules of an owner that follow `after`, in order of name and with eventual consistency.

        Fewer than `limit` schedules are returned only at the end.
        """
        place = (owner, schema.SCHEDULE_LIST_MARK, f"{schema.SCHEDULE_HEAD_MARK}{after}")
        return read_listed(self._client, self._table, self._executor, place, limit, partial(self._existing, owner))

    def _existing(self, owner: str, listed_keys: list[str]) -> list[StoredSchedule]:
        names = [key.removeprefix(schema.SCHEDULE_HEAD_MARK) for key in listed_keys]
        keys = [key(owner, name) for name in names for key in (key_of, activity_key)]
        found: dict[str, StoredSchedule] = {}
        activities: dict[str, Activity] = {}
        for item in read_items(self._client, self._table, keys):
            if item[schema.SORT_KEY]["S"] == ACTIVITY:
                activities[str(item[schema.PARTITION_KEY]["S"])] = activity_of(item)
            elif not is_deleted(item):
                # Deleted schedules are skipped, because the index may still list a schedule that was just deleted.
                found[str(item[schema.PARTITION_KEY]["S"])] = stored_of(owner, item)
        return sorted(
            (replace(each, activity=activities.get(at, NO_ACTIVITY).of(each.uid)) for at, each in found.items()),
            key=lambda each: each.name,
        )


_DEFINITION, _CREATED = "b", "n"
_MOST = 380_000
"""Maximum size of a packed calendar in bytes, because an item has at most 400 KB (Source: DynamoDB quotas)."""


class DynamoCalendarStore:
    """The `duetime.ports.stores.CalendarStore` that uses the tasks table.

    It reads an owner's partitions in parallel.
    """

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def put(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str) -> bool:
        """Store a calendar, if its name still has the edition that was read."""
        item = _item_of(owner, calendar) | {_CREATED: attribute_values.number(incarnation.next.created)}
        return save_next(self._client, self._table, item, incarnation.number, nonce)

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar with strong consistency; `None` if it does not exist."""
        return self.read_edition(owner, name)[0]

    def read_edition(self, owner: str, name: str) -> tuple[Calendar | None, Incarnation]:
        """Read a calendar and the edition of its name with strong consistency.

        A deletion marker also has an edition.
        """
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(owner, name), ConsistentRead=True)
        if "Item" not in answer:
            return None, Incarnation()
        item, number = answer["Item"], version_of(answer["Item"])
        if is_deleted(item):
            return None, Incarnation(number)
        return _calendar(item), Incarnation(number, attribute_values.integer(item[_CREATED]))

    def remove(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str, expires_at: Millis) -> bool:
        """Delete a calendar if its edition has not changed since it was read; do nothing if it is already deleted.

        A deletion marker replaces the calendar until `expires_at`.
        """
        marker = deletion_marker(_key_of(owner, calendar.name), expires_at)
        return delete_next(self._client, self._table, marker, incarnation.number, nonce)

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """Read the calendars of an owner that follow `after`, in order of name and with eventual consistency.

        Fewer than `limit` calendars are returned only at the end.
        """

        def read(names: list[str]) -> list[Calendar]:
            items = read_items(self._client, self._table, [_key_of(owner, name) for name in names])
            return sorted((_calendar(item) for item in items if not is_deleted(item)), key=lambda each: each.name)

        place = (owner, schema.CALENDAR_LIST_MARK, after or " ")
        return read_listed(self._client, self._table, self._executor, place, limit, read)


def _key_of(owner: str, name: str) -> Item:
    return {
        # A name contains no `#`, so the last `#` separates the owner from the name.
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CALENDAR_PREFIX}{owner}#{name}"),
        schema.SORT_KEY: attribute_values.text(name),
    }


def _item_of(owner: str, calendar: Calendar) -> Item:
    definition = packed(calendar_form(calendar))
    if len(definition.get("B", definition.get("S", ""))) > _MOST:
        raise FieldInvalid("dates", "are too large, together with their labels and the spans", FaultCode.TOO_LONG)
    return {
        **_key_of(owner, calendar.name),
        schema.OWNER_KEY: place_in_list(owner, schema.CALENDAR_LIST_MARK, calendar.name),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _DEFINITION: definition,
    }


def _calendar(item: StoredItem) -> Calendar:
    return read_calendar(item[schema.SORT_KEY]["S"], unpacked(item[_DEFINITION]))
