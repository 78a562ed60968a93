"""Creates a tasks table with the keys and indexes that the schema defines, like the table in the CDK stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from duetime.adapters.dynamodb import schema

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def new_table(client: DynamoDBClient) -> str:
    """Create a tasks table with a new name, and return the name."""
    name = f"tasks-{uuid4().hex[:12]}"
    indexes: list[Any] = [
        {
            "IndexName": index.name,
            "KeySchema": _keys(index.partition_key),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        for index in schema.INDEXES
    ]
    attributes = [schema.PARTITION_KEY, schema.SORT_KEY, *(index.partition_key for index in schema.INDEXES)]
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": attribute, "AttributeType": "S"} for attribute in attributes],
        KeySchema=_keys(schema.PARTITION_KEY),
        GlobalSecondaryIndexes=indexes,
    )
    return name


def _keys(partition_key: str) -> list[Any]:
    return [
        {"AttributeName": partition_key, "KeyType": "HASH"},
        {"AttributeName": schema.SORT_KEY, "KeyType": "RANGE"},
    ]
