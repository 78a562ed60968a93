"""Writing many new items at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import BatchStatementRequestTypeDef

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.ports.runtime import Executor

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
