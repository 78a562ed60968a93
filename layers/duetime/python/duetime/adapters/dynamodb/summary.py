"""Counts of tasks in DynamoDB: for each part of an owner's counts, an item for each type, and items of counted steps.

A transaction writes both, so a step is counted if and only if it is recorded as counted.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, schema
from duetime.adapters.dynamodb.summary_numbers import attribute_of, counts_of
from duetime.adapters.dynamodb.versioned_items import VERSION, is_lost_race, version_of
from duetime.domain.operating_parameters import SUMMARY_PAGES, SUMMARY_STEPS_KEPT
from duetime.domain.summary import MARK_BYTES, CountedSteps, Summary, sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem
    from duetime.domain.summary import Group, Step, StepSet
    from duetime.domain.times import Millis

_COUNTS_MARK = "c"
"""Precedes the generation and the type in the sort key of counts."""
_STEPS_MARK = "s#"
"""Precedes the span and its start in the sort key of the counted steps."""
_MARKS, _COUNTED_AT = "h", "u"


class DynamoSummaryStore:
    """`duetime.ports.stores.SummaryStore` over the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def counted(self, of: StepSet) -> CountedSteps:
        """Read which steps of a set are counted, consistently."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_steps_key(of), ConsistentRead=True)
        if "Item" not in answer:
            return CountedSteps()
        marks = bytes(answer["Item"][_MARKS]["B"])
        parts = (marks[start : start + MARK_BYTES] for start in range(0, len(marks), MARK_BYTES))
        return CountedSteps(frozenset(parts), version_of(answer["Item"]))

    def count(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step], nonce: str) -> bool:
        """Add steps to the counts and record them, both or neither, if the set is as it was read."""
        writes: list[Any] = [{"Put": self._remembering(of, counted, steps)}]
        counted_at = max(step.at for step in steps)
        changed: dict[str, dict[Group, int]] = {}
        for group, number in sums(steps).items():
            changed.setdefault(group.type, {})[group] = number
        writes += [{"Update": self._adding(of, type_, numbers, counted_at)} for type_, numbers in changed.items()]
        with translated():
            try:
                self._client.transact_write_items(TransactItems=writes, ClientRequestToken=nonce)
            except self._client.exceptions.TransactionCanceledException as refusal:
                if not is_lost_race(refusal):
                    raise
                return False
        return True

    def read(self, owner: str, part: int, generation: int = 0) -> Summary:
        """Read one part of an owner's counts, eventually consistent."""
        mark = _count_mark(generation)
        counts: dict[Group, int] = {}
        as_of: Millis | None = None
        for items, is_last in islice(self._pages(owner, part, mark), SUMMARY_PAGES):
            for item in items:
                counts |= counts_of(item, mark)
                as_of = max(as_of or 0, attribute_values.integer(item[_COUNTED_AT]))
            if is_last:
                return Summary(counts, as_of)
        return Summary(counts, as_of, is_complete=False)

    def expire_counts(self, owner: str, part: int, generation: int, expires_at: Millis) -> None:
        """Set the TTL of one part of an owner's counts of all earlier generations."""
        for items, _ in self._pages(owner, part, _COUNTS_MARK):
            for item in items:
                if schema.TTL in item or _generation_of(item) >= generation:
                    continue
                key = {name: item[name] for name in (schema.PARTITION_KEY, schema.SORT_KEY)}
                with translated(), suppress(self._client.exceptions.ConditionalCheckFailedException):
                    self._client.update_item(
                        TableName=self._table,
                        Key=key,
                        UpdateExpression="SET #x = :x",
                        ConditionExpression="attribute_exists(#p) AND attribute_not_exists(#x)",
                        ExpressionAttributeNames={"#x": schema.TTL, "#p": schema.PARTITION_KEY},
                        ExpressionAttributeValues={":x": attribute_values.expiry(expires_at)},
                    )

    def _pages(self, owner: str, part: int, mark: str) -> Iterator[tuple[Sequence[StoredItem], bool]]:
        """The items of a part whose sort keys begin with a mark, in pages, and whether each is the last one."""
        start: dict[str, Any] = {}
        while True:
            with translated():
                answer = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="#p = :p AND begins_with(#s, :s)",
                    ExpressionAttributeNames={"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
                    ExpressionAttributeValues={
                        ":p": attribute_values.text(_partition(owner, part)),
                        ":s": attribute_values.text(mark),
                    },
                    **start,
                )
            yield answer["Items"], "LastEvaluatedKey" not in answer
            if "LastEvaluatedKey" not in answer:
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _remembering(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step]) -> dict[str, Any]:
        marks = b"".join(sorted({*counted.marks, *(step.mark for step in steps)}))
        item = {
            **_steps_key(of),
            schema.VERSION_OF_SCHEMA: attribute_values.number(schema.SCHEMA_VERSION),
            schema.TTL: attribute_values.expiry(of.ends_at + SUMMARY_STEPS_KEPT),
            VERSION: attribute_values.number(counted.version + 1),
            _MARKS: {"B": marks},
        }
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#e)"}
        if counted.version:
            condition = {
                "ConditionExpression": "#e = :e",
                "ExpressionAttributeValues": {":e": attribute_values.number(counted.version)},
            }
        return {"TableName": self._table, "Item": item, "ExpressionAttributeNames": {"#e": VERSION}, **condition}

    def _adding(self, of: StepSet, type_: str, numbers: dict[Group, int], counted_at: Millis) -> dict[str, Any]:
        names = {f"#c{place}": attribute_of(group) for place, group in enumerate(numbers)}
        values = {f":c{place}": attribute_values.number(number) for place, number in enumerate(numbers.values())}
        additions = ", ".join(f"#c{place} :c{place}" for place in range(len(numbers)))
        return {
            "TableName": self._table,
            "Key": _key(of, f"{_count_mark(of.generation)}{type_}"),
            "UpdateExpression": f"SET #u = :u, #v = :v ADD {additions}",
            "ExpressionAttributeNames": {"#u": _COUNTED_AT, "#v": schema.VERSION_OF_SCHEMA, **names},
            "ExpressionAttributeValues": {
                ":u": attribute_values.number(counted_at),
                ":v": attribute_values.number(schema.SCHEMA_VERSION),
                **values,
            },
        }


def _partition(owner: str, part: int) -> str:
    # An owner may contain the separator: only the last one is ours.
    return f"{schema.SUMMARY_PREFIX}{owner}#{part}"


def _key(of: StepSet, sort: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(_partition(of.owner, of.part)),
        schema.SORT_KEY: attribute_values.text(sort),
    }


def _steps_key(of: StepSet) -> Item:
    return _key(of, f"{_STEPS_MARK}{of.span}#{of.begins_at}")


def _count_mark(generation: int) -> str:
    """The prefix of the sort key of counts, before the type."""
    return f"{_COUNTS_MARK}{generation}#"


def _generation_of(item: StoredItem) -> int:
    """The generation of an item of counts."""
    return int(attribute_values.string(item[schema.SORT_KEY]).removeprefix(_COUNTS_MARK).partition("#")[0])
