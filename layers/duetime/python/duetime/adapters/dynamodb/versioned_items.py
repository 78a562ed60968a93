"""Writes items that were read and changed. A write is rejected if a concurrent write came first.

The same rule applies to all named objects. A write contains the version that was read, and the object's identity if
names can be reused. A deleted object leaves a deletion marker with the next version, and a new object with the same
name continues from the marker's version. Therefore, neither a late write to a deleted object nor a late creation can
replace the current object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from botocore.exceptions import ClientError
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.times import Millis


VERSION = "e"
_NONCE = "j"


@frozen
class Identity:
    """Identifies one of the objects that have successively had the same name.

    Attributes:
        attribute: the attribute that contains the identity.
        value: the attribute's value.
    """

    attribute: str
    value: str


@frozen
class Condition:
    """A condition for a write, with its names and values."""

    text: str
    names: Mapping[str, str]
    values: Mapping[str, Value]


def save_next(
    client: DynamoDBClient,
    table: str,
    item: Item,
    version: int,
    nonce: str,
    identity: Identity | None = None,
    also: Condition | None = None,
) -> bool:
    """Write an item's next version, if the item still has the version that was read; 0 means that no item existed.

    The write can be sent again, because a rejection by an item with the write's own nonce counts as success.

    Args:
        client: the DynamoDB client.
        table: the tasks table.
        item: the complete item.
        version: the version that was read.
        nonce: the nonce of this write.
        identity: the identity that the item must have, unless the item is a deletion marker; `None` if the name
            identifies the item.
        also: an additional condition on the stored item.

    Returns:
        Whether the item is stored.
    """
    stored = _put_next(client, table, item, version, nonce, _conditions(version, identity, also))
    return stored is None


def delete_next(
    client: DynamoDBClient, table: str, marker: Item, version: int, nonce: str, identity: Identity | None = None
) -> bool:
    """Replace an item with a deletion marker, if the item still has the version that was read.

    Returns:
        Whether the item that was read is deleted, either by this call or before.
    """
    stored = _put_next(client, table, marker, version, nonce, _conditions(version, identity, None))
    return stored is None or not stored or is_deleted(stored) or not _is(identity, stored)


def deletion_marker(item: Item, expires_at: Millis) -> Item:
    """The deletion marker for an item, with its key and the attributes that are needed later.

    Lists do not show markers.
    """
    return {
        **item,
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        schema.DELETED: {"BOOL": True},
        schema.TTL: attribute_values.expiry(expires_at),
    }


def is_deleted(item: StoredItem) -> bool:
    """Whether an item is a deletion marker."""
    return schema.DELETED in item


def version_of(item: StoredItem) -> int:
    """The version of an item that was read."""
    return attribute_values.integer(item[VERSION])


def _conditions(version: int, identity: Identity | None, also: Condition | None) -> Condition:
    """All conditions on the stored item."""
    conditions = [Condition("attribute_not_exists(#e)", {"#e": VERSION}, {})]
    if version:
        conditions = [Condition("#e = :e", {"#e": VERSION}, {":e": attribute_values.number(version)})]
    if version and identity is not None:
        names = {"#u": identity.attribute, "#d": schema.DELETED}
        conditions.append(
            Condition("(#u = :u OR attribute_exists(#d))", names, {":u": attribute_values.text(identity.value)})
        )
    if also is not None:
        conditions.append(also)
    return Condition(
        " AND ".join(each.text for each in conditions),
        {name: value for each in conditions for name, value in each.names.items()},
        {name: value for each in conditions for name, value in each.values.items()},
    )


def _put_next(
    client: DynamoDBClient, table: str, item: Item, version: int, nonce: str, condition: Condition
) -> StoredItem | None:
    """Write an item's next version.

    Returns:
        `None` if the item is stored; otherwise the existing item, whose version rejected the write (empty if no item
        existed).
    """
    request: dict[str, Any] = {"ExpressionAttributeValues": condition.values} if condition.values else {}
    with translated():
        try:
            client.put_item(
                TableName=table,
                Item={**item, VERSION: attribute_values.number(version + 1), _NONCE: attribute_values.text(nonce)},
                ConditionExpression=condition.text,
                ExpressionAttributeNames=condition.names,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **request,
            )
        except client.exceptions.ConditionalCheckFailedException as refusal:
            stored = item_of_failed_condition(refusal) or {}
            return None if _NONCE in stored and attribute_values.string(stored[_NONCE]) == nonce else stored
    return None


def _is(identity: Identity | None, stored: StoredItem) -> bool:
    return identity is None or stored[identity.attribute]["S"] == identity.value


_OTHERS_CAME_FIRST = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
"""Reasons for which DynamoDB cancels a transaction because of concurrent writes."""


def item_of_failed_condition(refusal: ClientError) -> StoredItem | None:
    """The existing item from the rejection of a write with `ALL_OLD`; `None` if no item existed."""
    response: object = refusal.response
    # The published types for an error response do not have this member.
    return response.get("Item") if isinstance(response, dict) else None


def is_lost_race(refusal: ClientError) -> bool:
    """Whether a transaction was cancelled only because of concurrent writes."""
    response: Any = refusal.response  # the published types do not have this member
    reasons = {reason.get("Code", "None") for reason in response.get("CancellationReasons", [])} - {"None"}
    return bool(reasons) and reasons <= _OTHERS_CAME_FIRST
