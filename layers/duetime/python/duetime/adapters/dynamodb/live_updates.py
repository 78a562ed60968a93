"""Stores tickets, connections and subscriptions for live updates in DynamoDB.

Each ticket and each connection is one item. An owner's subscriptions share a partition, so that one read finds all of
them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.ids import TaskId
from duetime.domain.live_updates import Connection, Subscription, Ticket, Topic, TopicKind
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import State

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis

_OWNER, _EXPIRES_AT, _USED_BY, _SESSION_ENDS_AT = "o", "e", "u", "t"
_REF, _TOPIC_KIND, _TOPIC_NAME, _FILTER = "r", "k", "n", "f"
_RANGES = ("due", "created", "finished")
_ANY_TIME = asdict(Range())


class DynamoWatchStore:
    """The `duetime.ports.stores.WatchStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put_ticket(self, ticket: Ticket) -> None:
        """Store a new ticket."""
        item = {**_ticket_key(ticket.digest), **_expiring(ticket.owner, ticket.expires_at)}
        if ticket.session_ends_at is not None:
            item[_SESSION_ENDS_AT] = attribute_values.number(ticket.session_ends_at)
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def redeem(self, digest: str, connection_id: str, now: Millis) -> Ticket | None:
        """Use a ticket, and return it; `None` if the ticket is unknown, expired, or used by another connection."""
        with translated():
            try:
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=_ticket_key(digest),
                    ConditionExpression="#e > :now AND (attribute_not_exists(#u) OR #u = :connection)",
                    UpdateExpression="SET #u = :connection",
                    ExpressionAttributeNames={"#e": _EXPIRES_AT, "#u": _USED_BY},
                    ExpressionAttributeValues={
                        ":now": attribute_values.number(now),
                        ":connection": attribute_values.text(connection_id),
                    },
                    ReturnValues="ALL_NEW",
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return None
        found = answer["Attributes"]
        ends = found.get(_SESSION_ENDS_AT)
        return Ticket(
            digest,
            attribute_values.string(found[_OWNER]),
            attribute_values.integer(found[_EXPIRES_AT]),
            None if ends is None else attribute_values.integer(ends),
        )

    def open(self, connection: Connection) -> None:
        """Store a new connection."""
        item = {**_connection_key(connection.id), **_expiring(connection.owner, connection.expires_at)}
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def connection(self, connection_id: str) -> Connection | None:
        """Read a connection with strong consistency."""
        with translated():
            answer = self._client.get_item(
                TableName=self._table, Key=_connection_key(connection_id), ConsistentRead=True
            )
        if "Item" not in answer:
            return None
        item = answer["Item"]
        return Connection(
            connection_id, attribute_values.string(item[_OWNER]), attribute_values.integer(item[_EXPIRES_AT])
        )

    def close(self, connection: Connection) -> None:
        """Remove a connection, so that no more subscriptions are added, and then remove its subscriptions."""
        with translated():
            self._client.delete_item(TableName=self._table, Key=_connection_key(connection.id))
        for each in self.subscriptions(connection.owner):
            if each.connection.id == connection.id:
                self.unsubscribe(each)

    def subscribe(self, subscription: Subscription) -> bool:
        """Store a subscription, unless its slot has a subscription with a different name."""
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=_item_of(subscription),
                    ConditionExpression="attribute_not_exists(#r) OR #r = :ref",
                    ExpressionAttributeNames={"#r": _REF},
                    ExpressionAttributeValues={":ref": attribute_values.text(subscription.ref)},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a subscription, unless its slot now contains a subscription with a different name."""
        with translated():
            try:
                self._client.delete_item(
                    TableName=self._table,
                    Key=_key_of(subscription),
                    ConditionExpression="attribute_not_exists(#r) OR #r = :ref",
                    ExpressionAttributeNames={"#r": _REF},
                    ExpressionAttributeValues={":ref": attribute_values.text(subscription.ref)},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return

    def subscriptions(self, owner: str) -> list[Subscription]:
        """Read an owner's subscriptions with strong consistency, so that all stored subscriptions are included."""
        found: list[Subscription] = []
        more: dict[str, Any] = {}
        with translated():
            while True:
                answer = self._client.query(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="#p = :p",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                    ExpressionAttributeValues={":p": _partition_of(owner)},
                    **more,
                )
                found += [_subscription(owner, item) for item in answer["Items"]]
                if "LastEvaluatedKey" not in answer:
                    return found
                more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _ticket_key(digest: str) -> Item:
    key = attribute_values.text(f"{schema.WATCH_TICKET_PREFIX}{digest}")
    return {schema.PARTITION_KEY: key, schema.SORT_KEY: key}


def _connection_key(connection_id: str) -> Item:
    key = attribute_values.text(f"{schema.WATCH_CONNECTION_PREFIX}{connection_id}")
    return {schema.PARTITION_KEY: key, schema.SORT_KEY: key}


def _partition_of(owner: str) -> dict[str, Any]:
    return dict(attribute_values.text(f"{schema.WATCH_SUBSCRIPTION_PREFIX}{owner}"))


def _key_of(subscription: Subscription) -> Item:
    connection = subscription.connection
    return {
        schema.PARTITION_KEY: _partition_of(connection.owner),
        schema.SORT_KEY: attribute_values.text(f"{connection.id}#{subscription.slot}"),
    }


def _expiring(owner: str, expires_at: Millis) -> Item:
    return {
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        schema.TTL: attribute_values.expiry(expires_at),
        _OWNER: attribute_values.text(owner),
        _EXPIRES_AT: attribute_values.number(expires_at),
    }


def _item_of(subscription: Subscription) -> Item:
    connection = subscription.connection
    item = {
        **_key_of(subscription),
        **_expiring(connection.owner, connection.expires_at),
        _REF: attribute_values.text(subscription.ref),
        _TOPIC_KIND: attribute_values.text(subscription.topic.kind),
        _TOPIC_NAME: attribute_values.text(subscription.topic.name),
    }
    if subscription.task_filter != TaskFilter():
        item[_FILTER] = attribute_values.text(_filter_text(subscription.task_filter))
    return item


def _subscription(owner: str, item: StoredItem) -> Subscription:
    connection_id, _, slot = attribute_values.string(item[schema.SORT_KEY]).rpartition("#")
    return Subscription(
        connection=Connection(connection_id, owner, attribute_values.integer(item[_EXPIRES_AT])),
        ref=attribute_values.string(item[_REF]),
        topic=Topic(TopicKind(attribute_values.string(item[_TOPIC_KIND])), attribute_values.string(item[_TOPIC_NAME])),
        task_filter=_filter_of(attribute_values.string(item[_FILTER])) if _FILTER in item else TaskFilter(),
        slot=int(slot),
    )


def _filter_text(task_filter: TaskFilter) -> str:
    fields = {**asdict(task_filter), "parent": task_filter.parent and task_filter.parent.text}
    stored = {name: value for name, value in fields.items() if value and value != _ANY_TIME}
    return json.dumps(stored, separators=(",", ":"))


def _filter_of(text: str) -> TaskFilter:
    fields: dict[str, Any] = json.loads(text)
    fields |= {name: Range(**fields[name]) for name in _RANGES if name in fields}
    if "states" in fields:
        fields["states"] = tuple(map(State, fields["states"]))
    if "parent" in fields:
        fields["parent"] = TaskId(fields["parent"])
    return TaskFilter(**fields)
