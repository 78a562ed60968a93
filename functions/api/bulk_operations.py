"""The routes of bulk operations."""

from __future__ import annotations

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.bulk.operations import BulkPage, bulk_response
from duetime.contract.http import routes
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query
from duetime.domain.errors import BulkNotFound
from duetime.domain.ids import InvalidTaskId, TaskId

from . import requests
from .identity import asked
from .responses import answer

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.get(routes.BULK_OPERATIONS)
def list_bulk_operations() -> Response[str]:
    """List the latest operations."""
    event, owner = asked(router)
    no_query(requests.query(event))
    operations = composed().bulk_operations.list(owner)
    return answer(json_text(BulkPage(operations=[bulk_response(operation) for operation in operations])))


@router.get(requests.pattern(routes.BULK_OPERATION))
def get_bulk_operation(operation_id: str) -> Response[str]:
    """See how far an operation is."""
    event, owner = asked(router)
    no_query(requests.query(event))
    return answer(json_text(bulk_response(composed().bulk_operations.get(owner, _id_of(operation_id)))))


@router.post(requests.pattern(routes.BULK_OPERATION_CANCEL))
def cancel_bulk_operation(operation_id: str) -> Response[str]:
    """Stop an operation."""
    event, owner = asked(router)
    no_query(requests.query(event))
    requests.no_body(event)
    return answer(json_text(bulk_response(composed().bulk_operations.cancel(owner, _id_of(operation_id)))))


def _id_of(text: str) -> TaskId:
    try:
        return TaskId.parse(text)
    except InvalidTaskId:
        raise BulkNotFound(TaskId(text)) from None
