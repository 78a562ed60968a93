"""Errors of requests for a bulk operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId


class BulkNotFound(RequestError):
    """There is no such bulk operation, or it belongs to another owner, or it ended long ago."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"there is no bulk operation {operation_id}")
        self.operation_id = operation_id


class BulkEnded(RequestError):
    """The bulk operation has ended by itself."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"the bulk operation {operation_id} has succeeded and cannot be cancelled")
        self.operation_id = operation_id


class BulkOfTopology(RequestError):
    """The bulk operation does what was requested of a topology."""

    def __init__(self, operation_id: TaskId) -> None:
        super().__init__(f"the operation {operation_id} is of a topology: pause, resume or cancel that instead")
        self.operation_id = operation_id
