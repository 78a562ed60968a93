"""The routes of topologies."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import routes
from duetime.contract.http.etags import version_wanted
from duetime.contract.tasks.encoding import json_text
from duetime.contract.tasks.queries import no_query
from duetime.contract.topologies.decoding import topology_request
from duetime.contract.topologies.responses import topology_response
from duetime.services.tasks.create import IdempotencyKey, Order
from duetime.services.topologies.service import ControlResult

from . import requests
from .filter_actions import location
from .identity import asked
from .responses import answer, task_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.post(routes.TOPOLOGIES)
def create_topology() -> Response[str]:
    """Create a topology."""
    event, owner = asked(router)
    no_query(requests.query(event))
    key = requests.idempotency_key(event)
    document = requests.body(event, wrapped=2)
    wanted = topology_request(document)
    order = Order(wanted.spec, IdempotencyKey(key, requests.body_hash(document.value)) if key else None)
    task = composed().topology_service.create(owner, order, wanted.graph)
    location = {"Location": f"{routes.TOPOLOGIES}/{task.id}"}
    return task_response(composed().task_reader.with_contents(task), HTTPStatus.CREATED, location)


@router.get(requests.pattern(routes.TOPOLOGY))
def get_topology(task_id: str) -> Response[str]:
    """See where a topology stands."""
    event, owner = asked(router)
    no_query(requests.query(event))
    inside = composed()
    view = inside.topology_service.get(owner, requests.task_id(task_id))
    now = inside.runtime.clock.now()
    return answer(json_text(topology_response(view, now)))


@router.post(requests.pattern(routes.TOPOLOGY_RERUN))
def rerun_topology(task_id: str) -> Response[str]:
    """Run a failed topology again."""
    directing = composed().topology_service
    return _steered(task_id, lambda *asked: ControlResult(directing.rerun(*asked)))


@router.post(requests.pattern(routes.TOPOLOGY_CANCEL))
def cancel_topology(task_id: str) -> Response[str]:
    """Cancel a topology."""
    return _steered(task_id, composed().topology_service.cancel)


@router.post(requests.pattern(routes.TOPOLOGY_PAUSE))
def pause_topology(task_id: str) -> Response[str]:
    """Hold a topology."""
    return _steered(task_id, composed().topology_service.pause)


@router.post(requests.pattern(routes.TOPOLOGY_RESUME))
def resume_topology(task_id: str) -> Response[str]:
    """Let a paused topology go on."""
    return _steered(task_id, composed().topology_service.resume)


def _steered(task_id: str, steer: Callable[[str, TaskId, int | None], ControlResult]) -> Response[str]:
    event, owner = asked(router)
    no_query(requests.query(event))
    version = version_wanted(requests.header(event, "If-Match"))
    requests.no_body(event)
    return control_response(steer(owner, requests.task_id(task_id), version))


def control_response(result: ControlResult, *, is_done: bool | None = None) -> Response[str]:
    """The answer to what was asked of a topology, or of any task.

    Args:
        result: what came of it.
        is_done: whether the task itself has heeded it; if it is left out, whether it is asked nothing.
    """
    task, operation = result.task, result.operation
    is_done = task.stop_request is None if is_done is None else is_done
    status = HTTPStatus.OK if is_done and operation is None else HTTPStatus.ACCEPTED
    headers = {} if operation is None else location(operation)
    return task_response(composed().task_reader.with_contents(task), status, headers)
