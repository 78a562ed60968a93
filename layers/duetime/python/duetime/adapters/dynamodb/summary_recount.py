"""Generations of counts and results of recounts in DynamoDB: one item for the generation, and one per type and owner.

The owners that have tasks are listed as well, as nothing else in the table lists them.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.summary_numbers import attribute_of, counts_of
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, decoded, owner_of, require_readable, unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.errors import RecordUnreadable
from duetime.domain.operating_parameters import SUMMARY_PAGES, SUMMARY_RECOUNT_KEPT, SUMMARY_RECOUNT_RUN
from duetime.domain.summary import EndedCounts, Generation, Group, OlderTasks, Recount, Summary
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock

_GENERATION, _OWNER_MARK = "generation", "o#"
"""Sort keys in the partition without an owner."""
_STATE, _PART = "w", "k"
_FIELDS = ("type", "state", "priority", "erased")
_SHOWN = (schema.SORT_KEY, schema.OWNER_KEY, schema.VERSION_OF_SCHEMA, *(ATTRIBUTES[field].name for field in _FIELDS))
_CREATED_AT = ATTRIBUTES["created_at"].name
_LATE_REMOVAL = 5 * DAY


class DynamoSummaryRecounts:
    """`duetime.ports.stores.SummaryRecounts` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    def generation(self) -> Generation | None:
        """Read the generation of the counts, consistently."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key("", _GENERATION), ConsistentRead=True)
        return _generation_of(answer["Item"]) if "Item" in answer else None

    def save(self, generation: Generation, nonce: str) -> bool:
        """Store the generation, if it is as it was read."""
        return save_next(self._client, self._table, _item_of(generation), generation.version, nonce)

    def is_fresh(self, at: Millis) -> bool:
        """Whether the first page of the table has no task created before the given time, and is the only page."""
        with translated():
            answer = self._client.scan(TableName=self._table, **_older_than(at))
        return not answer["Items"] and "LastEvaluatedKey" not in answer

    def older_tasks(self, cursor: str, since: Millis, pages: int) -> OlderTasks:
        """Read some pages of the table for tasks created before a time, eventually consistent."""
        found: Counter[tuple[str, Group]] = Counter()
        end = self._clock.now() + SUMMARY_RECOUNT_RUN
        for _ in range(pages):
            start: dict[str, Any] = {"ExclusiveStartKey": json.loads(cursor)} if cursor else {}
            with translated():
                answer = self._client.scan(TableName=self._table, **_older_than(since), **start)
            found.update(group for item in answer["Items"] if (group := _group_of(item)) is not None)
            cursor = json.dumps(answer["LastEvaluatedKey"]) if "LastEvaluatedKey" in answer else ""
            if not cursor or self._clock.now() >= end:
                break
        return OlderTasks(found, cursor)

    def add_older(
        self, generation: Generation, recount: Recount, owner: str, type_: str, numbers: Mapping[Group, int]
    ) -> None:
        """Add the result of a part of a recount, once, however often the request is sent."""
        names = {f"#c{place}": attribute_of(group) for place, group in enumerate(numbers)}
        values = {f":c{place}": attribute_values.number(number) for place, number in enumerate(numbers.values())}
        additions = ", ".join(f"#c{place} :c{place}" for place in range(len(numbers)))
        expires_at = recount.started_at + SUMMARY_RECOUNT_KEPT + _LATE_REMOVAL
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(f"{owner}#0", f"{_older_mark(generation, recount)}{type_}"),
                    UpdateExpression=f"SET #k = :k, #v = :v, #x = :x ADD {additions}",
                    ConditionExpression="attribute_not_exists(#k) OR #k < :k",
                    ExpressionAttributeNames={
                        "#k": _PART,
                        "#v": schema.VERSION_OF_SCHEMA,
                        "#x": schema.TTL,
                        **names,
                    },
                    ExpressionAttributeValues={
                        ":k": attribute_values.number(recount.part + 1),
                        ":v": attribute_values.number(schema.SCHEMA_VERSION),
                        ":x": attribute_values.expiry(expires_at),
                        **values,
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                # Only an earlier copy of the same request can have come first.
                return

    def read_older(self, generation: Generation, recount: Recount, owner: str) -> Summary:
        """The result of a recount for an owner's tasks, eventually consistent."""
        mark = _older_mark(generation, recount)
        counts: dict[Group, int] = {}
        items, is_complete = self._items(f"{owner}#0", mark)
        for item in items:
            counts |= counts_of(item, mark)
        return Summary(counts, is_complete=is_complete)

    def list_owner(self, owner: str) -> None:
        """Add an owner to the list of owners with tasks."""
        key = _key("", f"{_OWNER_MARK}{owner}")
        with translated():
            if "Item" not in self._client.get_item(TableName=self._table, Key=key):
                version = attribute_values.number(schema.SCHEMA_VERSION)
                self._client.put_item(TableName=self._table, Item={**key, schema.VERSION_OF_SCHEMA: version})

    def owners(self, after: str, limit: int) -> Sequence[str]:
        """The owners after the given one, in order, eventually consistent."""
        start: dict[str, Any] = {"ExclusiveStartKey": _key("", f"{_OWNER_MARK}{after}")} if after else {}
        with translated():
            answer = self._client.query(TableName=self._table, Limit=limit, **start, **_query("", _OWNER_MARK))
        return [attribute_values.string(item[schema.SORT_KEY]).removeprefix(_OWNER_MARK) for item in answer["Items"]]

    def _items(self, partition: str, mark: str) -> tuple[list[StoredItem], bool]:
        """The items of a partition whose sort keys begin with a mark, and whether these are all."""
        found: list[StoredItem] = []
        start: dict[str, Any] = {}
        for _ in range(SUMMARY_PAGES):
            with translated():
                answer = self._client.query(TableName=self._table, **_query(partition, mark), **start)
            found += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return found, True
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return found, False


