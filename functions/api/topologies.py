"""Handlers for topologies."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.tasks import TaskServices, TopologyServices
from duetime.contract.http import page_tokens
from duetime.contract.http.etags import content_etag
from duetime.contract.tasks.encoding import json_text
from duetime.contract.topologies import operations
from duetime.contract.topologies.bodies import TopologyRetry
from duetime.contract.topologies.decoding import retry_request, topology_request
from duetime.contract.topologies.operations import TopologyPage, node_page, topology_entry, topology_response
from duetime.domain.tasks.creation import IdempotencyKey, Order
from duetime.services.topologies.service import ControlResult

from .filter_actions import location
from .pages import applied, next_token, read_page
from .requests import admit_tasks, body_hash
from .responses import Response, answer, creation_headers, creation_status, no_content, task_response, with_estimate
from .routing import route

if TYPE_CHECKING:
    from duetime.contract.tasks.queries import EstimateQuery
    from duetime.contract.topologies.bodies import NodeListQuery, TopologyListQuery

    from .requests import Request

_ASK_AGAIN = {"Cache-Control": "private, no-cache"}
"""Clients may cache the response, but must validate its ETag each time."""


@route(operations.CREATE)
def create_topology(request: Request[EstimateQuery]) -> Response:
    """Create a topology."""
    document = request.document()
    wanted = topology_request(document)
    key = IdempotencyKey(request.key, body_hash(document.value), request.key_life) if request.key else None
    order = Order(wanted.spec, key, graph=wanted.graph, traceparent=request.traceparent, parent=request.parent)
    admit_tasks(request, [wanted.spec])
    creation = composed(TaskServices).creator.create_once(request.owner, order)
    headers = creation_headers(creation, operations.READ.url(topology_id=creation.value.id))
    task = composed(TaskServices).reader.with_contents(creation.value)
    response = task_response(task, creation_status(creation), headers)
    if not request.query.estimate:
        return response
    return with_estimate(
        response,
        request.owner,
        lambda workloads: workloads.of_topology(wanted.spec, wanted.graph, has_key=key is not None),
    )


@route(operations.LIST)
def list_topologies(request: Request[TopologyListQuery]) -> Response:
    """Read a page of the owner's topologies."""
    page = read_page(request.owner, request.query)
    entries = [topology_entry(task) for task in page.tasks]
    token = next_token(page, request.owner, request.query)
    return answer(
        json_text(
            TopologyPage(topologies=entries, applied=applied(page, request.owner, request.query), next_token=token)
        )
    )


@route(operations.READ)
def get_topology(request: Request) -> Response:
    """Read one topology with its nodes."""
    view = composed(TopologyServices).service.get(request.owner, request.task_id)
    text = json_text(topology_response(view, composed().runtime.clock.now()))
    return answer(text, headers={"ETag": content_etag(view.task.version, text), **_ASK_AGAIN})


@route(operations.LIST_NODES)
def list_topology_nodes(request: Request[NodeListQuery]) -> Response:
    """Read a page of a topology's nodes."""
    query, scope = request.query, request.query.scope(request.owner, request.task_id)
    first = 0 if query.next_token is None else int(page_tokens.text_after(query.next_token, scope))
    view = composed(TopologyServices).service.nodes(request.owner, request.task_id, first, query.limit)
    end = first + query.limit
    token = page_tokens.text_token(str(end), scope) if end < len(view.graph.nodes) else None
    return answer(json_text(node_page(view, token)))


@route(operations.DELETE)
def delete_topology(request: Request) -> Response:
    """Erase a topology with its nodes."""
    composed(TopologyServices).eraser.erase_topology(request.owner, request.task_id, request.version)
    return no_content()


@route(operations.RETRY)
def retry_topology(request: Request) -> Response:
    """Retry a topology."""
    wanted = retry_request(request.document()) if request.has_body else TopologyRetry(nodes=[])
    retry, by = composed(TopologyServices).service.retry, request.attributed(wanted.reason)
    task = retry(request.owner, request.task_id, request.version, by, wanted.nodes)
    return control_response(ControlResult(task))


@route(operations.CANCEL)
def cancel_topology(request: Request) -> Response:
    """Cancel a topology."""
    cancel = composed(TopologyServices).service.cancel
    return control_response(cancel(request.owner, request.task_id, request.version, request.attribution))


@route(operations.PAUSE)
def pause_topology(request: Request) -> Response:
    """Pause a topology."""
    pause = composed(TopologyServices).service.pause
    return control_response(pause(request.owner, request.task_id, request.version, request.attribution))


@route(operations.RESUME)
def resume_topology(request: Request) -> Response:
    """Resume a paused topology."""
    resume = composed(TopologyServices).service.resume
    return control_response(resume(request.owner, request.task_id, request.version, request.attribution))


def control_response(result: ControlResult, *, is_done: bool | None = None) -> Response:
    """The response to a request that controls a topology or another task.

    Args:
        result: the result of the request.
        is_done: whether the change is already applied to the task; by default, true if the task has no pending request.
    """
    task, operation = result.task, result.operation
    is_done = task.requested_action is None if is_done is None else is_done
    status = HTTPStatus.OK if is_done and operation is None else HTTPStatus.ACCEPTED
    headers = {} if operation is None else location(operation)
    return task_response(composed(TaskServices).reader.with_contents(task), status, headers)
