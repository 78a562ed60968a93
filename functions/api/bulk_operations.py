"""Handlers for bulk operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import BulkServices
from duetime.contract.bulk import operations
from duetime.contract.bulk.operations import BulkOperationList, bulk_response
from duetime.contract.tasks.encoding import json_text
from duetime.domain.errors import BulkNotFound
from duetime.domain.ids import InvalidTaskId, TaskId

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(operations.LIST)
def list_bulk_operations(request: Request) -> Response:
    """List the latest operations."""
    listed = composed(BulkServices).operations.list(request.owner)
    return answer(json_text(BulkOperationList(operations=[bulk_response(operation) for operation in listed])))


@route(operations.READ)
def get_bulk_operation(request: Request) -> Response:
    """Read one operation with its progress."""
    return answer(json_text(bulk_response(composed(BulkServices).operations.get(request.owner, id_of(request)))))


@route(operations.CANCEL)
def cancel_bulk_operation(request: Request) -> Response:
    """Stop an operation."""
    return answer(json_text(bulk_response(composed(BulkServices).operations.cancel(request.owner, id_of(request)))))


def id_of(request: Request) -> TaskId:
    """The id of an operation in the path.

    Raises:
        BulkNotFound: the text is not a valid id.
    """
    text = request.parameters["operation_id"]
    try:
        return TaskId.parse(text)
    except InvalidTaskId:
        raise BulkNotFound(TaskId(text)) from None
