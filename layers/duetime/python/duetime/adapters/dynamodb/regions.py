"""Stores the record of the active Region in the tasks table, which is replicated to the other Region."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.regions import ActiveRegion

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item

_NAME, _EPOCH, _SINCE, _OPEN, _PROBE = "n", "e", "a", "o", "b"


class DynamoRegionStore:
    """The `duetime.ports.restore.RegionStore` that uses one replica of the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> ActiveRegion | None:
        """Read the record with strong consistency; `None` before the first takeover."""
        with translated():
            found = self._client.get_item(TableName=self._table, Key=_key("active"), ConsistentRead=True)
        if (item := found.get("Item")) is None:
            return None
        return ActiveRegion(
            attribute_values.string(item[_NAME]),
            attribute_values.integer(item[_EPOCH]),
            attribute_values.integer(item[_SINCE]),
            item[_OPEN]["BOOL"],
        )

    def save(self, region: ActiveRegion) -> bool:
        """Store the record, unless the stored record has a later epoch, or the same epoch with another Region."""
        item: Item = {
            **_key("active"),
            _NAME: attribute_values.text(region.name),
            _EPOCH: attribute_values.number(region.epoch),
            _SINCE: attribute_values.number(region.since),
            _OPEN: {"BOOL": region.is_open},
        }
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#e) OR #e < :e OR (#e = :e AND #n = :n)",
                    ExpressionAttributeNames={"#e": _EPOCH, "#n": _NAME},
                    ExpressionAttributeValues={":e": item[_EPOCH], ":n": item[_NAME]},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def put_probe(self, probe: str) -> None:
        """Write an item whose arrival in the other replica shows that replication works."""
        with translated():
            self._client.put_item(TableName=self._table, Item={**_key("probe"), _PROBE: attribute_values.text(probe)})

    def read_probe(self) -> str:
        """Read the last probe that has arrived; empty before the first probe."""
        with translated():
            found = self._client.get_item(TableName=self._table, Key=_key("probe"), ConsistentRead=True)
        return attribute_values.string(found["Item"][_PROBE]) if "Item" in found else ""


def _key(sort: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(schema.REGION_KEY),
        schema.SORT_KEY: attribute_values.text(sort),
    }
