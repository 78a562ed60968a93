"""Rates in DynamoDB: one item for each part, and one write for each start or place.

A write sets and adds values instead of replacing the item: with hundreds of starts a second, hardly any write would
still find the version that it has read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.versioned_items import item_of_failed_condition
from duetime.domain.rates import DISPLACED, FIELDS, INTERVAL, LINES, STARTS, RateState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.rates import RateName, RateUpdate
    from duetime.domain.times import Millis

_NAMES = dict(zip((STARTS, INTERVAL, *LINES, *DISPLACED), ("a", "i", "h", "n", "o", "dh", "dn", "do"), strict=True))
"""Attribute names by field."""


class DynamoRateStore:
    """`duetime.ports.stores.RateStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def apply(self, name: RateName, update: RateUpdate, expires_at: Millis) -> tuple[bool, RateState]:
        """Make an update, if its conditions hold."""
        names = {"#v": schema.VERSION_OF_SCHEMA, "#x": schema.TTL}
        values: dict[str, Value] = {
            ":v": attribute_values.number(schema.SCHEMA_VERSION),
            ":x": attribute_values.expiry(expires_at),
        }

        def term(form: str, field: str, number: int) -> str:
            place = f"#{_NAMES[field]}"
            value = f":{len(values)}"
            names[place] = _NAMES[field]
            values[value] = attribute_values.number(number)
            return form.format(place, value)

        sets = [term("{0} = {1}", field, number) for field, number in update.sets.items()]
        adds = [term("{0} {1}", field, number) for field, number in update.adds.items()]
        conditions = [term("{0} >= {1}", field, number) for field, number in update.at_least.items()]
        conditions += [
            term("(attribute_not_exists({0}) OR {0} <= {1})", field, number) for field, number in update.at_most.items()
        ]
        changes = f"SET {', '.join(['#v = :v', '#x = :x', *sets])}"
        with translated():
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=_key_of(name),
                    UpdateExpression=f"{changes} ADD {', '.join(adds)}" if adds else changes,
                    ConditionExpression=" AND ".join(conditions),
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as error:
                return False, _state(item_of_failed_condition(error))
        return True, _state(answer["Attributes"])


def _key_of(name: RateName) -> Item:
    # A key has no `#`, so the last two separate the three.
    place = attribute_values.text(f"{schema.RATE_PREFIX}{name.owner}#{name.key}#{name.part}")
    return {schema.PARTITION_KEY: place, schema.SORT_KEY: attribute_values.text(f"#{name.key}")}


def _state(item: StoredItem | None) -> RateState:
    found = {field: item[_NAMES[field]] for field in FIELDS if _NAMES[field] in item} if item else {}
    return RateState({field: attribute_values.integer(value) for field, value in found.items()})
