"""Stores idempotency keys and unique keys in DynamoDB.

Each unique key is a partition with one item, which is written together with the record that takes the key.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.versioned_items import is_lost_race, item_of_failed_condition
from duetime.domain.ids import TaskId
from duetime.domain.tasks.creation import KeyHolder, KeyTaking, RememberedKey
from duetime.domain.tasks.task_options import OnConflict

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.tasks.creation import KeyRedirect, KeyWrite
    from duetime.domain.times import Millis


_TASK, _DUE_AT, _CREATED_AT, _BODY_HASH, _EXPIRES_AT, _EDITION, _ON_CONFLICT = "i", "d", "c", "h", "e", "n", "u"
"""Attribute names. A key's exact expiry has a separate attribute, because the TTL attribute has only whole seconds."""


class DynamoKeyStore:
    """The `duetime.ports.tasks.KeyStore` that uses the tasks table. Each key is a partition with one item."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def remember(self, owner: str, key: str, wanted: RememberedKey, now: Millis) -> RememberedKey:
        """Store the value of an owner's key, unless the key is taken and has not expired.

        Return the value that the key now has.
        """
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=_item_of(owner, key, wanted),
                    # An expired item may still exist, because DynamoDB may take days to remove an expired item.
                    ConditionExpression="attribute_not_exists(#p) OR #expires_at <= :now",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#expires_at": _EXPIRES_AT},
                    ExpressionAttributeValues={":now": attribute_values.number(now)},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as refusal:
                kept = item_of_failed_condition(refusal)
                return _remembered(kept) if kept else wanted
        return wanted

    def redirect(self, redirect: KeyRedirect) -> None:
        """Make a key refer to a different task than planned, unless this has already been done."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(**redirect_of(redirect, self._table))

    def find(self, owner: str, key: str, now: Millis) -> RememberedKey | None:
        """Read the value of an owner's key with strong consistency; `None` if the key is not taken, or has expired."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(owner, key), ConsistentRead=True)
        found = _remembered(answer["Item"]) if "Item" in answer else None
        return None if found is None or found.expires_at <= now else found


def redirect_of(redirect: KeyRedirect, table: str) -> Any:  # noqa: ANN401 - parameters of `update_item`, or of a transaction
    """The update of a key's item that makes the key refer to another task."""
    return {
        "TableName": table,
        "Key": _key_of(redirect.owner, redirect.key),
        "UpdateExpression": "SET #i = :instead, #u = :u",
        "ConditionExpression": "#i = :i",
        "ExpressionAttributeNames": {"#i": _TASK, "#u": _ON_CONFLICT},
        "ExpressionAttributeValues": {
            ":i": attribute_values.text(redirect.wanted.text),
            ":instead": attribute_values.text(redirect.instead.text),
            ":u": attribute_values.text(redirect.on_conflict.value),
        },
    }


def _key_of(owner: str, key: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.KEY_PREFIX}{owner}#{key}"),
        # The sort key distinguishes `a#b` + `c` from `a` + `b#c`, although the API accepts no owner with `#`.
        schema.SORT_KEY: attribute_values.text(owner),
    }


def _item_of(owner: str, key: str, remembered: RememberedKey) -> Item:
    item = {
        **_key_of(owner, key),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        schema.TTL: attribute_values.expiry(remembered.expires_at),
        _TASK: attribute_values.text(remembered.task_id.text),
        _DUE_AT: attribute_values.number(remembered.due_at),
        _CREATED_AT: attribute_values.number(remembered.created_at),
        _BODY_HASH: attribute_values.text(remembered.body_hash),
        _EXPIRES_AT: attribute_values.number(remembered.expires_at),
    }
    if remembered.edition:
        item[_EDITION] = attribute_values.number(remembered.edition)
    return item


