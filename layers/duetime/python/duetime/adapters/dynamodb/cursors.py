"""The trigger's cursors, in DynamoDB: one item a group, so that a tick moves all of its cursors in one write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws import translated
from duetime.adapters.dynamodb import schema, values
from duetime.domain.shards import Cursors

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.values import Item, StoredItem, Value
    from duetime.domain.times import Millis

_MINUTES, _EPOCH, _HOLDER, _HELD_UNTIL = "m", "e", "h", "u"
_SORT = "cursors"


class DynamoCursorStore:
    """`duetime.ports.stores.CursorStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def take(self, group: int, holder: str, now: Millis, until: Millis, first: Cursors) -> Cursors | None:
        """Take a group for reading until the given instant, if nobody else holds it."""
        with translated():
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=_key_of(group),
                    # The holder itself may take it again: a resent request must not lock its sender out.
                    ConditionExpression="attribute_not_exists(#until) OR #until <= :now OR #holder = :holder",
                    UpdateExpression=(
                        "SET #minutes = if_not_exists(#minutes, :first), #holder = :holder, #until = :until,"
                        " #epoch = if_not_exists(#epoch, :epoch) + :one"
                    ),
                    ExpressionAttributeNames={
                        "#minutes": _MINUTES,
                        "#epoch": _EPOCH,
                        "#holder": _HOLDER,
                        "#until": _HELD_UNTIL,
                    },
                    ExpressionAttributeValues={
                        ":first": _minutes(first),
                        ":epoch": values.number(first.epoch),
                        ":one": values.number(1),
                        ":holder": values.text(holder),
                        ":now": values.number(now),
                        ":until": values.number(until),
                    },
                    ReturnValues="ALL_NEW",
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return None
        return _cursors(answer["Attributes"])

    def advance(self, group: int, cursors: Cursors, until: Millis) -> bool:
        """Move a group's cursors forward and keep the hold until `until` (in the past: let it go)."""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key_of(group),
                    ConditionExpression="#epoch = :epoch",
                    UpdateExpression="SET #minutes = :minutes, #until = :until",
                    ExpressionAttributeNames={"#minutes": _MINUTES, "#epoch": _EPOCH, "#until": _HELD_UNTIL},
                    ExpressionAttributeValues={
                        ":minutes": _minutes(cursors),
                        ":epoch": values.number(cursors.epoch),
                        ":until": values.number(until),
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True


def _key_of(group: int) -> Item:
    return {
        schema.PARTITION_KEY: values.text(f"{schema.CURSOR_PREFIX}{group}"),
        schema.SORT_KEY: values.text(_SORT),
    }


def _minutes(cursors: Cursors) -> Value:
    return {"L": [values.number(minute) for minute in cursors.minutes]}


def _cursors(item: StoredItem) -> Cursors:
    return Cursors(tuple(values.whole(minute) for minute in item[_MINUTES]["L"]), values.whole(item[_EPOCH]))
