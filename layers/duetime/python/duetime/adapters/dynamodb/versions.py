"""Items that are read, changed and written back: a write is refused if somebody else's came between.

One rule for all that has a name: a write names the version that it read, and the identity where a name may be used
again. What is deleted leaves a deletion marker at the next version, and what is created in its place names the marker's
version. So neither a late write to what was deleted, nor a late creation, can replace what is there now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws import translated
from duetime.adapters.dynamodb import schema, values
from duetime.adapters.dynamodb.refusals import refusing_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.values import Item, StoredItem
    from duetime.domain.times import Millis

VERSION = "e"
_NONCE = "j"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which of those that have had a name, one after the other, a write is for.

    Attributes:
        attribute: where its item keeps it.
        value: what it is.
    """

    attribute: str
    value: str


def save_next(
    client: DynamoDBClient, table: str, item: Item, version: int, nonce: str, identity: Identity | None = None
) -> bool:
    """Write an item's next version, if it is still at the one that was read; 0 if there was none.

    Safe to resend: a refusal by an item that bears the write's own nonce is a success.

    Args:
        client: of DynamoDB.
        table: the tasks table.
        item: the item, whole.
        version: the one that was read.
        nonce: of this write.
        identity: what the item must still be, unless a deletion marker is there; `None` if its name is all it is.

    Returns:
        Whether it is stored.
    """
    stored = _put_next(client, table, item, version, nonce, identity)
    return stored is None


def delete_next(
    client: DynamoDBClient, table: str, marker: Item, version: int, nonce: str, identity: Identity | None = None
) -> bool:
    """Put a deletion marker in an item's place, if it is still at the version that was read, or gone already.

    Returns:
        Whether what was read is gone.
    """
    stored = _put_next(client, table, marker, version, nonce, identity)
    return stored is None or not stored or is_deleted(stored) or not _is(identity, stored)


def deletion_marker(item: Item, expires_at: Millis) -> Item:
    """The marker that an item leaves. It is in no list; older code, which knows no markers, must be able to read it."""
    kept = {name: value for name, value in item.items() if name != schema.OWNER_KEY}
    return {**kept, schema.DELETED: {"BOOL": True}, schema.TTL: values.expiry(expires_at)}


def is_deleted(item: StoredItem) -> bool:
    """Whether an item is a deletion marker."""
    return schema.DELETED in item


def version_of(item: StoredItem) -> int:
    """The version of an item that was read; 0 for one that was stored before it had versions."""
    return values.whole(item[VERSION]) if VERSION in item else 0


def _put_next(
    client: DynamoDBClient, table: str, item: Item, version: int, nonce: str, identity: Identity | None
) -> StoredItem | None:
    """Write an item's next version.

    Returns:
        `None` if it is stored; else what refused it, empty if there is nothing.
    """
    names, at = {"#e": VERSION}, {}
    condition = "attribute_not_exists(#e)"
    if version:
        condition, at = "#e = :e", {":e": values.number(version)}
        if identity is not None:
            condition += " AND (#u = :u OR attribute_exists(#d))"
            names |= {"#u": identity.attribute, "#d": schema.DELETED}
            at[":u"] = values.text(identity.value)
    request: dict[str, Any] = {"ExpressionAttributeValues": at} if at else {}
    with translated():
        try:
            client.put_item(
                TableName=table,
                Item={**item, VERSION: values.number(version + 1), _NONCE: values.text(nonce)},
                ConditionExpression=condition,
                ExpressionAttributeNames=names,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **request,
            )
        except client.exceptions.ConditionalCheckFailedException as refusal:
            stored = refusing_item(refusal) or {}
            return None if _NONCE in stored and values.string(stored[_NONCE]) == nonce else stored
    return None


def _is(identity: Identity | None, stored: StoredItem) -> bool:
    return identity is None or stored[identity.attribute]["S"] == identity.value
