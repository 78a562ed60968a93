"""Stores the lines of ordered keys in DynamoDB.

Each key has a partition, whose first item contains the counter and the turn.

Each place is a separate item after the first item, so that no item grows with the line, and one query finds the first
place.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import listed, place_in_list
from duetime.adapters.dynamodb.versioned_items import VERSION, item_of_failed_condition, version_of
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import ORDER_LINE_LIFE
from duetime.domain.order_lines import LineName, LinePlace, OrderLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor

_COUNTER, _TURN, _NONCE, _TASK, _SINCE = "n", "h", "j", "i", "c"
_HEAD_MARK = "#"
"""Mark that precedes the key in the sort key of the first item, which sorts before `_PLACE_MARK`."""
_PLACE_MARK = "p#"
_DIGITS = 15
"""Number of digits of a place's number in a sort key. Numbers start from the time in milliseconds."""


class DynamoOrderLineStore:
    """The `duetime.ports.stores.OrderLineStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def next_number(self, name: LineName, count: int, now: Millis) -> int:
        """Take the next numbers of a key, and return the first number."""
        with translated():
            answer = self._client.update_item(
                TableName=self._table,
                Key=_head_of(name),
                UpdateExpression=f"SET #n = if_not_exists(#n, :now) + :count, {_KEPT}",
                ExpressionAttributeNames={"#n": _COUNTER, **_KEPT_NAMES},
                ExpressionAttributeValues={
                    ":now": attribute_values.number(now),
                    ":count": attribute_values.number(count),
                    **_kept_from(name, now),
                },
                ReturnValues="ALL_NEW",
            )
        return attribute_values.integer(answer["Attributes"][_COUNTER]) - count + 1

    def join(self, name: LineName, place: LinePlace) -> None:
        """Add a place to a line; adding the place again changes nothing.

        The place has no expiry, because the task may be open for years.
        """
        item = {
            **_key_of(name, _sort_key(place.number)),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            _TASK: attribute_values.text(place.task_id.text),
            _SINCE: attribute_values.number(place.since),
        }
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def leave(self, name: LineName, number: int) -> None:
        """Remove a place from a line; the place may already be removed."""
        with translated():
            self._client.delete_item(TableName=self._table, Key=_key_of(name, _sort_key(number)))

    def read(self, name: LineName, limit: int) -> OrderLine:
        """Read the turn and the first places of a line with strong consistency."""
        with translated():
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                ExpressionAttributeValues={":p": attribute_values.text(_partition(name))},
                ConsistentRead=True,
                Limit=limit + 1,
            )
        line, places = OrderLine(name), []
        for item in answer["Items"]:
            if item[schema.SORT_KEY]["S"].startswith(_HEAD_MARK):
                line = _line(name, item)
            else:
                places.append(_place(item))
        return replace(line, places=tuple(places), is_whole="LastEvaluatedKey" not in answer)

    def read_many(self, names: Sequence[LineName]) -> list[OrderLine]:
        """Read the turns of many lines without their places, with eventual consistency; missing lines are left out."""
        items = read_items(self._client, self._table, [_head_of(name) for name in names])
        found = {item[schema.SORT_KEY]["S"].removeprefix(_HEAD_MARK): item for item in items}
        return [replace(_line(name, found[name.key]), is_whole=False) for name in names if name.key in found]

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """Read the ordered keys of an owner that follow `after`, in order and with eventual consistency."""
        behind = owner, schema.ORDER_LIST_MARK, f"{_HEAD_MARK}{after}"
        found = listed(self._client, self._table, self._executor, behind, limit)
        return [key.removeprefix(_HEAD_MARK) for key in found]

    def give_turn(self, line: OrderLine, task_id: TaskId, nonce: str, now: Millis) -> bool:
        """Give the turn to a task, unless any task has been given the turn since the line was read."""
        values: dict[str, Value] = {
            ":h": attribute_values.text(task_id.text),
            ":j": attribute_values.text(nonce),
            ":next": attribute_values.number(line.version + 1),
            **_kept_from(line.name, now),
        }
        if line.version:
            values[":e"] = attribute_values.number(line.version)
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_head_of(line.name),
                    UpdateExpression=f"SET #h = :h, #j = :j, #e = :next, {_KEPT}",
                    ConditionExpression="#e = :e" if line.version else "attribute_not_exists(#e)",
                    ExpressionAttributeNames={"#h": _TURN, "#j": _NONCE, "#e": VERSION, **_KEPT_NAMES},
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as refusal:
                stored = item_of_failed_condition(refusal) or {}
                return _NONCE in stored and attribute_values.string(stored[_NONCE]) == nonce
        return True

    def let_expire(self, name: LineName, at: Millis) -> None:
        """Let the counter and the turn of a line expire, unless they are used again; places do not expire."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=_head_of(name),
                UpdateExpression="SET #x = :x",
                ConditionExpression="attribute_exists(#p)",
                ExpressionAttributeNames={"#x": schema.TTL, "#p": schema.PARTITION_KEY},
                ExpressionAttributeValues={":x": attribute_values.expiry(at)},
            )

    def list_before(self, name: LineName, number: int, limit: int) -> list[LinePlace]:
        """Read the places before a number, nearest first, up to a limit, with eventual consistency."""
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#p = :p AND #s BETWEEN :first AND :last",
            "ScanIndexForward": False,
            "ExpressionAttributeNames": {"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
            "ExpressionAttributeValues": {
                ":p": attribute_values.text(_partition(name)),
                ":first": attribute_values.text(_PLACE_MARK),
                ":last": attribute_values.text(_sort_key(number - 1)),
            },
        }
        found: list[LinePlace] = []
        while len(found) < limit:
            with translated():
                page = self._client.query(**request, Limit=limit - len(found))
            found += map(_place, page["Items"])
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return found


def _partition(name: LineName) -> str:
    # An owner contains no `#`, so the first `#` separates the owner from the key.
    return f"{schema.ORDER_LINE_PREFIX}{name.owner}#{name.key}"


def _key_of(name: LineName, sort_key: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(_partition(name)),
        schema.SORT_KEY: attribute_values.text(sort_key),
    }


def _sort_key(number: int) -> str:
    return f"{_PLACE_MARK}{number:0{_DIGITS}}"


def _head_of(name: LineName) -> Item:
    return _key_of(name, f"{_HEAD_MARK}{name.key}")


_KEPT = "#g = :g, #v = :v, #x = :x"
_KEPT_NAMES = {"#g": schema.OWNER_KEY, "#v": schema.VERSION_OF_SCHEMA, "#x": schema.TTL}


def _kept_from(name: LineName, now: Millis) -> dict[str, Value]:
    """The values that each write of the counter or the turn sets, including the expiry."""
    return {
        ":g": place_in_list(name.owner, schema.ORDER_LIST_MARK, name.key),
        ":v": attribute_values.number(schema.SCHEMA_VERSION),
        ":x": attribute_values.expiry(now + ORDER_LINE_LIFE),
    }


def _line(name: LineName, head: StoredItem) -> OrderLine:
    return OrderLine(name, TaskId(head[_TURN]["S"]), version_of(head)) if _TURN in head else OrderLine(name)


def _place(item: StoredItem) -> LinePlace:
    number = int(item[schema.SORT_KEY]["S"].removeprefix(_PLACE_MARK))
    return LinePlace(number, TaskId(item[_TASK]["S"]), attribute_values.integer(item[_SINCE]))
