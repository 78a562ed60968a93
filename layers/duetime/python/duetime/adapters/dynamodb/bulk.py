"""Stores bulk operations in DynamoDB.

Each operation has a partition. A topology's partition contains its latest operation's id.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.batches import read_items
from duetime.adapters.dynamodb.owner_index import sort_keys
from duetime.adapters.dynamodb.task_items import unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import save_next, version_of
from duetime.domain.bulk import BulkKind, BulkOperation, BulkProgress, BulkState, Latest
from duetime.domain.errors import RecordUnreadable
from duetime.domain.ids import TaskId

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.times import Millis

REQUEST = "request"
"""The name of an operation's content."""
_LATEST = "bulk"
_OPERATION = "o"
_OWNER, _KIND, _STATE, _CREATED_AT, _FINISHED_AT, _TOPOLOGY, _REQUEST = "O", "k", "Z", "c", "F", "t", "b"
_AFTER, _COUNTS, _REFUSED, _NEXT_AT, _UNTIL = "a", "n", "r", "d", "U"
_AFTER_NAME, _STAGE, _REMOVED, _SUBJECT = "N", "G", "R", "S"
_HOLDER, _EPOCH, _LEASED_UNTIL, _NOT_BEFORE, _REASON, _ACTOR = "h", "q", "l", "w", "m", "u"


class DynamoBulkStore:
    """The `duetime.ports.stores.BulkStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, operation_id: TaskId) -> BulkOperation | None:
        """Read an operation with strong consistency; `None` if it does not exist."""
        item = self._get(_key_of(operation_id))
        return _operation(item) if item else None

    def save(self, operation: BulkOperation, nonce: str) -> bool:
        """Store an operation, if the stored operation still has the version that was read."""
        return save_next(self._client, self._table, _item_of(operation), operation.version, nonce)

    def list(self, owner: str, limit: int) -> list[BulkOperation]:
        """Read an owner's latest operations, newest first, with eventual consistency."""
        partition = f"{owner}{schema.BULK_LIST_MARK}"
        names = sort_keys(self._client, self._table, partition, limit, descending=True)
        keys = [_key_of(TaskId(name)) for name in names]
        found = []
        for item in read_items(self._client, self._table, keys):
            # An unreadable operation must not hide the other operations.
            with suppress(RecordUnreadable):
                found.append(_operation(item))
        return sorted(found, key=lambda operation: operation.id, reverse=True)

    def latest_of(self, topology: TaskId) -> Latest:
        """Read a topology's latest operation with strong consistency."""
        item = self._get(_latest_key_of(topology))
        if not item:
            return Latest(topology)
        return Latest(topology, TaskId(attribute_values.string(item[_OPERATION])), version_of(item))

    def set_latest(self, latest: Latest, nonce: str, expires_at: Millis) -> bool:
        """Store which operation starts on a topology, unless another operation has been stored since the last read."""
        item: Item = {**_latest_key_of(latest.topology), schema.TTL: attribute_values.expiry(expires_at)}
        if latest.operation_id is not None:
            item[_OPERATION] = attribute_values.text(latest.operation_id.text)
        return save_next(self._client, self._table, item, latest.version, nonce)

    def _get(self, key: Item) -> StoredItem | None:
        with translated():
            return self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")


def _key_of(operation_id: TaskId) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.BULK_PREFIX}{operation_id}"),
        schema.SORT_KEY: attribute_values.text(operation_id.text),
    }


def _latest_key_of(topology: TaskId) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.TOPOLOGY_PREFIX}{topology}"),
        schema.SORT_KEY: attribute_values.text(_LATEST),
    }


