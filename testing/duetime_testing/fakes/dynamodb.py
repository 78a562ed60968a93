"""A fake of DynamoDB with the calls, responses and errors that the stores rely on."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from email.utils import formatdate
from itertools import islice
from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.attribute_values import MOST_BYTES, ValueInvalid, checked, order, size_of
from duetime_testing.fakes.errors import Exceptions
from duetime_testing.fakes.expressions import ExpressionInvalid, condition, name_of, projection, update
from duetime_testing.fakes.statements import MOST_STATEMENTS, StatementInvalid, inserted_item
from duetime_testing.fakes.tables import Index, K, Table
from duetime_testing.fakes.updates import updated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from duetime_testing.fakes.attribute_values import Item, Value
    from duetime_testing.fakes.expressions import Comparison, Condition

_MOST_PUTS = 25
"""Maximum number of puts and deletions in one BatchWriteItem (Source: DynamoDB API Reference)."""
_MOST_KEYS = 100
"""Maximum number of keys in one BatchGetItem (Source: DynamoDB API Reference)."""
_MOST_PARTITION_BYTES, _MOST_SORT_BYTES = 2_048, 1_024
"""Maximum sizes of partition and sort keys, in bytes (Source: DynamoDB quotas)."""
_MOST_WRITES = 100
"""Maximum number of writes in one transaction (Source: DynamoDB API Reference)."""
_THROTTLED = {"Error": {"Code": "ThrottlingError", "Message": "Throughput exceeds the current capacity"}}
_META = {"ResponseMetadata": {"HTTPStatusCode": 200}}


class FakeDynamoDB:
    """A DynamoDB client with in-memory tables.

    Every call is atomic if only one thread makes calls at a time.

    Attributes:
        now: returns the time in milliseconds.
        lag: returns the age, in milliseconds, of the data that the next eventually consistent read returns.
        processed: returns how many of a batch's keys, writes or statements are processed, given their number.
        page: maximum number of items in a page.
    """

    def __init__(self, now: Callable[[], int] = lambda: 0) -> None:
        self.now = now
        self.lag: Callable[[], int] = lambda: 0
        self.processed: Callable[[int], int] = lambda asked: asked
        self.page = 1_000_000
        self.exceptions = Exceptions()
        self.tables: dict[str, Table] = {}

    def create_table(self, *, TableName: str, KeySchema: Any, **rest: Any) -> dict[str, Any]:  # noqa: ANN401 - as boto3 has them
        """Create a table and its indexes."""
        partition, sort = (key["AttributeName"] for key in KeySchema)
        indexes = {
            index["IndexName"]: Index(*(key["AttributeName"] for key in index["KeySchema"]))
            for index in rest.get("GlobalSecondaryIndexes", [])
        }
        self.tables[TableName] = Table(partition, sort, indexes)
        return dict(_META)

    def delete_table(self, *, TableName: str) -> dict[str, Any]:
        """Remove a table."""
        del self.tables[TableName]
        return dict(_META)

    def scan(
        self,
        *,
        TableName: str,
        FilterExpression: str | None = None,
        ProjectionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Value] | None = None,
        ExclusiveStartKey: Item | None = None,
        ConsistentRead: bool = False,
    ) -> dict[str, Any]:
        """Read a page of the table with a strongly consistent read."""
        del ConsistentRead
        table = self._table(TableName, "Scan")
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}
        wanted = None if FilterExpression is None else condition(FilterExpression)
        parts = frozenset() if ProjectionExpression is None else projection(ProjectionExpression)
        self._check_placeholders("Scan", names, values, wanted, (parts, frozenset()))
        items = sorted((dict(item) for item in table.every()), key=table.key_of)
        if ExclusiveStartKey is not None:
            items = [item for item in items if table.key_of(item) > table.key_of(ExclusiveStartKey)]
        page = items[: self.page]
        answer: dict[str, Any] = {"ScannedCount": len(page), **_META}
        if len(items) > len(page):
            answer["LastEvaluatedKey"] = _keys_in(table, page[-1])
        if wanted is not None:
            page = [item for item in page if wanted.test(item, names, values)]
        if parts:
            shown = {name_of(part, names) for part in parts}
            page = [{name: value for name, value in item.items() if name in shown} for item in page]
        return {**answer, "Items": page, "Count": len(page)}

    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool = False) -> dict[str, Any]:
        """Read an item."""
        table = self._table(TableName, "GetItem")
        item = table.get(self._key(table, Key, "GetItem"), self._since(consistent=ConsistentRead))
        return dict(_META) if item is None else {"Item": dict(item), **_META}

    def put_item(
        self,
        *,
        TableName: str,
        Item: Item,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Value] | None = None,
        ReturnValuesOnConditionCheckFailure: str = "NONE",
    ) -> dict[str, Any]:
        """Write an item, replacing an existing item with the same key."""
        table = self._table(TableName, "PutItem")
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}
        stored = self._storable(table, Item, "PutItem")
        key = self._key(table, _keys_in(table, Item), "PutItem")
        self._check(table, key, (ConditionExpression, names, values), ReturnValuesOnConditionCheckFailure, "PutItem")
        table.write(self.now(), key, stored)
        return dict(_META)

    def update_item(  # noqa: PLR0913 - same
        self,
        *,
        TableName: str,
        Key: Item,
        UpdateExpression: str,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Value] | None = None,
        ReturnValues: str = "NONE",
        ReturnValuesOnConditionCheckFailure: str = "NONE",
    ) -> dict[str, Any]:
        """Update an item, or create the item from the key and the update."""
        table = self._table(TableName, "UpdateItem")
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}
        key = self._key(table, Key, "UpdateItem")
        try:
            change = update(UpdateExpression)
            checked({"M": values})
        except (ExpressionInvalid, ValueInvalid) as error:
            raise self._invalid("UpdateItem", error) from None
        self._check(
            table,
            key,
            (ConditionExpression, names, values),
            ReturnValuesOnConditionCheckFailure,
            "UpdateItem",
            (change.names, change.values),
        )
        before = table.get(key)
        old = before or table.key_item(key)
        try:
            new = updated(change, old, names, values, (table.partition_name, table.sort_name))
        except ExpressionInvalid as error:
            raise self._invalid("UpdateItem", error) from None
        self._check_size(table, new, "UpdateItem")
        table.write(self.now(), key, new)
        match ReturnValues:
            case "ALL_NEW":
                return {"Attributes": dict(new), "ResponseMetadata": self._metadata()}
            case "ALL_OLD":
                return dict(_META) if before is None else {"Attributes": dict(before), **_META}
            case "NONE":
                return dict(_META)
            case _:
                raise NotImplementedError(ReturnValues)

    def transact_write_items(
        self,
        *,
        TransactItems: list[dict[str, Any]],
        ClientRequestToken: str = "",  # The token is not stored, because the conditions reject a repeated request.
    ) -> dict[str, Any]:
        """Put and update items atomically."""
        del ClientRequestToken
        if not 1 <= len(TransactItems) <= _MOST_WRITES:
            raise self._invalid("TransactWriteItems", "a transaction has 1 to 100 items")
        reasons = []
        for write in TransactItems:
            ((kind, request),) = write.items()
            table, item = self._table(request["TableName"], "TransactWriteItems"), request.get("Item")
            key = self._key(table, _keys_in(table, item) if item else request["Key"], "TransactWriteItems")
            names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
            used = update(request["UpdateExpression"]) if kind == "Update" else None
            try:
                asked = (request.get("ConditionExpression"), names, values)
                placeholders = (used.names, used.values) if used else (frozenset[str](), frozenset[str]())
                self._check(table, key, asked, "NONE", "TransactWriteItems", placeholders)
                reasons.append({"Code": "None"})
            except self.exceptions.ConditionalCheckFailedException:
                reasons.append({"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"})
        if any(reason["Code"] != "None" for reason in reasons):
            raise self.exceptions.make(
                "TransactionCanceledException", "TransactWriteItems", "cancelled", CancellationReasons=reasons
            )
        for write in TransactItems:
            ((kind, request),) = write.items()
            (self.put_item if kind == "Put" else self.update_item)(**request)
        return dict(_META)

    def batch_execute_statement(self, *, Statements: list[dict[str, Any]]) -> dict[str, Any]:
        """Execute insertion statements independently of each other, so that some can fail and others succeed."""
        if not 1 <= len(Statements) <= MOST_STATEMENTS:
            raise self._invalid("BatchExecuteStatement", "a batch has 1 to 25 statements")
        now = self.processed(len(Statements))
        return {
            "Responses": [self._inserted(each) for each in Statements[:now]] + [_THROTTLED] * (len(Statements) - now),
            **_META,
        }

    def _inserted(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        try:
            name, item = inserted_item(statement["Statement"], statement["Parameters"])
            names = {"#p": self._table(name, "PutItem").partition_name}
            self.put_item(
                TableName=name,
                Item=item,
                ConditionExpression="attribute_not_exists(#p)",
                ExpressionAttributeNames=names,
            )
        except self.exceptions.ConditionalCheckFailedException:
            return {"TableName": name, "Error": {"Code": "DuplicateItem"}}
        except (StatementInvalid, self.exceptions.ValidationException) as error:
            return {"Error": {"Code": "ValidationError", "Message": str(error)}}
        return {"TableName": name}

    def _metadata(self) -> dict[str, Any]:
        """A response's metadata, including the service's time."""
        return {"HTTPStatusCode": 200, "HTTPHeaders": {"date": formatdate(self.now() / 1000, usegmt=True)}}

    def delete_item(
        self,
        *,
        TableName: str,
        Key: Item,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Value] | None = None,
        ReturnValuesOnConditionCheckFailure: str = "NONE",
    ) -> dict[str, Any]:
        """Delete an item if it exists."""
        table = self._table(TableName, "DeleteItem")
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}
        key = self._key(table, Key, "DeleteItem")
        self._check(table, key, (ConditionExpression, names, values), ReturnValuesOnConditionCheckFailure, "DeleteItem")
        if table.get(key) is not None:
            table.write(self.now(), key, None)
        return dict(_META)

    def batch_get_item(self, *, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        """Read items by key; some keys can be left unprocessed."""
        responses: dict[str, list[Item]] = {}
        unprocessed: dict[str, Any] = {}
        for name, wanted in RequestItems.items():
            table = self._table(name, "BatchGetItem")
            since = self._since(consistent=wanted.get("ConsistentRead", False))
            keys = [self._key(table, key, "BatchGetItem") for key in wanted["Keys"]]
            if len(keys) > _MOST_KEYS or len(set(keys)) < len(keys):
                raise self._invalid("BatchGetItem", "Too many items requested, or provided list contains duplicates")
            now = self.processed(len(keys))
            responses[name] = [dict(item) for key in keys[:now] if (item := table.get(key, since)) is not None]
            if rest := wanted["Keys"][now:]:
                unprocessed[name] = {"Keys": rest}
        return {"Responses": responses, "UnprocessedKeys": unprocessed, **_META}

    def batch_write_item(self, *, RequestItems: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Put and delete items without conditions; some requests can be left unprocessed."""
        unprocessed: dict[str, list[Any]] = {}
        for name, requests in RequestItems.items():
            table = self._table(name, "BatchWriteItem")
            writes = [self._batch_write(table, each) for each in requests]
            if not 1 <= len(writes) <= _MOST_PUTS or len({key for key, _ in writes}) < len(writes):
                raise self._invalid("BatchWriteItem", "Too many items requested, or provided list contains duplicates")
            now = self.processed(len(writes))
            for key, item in writes[:now]:
                if item is not None or table.get(key) is not None:
                    table.write(self.now(), key, item)
            if rest := requests[now:]:
                unprocessed[name] = rest
        return {"UnprocessedItems": unprocessed, **_META}

    def _batch_write(self, table: Table, request: Mapping[str, Any]) -> tuple[tuple[str, str], Item | None]:
        if "DeleteRequest" in request:
            return self._key(table, request["DeleteRequest"]["Key"], "BatchWriteItem"), None
        item = request["PutRequest"]["Item"]
        stored = self._storable(table, item, "BatchWriteItem")
        return self._key(table, _keys_in(table, item), "BatchWriteItem"), stored

    def query(  # noqa: PLR0913 - as boto3 has them
        self,
        *,
        TableName: str,
        KeyConditionExpression: str,
        IndexName: str | None = None,
        ProjectionExpression: str | None = None,
        ExpressionAttributeNames: Mapping[str, str] | None = None,
        ExpressionAttributeValues: Mapping[str, Value] | None = None,
        ConsistentRead: bool = False,
        ScanIndexForward: bool = True,
        Limit: int | None = None,
        ExclusiveStartKey: Item | None = None,
    ) -> dict[str, Any]:
        """Read a page of a partition in the table or in an index."""
        table = self._table(TableName, "Query")
        names, values = ExpressionAttributeNames or {}, ExpressionAttributeValues or {}
        if IndexName is not None and (IndexName not in table.indexes or ConsistentRead):
            raise self._invalid("Query", "The table does not have the specified index, or it cannot be consistent")
        if {"S": ""} in values.values():
            raise self._invalid("Query", "The AttributeValue for a key attribute cannot contain an empty string value")
        index = table.indexes.get(IndexName or "")
        parsed = self._key_condition(KeyConditionExpression, names, values, ProjectionExpression)
        partition_name = index.partition_name if index else table.partition_name
        partition = self._partition(parsed, names, values, (partition_name, table.sort_name))
        since = self._since(consistent=ConsistentRead)
        if ExclusiveStartKey is not None and not parsed.test(ExclusiveStartKey, names, values):
            raise self._invalid("Query", "The provided starting key is outside query boundaries")
        within = _bounds(parsed, names, values, index.sort_name if index else table.sort_name)
        items = _items_of(table, index, partition, since, within, ExclusiveStartKey, forward=ScanIndexForward)
        found = (item for item in items if parsed.test(item, names, values))
        most = min(self.page, Limit or self.page)
        page = list(islice(found, most))
        answer: dict[str, Any] = {"Count": len(page), "ScannedCount": len(page), **_META}
        # A full page can be the last page; only the next request shows whether there are more items.
        if len(page) == most:
            last = page[-1]
            key_names = {table.partition_name, table.sort_name, partition_name}
            answer["LastEvaluatedKey"] = {name: last[name] for name in key_names}
        if ProjectionExpression is not None:
            shown = {name_of(part, names) for part in projection(ProjectionExpression)}
            page = [{name: value for name, value in item.items() if name in shown} for item in page]
        answer["Items"] = [dict(item) for item in page]
        return answer

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return a paginator for an operation."""
        return FakePaginator(getattr(self, operation))

    def _since(self, *, consistent: bool) -> int | None:
        lag = 0 if consistent else self.lag()
        return self.now() - lag if lag else None

    def _table(self, name: str, operation: str) -> Table:
        try:
            return self.tables[name]
        except KeyError:
            raise self.exceptions.make("ResourceNotFoundException", operation, name) from None

    def _invalid(self, operation: str, why: object) -> Exception:
        return self.exceptions.make("ValidationException", operation, str(why))

    def _key(self, table: Table, key: Item, operation: str) -> tuple[str, str]:
        if key.keys() != {table.partition_name, table.sort_name}:
            raise self._invalid(operation, "The provided key element does not match the schema")
        partition, sort = key[table.partition_name].get("S"), key[table.sort_name].get("S")
        if partition is None or sort is None:
            raise self._invalid(operation, "Type mismatch for key")
        if not partition or not sort:
            raise self._invalid(
                operation, "The AttributeValue for a key attribute cannot contain an empty string value"
            )
        if len(partition.encode()) > _MOST_PARTITION_BYTES or len(sort.encode()) > _MOST_SORT_BYTES:
            raise self._invalid(operation, "Size of a key has exceeded the size limit")
        return partition, sort

    def _storable(self, table: Table, item: Item, operation: str) -> Item:
        try:
            stored = {name: checked(value) for name, value in item.items()}
        except ValueInvalid as error:
            raise self._invalid(operation, error) from None
        self._check_size(table, stored, operation)
        return stored

    def _check_size(self, table: Table, item: Item, operation: str) -> None:
        if len(item) and size_of(item) > MOST_BYTES:
            raise self._invalid(operation, "Item size has exceeded the maximum allowed size")
        for index in table.indexes.values():
            value = item.get(index.partition_name)
            if value is not None and not value.get("S"):
                raise self._invalid(operation, "Type mismatch for Index Key, or it is empty")

    def _check(
        self,
        table: Table,
        key: tuple[str, str],
        asked: tuple[str | None, Mapping[str, str], Mapping[str, Value]],
        tells: str,
        operation: str,
        used: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset()),
    ) -> None:
        """Raise an error if the condition fails, or if placeholders are unused or not defined."""
        text, names, values = asked
        old = table.get(key)
        try:
            parsed = condition(text) if text is not None else None
            self._check_placeholders(operation, names, values, parsed, used)
            holds = parsed is None or parsed.test(old or {}, names, values)
        except ExpressionInvalid as error:
            raise self._invalid(operation, error) from None
        if not holds:
            told = {"Item": dict(old)} if old is not None and tells == "ALL_OLD" else {}
            raise self.exceptions.make(
                "ConditionalCheckFailedException", operation, "The conditional request failed", **told
            )

    def _check_placeholders(
        self,
        operation: str,
        names: Mapping[str, str],
        values: Mapping[str, Value],
        parsed: Condition | None,
        used: tuple[frozenset[str], frozenset[str]],
    ) -> None:
        wanted_names, wanted_values = used
        if parsed is not None:
            wanted_names, wanted_values = wanted_names | parsed.names, wanted_values | parsed.values
        if names.keys() != wanted_names or values.keys() != wanted_values:
            raise self._invalid(operation, "An expression attribute name or value is not defined, or unused")

    def _key_condition(
        self, text: str, names: Mapping[str, str], values: Mapping[str, Value], projected: str | None
    ) -> Condition:
        try:
            parsed = condition(text)
        except ExpressionInvalid as error:
            raise self._invalid("Query", error) from None
        shown = frozenset(part for part in projection(projected) if part[0] == "#") if projected else frozenset()
        self._check_placeholders("Query", names, values, parsed, (shown, frozenset()))
        return parsed

    def _partition(
        self,
        parsed: Condition,
        names: Mapping[str, str],
        values: Mapping[str, Value],
        keys: tuple[str, str],
    ) -> str:
        """The partition named by a key condition, which can also restrict the sort key."""
        by_name: dict[str, Comparison] = {}
        for comparison in parsed.comparisons or ():
            by_name[name_of(comparison.name, names) if comparison.name[0] == "#" else comparison.name] = comparison
        first = by_name.get(keys[0])
        clauses = len(parsed.comparisons or ())
        if first is None or first.operator != "=" or len(by_name) < clauses or set(by_name) - set(keys):
            raise self._invalid("Query", "Query condition missed key schema element, or is not supported")
        if any(comparison.operator == "<>" for comparison in by_name.values()):
            raise self._invalid("Query", "Unsupported operator on KeyCondition")
        asked = values.get(first.values[0], {})
        for each in by_name.values():
            if each.operator == "BETWEEN" and order(*(values[label] for label in each.values)) == 1:
                raise self._invalid("Query", "The BETWEEN operator requires upper bound not below lower bound")
        if "S" not in asked or any("S" not in values[label] for each in by_name.values() for label in each.values):
            raise self._invalid("Query", "One or more parameter values were invalid: Condition parameter type")
        if not asked["S"]:
            raise self._invalid("Query", "A key attribute cannot contain an empty string value")
        return str(asked["S"])


class FakePaginator:
    """Reads pages one after another."""

    def __init__(self, call: Callable[..., dict[str, Any]]) -> None:
        self._call = call

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - the call's own
        """Yield the pages of a request."""
        while True:
            page = self._call(**request)
            yield page
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _keys_in(table: Table, item: Item) -> Item:
    return {name: item[name] for name in (table.partition_name, table.sort_name) if name in item}


def _bounds(
    parsed: Condition, names: Mapping[str, str], values: Mapping[str, Value], sort_name: str
) -> tuple[str, str | None]:
    """The inclusive start, and the exclusive end or `None`, of the sort keys that can meet a key condition."""
    low, high = "", None
    for each in parsed.comparisons or ():
        if (name_of(each.name, names) if each.name[0] == "#" else each.name) != sort_name:
            continue
        first, last = (values[label]["S"] for label in (each.values[0], each.values[-1]))
        # In sort order, a string is directly followed by the same string with a NUL appended.
        match each.operator:
            case "=" | "BETWEEN":
                low, high = first, f"{last}\0"
            case "<":
                high = first
            case "<=":
                high = f"{first}\0"
            case ">":
                low = f"{first}\0"
            case ">=":
                low = first
            case "begins_with":
                low = first
                high = None if first[-1:] in {"", chr(sys.maxunicode)} else first[:-1] + chr(ord(first[-1]) + 1)
    return low, high


def _items_of(
    table: Table,
    index: Index | None,
    partition: str,
    since: int | None,
    within: tuple[str, str | None],
    start: Item | None,
    *,
    forward: bool,
) -> Iterator[Item]:
    """The items of a partition within a range of sort keys, starting after the previous page.

    The partition belongs to the table or to a keys-only index.
    """
    low, high = within
    if index is None:
        sorts = table.in_order(partition, since)
        last = None if start is None else start[table.sort_name]["S"]
        for sort in _part_of(sorts, low, high, last, forward=forward):
            if (item := table.get((partition, sort), since)) is not None:
                yield item
        return
    names = (index.sort_name, table.partition_name, table.sort_name)
    after = None if start is None else tuple(start[name]["S"] for name in names)
    entries, end = index.in_order(partition, since), None if high is None else (high,)
    for sort, *key in _part_of(entries, (low,), end, after, forward=forward):
        item = table.key_item((key[0], key[1]))
        yield {**item, index.partition_name: {"S": partition}, index.sort_name: {"S": sort}}


def _part_of(keys: list[K], low: K, high: K | None, after: K | None, *, forward: bool) -> Iterator[K]:
    """The sorted keys in [`low`, `high`) that come after the key `after`, which may have been deleted."""
    first = bisect_left(keys, low)
    end = len(keys) if high is None else bisect_left(keys, high)
    if after is not None and forward:
        first = max(first, bisect_right(keys, after))
    elif after is not None:
        end = min(end, bisect_left(keys, after))
    places = range(first, end)
    return (keys[place] for place in (places if forward else reversed(places)))
