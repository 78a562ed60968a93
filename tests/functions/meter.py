"""Counts every AWS call of a session, and the write and read units that DynamoDB charges for them."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Any

from tests.metering import item_size, write_units

if TYPE_CHECKING:
    import boto3

_WRITES = ("PutItem", "UpdateItem", "DeleteItem")
_CHARGED = (*_WRITES, "GetItem", "BatchGetItem", "Query")


class Meter:
    """What a session has done since the last `reset`.

    The engine tells the units of what it did, an index's included. It says nothing of a refused write, which
    DynamoDB charges by the item that refused it, one unit at least (Source: DynamoDB Developer Guide, "Read and
    write operations"): the meter adds that by the documented rule.

    Attributes:
        requests: how often each operation was called.
        table_units: write units of the table.
        index_units: write units of its indexes.
        read_units: read units of both.
    """

    def __init__(self, session: boto3.Session) -> None:
        self._lock = Lock()
        self.reset()
        events = session.events
        for operation in _CHARGED:
            events.register(f"before-parameter-build.dynamodb.{operation}", _ask_for_capacity)
        events.register("after-call.*.*", self.count)

    def reset(self) -> None:
        """Begin anew."""
        self.requests: Counter[str] = Counter()
        self.table_units = 0.0
        self.index_units = 0.0
        self.read_units = 0.0

    @property
    def total_requests(self) -> int:
        """All requests."""
        return sum(self.requests.values())

    def count(self, model: Any, parsed: dict[str, Any], **_: Any) -> None:  # noqa: ANN401 - botocore's own
        """Count one call; several threads make them at once."""
        refused = 0
        if parsed.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
            refused = write_units(item_size(parsed["Item"])) if parsed.get("Item") else 1
        capacities = parsed.get("ConsumedCapacity", [])
        capacities = [capacities] if isinstance(capacities, dict) else capacities
        total = sum(capacity["CapacityUnits"] for capacity in capacities)
        indexes = [index for capacity in capacities for index in capacity.get("GlobalSecondaryIndexes", {}).values()]
        index_units = sum(index["CapacityUnits"] for index in indexes)
        # Added at the end: `+=` reads, computes and stores, and what another thread stores in between would be lost.
        with self._lock:
            self.requests[model.name] += 1
            self.table_units += refused
            if model.name in _WRITES:
                self.index_units += index_units
                self.table_units += total - index_units
            else:
                self.read_units += total


def _ask_for_capacity(params: dict[str, Any], **_: Any) -> None:  # noqa: ANN401 - botocore's own
    params["ReturnConsumedCapacity"] = "INDEXES"
