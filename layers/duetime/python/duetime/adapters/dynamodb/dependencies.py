"""Encodes tasks' dependencies as an attribute of their records.

Dependents are stored as items next to tasks' contents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.domain.ids import TaskId
from duetime.domain.tasks.dependencies import Dependencies, Dependency, OccurrenceRef
from duetime.domain.topologies.trigger_rules import Outcome, TriggerRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.domain.times import Millis

_RULES = tuple(TriggerRule)
_OUTCOMES = (None, *Outcome)
"""The positions of these values are stored, so new values must be added at the end."""
_MET, _HAS_TASK, _HAS_OCCURRENCE = 1 << 7, 1 << 4, 1 << 5
_OUTCOME_BITS = (1 << 4) - 1
_ID_BYTES, _TIME_BYTES = 16, 6


def encoded(dependencies: Dependencies) -> bytes:
    """Encode dependencies.

    The first byte is the rule, and each dependency begins with a byte that says whether an id, an occurrence, or both
    follow.
    """
    parts = [bytes([_RULES.index(dependencies.rule) | (_MET if dependencies.is_met else 0)])]
    for each in dependencies.on:
        kind = _OUTCOMES.index(each.outcome)
        kind |= 0 if each.task_id is None else _HAS_TASK
        kind |= 0 if each.occurrence is None else _HAS_OCCURRENCE
        parts.append(bytes([kind]))
        if each.task_id is not None:
            parts.append(each.task_id.data)
        if each.occurrence is not None:
            name = each.occurrence.schedule.encode()
            parts += (each.occurrence.nominal.to_bytes(_TIME_BYTES), bytes([len(name)]), name)
    return b"".join(parts)


def decoded(data: bytes) -> Dependencies:
    """Decode the bytes that `encoded` returned."""
    return Dependencies(tuple(_each(data[1:])), _RULES[data[0] & ~_MET], bool(data[0] & _MET))


def _each(data: bytes) -> Iterator[Dependency]:
    while data:
        kind, data = data[0], data[1:]
        task_id = occurrence = None
        if kind & _HAS_TASK:
            task_id, data = TaskId.from_data(data[:_ID_BYTES]), data[_ID_BYTES:]
        if kind & _HAS_OCCURRENCE:
            end = _TIME_BYTES + 1 + data[_TIME_BYTES]
            name = data[_TIME_BYTES + 1 : end].decode()
            occurrence, data = OccurrenceRef(name, int.from_bytes(data[:_TIME_BYTES])), data[end:]
        yield Dependency(task_id, occurrence, _OUTCOMES[kind & _OUTCOME_BITS])


_PREFIX = "after#"


class DynamoDependentStore:
    """The `duetime.ports.tasks.DependentStore` with one item per dependent.

    The items are erased with the task's contents.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def add(self, task_id: TaskId, dependent: TaskId, expires_at: Millis) -> None:
        """Store that `dependent` waits for a task; storing this again extends the entry's life."""
        item = {**_key_of(task_id, dependent.text), schema.TTL: attribute_values.expiry(expires_at)}
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def page(self, task_id: TaskId, after: TaskId | None, limit: int) -> Sequence[TaskId]:
        """Read the next tasks that wait for a task, in order of ids and with strong consistency."""
        with translated():
            answer = self._client.query(
                TableName=self._table,
                KeyConditionExpression="#p = :p AND #s BETWEEN :first AND :last",
                ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
                ExpressionAttributeValues={
                    ":p": _key_of(task_id, "")[schema.PARTITION_KEY],
                    # A space sorts before all characters of an id, and a tilde sorts after them.
                    ":first": attribute_values.text(f"{_PREFIX}{'' if after is None else after.text} "),
                    ":last": attribute_values.text(f"{_PREFIX}~"),
                },
                ConsistentRead=True,
                Limit=limit,
            )
        return [TaskId(item[schema.SORT_KEY]["S"].removeprefix(_PREFIX)) for item in answer["Items"]]


def _key_of(task_id: TaskId, name: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.CONTENT_PREFIX}{task_id}"),
        schema.SORT_KEY: attribute_values.text(f"{_PREFIX}{name}"),
    }
