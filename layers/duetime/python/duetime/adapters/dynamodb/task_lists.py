"""Stores lists of an owner's tasks in DynamoDB. Blocks of postings, entries and the progress are separate items."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.batches import ITEMS_A_REQUEST
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.errors import Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import LIST_SPAN
from duetime.domain.tasks.task_lists import ListHead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.tasks.task_lists import Block, Entry, ListName, ListWrites
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Executor

_POSTINGS = "h"
"""Attribute with a block's postings. A posting consists of the milliseconds since the block's first posting and the
task's id."""
_OFFSET_BYTES, _ID_BYTES = 2, 16
_DIGEST_BYTES = 8
_POSTING_BYTES = _OFFSET_BYTES + _ID_BYTES
_HEAD = "head"
_BUILDING_FROM, _BUILT_TO, _COMPLETE, _SWEPT_TO, _CHANGED_AT = "b", "i", "c", "w", "u"
_FIRST_BLOCKS = 25
"""Maximum number of blocks in the first read. In a busy list, each block has many postings."""
_TRIES = 5
"""Maximum number of times that an item is sent to DynamoDB."""


class DynamoTaskLists:
    """The `duetime.ports.tasks.TaskListStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str, executor: Executor, number: int) -> None:
        self._client = client
        self._table = table
        self._executor = executor
        self._number = number
        """The generation of the lists, which increases when a deployment rebuilds lists that were turned off or lack
        changes; 0 if lists are turned off."""

    def head(self, owner: str) -> ListHead | None:
        """Read the progress of an owner's lists with eventual consistency; `None` if the owner has no lists."""
        if not self._number:
            return None
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=self._head_key(owner))
        return _head_of(owner, answer["Item"]) if "Item" in answer else None

    def save_head(self, head: ListHead, nonce: str) -> bool:
        """Store the progress, unless it was changed since it was read."""
        return save_next(
            self._client, self._table, {**self._head_key(head.owner), **_head_values(head)}, head.version, nonce
        )

    def write(self, writes: ListWrites) -> None:
        """Add and remove postings and entries; repeating the call changes nothing.

        Raises:
            Unavailable: some postings or entries were not written.
        """
        requests = [
            *({"PutRequest": {"Item": self._block_item(each)}} for each in writes.blocks),
            *({"PutRequest": {"Item": self._entry_item(each)}} for each in writes.added),
            *({"DeleteRequest": {"Key": self._entry_key(name, task_id)}} for name, task_id in writes.removed),
        ]
        starts = range(0, len(requests), ITEMS_A_REQUEST)
        self._executor.map(self._send, [requests[start : start + ITEMS_A_REQUEST] for start in starts])

    def postings(
        self, name: ListName, after: TaskId | None, limit: int, *, descending: bool
    ) -> list[tuple[TaskId, TaskId]]:
        """Read a list's next postings as (place, task id) pairs in order of place, with eventual consistency."""
        start = None if after is None else after.data
        found: dict[bytes, bytes] = {}
        for blocks, last_at in self._blocks(name, after, limit, descending=descending):
            for item in blocks:
                found.update(_postings_of(item))
            ordered = sorted(found.items(), reverse=descending)
            wanted = [each for each in ordered if _is_after(each[0], start, descending=descending)]
            ready = [each for each in wanted if _is_complete(each[0], last_at, descending=descending)]
            if len(ready) >= limit or last_at is None:
                return [(TaskId.from_data(place), TaskId.from_data(task_id)) for place, task_id in ready[:limit]]
        return []

    def entries(self, name: ListName, after: TaskId | None, limit: int, *, descending: bool) -> list[TaskId]:
        """Read a list's next entries in order of ids, with eventual consistency."""
        found: list[TaskId] = []
        for page in self._pages(name, None if after is None else after.text, limit, descending=descending):
            found += [TaskId(item[schema.SORT_KEY]["S"]) for item in page["Items"]]
            if len(found) >= limit:
                break
        return found[:limit]

    def _blocks(
        self, name: ListName, after: TaskId | None, limit: int, *, descending: bool
    ) -> Iterator[tuple[list[StoredItem], int | None]]:
        """Yield pages of blocks.

        Each page has the time of its last block's first posting, or `None` for the last page.
        """
        start = None
        if after is not None:
            # Blocks overlap, so a block that begins earlier may have later postings.
            start = _first_key(after.home) + "$" if descending else _first_key(after.home - LIST_SPAN)
        for page in self._pages(name, start, min(limit + 1, _FIRST_BLOCKS), descending=descending):
            items = page["Items"]
            is_last = "LastEvaluatedKey" not in page
            if items or is_last:
                yield items, None if is_last else _first_at(items[-1])

    def _pages(self, name: ListName, after: str | None, limit: int, *, descending: bool) -> Iterator[Any]:
        condition, names = "#p = :p", {"#p": schema.PARTITION_KEY}
        values: Item = {":p": attribute_values.text(self._partition(name))}
        if after is not None:
            condition += f" AND #s {'<' if descending else '>'} :after"
            names["#s"], values[":after"] = schema.SORT_KEY, attribute_values.text(after)
        start: dict[str, Any] = {}
        while True:
            with translated():
                page = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression=condition,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                    ScanIndexForward=not descending,
                    Limit=limit,
                    **start,
                )
            yield page
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
            limit = 4 * _FIRST_BLOCKS

    def _send(self, requests: list[Any]) -> None:
        for _ in range(_TRIES):
            with translated():
                answer = self._client.batch_write_item(RequestItems={self._table: requests})
            requests = list(answer.get("UnprocessedItems", {}).get(self._table, []))
            if not requests:
                return
        raise Unavailable("some items of lists were not written: DynamoDB throttles")

    def _partition(self, name: ListName) -> str:
        nodes = "-nodes" if name.of_nodes else ""
        return f"{self._owner_partition(name.owner)}#{name.kind}{nodes}={name.value}"

    def _owner_partition(self, owner: str) -> str:
        # The length shows where the owner's name ends, whatever characters the name contains.
        return f"{schema.LIST_PREFIX}{self._number}#{len(owner)}#{owner}"

    def _block_item(self, block: Block) -> Item:
        offsets = ((each.at - block.first_at).to_bytes(_OFFSET_BYTES) for each in block.postings)
        data = b"".join(offset + each.task_id.data for offset, each in zip(offsets, block.postings, strict=True))
        # With the digest, a block that is written again replaces itself, but not another block with the same time.
        digest = hashlib.blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
        return {
            schema.PARTITION_KEY: attribute_values.text(self._partition(block.list)),
            schema.SORT_KEY: attribute_values.text(f"{_first_key(block.first_at)}#{digest}"),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            schema.TTL: attribute_values.expiry(block.expires_at),
            _POSTINGS: {"B": data},
        }

    def _entry_key(self, name: ListName, task_id: TaskId) -> Item:
        return {
            schema.PARTITION_KEY: attribute_values.text(self._partition(name)),
            schema.SORT_KEY: attribute_values.text(task_id.text),
        }

    def _entry_item(self, entry: Entry) -> Item:
        return {
            **self._entry_key(entry.list, entry.task_id),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            schema.TTL: attribute_values.expiry(entry.expires_at),
        }

    def _head_key(self, owner: str) -> Item:
        return {
            schema.PARTITION_KEY: attribute_values.text(self._owner_partition(owner)),
            schema.SORT_KEY: attribute_values.text(_HEAD),
        }


