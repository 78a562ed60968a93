"""Stores links in DynamoDB. Each link is one item, which is stored and erased with the task's contents."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.ids import TaskId
from duetime.domain.links import Link, LinkAction

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem

_PREFIX = "link#"
_OWNER, _ACTIONS, _DIGEST, _CREATED_AT, _CREATED_BY, _EXPIRES_AT = "o", "a", "h", "c", "b", "e"
_TAKES_PAYLOAD, _MESSAGE, _REOPENED_AT, _FENCE, _USED_AT, _USED_FOR = "y", "m", "r", "k", "u", "f"


class DynamoLinkStore:
    """The `duetime.ports.stores.LinkStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, link: Link) -> None:
        """Store a new link."""
        with translated():
            self._client.put_item(TableName=self._table, Item=_item_of(link))

    def read(self, task_id: TaskId, id_: str) -> Link | None:
        """Read a link with strong consistency, so that a deletion is visible at once."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(task_id, id_), ConsistentRead=True)
        return _link_of(answer["Item"]) if "Item" in answer else None

    def list_of(self, task_id: TaskId) -> list[Link]:
        """Read a task's links in order of creation, with strong consistency."""
        with translated():
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="#p = :p AND begins_with(#s, :s)",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
                ExpressionAttributeValues={
                    ":p": attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
                    ":s": attribute_values.text(_PREFIX),
                },
                ConsistentRead=True,
            )
            return [_link_of(item) for page in pages for item in page["Items"]]

    def note_use(self, link: Link) -> None:
        """Store when and for what a link was used, unless a use is already stored or the link is deleted."""
        if link.used_at is None or link.used_for is None:
            raise ValueError(link.id)
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.update_item(
                TableName=self._table,
                Key=_key_of(link.task_id, link.id),
                ConditionExpression="#h = :h AND attribute_not_exists(#u)",
                UpdateExpression="SET #u = :u, #f = :f",
                ExpressionAttributeNames={"#h": _DIGEST, "#u": _USED_AT, "#f": _USED_FOR},
                ExpressionAttributeValues={
                    ":h": attribute_values.text(link.digest),
                    ":u": attribute_values.number(link.used_at),
                    ":f": attribute_values.text(link.used_for),
                },
            )

    def delete(self, task_id: TaskId, id_: str) -> None:
        """Delete a link; deleting it again changes nothing."""
        with translated():
            self._client.delete_item(TableName=self._table, Key=_key_of(task_id, id_))


def _key_of(task_id: TaskId, id_: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
        schema.SORT_KEY: attribute_values.text(f"{_PREFIX}{id_}"),
    }


def _item_of(link: Link) -> Item:
    return {
        **_key_of(link.task_id, link.id),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        schema.TTL: attribute_values.expiry(link.removable_at),
        _OWNER: attribute_values.text(link.owner),
        _ACTIONS: attribute_values.text(" ".join(link.actions)),
        _DIGEST: attribute_values.text(link.digest),
        _CREATED_AT: attribute_values.number(link.created_at),
        _CREATED_BY: attribute_values.text(link.created_by),
        _EXPIRES_AT: attribute_values.number(link.expires_at),
        _TAKES_PAYLOAD: attribute_values.number(int(link.takes_payload)),
        _MESSAGE: attribute_values.text(link.message),
        _REOPENED_AT: attribute_values.number(link.reopened_at),
        _FENCE: attribute_values.number(link.fence),
    }


def _link_of(item: StoredItem) -> Link:
    return Link(
        task_id=TaskId(attribute_values.string(item[schema.PARTITION_KEY]).removeprefix(schema.CONTENT_PREFIX)),
        id=attribute_values.string(item[schema.SORT_KEY]).removeprefix(_PREFIX),
        owner=attribute_values.string(item[_OWNER]),
        actions=tuple(LinkAction(each) for each in attribute_values.string(item[_ACTIONS]).split()),
        digest=attribute_values.string(item[_DIGEST]),
        created_at=attribute_values.integer(item[_CREATED_AT]),
        created_by=attribute_values.string(item[_CREATED_BY]),
        expires_at=attribute_values.integer(item[_EXPIRES_AT]),
        takes_payload=bool(attribute_values.integer(item[_TAKES_PAYLOAD])),
        message=attribute_values.string(item[_MESSAGE]),
        reopened_at=attribute_values.integer(item[_REOPENED_AT]),
        fence=attribute_values.integer(item[_FENCE]),
        used_at=attribute_values.integer(item[_USED_AT]) if _USED_AT in item else None,
        used_for=LinkAction(attribute_values.string(item[_USED_FOR])) if _USED_FOR in item else None,
    )
