"""A meter that counts a session's AWS calls, and the read and write units that DynamoDB charges for the calls."""

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
"""The key under which the context of a call stores the request parameters."""
_PROJECTION = "ProjectionExpression"
_NAMES = "ExpressionAttributeNames"


class Meter:
    """The AWS calls of a session since the last `reset`, and their read and write units.

    The engine reports the units of its writes, including those of indexes. The engine reports no units for a refused
    write. DynamoDB charges a refused write by the size of the existing item, with a minimum of one unit, so the meter
    adds these units. The engine reports the same units for every read, so the meter computes a read's units from the
    size of the response (Source: DynamoDB Developer Guide, "Read and write operations") when `read_units` is read.
    DynamoDB charges a query with a projection by the size of complete items, so the meter repeats such a query without
    the projection.

    Attributes:
        requests: the number of calls, by operation.
        table_units: the write units of the table.
        index_units: the write units of the table's indexes.
    """

    def __init__(self, session: boto3.Session) -> None:
        self._lock = Lock()
        self.reset()
        events = session.events
        for operation in (*_WRITES, *_READS):
            events.register(f"before-parameter-build.dynamodb.{operation}", _ask_for_capacity)
        events.register("after-call.*.*", self.count)

    def reset(self) -> None:
        """Set all counts to zero."""
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
        """Read units of the table and its indexes."""
        with self._lock:
            reads, self._reads = self._reads, []
        self._read_units += sum(self._units_of(request, answer) for request, answer in reads)
        return self._read_units

    @cached_property
    def _uncounted(self) -> DynamoDBClient:
        return Clients().dynamodb()

    def _units_of(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> float:
        """The read units that a successful read costs."""
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
        """Count one call; several threads may call this method at the same time."""
        refused = 0
        if parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
            refused = write_units(item_size(parsed["Item"])) if parsed.get("Item") else 1
        capacities = _capacities(parsed) if model.name in _WRITES else ()
        indexes = [index for each in capacities for index in each.get("GlobalSecondaryIndexes", {}).values()]
        index_units = sum(index["CapacityUnits"] for index in indexes)
        total = sum(each["CapacityUnits"] for each in capacities)
        # Without the lock, two threads could overwrite each other's counts, because `+=` is not atomic.
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
    """The consumed capacities in a response, one for a single statement and one for each statement in a batch."""
    told = parsed.get("ConsumedCapacity", ())
    return (told,) if isinstance(told, dict) else told


def _unprojected(request: Mapping[str, Any]) -> dict[str, Any]:
    """The same query without its projection, so that the response has complete items."""
    labels = re.findall(r"#\w+", request["KeyConditionExpression"])
    rest = {name: value for name, value in request.items() if name != _PROJECTION}
    return rest | {_NAMES: {label: request[_NAMES][label] for label in labels}}


def _units_of_batch(requested: Mapping[str, Any], parsed: Mapping[str, Any]) -> float:
    """The read units of a BatchGetItem call; a missing item costs as much as the smallest existing item."""
    units = 0.0
    for table, wanted in requested.items():
        sizes = [item_size(item) for item in parsed.get("Responses", {}).get(table, [])]
        unread = len(parsed.get("UnprocessedKeys", {}).get(table, {}).get("Keys", []))
        sizes += [0] * (len(wanted["Keys"]) - len(sizes) - unread)
        units += sum(read_units(size, consistent=wanted.get("ConsistentRead", False)) for size in sizes)
    return units
