"""Unique keys in DynamoDB: each key is a partition with one item, written together with the record that takes it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.idempotency_keys import redirect_of
from duetime.adapters.dynamodb.versioned_items import is_lost_race
from duetime.domain.ids import TaskId
from duetime.domain.tasks.keys import KeyHolder, KeyTaking

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.domain.tasks.keys import KeyWrite
    from duetime.domain.times import Millis

_TASK, _NONCE, _SINCE_FENCE = "i", "j", "k"


class DynamoUniqueKeyStore:
    """`duetime.ports.tasks.UniqueKeyStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def find(self, owner: str, key: str) -> KeyHolder | None:
        """The task that took a key last, read consistently."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(owner, key), ConsistentRead=True)
        if "Item" not in answer:
            return None
        item = answer["Item"]
        return KeyHolder(TaskId(attribute_values.string(item[_TASK])), attribute_values.string(item[_NONCE]))

    def let_expire(self, owner: str, key: str, task_id: TaskId, fence: int, expires_at: Millis) -> None:
        """Set the TTL of a key's item, if it still names a task that has ended at this fence."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=_key_of(owner, key),
                UpdateExpression="SET #x = :x",
                ConditionExpression="#i = :i AND #k <= :k",
                ExpressionAttributeNames={"#x": schema.TTL, "#i": _TASK, "#k": _SINCE_FENCE},
                ExpressionAttributeValues={
                    ":x": attribute_values.expiry(expires_at),
                    ":i": attribute_values.text(task_id.text),
                    ":k": attribute_values.number(fence),
                },
            )


def write_with_key(client: DynamoDBClient, table: str, write: dict[str, Any], key_write: KeyWrite, nonce: str) -> bool:
    """Write a record together with a key's item, of a unique or an idempotency key: both or neither.

    Args:
        client: client of DynamoDB.
        table: the tasks table.
        write: `Put` or `Update` of the record.
        key_write: write to the key's item.
        nonce: nonce of both writes.

    Returns:
        Whether both were written. If the response to an earlier copy of the request was lost, they may be written
        even so: then the record has the nonce.
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
        "Item": _item_of(taking, nonce),
        "ConditionExpression": "attribute_not_exists(#j)" if taking.after is None else "#j = :after",
        "ExpressionAttributeNames": {"#j": _NONCE},
    }
    if taking.after is not None:
        put["ExpressionAttributeValues"] = {":after": attribute_values.text(taking.after)}
    return put


def _key_of(owner: str, key: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.UNIQUE_KEY_PREFIX}{owner}#{key}"),
        # Both may contain a `#`; the owner alone in the second key distinguishes `a#b` + `c` from `a` + `b#c`.
        schema.SORT_KEY: attribute_values.text(owner),
    }


def _item_of(taking: KeyTaking, nonce: str) -> Item:
    return {
        **_key_of(taking.owner, taking.key),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _TASK: attribute_values.text(taking.task_id.text),
        _SINCE_FENCE: attribute_values.number(taking.since_fence),
        _NONCE: attribute_values.text(nonce),
    }
