"""Handlers for purges."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import PurgeServices
from duetime.composition.core import BulkServices
from duetime.contract.bulk import purges
from duetime.contract.tasks.encoding import json_text
from duetime.domain.bulk import BulkKind
from duetime.domain.errors import BulkNotFound

from .bulk_operations import id_of
from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from duetime.domain.bulk import BulkOperation

    from .requests import Request


@route(purges.CREATE)
def create_purge(request: Request) -> Response:
    """Start a purge."""
    wanted = purges.purge_of(request.document(), request.owner)
    wanted = replace(wanted, by=request.attributed(wanted.by.reason))
    operation = composed(PurgeServices).purges.start(request.caller, wanted, request.text())
    location = {"Location": purges.READ.url(operation_id=operation.id)}
    return answer(_text(operation), HTTPStatus.ACCEPTED, location)


@route(purges.READ)
def get_purge(request: Request) -> Response:
    """Read a purge and its receipt."""
    operation = composed(BulkServices).operations.get(request.owner, id_of(request))
    if operation.kind is not BulkKind.PURGE:
        raise BulkNotFound(operation.id)
    return answer(_text(operation))


def _text(operation: BulkOperation) -> str:
    settings = composed().settings
    is_archived = bool(settings.archive_bucket)
    return json_text(purges.purge_response(operation, settings.retention.longest, is_archived=is_archived))
