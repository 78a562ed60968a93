"""Stores the places for waiting API requests in DynamoDB.

Each place is one item, so that no item receives many writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.domain.times import Millis

_UNTIL, _HOLDER = "u", "n"
_NAMES = {"#u": _UNTIL, "#n": _HOLDER}


class DynamoLongPollStore:
    """The `duetime.ports.stores.LongPollStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def take(self, place: int, nonce: str, now: Millis, until: Millis) -> bool:
        """Take a place, unless another request holds it."""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(place),
                    ConditionExpression="attribute_not_exists(#u) OR #u < :now OR #n = :nonce",
                    UpdateExpression="SET #u = :until, #n = :nonce",
                    ExpressionAttributeNames=_NAMES,
                    ExpressionAttributeValues={
                        ":now": attribute_values.number(now),
                        ":until": attribute_values.number(until),
                        ":nonce": attribute_values.text(nonce),
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def give_back(self, place: int, nonce: str) -> None:
        """Release a place, unless another request holds the place."""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(place),
                    ConditionExpression="#n = :nonce",
                    UpdateExpression="REMOVE #u",
                    ExpressionAttributeNames=_NAMES,
                    ExpressionAttributeValues={":nonce": attribute_values.text(nonce)},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return


def _key(place: int) -> Item:
    key = attribute_values.text(f"{schema.LONG_POLL_PREFIX}{place}")
    return {schema.PARTITION_KEY: key, schema.SORT_KEY: key}
