"""The routes that cancel and change tasks by a filter."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.bulk.bodies import (
    CHANGE,
    WRAPPED,
    CancelMany,
    ChangeMany,
    done_response,
    filter_action_response,
    is_piece,
    read_filter_action,
    request_of,
    scope_of,
)
from duetime.contract.bulk.operations import bulk_response
from duetime.contract.http import routes
from duetime.contract.http.request_errors import Fault, FieldsInvalid
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query
from duetime.domain.errors import FieldInvalid
from duetime.services.tasks.create import IdempotencyKey

from . import requests
from .identity import asked
from .responses import answer

if TYPE_CHECKING:
    from duetime.contract.bulk.bodies import FilterActionBody
    from duetime.domain.bulk.operation import BulkOperation

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.post(routes.CANCEL_MANY)
def cancel_tasks() -> Response[str]:
    """Cancel what a filter means."""
    return take(router, CancelMany)


@router.post(routes.CHANGE_MANY)
def change_tasks() -> Response[str]:
    """Change what a filter means."""
    try:
        return take(router, ChangeMany)
    except FieldInvalid as refusal:
        raise FieldsInvalid([Fault(f"{CHANGE}.{refusal.field}", refusal.reason)]) from None


def take(target_queries: Router, model: type[FilterActionBody]) -> Response[str]:
    """Do what a body asks for with many tasks: at once, one piece of it, or by a bulk operation."""
    event, owner = asked(target_queries)
    no_query(requests.query(event))
    key = requests.idempotency_key(event)
    document = requests.body(event, wrapped=WRAPPED)
    body = read_filter_action(model, document)
    scope = scope_of(body, owner)
    request = request_of(body, scope, requests.text(event))
    if is_piece(body):
        return answer(json_text(filter_action_response(composed().bulk_requests.piece(owner, request), scope)))
    # Of two kinds of requests with equal bodies, each is another.
    hashed = requests.body_hash([request.kind, document.value])
    operation = composed().bulk_requests.take(owner, request, IdempotencyKey(key, hashed) if key else None)
    return begun(operation) if operation.is_running else answer(json_text(done_response(operation)))


def begun(operation: BulkOperation) -> Response[str]:
    """The answer to a request that goes on."""
    return answer(json_text(bulk_response(operation)), HTTPStatus.ACCEPTED, location(operation))


def location(operation: BulkOperation) -> dict[str, str]:
    """Where an operation can be read."""
    return {"Location": f"{routes.BULK_OPERATIONS}/{operation.id}"}
