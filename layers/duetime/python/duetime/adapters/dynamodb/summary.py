"""Stores task counts in DynamoDB.

Each part of an owner's counts has an item for each type, and items with counted steps.

A transaction writes the counts and the steps, so a step is counted if and only if it is recorded as counted. Another
item has the generation of the counts, and one item per type and owner has the results of a recount. Owners with tasks
are listed too, because no other item lists owners.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, astuple
from itertools import islice
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import translated
from duetime.adapters.dynamodb import attribute_values, field_codecs, schema
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, decoded, owner_of, require_readable, unreadable_as_error
from duetime.adapters.dynamodb.versioned_items import VERSION, is_lost_race, save_next, version_of
from duetime.domain.errors import RecordUnreadable
from duetime.domain.operating_parameters import (
    SUMMARY_PAGES,
    SUMMARY_RECOUNT_KEPT,
    SUMMARY_RECOUNT_RUN,
    SUMMARY_STEPS_KEPT,
)
from duetime.domain.summary import (
    MARK_BYTES,
    CountedSteps,
    EndedCounts,
    Generation,
    Group,
    OlderTasks,
    Recount,
    Summary,
    sums,
)
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import DAY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.adapters.dynamodb.attribute_values import Item, StoredItem, Value
    from duetime.domain.summary import Step, StepSet
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock


def attribute_of(group: Group) -> str:
    """The attribute with a group's count in the item for its type. States have the same names as in records."""
    return f"{field_codecs.state(group.state)['S']}#{group.priority.value}"


def counts_of(item: StoredItem, mark: str) -> dict[Group, int]:
    """Read the counts in an item whose sort key is a mark followed by the type."""
    type_ = str(item[schema.SORT_KEY]["S"]).removeprefix(mark)
    found = {}
    for name, value in item.items():
        state, separator, priority = name.partition("#")
        if separator:
            group = Group(type_, field_codecs.read_state({"S": state}), Priority(priority))
            found[group] = attribute_values.integer(value)
    return found


_COUNTS_MARK = "c"
"""Mark that precedes the generation and the type in the sort key of counts."""
_STEPS_MARK = "s#"
"""Mark that precedes the span and its start in the sort key of counted steps."""
_MARKS, _COUNTED_AT = "h", "u"


class DynamoSummaryStore:
    """The `duetime.ports.stores.SummaryStore` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def counted(self, of: StepSet) -> CountedSteps:
        """Read with strong consistency which steps of a set have been counted."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_steps_key(of), ConsistentRead=True)
        if "Item" not in answer:
            return CountedSteps()
        marks = bytes(answer["Item"][_MARKS]["B"])
        parts = (marks[start : start + MARK_BYTES] for start in range(0, len(marks), MARK_BYTES))
        return CountedSteps(frozenset(parts), version_of(answer["Item"]))

    def count(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step], nonce: str) -> bool:
        """Add steps to the counts and record them in one transaction, if the set is unchanged since it was read."""
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
        """Read one part of an owner's counts with eventual consistency."""
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
        """Set the TTL of one part of an owner's counts in all earlier generations."""
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
        """Yield pages of a part's items whose sort keys begin with a mark, and whether each page is the last page."""
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
    # The last `#` separates the owner from the part.
    return f"{schema.SUMMARY_PREFIX}{owner}#{part}"


def _key(of: StepSet, sort: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(_partition(of.owner, of.part)),
        schema.SORT_KEY: attribute_values.text(sort),
    }


def _steps_key(of: StepSet) -> Item:
    return _key(of, f"{_STEPS_MARK}{of.span}#{of.begins_at}")


def _count_mark(generation: int) -> str:
    """The part of the sort key of counts that precedes the type."""
    return f"{_COUNTS_MARK}{generation}#"


def _generation_of(item: StoredItem) -> int:
    """The generation of an item with counts."""
    return int(attribute_values.string(item[schema.SORT_KEY]).removeprefix(_COUNTS_MARK).partition("#")[0])


