"""Stores locks in DynamoDB. Each lock has a partition, in which the holders' item precedes the items of waiting tasks.

All holders are in one item, so that one conditional write enforces the limit. Each holder is a separate map entry, so
that a heartbeat renews a hold without reading the other holds.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import listed
from duetime.adapters.dynamodb.versioned_items import (
    VERSION,
    Condition,
    item_of_failed_condition,
    save_next,
    version_of,
)
from duetime.domain.ids import TaskId
from duetime.domain.locks import Holder, Lock, LockName, Waiter
from duetime.domain.operating_parameters import OWNER_SPREAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor

_HOLDERS, _GENERATION, _SHARED = "m", "t", "sh"
_HOLDERS_MARK = "#"
"""Mark that precedes the key in the sort key of the holders' item, which sorts before `_WAITER_MARK`."""
_WAITER_MARK = "w#"
_MODES = "xs"
"""Letters for the modes of a hold, which are exclusive and shared."""
_DIGITS = 15
"""Number of digits of a waiter's due time in its sort key, which is enough for thirty thousand years in
milliseconds."""


class DynamoLockStore:
    """The `duetime.ports.stores.LockStore` that uses the tasks table. It reads an owner's partitions in parallel."""

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor) -> None:
        self._client = client
        self._table = table
        self._executor = executor

    def read(self, name: LockName, waiters: int) -> tuple[Lock, list[Waiter]]:
        """Read a lock and the first tasks in its line with strong consistency.

        A missing lock is returned without holders.
        """
        with translated():
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="#p = :p",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                ExpressionAttributeValues={":p": attribute_values.text(_partition(name))},
                ConsistentRead=True,
                Limit=waiters + 1,
            )
        lock, line = Lock(name), []
        for item in answer["Items"]:
            if item[schema.SORT_KEY]["S"].startswith(_WAITER_MARK):
                line.append(_waiter(item))
            else:
                lock = _lock(name, item)
        return lock, line[:waiters]

    def read_many(self, names: Sequence[LockName]) -> list[Lock]:
        """Read many locks without their lines, with eventual consistency; missing locks are left out."""
        by_key = {name.key: name for name in names}
        items = read_items(self._client, self._table, [_key_of(name) for name in names])
        locks = {item[schema.SORT_KEY]["S"].removeprefix(_HOLDERS_MARK): item for item in items}
        return [_lock(name, locks[key]) for key, name in by_key.items() if key in locks]

    def save(self, lock: Lock, nonce: str, expires_at: Millis, taker: Holder | None = None) -> bool:
        """Store a lock's holders, if the stored lock still has the version that was read."""
        also = None if taker is None else _unless_held_by_later(taker)
        return save_next(self._client, self._table, _item_of(lock, expires_at), lock.version, nonce, also=also)

    def renew(self, name: LockName, holder: Holder, expires_at: Millis) -> bool:
        """Extend a hold to the new end given in `holder`; a delayed renewal does not shorten the hold."""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key_of(name),
                    # All ends have thirteen digits, so their order as text is their order as numbers.
                    ConditionExpression="begins_with(#m.#id, :fence) AND #m.#id <= :held",
                    UpdateExpression="SET #m.#id = :held, #e = #e + :one, #x = :x",
                    ExpressionAttributeNames={
                        "#m": _HOLDERS,
                        "#id": holder.task_id.text,
                        "#e": VERSION,
                        "#x": schema.TTL,
                    },
                    ExpressionAttributeValues={
                        ":fence": attribute_values.text(f"{holder.fence} "),
                        ":held": _held(holder),
                        ":one": attribute_values.number(1),
                        ":x": attribute_values.expiry(expires_at),
                    },
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as error:
                return _is_held_by(holder, item_of_failed_condition(error))
        return True

    def join(self, name: LockName, waiter: Waiter, expires_at: Millis) -> None:
        """Add a task to a lock's line; adding it again changes nothing."""
        item = {
            **_place_of(name, waiter),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            schema.TTL: attribute_values.expiry(expires_at),
            _GENERATION: attribute_values.number(waiter.generation),
        }
        if waiter.is_shared:
            item[_SHARED] = {"BOOL": True}
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def leave(self, name: LockName, waiter: Waiter) -> None:
        """Remove a task from a lock's line, unless it has joined again with a later generation."""
        with translated():
            try:
                self._client.delete_item(
                    TableName=self._table,
                    Key=_place_of(name, waiter),
                    ConditionExpression="#t = :t",
                    ExpressionAttributeNames={"#t": _GENERATION},
                    ExpressionAttributeValues={":t": attribute_values.number(waiter.generation)},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return

    def list_keys(self, owner: str, after: str, limit: int) -> list[str]:
        """Read the keys of an owner's locks that follow `after`, in order and with eventual consistency."""
        behind = owner, schema.LOCK_LIST_MARK, f"{_HOLDERS_MARK}{after}"
        found = listed(self._client, self._table, self._executor, behind, limit)
        return [key.removeprefix(_HOLDERS_MARK) for key in found]


def _partition(name: LockName) -> str:
    # A key contains no `#`, so the last `#` separates the owner from the key.
    return f"{schema.LOCK_PREFIX}{name.owner}#{name.key}"


def _key_of(name: LockName) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(_partition(name)),
        schema.SORT_KEY: attribute_values.text(f"{_HOLDERS_MARK}{name.key}"),
    }


