"""Bulk operations: changes of many tasks that continue after the response to their request."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import Field

from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_client.transport import Transport

BULK_OPERATIONS = "/v1/bulk-operations"
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 5.0


class BulkOperation(ResponseModel):
    """A bulk operation and its progress: tasks that were scanned, that match, and of those affected or rejected."""

    id: str
    kind: str
    state: str
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
        """Whether it is still running."""
        return self.state == "running"


class _Page(ResponseModel):
    """A list of bulk operations."""

    operations: list[BulkOperation]


class BulkOperations:
    """The client's methods for bulk operations."""

    _transport: Transport
    _sleep: Callable[[float], object]

    def get_bulk_operation(self, operation_id: str) -> BulkOperation:
        """A bulk operation as it is now."""
        response = self._transport.request("GET", _path_of(operation_id))
        return read(BulkOperation, response, document_of(response))

    def list_bulk_operations(self) -> list[BulkOperation]:
        """The latest bulk operations of the caller, newest first."""
        response = self._transport.request("GET", BULK_OPERATIONS)
        return read(_Page, response, document_of(response)).operations

    def cancel_bulk_operation(self, operation_id: str) -> BulkOperation:
        """Stop a bulk operation; what it has done stays done."""
        response = self._transport.request("POST", f"{_path_of(operation_id)}/cancel", repeatable=True)
        return read(BulkOperation, response, document_of(response))

    def follow_bulk_operation(self, operation_id: str) -> Iterator[BulkOperation]:
        """The operation as it is now, and again each time it is polled, until it has ended."""
        pause = _FIRST_PAUSE
        while True:
            operation = self.get_bulk_operation(operation_id)
            yield operation
            if not operation.is_running:
                return
            self._sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)


def _path_of(operation_id: str) -> str:
    return f"{BULK_OPERATIONS}/{quote(operation_id, safe='', errors='replace')}"