_GENERATION, _OWNER_MARK = "generation", "o#"
"""Sort key of the generation, and prefix of an owner's sort key, in the partition without an owner."""
_STATE, _PART = "w", "k"
_FIELDS = ("type", "state", "priority", "erased")
_SHOWN = (schema.SORT_KEY, schema.OWNER_KEY, schema.VERSION_OF_SCHEMA, *(ATTRIBUTES[field].name for field in _FIELDS))
_CREATED_AT = ATTRIBUTES["created_at"].name
_LATE_REMOVAL = 5 * DAY


class DynamoSummaryRecounts:
    """The `duetime.ports.stores.SummaryRecounts` that uses the tasks table."""

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._clock = clock

    def generation(self) -> Generation | None:
        """Read the generation of the counts with strong consistency; `None` before the first count."""
        with translated():
            answer = self._client.get_item(
                TableName=self._table, Key=_recount_key("", _GENERATION), ConsistentRead=True
            )
        return _stored_generation(answer["Item"]) if "Item" in answer else None

    def save(self, generation: Generation, nonce: str) -> bool:
        """Store the generation's next version, if the generation is unchanged since it was read."""
        return save_next(self._client, self._table, _item_of(generation), generation.version, nonce)

    def is_fresh(self, at: Millis) -> bool:
        """Whether the table fits on one page and has no task that was created before the given time."""
        with translated():
            answer = self._client.scan(TableName=self._table, **_older_than(at))
        return not answer["Items"] and "LastEvaluatedKey" not in answer

    def older_tasks(self, cursor: str, since: Millis, pages: int) -> OlderTasks:
        """Read a part of the table, with eventual consistency, for tasks created before a given time."""
        found: Counter[tuple[str, Group]] = Counter()
        end = self._clock.now() + SUMMARY_RECOUNT_RUN
        for _ in range(pages):
            start: dict[str, Any] = {"ExclusiveStartKey": json.loads(cursor)} if cursor else {}
            with translated():
                answer = self._client.scan(TableName=self._table, **_older_than(since), **start)
            found.update(group for item in answer["Items"] if (group := _group_of(item)) is not None)
            cursor = json.dumps(answer["LastEvaluatedKey"]) if "LastEvaluatedKey" in answer else ""
            if not cursor or self._clock.now() >= end:
                break
        return OlderTasks(found, cursor)

    def add_older(
        self, generation: Generation, recount: Recount, owner: str, type_: str, numbers: Mapping[Group, int]
    ) -> None:
        """Add the result of the current part to a recount exactly once, even if the request is repeated."""
        names = {f"#c{place}": attribute_of(group) for place, group in enumerate(numbers)}
        values = {f":c{place}": attribute_values.number(number) for place, number in enumerate(numbers.values())}
        additions = ", ".join(f"#c{place} :c{place}" for place in range(len(numbers)))
        expires_at = recount.started_at + SUMMARY_RECOUNT_KEPT + _LATE_REMOVAL
        with translated():
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=_recount_key(f"{owner}#0", f"{_older_mark(generation, recount)}{type_}"),
                    UpdateExpression=f"SET #k = :k, #v = :v, #x = :x ADD {additions}",
                    ConditionExpression="attribute_not_exists(#k) OR #k < :k",
                    ExpressionAttributeNames={
                        "#k": _PART,
                        "#v": schema.VERSION_OF_SCHEMA,
                        "#x": schema.TTL,
                        **names,
                    },
                    ExpressionAttributeValues={
                        ":k": attribute_values.number(recount.part + 1),
                        ":v": attribute_values.number(schema.SCHEMA_VERSION),
                        ":x": attribute_values.expiry(expires_at),
                        **values,
                    },
                )
            except self._client.exceptions.ConditionalCheckFailedException:
                # The condition fails only if an earlier copy of the same request was written.
                return

    def read_older(self, generation: Generation, recount: Recount, owner: str) -> Summary:
        """Read the result of a recount for an owner's tasks with eventual consistency."""
        mark = _older_mark(generation, recount)
        counts: dict[Group, int] = {}
        items, is_complete = self._items(f"{owner}#0", mark)
        for item in items:
            counts |= counts_of(item, mark)
        return Summary(counts, is_complete=is_complete)

    def list_owner(self, owner: str) -> None:
        """Add an owner to the list of owners with tasks."""
        key = _recount_key("", f"{_OWNER_MARK}{owner}")
        with translated():
            if "Item" not in self._client.get_item(TableName=self._table, Key=key):
                version = attribute_values.number(schema.SCHEMA_VERSION)
                self._client.put_item(TableName=self._table, Item={**key, schema.VERSION_OF_SCHEMA: version})

    def owners(self, after: str, limit: int) -> Sequence[str]:
        """Read the owners that have or had tasks and follow the given owner, in order and with eventual consistency."""
        start: dict[str, Any] = {"ExclusiveStartKey": _recount_key("", f"{_OWNER_MARK}{after}")} if after else {}
        with translated():
            answer = self._client.query(TableName=self._table, Limit=limit, **start, **_query("", _OWNER_MARK))
        return [attribute_values.string(item[schema.SORT_KEY]).removeprefix(_OWNER_MARK) for item in answer["Items"]]

    def _items(self, partition: str, mark: str) -> tuple[list[StoredItem], bool]:
        """Read a partition's items whose sort keys begin with a mark, and whether all of these items were read."""
        found: list[StoredItem] = []
        start: dict[str, Any] = {}
        for _ in range(SUMMARY_PAGES):
            with translated():
                answer = self._client.query(TableName=self._table, **_query(partition, mark), **start)
            found += answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return found, True
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return found, False


