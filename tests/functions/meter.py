"""Counts every AWS call of a session, and the write and read units that DynamoDB charges for them."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import Clients
from tests.metering import item_size, read_units, write_units

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import boto3
    from mypy_boto3_dynamodb import DynamoDBClient

_WRITES = ("PutItem", "BatchExecuteStatement", "UpdateItem", "DeleteItem")
_READS = ("GetItem", "BatchGetItem", "Query")
_REQUEST = "duetime_request"
"""Where a call's context keeps its arguments."""
_PROJECTION = "ProjectionExpression"
_NAMES = "ExpressionAttributeNames"


class Meter:
    """The work of a session since the last `reset`.

    The engine reports the units of its writes, an index's included. It reports nothing for a refused write, for which
    DynamoDB charges the refusing item, one unit at least: the meter adds that by the documented rule. For a read it
    reports the same units whatever the size: the meter computes them from the response (Source: DynamoDB Developer
    Guide, "Read and write operations"), when they are asked for. A query with a projection is charged for whole items,
    and is asked again for them then.

    Attributes:
        requests: how often each operation was called.
        table_units: write units of the table.
        index_units: write units of its indexes.
    """

    def __init__(self, session: boto3.Session) -> None:
        self._lock = Lock()
        self.reset()
        events = session.events
        for operation in (*_WRITES, *_READS):
            events.register(f"before-parameter-build.dynamodb.{operation}", _ask_for_capacity)
        events.register("after-call.*.*", self.count)

    def reset(self) -> None:
        """Start counting again."""
        self.requests: Counter[str] = Counter()
        self.table_units = 0.0
        self.index_units = 0.0
        self._read_units = 0.0
        self._reads: list[tuple[dict[str, Any], dict[str, Any]]] = []

    @property
    def total_requests(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    @property
    def read_units(self) -> float:
        """Read units of the table and of its indexes."""
        with self._lock:
            reads, self._reads = self._reads, []
        self._read_units += sum(self._units_of(request, answer) for request, answer in reads)
        return self._read_units

    @cached_property
    def _uncounted(self) -> DynamoDBClient:
        return Clients().dynamodb()

    def _units_of(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> float:
        """Read units of a successful read."""
        if "RequestItems" in request:
            return _units_of_batch(request["RequestItems"], answer)
        if "Key" in request:
            size = item_size(answer.get("Item", {}))
        else:
            whole = self._uncounted.query(**_unprojected(request)) if _PROJECTION in request else answer
            size = sum(map(item_size, whole["Items"]))
        return read_units(size, consistent=request.get("ConsistentRead", False))

    def count(
        self,
        model: Any,  # noqa: ANN401 - botocore's own
        parsed: dict[str, Any],
        context: Mapping[str, Any] | None = None,
        **_: Any,  # noqa: ANN401 - botocore's own
    ) -> None:
        """Count one call, possibly from several threads at once."""
        refused = 0
        if parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
            refused = write_units(item_size(parsed["Item"])) if parsed.get("Item") else 1
        capacities = _capacities(parsed) if model.name in _WRITES else ()
        indexes = [index for each in capacities for index in each.get("GlobalSecondaryIndexes", {}).values()]
        index_units = sum(index["CapacityUnits"] for index in indexes)
        total = sum(each["CapacityUnits"] for each in capacities)
        # Appended: `+=` reads, computes and stores, and would lose the writes of other threads in between.
        with self._lock:
            self.requests[model.name] += 1
            self.table_units += refused + total - index_units
            self.index_units += index_units
            if model.name in _READS and "Error" not in parsed and context is not None:
                self._reads.append((context[_REQUEST], parsed))


def _ask_for_capacity(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:  # noqa: ANN401 - botocore's own
    context[_REQUEST] = dict(params)
    params["ReturnConsumedCapacity"] = "INDEXES"


def _capacities(parsed: Mapping[str, Any]) -> Sequence[Any]:
    """The writes in a response: of one statement, or of each statement of a batch."""
    told = parsed.get("ConsumedCapacity", ())
    return (told,) if isinstance(told, dict) else told


def _unprojected(request: Mapping[str, Any]) -> dict[str, Any]:
    """The same query, for whole items."""
    labels = re.findall(r"#\w+", request["KeyConditionExpression"])
    rest = {name: value for name, value in request.items() if name != _PROJECTION}
    return rest | {_NAMES: {label: request[_NAMES][label] for label in labels}}


def _units_of_batch(requested: Mapping[str, Any], parsed: Mapping[str, Any]) -> float:
    """Read units of the items read by a BatchGetItem; a missing item costs as much as the smallest one."""
    units = 0.0
    for table, wanted in requested.items():
        sizes = [item_size(item) for item in parsed.get("Responses", {}).get(table, [])]
        unread = len(parsed.get("UnprocessedKeys", {}).get(table, {}).get("Keys", []))
        sizes += [0] * (len(wanted["Keys"]) - len(sizes) - unread)
        units += sum(read_units(size, consistent=wanted.get("ConsistentRead", False)) for size in sizes)
    return units
