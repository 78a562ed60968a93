"""The handlers of topologies."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition.api import composed
from duetime.contract.tasks.encoding import json_text
from duetime.contract.topologies import operations
from duetime.contract.topologies.decoding import topology_request
from duetime.contract.topologies.responses import topology_response
from duetime.services.tasks.create import IdempotencyKey, Order
from duetime.services.topologies.service import ControlResult

from .filter_actions import location
from .requests import body_hash
from .responses import Response, answer, task_response
from .routing import route

if TYPE_CHECKING:
    from .requests import Request


@route(operations.CREATE)
def create_topology(request: Request) -> Response:
    """Create a topology."""
    document = request.document()
    wanted = topology_request(document)
    order = Order(wanted.spec, IdempotencyKey(request.key, body_hash(document.value)) if request.key else None)
    task = composed().topology_service.create(request.owner, order, wanted.graph)
    headers = {"Location": operations.READ.url(task_id=task.id)}
    return task_response(composed().task_reader.with_contents(task), HTTPStatus.CREATED, headers)


@route(operations.READ)
def get_topology(request: Request) -> Response:
    """See where a topology stands."""
    inside = composed()
    view = inside.topology_service.get(request.owner, request.task_id)
    now = inside.runtime.clock.now()
    return answer(json_text(topology_response(view, now)))


@route(operations.RERUN)
def rerun_topology(request: Request) -> Response:
    """Run a failed topology again."""
    task = composed().topology_service.rerun(request.owner, request.task_id, request.version)
    return control_response(ControlResult(task))


@route(operations.CANCEL)
def cancel_topology(request: Request) -> Response:
    """Cancel a topology."""
    return control_response(composed().topology_service.cancel(request.owner, request.task_id, request.version))


@route(operations.PAUSE)
def pause_topology(request: Request) -> Response:
    """Hold a topology."""
    return control_response(composed().topology_service.pause(request.owner, request.task_id, request.version))


@route(operations.RESUME)
def resume_topology(request: Request) -> Response:
    """Let a paused topology go on."""
    return control_response(composed().topology_service.resume(request.owner, request.task_id, request.version))


def control_response(result: ControlResult, *, is_done: bool | None = None) -> Response:
    """The answer to what was requested of a topology, or of any task.

    Args:
        result: what came of it.
        is_done: whether the task itself has heeded it; if it is left out, whether it is asked nothing.
    """
    task, operation = result.task, result.operation
    is_done = task.requested_action is None if is_done is None else is_done
    status = HTTPStatus.OK if is_done and operation is None else HTTPStatus.ACCEPTED
    headers = {} if operation is None else location(operation)
    return task_response(composed().task_reader.with_contents(task), status, headers)
