"""Handlers that cancel, update, retry and delete the tasks that match a filter."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import FilterActionServices
from duetime.contract.bulk import operations
from duetime.contract.bulk.bodies import (
    UPDATE,
    BulkCancel,
    BulkDelete,
    BulkRetry,
    BulkUpdate,
    confirmation_token,
    confirmed_until,
    is_piece,
    read_filter_action,
    request_of,
    scope_of,
)
from duetime.contract.bulk.operations import bulk_response, done_response, filter_action_response
from duetime.contract.tasks.encoding import json_text
from duetime.domain.bulk import BulkState
from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.creation import IdempotencyKey

from .requests import body_hash
from .responses import Response, answer, replayed
from .routing import route

if TYPE_CHECKING:
    from duetime.contract.bulk.bodies import FilterActionBody
    from duetime.domain.bulk import BulkOperation, BulkRequest

    from .requests import Request


@route(operations.CANCEL_MANY)
def cancel_tasks_by_filter(request: Request) -> Response:
    """Cancel the tasks that match a filter."""
    return take(request, BulkCancel)


@route(operations.RETRY_MANY)
def retry_tasks_by_filter(request: Request) -> Response:
    """Retry the tasks that match a filter."""
    return take(request, BulkRetry)


@route(operations.DELETE_MANY)
def delete_tasks_by_filter(request: Request) -> Response:
    """Delete the ended tasks that match a filter."""
    return take(request, BulkDelete)


@route(operations.UPDATE_MANY)
def update_tasks_by_filter(request: Request) -> Response:
    """Update the tasks that match a filter."""
    try:
        return take(request, BulkUpdate)
    except FieldInvalid as refusal:
        raise refusal.inside(UPDATE) from None


def take(request: Request, model: type[FilterActionBody]) -> Response:
    """Apply the action in a body to one page of matching tasks, or to all of them, at once or with a bulk operation."""
    document = request.document()
    body = read_filter_action(model, document)
    scope = scope_of(body, request.owner)
    deployment = composed().settings.table
    until = confirmed_until(body, request.owner, deployment, composed().runtime.now())
    wanted = replace(request_of(body, scope, request.text(), until), by=request.attributed(body.reason))
    if is_piece(body):
        done = composed(FilterActionServices).requests.piece(request.owner, wanted)
        token = None
        if body.dry_run and until is not None:
            token = confirmation_token(body, request.owner, deployment, until)
        return answer(json_text(filter_action_response(done, scope, token)))
    # `begin` also hashes the kind, because requests of different kinds can have identical bodies.
    return begin(request, wanted, document.value)


def begin(request: Request, wanted: BulkRequest, body: object) -> Response:
    """Carry out a request at once, or with a bulk operation."""
    key = IdempotencyKey(request.key, body_hash([wanted.kind, body])) if request.key else None
    taken = composed(FilterActionServices).requests.take(request.owner, wanted, key)
    operation = taken.value
    if operation.state is not BulkState.SUCCEEDED:
        # An operation that was cancelled in the meantime is also shown this way, because it did not complete the
        # request.
        headers = replayed(location(operation), is_replay=taken.is_replay)
        return answer(json_text(bulk_response(operation)), HTTPStatus.ACCEPTED, headers)
    return answer(json_text(done_response(operation)), headers=replayed({}, is_replay=taken.is_replay))


def location(operation: BulkOperation) -> dict[str, str]:
    """The `Location` header with the path of an operation."""
    return {"Location": operations.READ.url(operation_id=operation.id)}
