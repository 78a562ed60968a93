"""Items that are read, changed and written back: a write is refused if somebody else's came between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.aws import translated
from duetime.adapters.dynamodb import values
from duetime.adapters.dynamodb.refusals import refusing_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.values import Item, StoredItem

VERSION = "e"
_NONCE = "j"


def save_next(client: DynamoDBClient, table: str, item: Item, version: int, nonce: str) -> bool:
    """Write an item's next version, if it is still at the one that was read; 0 if there was none.

    Safe to resend: a refusal by an item that bears the write's own nonce is a success.

    Returns:
        Whether it is stored.
    """
    request: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#e)"}
    if version:
        request = {"ConditionExpression": "#e = :e", "ExpressionAttributeValues": {":e": values.number(version)}}
    with translated():
        try:
            client.put_item(
                TableName=table,
                Item={**item, VERSION: values.number(version + 1), _NONCE: values.text(nonce)},
                ExpressionAttributeNames={"#e": VERSION},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **request,
            )
        except client.exceptions.ConditionalCheckFailedException as refusal:
            stored = refusing_item(refusal)
            return stored is not None and values.string(stored[_NONCE]) == nonce
    return True


def version_of(item: StoredItem) -> int:
    """The version of an item that was read."""
    return values.whole(item[VERSION])
