"""Results of steps in DynamoDB: an item each, with the task's contents, erased with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.versioned_items import item_of_failed_condition
from duetime.domain.tasks.steps import StepResult

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis

_PREFIX = "step#"
_RESULT, _FENCE, _ATTEMPT, _FINISHED_AT, _TOOK = "b", "k", "a", "n", "d"


class DynamoStepStore:
    """`duetime.ports.stores.StepStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def list_of(self, task_id: TaskId) -> list[StepResult]:
        """The steps of a task in the order in which they ended, read consistently."""
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
        """Store a step, unless it is stored already; returns the stored one."""
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
                return  # erased with its task


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
