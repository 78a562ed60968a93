"""Handlers for tasks."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.contract.http.etags import etag_of, is_known
from duetime.contract.http.problems import kind_of, problem_of
from duetime.contract.http.request_errors import Fault, FieldsInvalid
from duetime.contract.tasks import operations, responses
from duetime.contract.tasks.decoding import batch_items, task_spec
from duetime.contract.tasks.encoding import entry, json_text
from duetime.contract.tasks.updates import task_update
from duetime.domain.errors import FieldInvalid, QuotaExceeded
from duetime.domain.tasks.creation import Accepted, IdempotencyKey, Order
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import SECOND
from duetime.services.tasks.read import Page

from .pages import page_response, read_page
from .requests import admit_tasks, body_hash
from .responses import (
    Response,
    answer,
    caching,
    creation_headers,
    creation_status,
    not_modified,
    polling,
    replayed,
    task_response,
    with_estimate,
)
from .routing import route

if TYPE_CHECKING:
    from duetime.contract.tasks.queries import CreationQuery, EstimateQuery, TaskListQuery, TaskQuery, UpdateQuery
    from duetime.domain.tasks.task import Task

    from .requests import Request


@route(operations.CREATE)
def create_task(request: Request[CreationQuery]) -> Response:
    """Create a task and, if requested, wait for its outcome."""
    document, wait = request.document(), request.query.wait_seconds
    key = _key(request, request.key, document.value)
    order = Order(task_spec(document), key, traceparent=request.traceparent, parent=request.parent)
    admit_tasks(request, [order.spec])
    creation = composed(TaskServices).creator.create_once(request.owner, order)
    task = creation.value
    if wait:
        with suppress(QuotaExceeded):
            # The task exists already, so if the quota allows no wait, the request is answered at once.
            task = composed(TaskServices).waiter.wait(task, wait * SECOND)
    status = creation_status(creation, is_waiting=bool(wait) and not task.is_terminal)
    headers = creation_headers(creation, operations.READ.url(task_id=task.id))
    response = task_response(composed(TaskServices).reader.with_contents(task), status, headers)
    if not request.query.estimate:
        return response
    spec = composed(TaskServices).creator.rules.types.completed(request.owner, order.spec)
    return with_estimate(response, request.owner, lambda workloads: workloads.of_tasks([spec], has_key=key is not None))


@route(operations.CREATE_MANY)
def create_task_batch(request: Request[EstimateQuery]) -> Response:
    """Create many tasks, each with its own result."""
    items = batch_items(request.document())
    orders = [
        # A client's key contains no space, so a batch's keys differ from the keys of other requests.
        Order(
            item.wanted,
            _key(request, request.key and f"{request.key} {index}", item.value),
            traceparent=request.traceparent,
            parent=request.parent,
        )
        for index, item in enumerate(items)
        if isinstance(item.wanted, TaskSpec)
    ]
    admit_tasks(request, [order.spec for order in orders])
    created = iter(composed(TaskServices).batch_creator.create_many(request.owner, orders))
    ends = [item.wanted if isinstance(item.wanted, FieldsInvalid) else next(created) for item in items]
    results = [_result(index, end, request.instance) for index, end in enumerate(ends)]
    creations = [end for end in ends if isinstance(end, Accepted)]
    headers = replayed({}, is_replay=bool(creations) and all(each.is_replay for each in creations))
    response = answer(json_text(responses.TaskBatchResult(results=results)), headers=headers)
    if not request.query.estimate:
        return response
    accepted = [each.wanted for each, end in zip(items, ends, strict=True) if isinstance(end, Accepted)]
    types = composed(TaskServices).creator.rules.types
    specs = [types.completed(request.owner, spec) for spec in accepted if isinstance(spec, TaskSpec)]
    return with_estimate(
        response, request.owner, lambda workloads: workloads.of_tasks(specs, has_key=request.key is not None)
    )


@route(operations.READ)
def get_task(request: Request[TaskQuery]) -> Response:
    """Read one task and, if requested, wait for its outcome."""
    reader = composed(TaskServices).reader
    task = reader.record(request.owner, request.task_id)
    if request.query.wait_seconds:
        task = composed(TaskServices).waiter.wait(task, request.query.wait_seconds * SECOND)
    headers = {**caching(task), **polling([task])}
    if is_known(request.header("If-None-Match"), task.version):
        return not_modified({"ETag": etag_of(task.version), **headers})
    return task_response(reader.with_contents(task), headers=headers)


@route(operations.LIST)
def list_tasks(request: Request[TaskListQuery]) -> Response:
    """Read a page of the owner's tasks, or the tasks with the given ids."""
    owner, query, reader = request.owner, request.query, composed(TaskServices).reader
    if query.ids:
        found = reader.get_many(owner, query.ids, consistent=True)
        return page_response(Page(found, None, len(query.ids)), owner, query, polling(found))
    return page_response(reader.expanded(read_page(owner, query), query.expand), owner, query)


@route(operations.UPDATE)
def update_task(request: Request[UpdateQuery]) -> Response:
    """Update a task that has not started."""
    update = task_update(request.document())
    by = request.attributed(request.query.reason)
    task = composed(TaskServices).updater.update(request.owner, request.task_id, update, request.version, by)
    return task_response(composed(TaskServices).reader.with_contents(task))


def _key(request: Request[Any], text: str | None, value: object) -> IdempotencyKey | None:
    return IdempotencyKey(text, body_hash(value), request.key_life) if text else None


def _result(
    index: int, end: Accepted[Task] | Exception, instance: str
) -> responses.TaskBatchAccepted | responses.TaskBatchRejected:
    if isinstance(end, Accepted):
        return responses.TaskBatchAccepted(status=201 if end.on_conflict is None else 200, task=entry(end.value))
    if isinstance(end, FieldInvalid):
        end = FieldsInvalid([Fault(f"tasks[{index}].{end.field}", end.reason, end.code)])
    return responses.TaskBatchRejected(status=kind_of(end).status.value, problem=problem_of(end, instance))