def _remembered(item: StoredItem) -> RememberedKey:
    return RememberedKey(
        task_id=TaskId(attribute_values.string(item[_TASK])),
        due_at=attribute_values.integer(item[_DUE_AT]),
        created_at=attribute_values.integer(item[_CREATED_AT]),
        body_hash=attribute_values.string(item[_BODY_HASH]),
        expires_at=attribute_values.integer(item[_EXPIRES_AT]),
        edition=attribute_values.integer(item[_EDITION]) if _EDITION in item else 0,
        on_conflict=OnConflict(attribute_values.string(item[_ON_CONFLICT])) if _ON_CONFLICT in item else None,
    )


_HOLDER, _NONCE, _SINCE_FENCE = "i", "j", "k"


class DynamoUniqueKeyStore:
    """The `duetime.ports.tasks.UniqueKeyStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def find(self, owner: str, key: str) -> KeyHolder | None:
        """Read, with strong consistency, which task last took a key; `None` if no item for the key is stored."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_unique_key_of(owner, key), ConsistentRead=True)
        if "Item" not in answer:
            return None
        item = answer["Item"]
        return KeyHolder(TaskId(attribute_values.string(item[_HOLDER])), attribute_values.string(item[_NONCE]))

    def let_expire(self, owner: str, key: str, task_id: TaskId, fence: int, expires_at: Millis) -> None:
        """Set the TTL of a key's item, if the item still names the given task, which ended at the given fence."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=_unique_key_of(owner, key),
                UpdateExpression="SET #x = :x",
                ConditionExpression="#i = :i AND #k <= :k",
                ExpressionAttributeNames={"#x": schema.TTL, "#i": _HOLDER, "#k": _SINCE_FENCE},
                ExpressionAttributeValues={
                    ":x": attribute_values.expiry(expires_at),
                    ":i": attribute_values.text(task_id.text),
                    ":k": attribute_values.number(fence),
                },
            )


def write_with_key(client: DynamoDBClient, table: str, write: dict[str, Any], key_write: KeyWrite, nonce: str) -> bool:
    """Write a record and the item of a unique or idempotency key in one transaction.

    Args:
        client: the DynamoDB client.
        table: the tasks table.
        write: the `Put` or `Update` of the record.
        key_write: the write to the key's item.
        nonce: the nonce of both writes.

    Returns:
        Whether both items were written. If the response to an earlier copy of the request was lost, `False` is returned
        although both items may be written. In that case, the record has the nonce.
    """
    if isinstance(key_write, KeyTaking):
        of_key = {"Put": _put_of(key_write, table, nonce)}
    else:
        of_key = {"Update": redirect_of(key_write, table)}
    with translated():
        try:
            items: Any = [of_key, write]
            client.transact_write_items(TransactItems=items, ClientRequestToken=nonce)
        except client.exceptions.TransactionCanceledException as refusal:
            if not is_lost_race(refusal):
                raise
            return False
    return True


def _put_of(taking: KeyTaking, table: str, nonce: str) -> dict[str, Any]:
    put = {
        "TableName": table,
        "Item": _unique_item_of(taking, nonce),
        "ConditionExpression": "attribute_not_exists(#j)" if taking.after is None else "#j = :after",
        "ExpressionAttributeNames": {"#j": _NONCE},
    }
    if taking.after is not None:
        put["ExpressionAttributeValues"] = {":after": attribute_values.text(taking.after)}
    return put


def _unique_key_of(owner: str, key: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.UNIQUE_KEY_PREFIX}{owner}#{key}"),
        # The sort key distinguishes `a#b` + `c` from `a` + `b#c`, although the API accepts no owner with `#`.
        schema.SORT_KEY: attribute_values.text(owner),
    }


def _unique_item_of(taking: KeyTaking, nonce: str) -> Item:
    return {
        **_unique_key_of(taking.owner, taking.key),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _HOLDER: attribute_values.text(taking.task_id.text),
        _SINCE_FENCE: attribute_values.number(taking.since_fence),
        _NONCE: attribute_values.text(nonce),
    }
