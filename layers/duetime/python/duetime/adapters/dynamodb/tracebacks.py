"""Tracebacks in DynamoDB: an item with the task's contents, erased with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.attribute_values import deflated, inflated
from duetime.domain.limits import MAX_TRACEBACK_BYTES, MAX_TRACEBACK_LENGTH
from duetime.domain.tracebacks import AttemptTraceback, last_part
from duetime_common.payload_codecs import is_encrypted_text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Expiry

_NAME, _FENCE, _TEXT = "traceback", "k", "b"


class DynamoTracebackStore:
    """`duetime.ports.stores.TracebackStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def keep(self, task_id: TaskId, traceback: AttemptTraceback, expiry: Expiry) -> None:
        """Store a traceback, replacing an earlier one, but not that of a later attempt."""
        fence = attribute_values.number(traceback.fence)
        item = {
            **_key(task_id),
            _FENCE: fence,
            _TEXT: {"B": _packed(traceback.text)},
            schema.TTL: attribute_values.expiry(expiry.at),
        }
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#k) OR #k <= :k",
                    ExpressionAttributeNames={"#k": _FENCE},
                    ExpressionAttributeValues={":k": fence},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return  # a later attempt has failed since

    def find(self, task_id: TaskId) -> AttemptTraceback | None:
        """The stored traceback of a task; `None` for none."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key(task_id), ConsistentRead=True)
        if "Item" not in answer:
            return None
        item = answer["Item"]
        return AttemptTraceback(attribute_values.integer(item[_FENCE]), inflated(item[_TEXT]["B"]).decode())


def _packed(text: str) -> bytes:
    """The end of a text, compressed into one write unit; an encrypted text as it is, because a part is no use."""
    if len(text) <= MAX_TRACEBACK_LENGTH and is_encrypted_text(text):
        return deflated(text.encode())
    length = MAX_TRACEBACK_LENGTH
    while True:
        packed = deflated(last_part(text, length).encode("utf-8", "replace"))
        if len(packed) <= MAX_TRACEBACK_BYTES:
            return packed
        length = length * 3 // 4


def _key(task_id: TaskId) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
        schema.SORT_KEY: attribute_values.text(_NAME),
    }
