"""A fake of a table's stream as Lambda delivers it: records are ordered and filtered, and bytes are Base64-encoded."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.fakes.tables import Table

Record = dict[str, Any]


@dataclass
class FakeStream:
    """Records all writes to a watched table (Source: DynamoDB Streams API Reference, "Record").

    Attributes:
        now: returns the time in milliseconds.
        records: the records that pass the event source's filters, in the order of the writes.
        told: called after each new record.
        by_ttl: whether removed items are recorded as deleted by TTL.
        filters: the event source's filters.
    """

    now: Callable[[], int]
    records: list[Record] = field(default_factory=list)
    told: Callable[[], None] = lambda: None
    by_ttl: bool = False
    filters: Sequence[Mapping[str, Any]] = schema.STREAM_FILTERS
    _numbers: int = 0

    def watch(self, table: Table) -> None:
        """Record each future write to a table, and keep calling the table's previous watcher."""
        before = table.watch

        def written(old: Item | None, new: Item | None) -> None:
            before(old, new)
            self.add(old, new)

        table.watch = written

    def add(self, old: Item | None, new: Item | None) -> None:
        """Record a write if it changes the item."""
        if old == new:
            return
        self._numbers += 1
        record = record_of(self._numbers, self.now(), old, new)
        if self.by_ttl and new is None:
            record["userIdentity"] = {"type": "Service", "principalId": schema.TTL_PRINCIPAL}
        if is_delivered(record, self.filters):
            self.records.append(record)
            self.told()

    def event(self, start: int = 0, end: int | None = None) -> dict[str, Any]:
        """Return a Lambda event with the records from `start` up to, but not including, `end`.

        By default, the event contains all records.
        """
        return {"Records": self.records[start:end]}


def record_of(number: int, now: int, old: Item | None, new: Item | None) -> Record:
    """Build one record of a stream."""
    item = new or old or {}
    keys = {name: item[name] for name in (schema.PARTITION_KEY, schema.SORT_KEY)}
    images = {name: _image(image) for name, image in (("NewImage", new), ("OldImage", old)) if image is not None}
    return {
        "eventID": f"{number:032x}",
        "eventName": "REMOVE" if new is None else "INSERT" if old is None else "MODIFY",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": float(now // SECOND),
            "Keys": keys,
            **images,
            "SequenceNumber": f"{number:021}",
            "SizeBytes": 1000,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/tasks/stream/2026-11-21T00:00:00.000",
    }


def is_delivered(record: Record, filters: Sequence[Mapping[str, Any]] = schema.STREAM_FILTERS) -> bool:
    """Whether a record passes at least one filter of the event source."""
    return any(_matches(pattern, record) for pattern in filters)


def _matches(pattern: Mapping[str, Any], value: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, dict) and all(
        any(_fulfils(rule, value.get(name)) for rule in inner)
        if isinstance(inner, list)
        else _matches(inner, value.get(name))
        for name, inner in pattern.items()
    )


def _fulfils(rule: Any, value: Any) -> bool:  # noqa: ANN401 - any JSON
    match rule:
        case {"exists": exists}:
            return (value is not None) is exists
        case {"prefix": prefix}:
            return isinstance(value, str) and value.startswith(prefix)
    return bool(rule == value)


def _image(item: Item) -> dict[str, Any]:
    """Convert an item to JSON; strings and numbers, which are nearly all attributes, need no conversion."""
    return {name: value if "S" in value or "N" in value else _as_json(value) for name, value in item.items()}


def _as_json(value: Any) -> Any:  # noqa: ANN401 - an attribute value, or what it holds
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _as_json(each) for name, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, list) else value
