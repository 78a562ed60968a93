"""Stores signals in DynamoDB. Each event has a partition, with an item for each signal and each waiting task."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.ids import TaskId
from duetime.domain.tasks.event_waits import SentSignal, WaitingTask

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.tasks.event_waits import AwaitedEvent
    from duetime.domain.times import Millis

_PAYLOAD, _FENCE = "b", "n"
_SIGNAL_MARK, _WAITING_MARK = "s#", "w#"
_AFTER_IDS = "~"


class DynamoSignalStore:
    """The `duetime.ports.stores.SignalStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, event: AwaitedEvent, signal: SentSignal, expires_at: Millis) -> None:
        """Store a signal; storing it again changes nothing."""
        key = _key_of(event, f"{_SIGNAL_MARK}{signal.id}")
        self._put({**key, _PAYLOAD: attribute_values.packed(signal.payload)}, expires_at)

    def since(self, event: AwaitedEvent, first: TaskId, page: int) -> Iterator[SentSignal]:
        """Read the signals about an event from the given id on, in order of ids and with strong consistency."""
        next_key = f"{_SIGNAL_MARK}{first}"
        while next_key:
            found, last_key = self._query(event, next_key, f"{_SIGNAL_MARK}{_AFTER_IDS}", page)
            yield from map(_signal, found)
            # A space sorts before all characters of an id.
            next_key = last_key and f"{last_key} "

    def join(self, event: AwaitedEvent, waiting: WaitingTask, expires_at: Millis) -> None:
        """Store that a task waits for an event; a later claim of the task replaces the entry."""
        key = _key_of(event, f"{_WAITING_MARK}{waiting.task_id}")
        self._put({**key, _FENCE: attribute_values.number(waiting.fence)}, expires_at)

    def leave(self, event: AwaitedEvent, waiting: WaitingTask) -> None:
        """Remove the entry of a waiting task, unless a later claim has replaced the entry."""
        with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
            self._client.delete_item(
                TableName=self._table,
                Key=_key_of(event, f"{_WAITING_MARK}{waiting.task_id}"),
                ConditionExpression="attribute_not_exists(#n) OR #n = :n",
                ExpressionAttributeNames={"#n": _FENCE},
                ExpressionAttributeValues={":n": attribute_values.number(waiting.fence)},
            )

    def waiting(self, event: AwaitedEvent, after: TaskId, limit: int) -> Sequence[WaitingTask]:
        """Read the next tasks that wait for an event, in order of ids and with strong consistency."""
        # A space sorts before all characters of an id.
        found, _ = self._query(event, f"{_WAITING_MARK}{after} ", f"{_WAITING_MARK}{_AFTER_IDS}", limit)
        return [_waiting(item) for item in found]

    def _put(self, item: Item, expires_at: Millis) -> None:
        versioned: Item = {
            **item,
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            schema.TTL: attribute_values.expiry(expires_at),
        }
        with translated():
            self._client.put_item(TableName=self._table, Item=versioned)

    def _query(self, event: AwaitedEvent, first: str, last: str, limit: int) -> tuple[Sequence[StoredItem], str]:
        """A page of items, and the last sort key that was read, which is empty on the last page."""
        values: dict[str, Value] = {
            ":p": attribute_values.text(_partition(event)),
            ":first": attribute_values.text(first),
            ":last": attribute_values.text(last),
        }
        with translated():
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="#p = :p AND #s BETWEEN :first AND :last",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                Limit=limit,
            )
        last_key = answer.get("LastEvaluatedKey")
        return answer["Items"], last_key[schema.SORT_KEY]["S"] if last_key else ""


def _partition(event: AwaitedEvent) -> str:
    # Owners and names contain no `#`, but keys may contain this character.
    return f"{schema.EVENT_PREFIX}{event.owner}#{event.name}#{event.key}"


def _key_of(event: AwaitedEvent, sort_key: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(_partition(event)),
        schema.SORT_KEY: attribute_values.text(sort_key),
    }


def _signal(item: StoredItem) -> SentSignal:
    signal_id = item[schema.SORT_KEY]["S"].removeprefix(_SIGNAL_MARK)
    return SentSignal(TaskId(signal_id), attribute_values.unpacked(item[_PAYLOAD]))


def _waiting(item: StoredItem) -> WaitingTask:
    task_id = item[schema.SORT_KEY]["S"].removeprefix(_WAITING_MARK)
    return WaitingTask(TaskId(task_id), attribute_values.integer(item[_FENCE]))
