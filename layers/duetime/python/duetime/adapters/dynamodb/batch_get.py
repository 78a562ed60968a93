"""Reading many items at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem

_KEYS_A_REQUEST = 100
"""Source: DynamoDB API Reference, BatchGetItem."""


def read_items(
    client: DynamoDBClient, table: str, keys: Sequence[Item], *, consistent: bool = False
) -> Iterator[StoredItem]:
    """Read the items of these keys, each named once, eventually consistently unless asked otherwise.

    Keys that an answer leaves unprocessed are requested again at once: if DynamoDB throttled them all it would have
    rejected the request, which the client's own retries wait out, so every answer brings the reading forward.

    Raises:
        Unavailable: an answer brought nothing.
    """
    waiting = list(keys)
    while waiting:
        asked, rest = waiting[:_KEYS_A_REQUEST], waiting[_KEYS_A_REQUEST:]
        with translated():
            answer = client.batch_get_item(RequestItems={table: {"Keys": asked, "ConsistentRead": consistent}})
        yield from answer["Responses"].get(table, [])
        unprocessed = answer["UnprocessedKeys"].get(table)
        left: list[Item] = [dict(key) for key in unprocessed["Keys"]] if unprocessed else []
        if len(left) == len(asked):
            raise Unavailable("no key of a batch was read")
        waiting = left + rest
