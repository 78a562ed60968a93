"""Stores rates in DynamoDB, with one item for each part, and one write for each start or place.

A write sets and adds values instead of replacing the item, because with hundreds of starts per second, the item would
rarely still have the version that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import listed, place_in_list
from duetime.adapters.dynamodb.versioned_items import item_of_failed_condition
from duetime.domain.rates import (
    ASKED,
    CONTROL,
    DISPLACED,
    FIELDS,
    INTERVAL,
    LINES,
    PAUSED,
    PINNED,
    STARTS,
    RateName,
    RateState,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.rates import RateUpdate
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor

_NAMES = {
    **dict(zip((STARTS, INTERVAL, *LINES, *DISPLACED), ("a", "i", "h", "n", "o", "dh", "dn", "do"), strict=True)),
    **dict(zip((*ASKED, CONTROL, PAUSED, *PINNED), ("ql", "qs", "qb", "c", "pz", "pl", "ps", "pb"), strict=True)),
}
"""The attribute names, by field."""
_KEY_MARK = "#"
"""Mark that precedes the key in the sort key of a part."""


class DynamoRateStore:
    """The `duetime.ports.stores.RateStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def read_many(self, names: Sequence[RateName], *, consistent: bool = False) -> Mapping[RateName, RateState]:
        """Read parts of rates, with eventual consistency by default; missing parts are left out."""
        items = read_items(self._client, self._table, [_key_of(name) for name in names], consistent=consistent)
        by_place = {_partition(name): name for name in names}
        return {by_place[item[schema.PARTITION_KEY]["S"]]: _state(item) for item in items}

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """Read the keys of an owner's rates that follow `after`, in order and with eventual consistency."""
        behind = owner, schema.RATE_LIST_MARK, f"{_KEY_MARK}{after}"
        found = listed(self._client, self._table, self._executor, behind, limit)
        return [key.removeprefix(_KEY_MARK) for key in found]

    def apply(self, name: RateName, update: RateUpdate, expires_at: Millis | None) -> tuple[bool, RateState]:
        """Make an update, if its conditions are met. Return whether the update was made, and the part's state."""
        names = {"#v": schema.VERSION_OF_SCHEMA, "#x": schema.TTL}
        values: dict[str, Value] = {":v": attribute_values.number(schema.SCHEMA_VERSION)}

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
        if expires_at is not None:
            values[":x"] = attribute_values.expiry(expires_at)
            sets.append("#x = :x")
        if update.is_listed:
            names["#g"] = schema.OWNER_KEY
            values[":g"] = place_in_list(name.owner, schema.RATE_LIST_MARK, name.key)
            sets.append("#g = :g")
        changes = f"SET {', '.join(['#v = :v', *sets])}{' REMOVE #x' if expires_at is None else ''}"
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


def _partition(name: RateName) -> str:
    # A key contains no `#`, so the last two `#` separate the three parts.
    return f"{schema.RATE_PREFIX}{name.owner}#{name.key}#{name.part}"


def _key_of(name: RateName) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(_partition(name)),
        schema.SORT_KEY: attribute_values.text(f"{_KEY_MARK}{name.key}"),
    }


def _state(item: StoredItem | None) -> RateState:
    found = {field: item[_NAMES[field]] for field in FIELDS if _NAMES[field] in item} if item else {}
    return RateState({field: attribute_values.integer(value) for field, value in found.items()})
