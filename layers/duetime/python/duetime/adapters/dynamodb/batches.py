"""Batches of items: many read, or written, by one request."""

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


ITEMS_A_REQUEST = 25
"""Source: DynamoDB Developer Guide, "Running batch operations with PartiQL for DynamoDB"."""
_DUPLICATE = "DuplicateItem"


def insert_items(
    client: DynamoDBClient, table: str, items: Sequence[Item], executor: Executor
) -> tuple[list[int], list[int]]:
    """Write those of these items that do not exist, each by itself, at the price of as many `PutItem`.

    `BatchWriteItem` would overwrite what exists, and a transaction costs twice as much.

    Args:
        client: of the table.
        table: its name.
        items: as many as there are, of different keys.
        executor: makes requests at once.

    Returns:
        The places of those that are known to be written, and of those that existed when they were to be. All others
        were not taken, or it is not known: a request had no response.
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
    """One of the statements of a batch.

    Values are parameters, so that nothing in them is taken for PartiQL; names of attributes are duetime's own.
    """
    places = ", ".join(f"'{name}': ?" for name in item)
    return {"Statement": f'INSERT INTO "{table}" VALUE {{{places}}}', "Parameters": [*item.values()]}
