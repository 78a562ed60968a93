"""Calendars, in DynamoDB: an item for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws import translated
from duetime.adapters.dynamodb import schema, values
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.definitions import calendar_form, packed, read_calendar, unpacked
from duetime.adapters.dynamodb.lists import listed, place_in_list
from duetime.domain.errors import FieldInvalid

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.values import Item, StoredItem
    from duetime.domain.schedules.calendars import Calendar
    from duetime.ports.surroundings import Crew

_DEFINITION = "b"
_MOST = 380_000
"""Bytes of a packed calendar: an item has 400 KB (Source: DynamoDB quotas)."""


class DynamoCalendarStore:
    """`duetime.ports.stores.CalendarStore` over the tasks table; the crew reads an owner's partitions at once."""

    def __init__(self, client: DynamoDBClient, table: str, crew: Crew) -> None:
        self._client = client
        self._table = table
        self._crew = crew

    def put(self, owner: str, calendar: Calendar) -> None:
        """Store a calendar, whatever was under its name before."""
        definition = packed(calendar_form(calendar))
        if len(definition.get("B", definition.get("S", ""))) > _MOST:
            raise FieldInvalid("dates", "take up too much room, with their labels and the spans of time")
        item = {
            **_key_of(owner, calendar.name),
            schema.OWNER_KEY: place_in_list(owner, schema.CALENDAR_LIST_MARK, calendar.name),
            schema.VERSION_OF_SCHEMA: values.number(schema.SCHEMA_VERSION),
            _DEFINITION: definition,
        }
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def read(self, owner: str, name: str) -> Calendar | None:
        """Read a calendar, consistently; `None` if there is none."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(owner, name), ConsistentRead=True)
        return _calendar(answer["Item"]) if "Item" in answer else None

    def remove(self, owner: str, name: str) -> None:
        """Remove a calendar, if there is one."""
        with translated():
            self._client.delete_item(TableName=self._table, Key=_key_of(owner, name))

    def list_after(self, owner: str, after: str, limit: int) -> list[Calendar]:
        """An owner's calendars in order of their names, eventually consistently."""
        names = listed(self._client, self._table, self._crew, (owner, schema.CALENDAR_LIST_MARK, after or " "), limit)
        items = read_items(self._client, self._table, [_key_of(owner, name) for name in names])
        return sorted(map(_calendar, items), key=lambda each: each.name)


def _key_of(owner: str, name: str) -> Item:
    return {
        # A name has no `#`, so the last one is between the two.
        schema.PARTITION_KEY: values.text(f"{schema.CALENDAR_PREFIX}{owner}#{name}"),
        schema.SORT_KEY: values.text(name),
    }


def _calendar(item: StoredItem) -> Calendar:
    return read_calendar(item[schema.SORT_KEY]["S"], unpacked(item[_DEFINITION]))