def _first_key(at: Millis) -> str:
    """The first part of a block's sort key."""
    return f"{max(0, at):015d}"


def _first_at(item: StoredItem) -> Millis:
    return int(item[schema.SORT_KEY]["S"].partition("#")[0])


def _postings_of(item: StoredItem) -> Iterator[tuple[bytes, bytes]]:
    """Yield each posting's place and task as bytes, because a busy list has far more postings than a page needs."""
    first_at = _first_at(item)
    data = bytes(item[_POSTINGS]["B"])
    for start in range(0, len(data), _POSTING_BYTES):
        offset = int.from_bytes(data[start : start + _OFFSET_BYTES])
        task_id = data[start + _OFFSET_BYTES : start + _POSTING_BYTES]
        yield TaskId.data_at_time(task_id, first_at + offset), task_id


def _is_after(place: bytes, after: bytes | None, *, descending: bool) -> bool:
    return after is None or (place < after if descending else place > after)


def _is_complete(place: bytes, last_at: int | None, *, descending: bool) -> bool:
    """Whether all blocks that may contain an earlier posting in reading order were read."""
    if last_at is None:
        return True
    home = TaskId.home_of_data(place)
    return home > last_at + LIST_SPAN if descending else home < last_at


def _head_values(head: ListHead) -> Item:
    item = {
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        _BUILDING_FROM: attribute_values.number(head.building_from),
        _SWEPT_TO: attribute_values.text(head.swept_to.text),
        _CHANGED_AT: attribute_values.number(head.changed_at),
    }
    if head.built_to is not None:
        item[_BUILT_TO] = attribute_values.text(head.built_to.text)
    if head.is_complete:
        item[_COMPLETE] = {"BOOL": True}
    return item


def _head_of(owner: str, item: StoredItem) -> ListHead:
    return ListHead(
        owner=owner,
        building_from=attribute_values.integer(item[_BUILDING_FROM]),
        swept_to=TaskId(item[_SWEPT_TO]["S"]),
        built_to=TaskId(item[_BUILT_TO]["S"]) if _BUILT_TO in item else None,
        is_complete=_COMPLETE in item,
        changed_at=attribute_values.integer(item[_CHANGED_AT]),
        version=version_of(item),
    )