def _place_of(name: LockName, waiter: Waiter) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(_partition(name)),
        schema.SORT_KEY: attribute_values.text(f"{_WAITER_MARK}{waiter.due_at:0{_DIGITS}}#{waiter.task_id}"),
    }


def _item_of(lock: Lock, expires_at: Millis) -> Item:
    number = int.from_bytes(sha256(lock.name.key.encode()).digest()[:2]) % OWNER_SPREAD
    return {
        **_key_of(lock.name),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        schema.OWNER_KEY: attribute_values.text(f"{lock.name.owner}{schema.LOCK_LIST_MARK}{number}"),
        _HOLDERS: {"M": {holder.task_id.text: _held(holder) for holder in lock.holders}},
        schema.TTL: attribute_values.expiry(expires_at),
    }


def _unless_held_by_later(taker: Holder) -> Condition:
    """The condition that rejects an attempt if a later attempt of its task holds the lock.

    A hold is the string `fence until mode`, in which every end has thirteen digits, and every mode has one letter.
    Therefore, a greater fence results in a longer string, or in a greater string of the same length.
    """
    return Condition(
        "(attribute_not_exists(#m.#id) OR size(#m.#id) < :size OR (size(#m.#id) = :size AND #m.#id < :next))",
        {"#m": _HOLDERS, "#id": taker.task_id.text},
        {":size": attribute_values.number(len(_held(taker)["S"])), ":next": attribute_values.text(f"{taker.fence} ~")},
    )


def _is_held_by(holder: Holder, item: StoredItem | None) -> bool:
    """Whether the holder of a rejected renewal still has the hold, which then already ends later than requested."""
    held = item[_HOLDERS]["M"].get(holder.task_id.text) if item else None
    return held is not None and held["S"].startswith(f"{holder.fence} ")


def _held(holder: Holder) -> Value:
    return attribute_values.text(f"{holder.fence} {holder.expires_at} {_MODES[holder.is_shared]}")


def _lock(name: LockName, item: StoredItem) -> Lock:
    holders = []
    for task_id, held in item[_HOLDERS]["M"].items():
        fence, until, mode = str(held["S"]).split()
        holders.append(Holder(TaskId(task_id), int(fence), int(until), mode == _MODES[True]))
    return Lock(name, tuple(sorted(holders, key=lambda holder: holder.task_id)), version_of(item))


def _waiter(item: StoredItem) -> Waiter:
    _mark, due_at, task_id = item[schema.SORT_KEY]["S"].split("#")
    return Waiter(int(due_at), TaskId(task_id), attribute_values.integer(item[_GENERATION]), _SHARED in item)
