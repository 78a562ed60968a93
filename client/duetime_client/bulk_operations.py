"""`client.bulk_operations`: changes to many tasks, which run in the background."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field

from duetime_client.io_operations import Item, Pause, Request
from duetime_client.open_literals import (  # noqa: TC001 - pydantic reads the annotations
    BulkOperationKind,
    BulkOperationState,
)
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, several
from duetime_client.session import segment
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from duetime_client.io_operations import Items

BULK_OPERATIONS = "/v1/bulk-operations"
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 5.0
GROWTH = 1.5


class BulkOperation(ResponseModel):
    """A bulk operation and its progress: the number of tasks scanned, matched, affected and rejected."""

    id: str
    kind: BulkOperationKind
    state: BulkOperationState
    topology_id: str | None = None
    created_at: datetime
    created_by: str | None = None
    finished_at: datetime | None = None
    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Mapping[str, int] = Field(default_factory=dict)
    reason: str | None = None

    @property
    def is_running(self) -> bool:
        """Whether the operation is still running."""
        return self.state == "running"


Operations: TypeAlias = list[BulkOperation]


class BulkOperationOperations(Resource):
    """Bulk operations."""

    @Operation
    def get(self, operation_id: str) -> Request[BulkOperation]:
        """Get the current state of a bulk operation."""
        return get_bulk_operation(operation_id)

    @Operation
    def list(self) -> Request[Operations]:
        """List the latest bulk operations of the caller, newest first."""
        return Request("GET", BULK_OPERATIONS, several(BulkOperation, "operations"))

    @Operation
    def cancel(self, operation_id: str) -> Request[BulkOperation]:
        """Stop a bulk operation; changes already made are kept."""
        return Request("POST", f"{_path_of(operation_id)}/cancel", one(BulkOperation), repeatable=True)

    @Stream
    def follow(self, operation_id: str) -> Items[BulkOperation]:
        """Yield the current state of the operation at each poll until the operation has ended."""
        pause = FIRST_PAUSE
        while True:
            operation = yield from self._session.send(get_bulk_operation(operation_id))
            yield Item(operation)
            if not operation.is_running:
                return
            yield Pause(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)


class BulkOperations(BulkOperationOperations, SyncResource):
    """`client.bulk_operations` of `Client`."""


class AsyncBulkOperations(BulkOperationOperations, AsyncResource):
    """`client.bulk_operations` of `AsyncClient`."""


def get_bulk_operation(operation_id: str) -> Request[BulkOperation]:
    """Reads a bulk operation."""
    return Request("GET", _path_of(operation_id), one(BulkOperation))


def _path_of(operation_id: str) -> str:
    return f"{BULK_OPERATIONS}/{segment(operation_id)}"