def _item_of(operation: BulkOperation) -> Item:
    progress = operation.progress
    item = {
        **_key_of(operation.id),
        schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
        schema.OWNER_KEY: attribute_values.text(f"{operation.owner}{schema.BULK_LIST_MARK}"),
        _OWNER: attribute_values.text(operation.owner),
        _KIND: attribute_values.text(operation.kind),
        _STATE: attribute_values.text(operation.state),
        _CREATED_AT: attribute_values.number(operation.created_at),
        _COUNTS: attribute_values.text(f"{progress.examined} {progress.matched} {progress.affected}"),
        _REFUSED: attribute_values.text(json.dumps(dict(progress.refused), separators=(",", ":"))),
        _NEXT_AT: attribute_values.number(progress.next_at),
        _HOLDER: attribute_values.text(operation.holder),
        _EPOCH: attribute_values.number(operation.epoch),
        _LEASED_UNTIL: attribute_values.number(operation.leased_until),
        _NOT_BEFORE: attribute_values.number(operation.not_complete_before),
        _REASON: attribute_values.text(operation.reason),
    }
    if operation.topology is not None:
        item[_TOPOLOGY] = attribute_values.text(operation.topology.text)
    texts = {
        _ACTOR: operation.actor,
        _SUBJECT: operation.subject,
        _AFTER_NAME: progress.after_name,
        _STAGE: progress.stage,
        _REMOVED: json.dumps(dict(progress.removed), separators=(",", ":")) if progress.removed else "",
    }
    item |= {name: attribute_values.text(text) for name, text in texts.items() if text}
    if operation.until is not None:
        item[_UNTIL] = attribute_values.number(operation.until)
    if operation.request is not None:
        item[_REQUEST] = field_codecs.content(operation.request)
    if progress.after is not None:
        item[_AFTER] = attribute_values.text(progress.after.text)
    if operation.finished_at is not None:
        item[_FINISHED_AT] = attribute_values.number(operation.finished_at)
    if operation.expires_at is not None:
        item[schema.TTL] = attribute_values.expiry(operation.expires_at)
    return item


def _operation(item: StoredItem) -> BulkOperation:
    with unreadable_as_error(item):
        state = BulkState(attribute_values.string(item[_STATE]))
        progress = _progress(item, is_complete=state is BulkState.SUCCEEDED)
        return BulkOperation(
            id=TaskId(attribute_values.string(item[schema.SORT_KEY])),
            owner=attribute_values.string(item[_OWNER]),
            kind=BulkKind(attribute_values.string(item[_KIND])),
            created_at=attribute_values.integer(item[_CREATED_AT]),
            topology=TaskId(attribute_values.string(item[_TOPOLOGY])) if _TOPOLOGY in item else None,
            request=field_codecs.read_content(REQUEST, item[_REQUEST]) if _REQUEST in item else None,
            progress=progress,
            state=state,
            holder=attribute_values.string(item[_HOLDER]),
            epoch=attribute_values.integer(item[_EPOCH]),
            leased_until=attribute_values.integer(item[_LEASED_UNTIL]),
            not_complete_before=attribute_values.integer(item[_NOT_BEFORE]),
            finished_at=attribute_values.integer(item[_FINISHED_AT]) if _FINISHED_AT in item else None,
            reason=attribute_values.string(item[_REASON]),
            actor=_optional(item, _ACTOR),
            subject=_optional(item, _SUBJECT),
            until=attribute_values.integer(item[_UNTIL]) if _UNTIL in item else None,
            version=version_of(item),
        )


def _progress(item: StoredItem, *, is_complete: bool) -> BulkProgress:
    examined, matched, affected = map(int, attribute_values.string(item[_COUNTS]).split())
    return BulkProgress(
        after=TaskId(attribute_values.string(item[_AFTER])) if _AFTER in item else None,
        examined=examined,
        matched=matched,
        affected=affected,
        refused=json.loads(attribute_values.string(item[_REFUSED])),
        next_at=attribute_values.integer(item[_NEXT_AT]),
        is_complete=is_complete,
        after_name=_optional(item, _AFTER_NAME),
        stage=_optional(item, _STAGE),
        removed=json.loads(_optional(item, _REMOVED) or "{}"),
    )


def _optional(item: StoredItem, name: str) -> str:
    return attribute_values.string(item[name]) if name in item else ""
