"""Reads and writes batches of items with one request per batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.ports.runtime import Executor


_KEYS_A_REQUEST = 100
"""Maximum number of keys per request (Source: DynamoDB API Reference, BatchGetItem)."""


def read_items(
    client: DynamoDBClient, table: str, keys: Sequence[Item], *, consistent: bool = False
) -> Iterator[StoredItem]:
    """Read the items with these distinct keys, by default with eventual consistency.

    Keys that a response leaves unprocessed are requested again at once. Every response processes some keys, because
    DynamoDB rejects a request if it throttles all keys, and the client's own retries then wait.

    Raises:
        Unavailable: a response processed no key.
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


ITEMS_A_REQUEST = 25
"""Maximum number of items per request (Source: DynamoDB Developer Guide, "Running batch operations with PartiQL for
DynamoDB")."""
_DUPLICATE = "DuplicateItem"


def insert_items(
    client: DynamoDBClient, table: str, items: Sequence[Item], executor: Executor
) -> tuple[list[int], list[int]]:
    """Write the items that do not exist yet.

    Each item is written independently, at the price of a single `PutItem` call.

    `BatchWriteItem` would overwrite existing items, and a transaction costs twice as much.

    Args:
        client: the DynamoDB client.
        table: the table's name.
        items: any number of items with distinct keys.
        executor: makes requests in parallel.

    Returns:
        The positions of the items that are known to be written, and of the items that already existed. Any other item
        was not written, or its state is unknown because the request got no response.
    """
    written: list[int] = []
    existing: list[int] = []

    def insert(first: int) -> None:
        batch = items[first : first + ITEMS_A_REQUEST]
        try:
            with translated():
                answer = client.batch_execute_statement(Statements=[insertion(table, item) for item in batch])
        except Unavailable:
            return
        for place, response in enumerate(answer["Responses"], first):
            if "Error" not in response:
                written.append(place)
            elif response["Error"].get("Code") == _DUPLICATE:
                existing.append(place)

    executor.map(insert, range(0, len(items), ITEMS_A_REQUEST))
    return written, existing


def insertion(table: str, item: Item) -> BatchStatementRequestTypeDef:
    """One statement of a batch.

    Values are parameters, so that they are not interpreted as PartiQL. The attribute names are duetime's own names.
    """
    places = ", ".join(f"'{name}': ?" for name in item)
    return {"Statement": f'INSERT INTO "{table}" VALUE {{{places}}}', "Parameters": [*item.values()]}
