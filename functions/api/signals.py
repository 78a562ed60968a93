"""Handler for signals."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.api import FilterActionServices
from duetime.contract import signals
from duetime.contract.bulk.operations import bulk_response
from duetime.contract.tasks.encoding import json_text
from duetime.domain.bulk import BulkState
from duetime.domain.tasks.creation import IdempotencyKey

from .filter_actions import location
from .requests import body_hash
from .responses import Response, answer, replayed
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(signals.SEND)
def send_signal(request: Request) -> Response:
    """Wake the tasks that wait for an event."""
    document = request.document()
    wanted = signals.request_of(signals.signal_of(document), request.text())
    key = IdempotencyKey(request.key, body_hash([wanted.kind, document.value])) if request.key else None
    taken = composed(FilterActionServices).requests.take(request.owner, wanted, key)
    operation = taken.value
    if operation.state is BulkState.SUCCEEDED:
        headers = replayed({}, is_replay=taken.is_replay)
        return answer(json_text(signals.signal_response(operation)), headers=headers)
    headers = replayed(location(operation), is_replay=taken.is_replay)
    return answer(json_text(bulk_response(operation)), HTTPStatus.ACCEPTED, headers)
