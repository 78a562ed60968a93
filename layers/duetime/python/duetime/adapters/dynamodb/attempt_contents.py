"""Stores step results and the latest traceback of attempts next to the contents of their task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.attribute_values import deflated, inflated
from duetime.adapters.dynamodb.versioned_items import item_of_failed_condition
from duetime.domain.limits import MAX_TRACEBACK_BYTES, MAX_TRACEBACK_LENGTH
from duetime.domain.tasks.steps import StepResult
from duetime.domain.tracebacks import AttemptTraceback, last_part
from duetime_common.payload_codecs import is_encrypted_text

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Expiry
    from duetime.domain.times import Millis

_PREFIX = "step#"
_TRACEBACK, _TEXT = "traceback", "b"
_RESULT, _FENCE, _ATTEMPT, _FINISHED_AT, _TOOK = "b", "k", "a", "n", "d"


class DynamoStepStore:
    """The `duetime.ports.stores.StepStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def list_of(self, task_id: TaskId) -> list[StepResult]:
        """Read a task's steps in the order in which they ended, with strong consistency."""
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
            found = [_step_of(item) for page in pages for item in page["Items"]]
        return sorted(found, key=lambda step: (step.finished_at, step.phase, step.name))

    def keep(self, task_id: TaskId, step: StepResult) -> StepResult:
        """Store a step, unless it is already stored, and return the stored step."""
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=_item_of(task_id, step),
                    ConditionExpression="attribute_not_exists(#p)",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except self._client.exceptions.ConditionalCheckFailedException as refused:
                stored = item_of_failed_condition(refused)
                return step if stored is None else _step_of(stored)
        return step

    def extend(self, task_id: TaskId, step: StepResult, expires_at: Millis) -> None:
        """Set the expiry of a step, if it is still stored."""
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_key(task_id, step),
                    ConditionExpression="attribute_exists(#p)",
                    UpdateExpression="SET #ttl = :ttl",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#ttl": schema.TTL},
                    ExpressionAttributeValues={":ttl": attribute_values.expiry(expires_at)},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return  # the step was erased with its task


def _key(task_id: TaskId, step: StepResult) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
        schema.SORT_KEY: attribute_values.text(f"{_PREFIX}{step.phase}#{step.name}"),
    }


def _item_of(task_id: TaskId, step: StepResult) -> Item:
    return {
        **_key(task_id, step),
        _RESULT: attribute_values.packed(step.result),
        _FENCE: attribute_values.number(step.fence),
        _ATTEMPT: attribute_values.number(step.attempt),
        _FINISHED_AT: attribute_values.number(step.finished_at),
        _TOOK: attribute_values.number(step.took),
        schema.TTL: attribute_values.expiry(step.expires_at),
    }


def _step_of(item: StoredItem) -> StepResult:
    _, phase, name = attribute_values.string(item[schema.SORT_KEY]).split("#", 2)
    return StepResult(
        phase=phase,
        name=name,
        attempt=attribute_values.integer(item[_ATTEMPT]),
        fence=attribute_values.integer(item[_FENCE]),
        finished_at=attribute_values.integer(item[_FINISHED_AT]),
        took=attribute_values.integer(item[_TOOK]),
        result=attribute_values.unpacked(item[_RESULT]),
        expires_at=attribute_values.read_expiry(item[schema.TTL]),
    )


class DynamoTracebackStore:
    """The `duetime.ports.stores.TracebackStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def keep(self, task_id: TaskId, traceback: AttemptTraceback, expiry: Expiry) -> None:
        """Store a traceback, which replaces an earlier attempt's traceback, but not a later attempt's traceback."""
        fence = attribute_values.number(traceback.fence)
        item = {
            **_traceback_key(task_id),
            _FENCE: fence,
            _TEXT: {"B": _packed(traceback.text)},
            schema.TTL: attribute_values.expiry(expiry.at),
        }
        with translated():
            try:
                self._client.put_item(
                    TableName=self._table,
                    Item=item,
                    ConditionExpression="attribute_not_exists(#k) OR #k <= :k",
                    ExpressionAttributeNames={"#k": _FENCE},
                    ExpressionAttributeValues={":k": fence},
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                return  # a later attempt has stored its traceback

    def find(self, task_id: TaskId) -> AttemptTraceback | None:
        """Read a task's traceback; `None` if no traceback is stored."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_traceback_key(task_id), ConsistentRead=True)
        if "Item" not in answer:
            return None
        item = answer["Item"]
        return AttemptTraceback(attribute_values.integer(item[_FENCE]), inflated(item[_TEXT]["B"]).decode())


def _packed(text: str) -> bytes:
    """Compress the end of a string so that it fits into one write unit.

    Encrypted text stays complete, because a part of it could not be decrypted.
    """
    if len(text) <= MAX_TRACEBACK_LENGTH and is_encrypted_text(text):
        return deflated(text.encode())
    length = MAX_TRACEBACK_LENGTH
    while True:
        packed = deflated(last_part(text, length).encode("utf-8", "replace"))
        if len(packed) <= MAX_TRACEBACK_BYTES:
            return packed
        length = length * 3 // 4


def _traceback_key(task_id: TaskId) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
        schema.SORT_KEY: attribute_values.text(_TRACEBACK),
    }
