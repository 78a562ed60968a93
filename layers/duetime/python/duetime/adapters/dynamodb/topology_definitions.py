"""Stores topology definitions in DynamoDB, with one item per version. All versions of a definition share a partition.

A version that is about to be replaced is first copied unchanged to a separate item, so concurrent writers write the
same copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import place_in_list, read_listed
from duetime.adapters.dynamodb.versioned_items import delete_next, deletion_marker, is_deleted, save_next, version_of
from duetime.domain.conditional_writes import Incarnation
from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_DEFINITION_BYTES
from duetime.domain.topologies.definitions import Definition, VersionInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor

_CONTENT, _CREATED, _SINCE, _BY = "b", "n", "c", "w"


class DynamoDefinitionStore:
    """The `duetime.ports.topologies.DefinitionStore` that uses the tasks table.

    It reads an owner's partitions in parallel.
    """

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def read(self, owner: str, name: str) -> tuple[Definition | None, Incarnation]:
        """Read the latest version and the edition of the name with strong consistency.

        A deletion marker also has an edition.
        """
        item = self._item(_key_of(owner, name))
        if item is None:
            return None, Incarnation()
        number = version_of(item)
        if is_deleted(item):
            return None, Incarnation(number)
        return _definition(name, number, item), Incarnation(number, attribute_values.integer(item[_CREATED]))

    def read_earlier(self, owner: str, name: str, version: int) -> Definition | None:
        """Read an earlier version with strong consistency; `None` if it does not exist."""
        item = self._item(_earlier_key(owner, name, version))
        return None if item is None else _definition(name, version, item)

    def put(self, owner: str, definition: Definition, incarnation: Incarnation, nonce: str) -> bool:
        """Store the next version, if the name still has the edition that was read."""
        item = {
            **_key_of(owner, definition.name),
            schema.OWNER_KEY: place_in_list(owner, schema.DEFINITION_LIST_MARK, definition.name),
            _CREATED: attribute_values.number(incarnation.next.created),
            **_fields_of(definition),
        }
        return save_next(self._client, self._table, item, incarnation.number, nonce)

    def keep_earlier(self, owner: str, definition: Definition) -> None:
        """Store a version that is about to be replaced, separately from the latest version.

        The call is safe to repeat.
        """
        item = {**_earlier_key(owner, definition.name, definition.version), **_fields_of(definition)}
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def forget_earlier(self, owner: str, name: str, version: int) -> None:
        """Remove an earlier version, unless it is already removed."""
        with translated():
            self._client.delete_item(TableName=self._table, Key=_earlier_key(owner, name, version))

    def list_earlier(self, owner: str, name: str) -> list[VersionInfo]:
        """Read the metadata of the earlier versions, latest first, with strong consistency."""
        return sorted(self._earlier(owner, name), key=lambda info: -info.version)

    def remove(self, owner: str, definition: Definition, incarnation: Incarnation, nonce: str, expiry: Millis) -> bool:
        """Remove the latest version if its edition has not changed since it was read.

        Nothing is written if the version is already deleted. A deletion marker replaces the version until `expiry`.
        """
        marker = deletion_marker(_key_of(owner, definition.name), expiry)
        return delete_next(self._client, self._table, marker, incarnation.number, nonce)

    def list_after(self, owner: str, after: str, limit: int) -> list[Definition]:
        """Read the latest version of each of an owner's definitions that follow `after`, in order of name.

        The list is eventually consistent. Fewer than `limit` versions are returned only at the end.
        """

        def read(names: list[str]) -> list[Definition]:
            items = read_items(self._client, self._table, [_key_of(owner, name) for name in names])
            existing = (item for item in items if not is_deleted(item))
            found = (_definition(item[schema.SORT_KEY]["S"], version_of(item), item) for item in existing)
            return sorted(found, key=lambda each: each.name)

        place = (owner, schema.DEFINITION_LIST_MARK, after or " ")
        return read_listed(self._client, self._table, self._executor, place, limit, read)

    def _item(self, key: Item) -> StoredItem | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return answer.get("Item")

    def _earlier(self, owner: str, name: str) -> Iterator[VersionInfo]:
        with translated():
            pages = self._client.get_paginator("query").paginate(
                TableName=self._table,
                KeyConditionExpression="#p = :p AND begins_with(#s, :s)",
                ProjectionExpression="#s, #c, #w",
                ExpressionAttributeNames={
                    "#p": schema.PARTITION_KEY,
                    "#s": schema.SORT_KEY,
                    "#c": _SINCE,
                    "#w": _BY,
                },
                ExpressionAttributeValues={
                    ":p": _partition_of(owner, name),
                    ":s": attribute_values.text(schema.EARLIER_VERSION_MARK),
                },
                ConsistentRead=True,
            )
            for page in pages:
                for item in page["Items"]:
                    number = item[schema.SORT_KEY]["S"].removeprefix(schema.EARLIER_VERSION_MARK)
                    yield _info(int(number), item)


def _partition_of(owner: str, name: str) -> dict[str, str]:
    # A name contains no `#`, so the last `#` separates the owner from the name.
    return {"S": f"{schema.DEFINITION_PREFIX}{owner}#{name}"}


def _key_of(owner: str, name: str) -> Item:
    return {schema.PARTITION_KEY: _partition_of(owner, name), schema.SORT_KEY: attribute_values.text(name)}


def _earlier_key(owner: str, name: str, version: int) -> Item:
    mark = attribute_values.text(f"{schema.EARLIER_VERSION_MARK}{version:08}")
    return {schema.PARTITION_KEY: _partition_of(owner, name), schema.SORT_KEY: mark}


def _fields_of(definition: Definition) -> Item:
    """The attributes in the item of a version. Content that is too large is rejected."""
    content = attribute_values.packed(definition.content)
    if len(content.get("B", content.get("S", ""))) > MAX_DEFINITION_BYTES:
        reason = f"have more than {MAX_DEFINITION_BYTES} bytes when compressed"
        raise FieldInvalid("nodes", reason, FaultCode.TOO_LONG)
    by = definition.info.created_by
    return {
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _SINCE: attribute_values.number(definition.info.created_at),
        _CONTENT: content,
        **({_BY: attribute_values.text(by)} if by else {}),
    }


def _definition(name: str, version: int, item: StoredItem) -> Definition:
    return Definition(name, _info(version, item), attribute_values.unpacked(item[_CONTENT]))


def _info(version: int, item: StoredItem) -> VersionInfo:
    by = attribute_values.string(item[_BY]) if _BY in item else ""
    return VersionInfo(version, attribute_values.integer(item[_SINCE]), by)