def _group_of(item: StoredItem) -> tuple[str, Group] | None:
    """An item's owner and group; `None` for an erased or unreadable item."""
    try:
        require_readable(item)
        with unreadable_as_error(item):
            fields = {"priority": Priority.NORMAL, "erased": False, **decoded(item, _FIELDS)}
            if fields.pop("erased"):
                return None
            return owner_of(item), Group(**fields)
    except RecordUnreadable:
        return None


def _older_than(at: Millis) -> dict[str, Any]:
    """Parameters of a scan: tasks created before a time."""
    names = {f"#s{place}": name for place, name in enumerate(_SHOWN)}
    return {
        "FilterExpression": "attribute_exists(#z) AND #c < :c",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": {**names, "#z": schema.STATE, "#c": _CREATED_AT},
        "ExpressionAttributeValues": {":c": attribute_values.number(at)},
    }


def _query(partition: str, mark: str) -> dict[str, Any]:
    return {
        "KeyConditionExpression": "#p = :p AND begins_with(#s, :s)",
        "ExpressionAttributeNames": {"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
        "ExpressionAttributeValues": {
            ":p": attribute_values.text(f"{schema.SUMMARY_PREFIX}{partition}"),
            ":s": attribute_values.text(mark),
        },
    }


def _key(partition: str, sort: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.SUMMARY_PREFIX}{partition}"),
        schema.SORT_KEY: attribute_values.text(sort),
    }


def _older_mark(generation: Generation, recount: Recount) -> str:
    return f"r{generation.number}.{recount.number}#"


def _item_of(generation: Generation) -> Item:
    state = {
        "number": generation.number,
        "since": generation.since,
        "seen_at": generation.seen_at,
        "recounting": generation.recounting and _document(generation.recounting),
        "recounted": generation.recounted and _document(generation.recounted),
        "ended_counts": astuple(generation.ended_counts),
    }
    version: Value = attribute_values.number(schema.SCHEMA_VERSION)
    return {
        **_key("", _GENERATION),
        schema.VERSION_OF_SCHEMA: version,
        _STATE: attribute_values.text(json.dumps(state, separators=(",", ":"))),
    }


def _document(recount: Recount) -> dict[str, Any]:
    return {name: getattr(recount, name) for name in Recount.__slots__}


def _generation_of(item: StoredItem) -> Generation:
    state = json.loads(attribute_values.string(item[_STATE]))
    for name in ("recounting", "recounted"):
        state[name] = state[name] and Recount(**state[name])
    ended_counts = EndedCounts(*state.pop("ended_counts"))
    return Generation(**state, ended_counts=ended_counts, version=version_of(item))
