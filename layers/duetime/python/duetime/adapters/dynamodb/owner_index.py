"""Lists of an owner's named things, through the owner index: each kind under a mark of its own."""

from __future__ import annotations

import heapq
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.operating_parameters import OWNER_SPREAD

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Value
    from duetime.ports.runtime import Executor


def place_in_list(owner: str, mark: str, name: str) -> Value:
    """The partition of an owner's list that a name is in."""
    number = int.from_bytes(sha256(name.encode()).digest()[:2]) % OWNER_SPREAD
    return attribute_values.text(f"{owner}{mark}{number}")


def listed(
    client: DynamoDBClient, table: str, executor: Executor, after: tuple[str, str, str], limit: int
) -> list[str]:
    """Sort keys in an owner's list in their order, eventually consistently.

    Args:
        client: of DynamoDB.
        table: the tasks table.
        executor: reads the list's partitions at once.
        after: the owner, the mark of the kind, and the sort key behind which the list goes on.
        limit: how many.
    """
    lists = executor.map(partial(_partition, client, table, after, limit), range(OWNER_SPREAD))
    return list(islice(heapq.merge(*lists), limit))


def _partition(client: DynamoDBClient, table: str, after: tuple[str, str, str], limit: int, number: int) -> list[str]:
    owner, mark, key = after
    with translated():
        answer = client.query(
            TableName=table,
            IndexName=schema.OWNER_INDEX.name,
            KeyConditionExpression="#g = :g AND #s > :after",
            ExpressionAttributeNames={"#g": schema.OWNER_INDEX.partition_key, "#s": schema.SORT_KEY},
            ExpressionAttributeValues={
                ":g": attribute_values.text(f"{owner}{mark}{number}"),
                ":after": attribute_values.text(key),
            },
            Limit=limit,
        )
    return [item[schema.SORT_KEY]["S"] for item in answer["Items"]]
