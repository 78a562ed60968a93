"""Stores quotas in DynamoDB, with one item for the quotas of all owners, and one partition for each owner's usage.

An owner's partition has an item for each window, with the counts of its rates, and an item for each thing that the
owner holds: places for attempts and long polls, running topologies, and leases. Therefore, no single item is written by
every request.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.task_items import unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import item_of_failed_condition, save_next, version_of
from duetime.domain.operating_parameters import MAX_CLOCK_DIFFERENCE
from duetime.domain.quotas import Hold, OwnerQuotas, Quota, Quotas, StoredQuotas, WindowCounts, window_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis

_QUOTAS = "b"


class DynamoQuotaStore:
    """The `duetime.ports.stores.QuotaStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, *, consistent: bool) -> StoredQuotas:
        """Read all owners' quotas; empty if no quotas are stored.

        Raises:
            RecordUnreadable: this version of duetime cannot read the stored form.
        """
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_KEY, ConsistentRead=consistent)
        return _quotas(answer["Item"]) if "Item" in answer else StoredQuotas()

    def save(self, quotas: StoredQuotas, nonce: str) -> bool:
        """Store all owners' quotas, if the stored item still has the version that was read."""
        forms = [
            [each.owner, _limits(each.own), each.reason, each.updated_at, each.updated_by]
            for each in quotas.by_owner.values()
        ]
        item = {
            **_KEY,
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            _QUOTAS: attribute_values.packed(json.dumps(forms, separators=(",", ":")).encode()),
        }
        return save_next(self._client, self._table, item, quotas.version, nonce)


def _limits(quotas: Quotas) -> dict[str, int]:
    return {name: limit for name, limit in asdict(quotas).items() if limit is not None}


def _quotas(item: StoredItem) -> StoredQuotas:
    with unreadable_as_error(item):
        forms = json.loads(attribute_values.unpacked(item[_QUOTAS]))
        found = [OwnerQuotas(owner, Quotas(**limits), *rest) for owner, limits, *rest in forms]
        return StoredQuotas({each.owner: each for each in found}, version_of(item))


_KEY: Item = {
    schema.PARTITION_KEY: attribute_values.text(schema.QUOTA_PREFIX),
    schema.SORT_KEY: attribute_values.text("quotas"),
}
_WINDOW_MARK = "w#"
_COUNTED = {Quota.CREATES: "c", Quota.PAYLOAD_BYTES: "b", Quota.READS: "r"}
"""For each quota, the attribute that counts the usage in a window's item."""

_NUMBER, _UNTIL, _TAKER = "n", "u", "t"
_HOLD = (_NUMBER, _UNTIL)


class DynamoQuotaUse:
    """The `duetime.ports.stores.QuotaUseStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def counts(self, owner: str, now: Millis) -> WindowCounts:
        """Read an owner's usage in the current window and the two previous windows, with eventual consistency."""
        items = self._items(owner, _WINDOW_MARK, ScanIndexForward=False, Limit=4)
        found = {int(_name(item, _WINDOW_MARK)): _counted(item) for item in items}
        window = window_at(now)
        return WindowCounts(window, *(found.get(window - each, {}) for each in range(3)))

    def add(
        self, owner: str, window: int, quota: Quota, amount: int, below: int | None, expires_at: Millis
    ) -> tuple[bool, Mapping[Quota, int]]:
        """Add to a count of a window, if the count is below a given limit.

        Return whether the amount was added, and the counts of the window.
        """
        condition: dict[str, Any] = {}
        values = {":x": attribute_values.expiry(expires_at), ":n": attribute_values.number(amount)}
        if below is not None:
            condition = {
                "ConditionExpression": "attribute_not_exists(#n) OR #n < :m",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
            values[":m"] = attribute_values.number(below)
        with translated():
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=_key(owner, f"{_WINDOW_MARK}{window}"),
                    UpdateExpression="SET #x = :x ADD #n :n",
                    ExpressionAttributeNames={"#x": schema.TTL, "#n": _COUNTED[quota]},
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    **condition,
                )
            except self._client.exceptions.ConditionalCheckFailedException as refusal:
                return False, _counted(item_of_failed_condition(refusal) or {})
        return True, _counted(answer["Attributes"])

    def holds(self, owner: str, quota: Quota) -> Mapping[str, Hold]:
        """Read an owner's stored holds for a quota, by name, with strong consistency; some may have ended."""
        mark = _mark(quota)
        items = self._items(owner, mark, ConsistentRead=True)
        return {_name(each, mark): Hold(*(attribute_values.integer(each[name]) for name in _HOLD)) for each in items}

    def hold(self, owner: str, quota: Quota, name: str, hold: Hold, expires_at: Millis) -> None:
        """Store a hold, which counts towards an owner's quota. The call is safe to resend."""
        item = {
            **_key(owner, f"{_mark(quota)}{name}"),
            _NUMBER: attribute_values.number(hold.number),
            _UNTIL: attribute_values.number(hold.until),
            schema.TTL: attribute_values.expiry(expires_at),
        }
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def take(self, owner: str, quota: Quota, place: int, nonce: str, now: Millis, until: Millis) -> bool:
        """Take a place, unless another taker has the place; the same taker renews its hold."""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(owner, f"{_mark(quota)}{place}"),
                    ConditionExpression="attribute_not_exists(#u) OR #u < :now OR #t = :t",
                    UpdateExpression="SET #u = :u, #t = :t, #n = :n, #x = :x",
                    ExpressionAttributeNames={"#u": _UNTIL, "#t": _TAKER, "#n": _NUMBER, "#x": schema.TTL},
                    ExpressionAttributeValues={
                        ":now": attribute_values.number(now),
                        ":u": attribute_values.number(until),
                        ":t": attribute_values.text(nonce),
                        ":n": attribute_values.number(1),
                        ":x": attribute_values.expiry(until + MAX_CLOCK_DIFFERENCE),
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def drop(self, owner: str, quota: Quota, name: str, nonce: str = "") -> None:
        """Remove a hold. If a nonce is given, the hold is removed only if the taker with this nonce has it.

        The call is safe to resend.
        """
        condition: dict[str, Any] = {}
        if nonce:
            condition = {
                "ConditionExpression": "#t = :t",
                "ExpressionAttributeNames": {"#t": _TAKER},
                "ExpressionAttributeValues": {":t": attribute_values.text(nonce)},
            }
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.delete_item(TableName=self._table, Key=_key(owner, f"{_mark(quota)}{name}"), **condition)

    def _items(self, owner: str, mark: str, **more: Any) -> Sequence[StoredItem]:  # noqa: ANN401 - parameters of the request
        """Read an owner's items whose sort keys begin with a mark. With a limit, at most this many items are read."""
        found: list[StoredItem] = []
        while True:
            with translated():
                answer = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="#p = :p AND begins_with(#s, :s)",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
                    ExpressionAttributeValues={
                        ":p": attribute_values.text(f"{schema.QUOTA_PREFIX}{owner}"),
                        ":s": attribute_values.text(mark),
                    },
                    **more,
                )
            found += answer["Items"]
            if "Limit" in more or "LastEvaluatedKey" not in answer:
                return found
            more["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _counted(item: StoredItem) -> dict[Quota, int]:
    return {quota: attribute_values.integer(item[name]) for quota, name in _COUNTED.items() if name in item}


def _key(owner: str, sort: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.QUOTA_PREFIX}{owner}"),
        schema.SORT_KEY: attribute_values.text(sort),
    }


def _mark(quota: Quota) -> str:
    return f"{quota.value}#"


def _name(item: StoredItem, mark: str) -> str:
    return attribute_values.string(item[schema.SORT_KEY]).removeprefix(mark)
