"""Calendars in DynamoDB: one item each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import listed, place_in_list
from duetime.adapters.dynamodb.schedule_items import calendar_form, packed, read_calendar, unpacked
from duetime.adapters.dynamodb.versioned_items import delete_next, deletion_marker, is_deleted, save_next, version_of
from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.resource_generations import Incarnation

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor

_DEFINITION, _CREATED = "b", "n"
_MOST = 380_000
"""Maximum bytes of a packed calendar: an item has 400 KB (Source: DynamoDB quotas)."""


class DynamoCalendarStore:
    """`duetime.ports.stores.CalendarStore` over the tasks table; reads an owner's partitions in parallel."""

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def put(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str) -> bool:
        """Store a calendar, if its name still has the edition that was read."""
        item = _item_of(owner, calendar) | {_CREATED: attribute_values.number(incarnation.next.created)}
        return save_next(self._client, self._table, item, incarnation.number, nonce)

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar, consistently; `None` if it does not exist."""
        return self.read_edition(owner, name)[0]

    def read_edition(self, owner: str, name: str) -> tuple[Calendar | None, Incarnation]:
        """Read a calendar and the edition of its name."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(owner, name), ConsistentRead=True)
        if "Item" not in answer:
            return None, Incarnation()
        item, number = answer["Item"], version_of(answer["Item"])
        if is_deleted(item):
            return None, Incarnation(number)
        return _calendar(item), Incarnation(number, attribute_values.integer(item[_CREATED]))

    def remove(self, owner: str, calendar: Calendar, incarnation: Incarnation, nonce: str, expires_at: Millis) -> bool:
        """Replace a calendar by a marker, if it still has the edition that was read, or is already deleted."""
        marker = deletion_marker(_key_of(owner, calendar.name), expires_at)
        return delete_next(self._client, self._table, marker, incarnation.number, nonce)

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """An owner's calendars in order of name, eventually consistent."""
        names = listed(
            self._client, self._table, self._executor, (owner, schema.CALENDAR_LIST_MARK, after or " "), limit
        )
        items = read_items(self._client, self._table, [_key_of(owner, name) for name in names])
        # The index may still list a calendar that was just deleted.
        return sorted((_calendar(item) for item in items if not is_deleted(item)), key=lambda each: each.name)


def _key_of(owner: str, name: str) -> Item:
    return {
        # A name has no `#`, so the last one separates the two.
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CALENDAR_PREFIX}{owner}#{name}"),
        schema.SORT_KEY: attribute_values.text(name),
    }


def _item_of(owner: str, calendar: Calendar) -> Item:
    definition = packed(calendar_form(calendar))
    if len(definition.get("B", definition.get("S", ""))) > _MOST:
        raise FieldInvalid(
            "dates", "take up too much room, with their labels and the spans of time", FaultCode.TOO_LONG
        )
    return {
        **_key_of(owner, calendar.name),
        schema.OWNER_KEY: place_in_list(owner, schema.CALENDAR_LIST_MARK, calendar.name),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _DEFINITION: definition,
    }


def _calendar(item: StoredItem) -> Calendar:
    return read_calendar(item[schema.SORT_KEY]["S"], unpacked(item[_DEFINITION]))
