"""Errors of requests for a bulk operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId


class BulkNotFound(RequestError):
    """The bulk operation does not exist, belongs to another owner, or ended before the retention time."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"there is no bulk operation {operation_id}")
        self.operation_id = operation_id


class BulkEnded(RequestError):
    """The bulk operation has already ended, without being cancelled."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"the bulk operation {operation_id} has succeeded and cannot be cancelled")
        self.operation_id = operation_id


class BulkOfTopology(RequestError):
    """The bulk operation executes a request to a topology."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"the operation {operation_id} is of a topology: pause, resume or cancel that instead")
        self.operation_id = operation_id
