"""Lists an owner's named objects with the owner index, in which each kind of object has its own mark."""

from __future__ import annotations

import heapq
from functools import partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.operating_parameters import OWNER_SPREAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Value
    from duetime.ports.runtime import Executor

V = TypeVar("V")


def place_in_list(owner: str, mark: str, name: str) -> Value:
    """The partition key of the part of an owner's list that contains a name."""
    number = int.from_bytes(sha256(name.encode()).digest()[:2]) % OWNER_SPREAD
    return attribute_values.text(f"{owner}{mark}{number}")


def listed(
    client: DynamoDBClient, table: str, executor: Executor, after: tuple[str, str, str], limit: int
) -> list[str]:
    """Read the sort keys in an owner's list, in order and with eventual consistency.

    Args:
        client: the DynamoDB client.
        table: the tasks table.
        executor: reads the list's partitions in parallel.
        after: the owner, the mark of the kind, and the sort key after which the list begins.
        limit: maximum number of sort keys.
    """
    lists = executor.map(partial(_partition, client, table, after, limit), range(OWNER_SPREAD))
    return list(islice(heapq.merge(*lists), limit))


def read_listed(
    client: DynamoDBClient,
    table: str,
    executor: Executor,
    after: tuple[str, str, str],
    limit: int,
    read: Callable[[list[str]], Iterable[V]],
) -> list[V]:
    """Read the values in an owner's list in order. Only the last page has fewer than `limit` values.

    The list is eventually consistent. The index may still list a deleted object; the next object is then read instead.

    Args:
        client: the DynamoDB client.
        table: the tasks table.
        executor: reads the list's partitions in parallel.
        after: the owner, the mark of the kind, and the sort key after which the list begins.
        limit: maximum number of values.
        read: reads the values for the given sort keys in order, and leaves out missing values.
    """
    owner, mark, _ = after
    found: list[V] = []
    while (wanted := limit - len(found)) > 0:
        keys = listed(client, table, executor, after, wanted)
        found += read(keys)
        if len(keys) < wanted:
            break
        after = (owner, mark, keys[-1])
    return found


def sort_keys(
    client: DynamoDBClient,
    table: str,
    partition: str,
    limit: int,
    after: str | None = None,
    *,
    descending: bool = False,
    index: schema.Index = schema.OWNER_INDEX,
) -> list[str]:
    """Read the first sort keys in a partition of a keys-only index, with eventual consistency.

    Args:
        client: the DynamoDB client.
        table: the tasks table.
        partition: the value of the index's partition key.
        limit: maximum number of sort keys.
        after: the sort key after which to begin; `None` or empty to begin at the start.
        descending: whether the last sort keys come first.
        index: the index of the table.
    """
    request: dict[str, Any] = {
        "KeyConditionExpression": "#g = :g",
        "ExpressionAttributeNames": {"#g": index.partition_key},
        "ExpressionAttributeValues": {":g": attribute_values.text(partition)},
    }
    # DynamoDB rejects empty strings in conditions on keys.
    if after:
        request["KeyConditionExpression"] += f" AND #s {'<' if descending else '>'} :after"
        request["ExpressionAttributeNames"]["#s"] = schema.SORT_KEY
        request["ExpressionAttributeValues"][":after"] = attribute_values.text(after)
    found: list[str] = []
    with translated():
        while True:
            page = client.query(
                TableName=table, IndexName=index.name, ScanIndexForward=not descending, Limit=limit, **request
            )
            found += [item[schema.SORT_KEY]["S"] for item in page["Items"]]
            if len(found) >= limit or "LastEvaluatedKey" not in page:
                return found[:limit]
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _partition(client: DynamoDBClient, table: str, after: tuple[str, str, str], limit: int, number: int) -> list[str]:
    owner, mark, key = after
    return sort_keys(client, table, f"{owner}{mark}{number}", limit, key)
