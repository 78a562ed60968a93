"""How the number of shards has grown, in DynamoDB: one item beside the trigger's cursors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.dispatch.cursors import Growth, ShardHistory

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, Value
    from duetime.domain.times import Millis

_HISTORY = "b"
_KEY: Item = {
    schema.PARTITION_KEY: attribute_values.text(f"{schema.CURSOR_PREFIX}shards"),
    schema.SORT_KEY: attribute_values.text("shards"),
}


class DynamoShardStore:
    """`duetime.ports.stores.ShardStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> ShardHistory:
        """Read every number that was announced, consistently."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_KEY, ConsistentRead=True)
        if "Item" not in answer:
            return ShardHistory()
        steps = json.loads(attribute_values.string(answer["Item"][_HISTORY]))
        return ShardHistory(tuple(Growth(shards, at) for shards, at in steps))

    def announce(self, shards: int, now: Millis) -> ShardHistory:
        """Make it known that there may be tasks in so many shards from now on."""
        while (grown := (before := self.read()).grown(shards, now)) != before:
            if self._save(grown, before):
                return grown
        return before

    def _save(self, history: ShardHistory, before: ShardHistory) -> bool:
        unchanged = "#h = :before" if before.steps else "attribute_not_exists(#h)"
        compared = {":before": _told(before)} if before.steps else {}
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_KEY,
                    ConditionExpression=unchanged,
                    UpdateExpression="SET #h = :after",
                    ExpressionAttributeNames={"#h": _HISTORY},
                    ExpressionAttributeValues={":after": _told(history), **compared},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True


def _told(history: ShardHistory) -> Value:
    return attribute_values.text(json.dumps([[step.shards, step.at] for step in history.steps], separators=(",", ":")))