def _group_of(item: StoredItem) -> tuple[str, Group] | None:
    """An item's owner and group; `None` for an erased or unreadable item."""
    try:
        require_readable(item)
        with unreadable_as_error(item):
            fields = {"priority": Priority.NORMAL, "erased": False, **decoded(item, _FIELDS)}
            if fields.pop("erased"):
                return None
            return owner_of(item), Group(**fields)
    except RecordUnreadable:
        return None


def _older_than(at: Millis) -> dict[str, Any]:
    """The parameters of a scan for tasks that were created before a given time."""
    names = {f"#s{place}": name for place, name in enumerate(_SHOWN)}
    return {
        "FilterExpression": "attribute_exists(#z) AND #c < :c",
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": {**names, "#z": schema.STATE, "#c": _CREATED_AT},
        "ExpressionAttributeValues": {":c": attribute_values.number(at)},
    }


def _query(partition: str, mark: str) -> dict[str, Any]:
    return {
        "KeyConditionExpression": "#p = :p AND begins_with(#s, :s)",
        "ExpressionAttributeNames": {"#p": schema.PARTITION_KEY, "#s": schema.SORT_KEY},
        "ExpressionAttributeValues": {
            ":p": attribute_values.text(f"{schema.SUMMARY_PREFIX}{partition}"),
            ":s": attribute_values.text(mark),
        },
    }


def _recount_key(partition: str, sort: str) -> Item:
    return {
        schema.PARTITION_KEY: attribute_values.text(f"{schema.SUMMARY_PREFIX}{partition}"),
        schema.SORT_KEY: attribute_values.text(sort),
    }


def _older_mark(generation: Generation, recount: Recount) -> str:
    return f"r{generation.number}.{recount.number}#"


def _item_of(generation: Generation) -> Item:
    state = {
        "number": generation.number,
        "since": generation.since,
        "seen_at": generation.seen_at,
        "recounting": generation.recounting and asdict(generation.recounting),
        "recounted": generation.recounted and asdict(generation.recounted),
        "ended_counts": astuple(generation.ended_counts),
    }
    version: Value = attribute_values.number(schema.SCHEMA_VERSION)
    return {
        **_recount_key("", _GENERATION),
        schema.VERSION_OF_SCHEMA: version,
        _STATE: attribute_values.text(json.dumps(state, separators=(",", ":"))),
    }


def _stored_generation(item: StoredItem) -> Generation:
    state = json.loads(attribute_values.string(item[_STATE]))
    for name in ("recounting", "recounted"):
        state[name] = state[name] and Recount(**state[name])
    ended_counts = EndedCounts(*state.pop("ended_counts"))
    return Generation(**state, ended_counts=ended_counts, version=version_of(item))
