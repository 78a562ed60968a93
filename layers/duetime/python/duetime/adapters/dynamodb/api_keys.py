"""Stores API keys in DynamoDB.

Each key has a partition, so that requests with different keys do not all read one partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.api_keys import ApiKey
from duetime.domain.callers import Role

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis

_DIGEST, _NAME, _OWNER, _ROLES = "h", "n", "o", "r"
_CREATED_AT, _CREATED_BY, _EXPIRES_AT, _REVOKED_AT, _USED_AT = "c", "b", "e", "d", "u"


class DynamoApiKeyStore:
    """The `duetime.ports.stores.ApiKeyStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, key: ApiKey) -> None:
        """Store a new key."""
        with translated():
            self._client.put_item(TableName=self._table, Item=_item_of(key))

    def read(self, id_: str) -> ApiKey | None:
        """Read a key with strong consistency, so that a revocation is visible at once."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_key_of(id_), ConsistentRead=True)
        return _key(answer["Item"]) if "Item" in answer else None

    def revoke(self, key: ApiKey) -> bool:
        """Store that a key is revoked and when it may be removed; an earlier revocation time is kept."""
        if key.revoked_at is None or key.removable_at is None:
            raise ValueError(key.id)
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key_of(key.id),
                    ConditionExpression="attribute_exists(#h)",
                    UpdateExpression="SET #d = if_not_exists(#d, :d), #x = :x",
                    ExpressionAttributeNames={"#h": _DIGEST, "#d": _REVOKED_AT, "#x": schema.TTL},
                    ExpressionAttributeValues={
                        ":d": attribute_values.number(key.revoked_at),
                        ":x": attribute_values.expiry(key.removable_at),
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def note_use(self, id_: str, at: Millis, unless_since: Millis) -> None:
        """Store when a key was used, unless a time after `unless_since` is stored or the key is deleted."""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key_of(id_),
                    ConditionExpression="attribute_exists(#h) AND (attribute_not_exists(#u) OR #u <= :since)",
                    UpdateExpression="SET #u = :u",
                    ExpressionAttributeNames={"#h": _DIGEST, "#u": _USED_AT},
                    ExpressionAttributeValues={
                        ":u": attribute_values.number(at),
                        ":since": attribute_values.number(unless_since),
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return

    def list(self, after: str, limit: int) -> tuple[list[ApiKey], str | None]:
        """Read the keys after the given id, in order of creation, and the last id if more keys may follow.

        The list is eventually consistent.
        """
        # The modules are imported here, because only the API lists keys, and the authorizer should not wait for them.
        from duetime.adapters.dynamodb.batches import read_items  # noqa: PLC0415 - see the line above
        from duetime.adapters.dynamodb.owner_index import sort_keys  # noqa: PLC0415 - same

        ids = sort_keys(self._client, self._table, schema.API_KEY_LIST, limit, after)
        found = read_items(self._client, self._table, [_key_of(id_) for id_ in ids])
        keys = sorted((_key(item) for item in found), key=lambda key: key.id)
        return keys, ids[-1] if len(ids) == limit else None


def _key_of(id_: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.API_KEY_PREFIX}{id_}"),
        schema.SORT_KEY: attribute_values.text(id_),
    }


def _item_of(key: ApiKey) -> Item:
    item: Item = {
        **_key_of(key.id),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        schema.OWNER_KEY: attribute_values.text(schema.API_KEY_LIST),
        _DIGEST: attribute_values.text(key.digest),
        _NAME: attribute_values.text(key.name),
        _OWNER: attribute_values.text(key.owner),
        _ROLES: attribute_values.text(" ".join(key.roles)),
        _CREATED_AT: attribute_values.number(key.created_at),
        _CREATED_BY: attribute_values.text(key.created_by),
    }
    if key.expires_at is not None:
        item[_EXPIRES_AT] = attribute_values.number(key.expires_at)
    if key.removable_at is not None:
        item[schema.TTL] = attribute_values.expiry(key.removable_at)
    return item


def _key(item: StoredItem) -> ApiKey:
    times = {
        name: attribute_values.integer(item[name]) for name in (_EXPIRES_AT, _REVOKED_AT, _USED_AT) if name in item
    }
    return ApiKey(
        id=attribute_values.string(item[schema.SORT_KEY]),
        name=attribute_values.string(item[_NAME]),
        owner=attribute_values.string(item[_OWNER]),
        roles=tuple(Role(each) for each in attribute_values.string(item[_ROLES]).split()),
        digest=attribute_values.string(item[_DIGEST]),
        created_at=attribute_values.integer(item[_CREATED_AT]),
        created_by=attribute_values.string(item[_CREATED_BY]),
        expires_at=times.get(_EXPIRES_AT),
        revoked_at=times.get(_REVOKED_AT),
        used_at=times.get(_USED_AT),
    )
