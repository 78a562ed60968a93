"""The routes of tasks."""

from __future__ import annotations

from http import HTTPStatus

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import page_tokens, routes
from duetime.contract.http.etags import is_known, version_wanted
from duetime.contract.http.problems import kind_of, problem_of
from duetime.contract.http.request_errors import Fault, FieldsInvalid
from duetime.contract.tasks import responses
from duetime.contract.tasks.decoding import batch_items, task_change, task_spec
from duetime.contract.tasks.encoding import entry, json_text
from duetime.contract.tasks.queries import cancel_query, creation_query, no_query, task_list_query
from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_JSON_DEPTH
from duetime.domain.tasks.task import Task, TaskSpec
from duetime.domain.times import SECOND
from duetime.ports.tasks import ListQuery
from duetime.services.tasks.create import IdempotencyKey, Order

from . import requests
from .identity import asked
from .responses import answer, caching, not_modified, page_response, task_response
from .topologies import control_response

_TASK = requests.pattern(routes.TASK)
_BATCH_NESTING = 2 * MAX_JSON_DEPTH
"""More than any good batch has: a task in it that is nested too deeply is refused by itself."""

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.post(routes.TASKS)
def create_task() -> Response[str]:
    """Create a task; wait for its outcome, if that is asked for."""
    event, owner = asked(router)
    query = creation_query(requests.query(event))
    key = requests.idempotency_key(event)
    document = requests.body(event)
    order = Order(task_spec(document), _key(key, document.value))
    inside = composed()
    task = inside.task_creator.create(owner, order)
    if query.wait:
        task = inside.outcome_waiter.wait(task, query.wait * SECOND)
    status = HTTPStatus.ACCEPTED if query.wait and not task.is_terminal else HTTPStatus.CREATED
    return task_response(inside.task_reader.with_contents(task), status, {"Location": f"{routes.TASKS}/{task.id}"})


@router.post(routes.BATCH)
def create_tasks() -> Response[str]:
    """Create many tasks, each with its own result."""
    event, owner = asked(router)
    no_query(requests.query(event))
    key = requests.idempotency_key(event)
    items = batch_items(requests.body(event, wrapped=_BATCH_NESTING))
    orders = [
        # A space cannot stand in a client's key, so no key of a batch is another request's.
        Order(item.wanted, _key(key and f"{key} {index}", item.value))
        for index, item in enumerate(items)
        if isinstance(item.wanted, TaskSpec)
    ]
    created = iter(composed().task_creator.create_many(owner, orders))
    ends = (item.wanted if isinstance(item.wanted, FieldsInvalid) else next(created) for item in items)
    results = [_result(index, end, requests.instance(event)) for index, end in enumerate(ends)]
    return answer(json_text(responses.BatchResponse(results=results)))


@router.get(_TASK)
def get_task(task_id: str) -> Response[str]:
    """Read one task."""
    event, owner = asked(router)
    no_query(requests.query(event))
    reading = composed().task_reader
    task = reading.record(owner, requests.task_id(task_id))
    if is_known(requests.header(event, "If-None-Match"), task.version):
        return not_modified(task)
    return task_response(reading.with_contents(task), headers=caching(task))


@router.get(routes.TASKS)
def list_tasks() -> Response[str]:
    """Read a page of one's tasks, or those of given ids."""
    event, owner = asked(router)
    query = task_list_query(requests.query(event))
    reading = composed().task_reader
    if query.ids:
        return page_response(reading.get_many(owner, query.ids), None)
    scope = query.scope(owner)
    after = None if query.next_token is None else page_tokens.after_of(query.next_token, scope)
    wanted = ListQuery(owner, after, descending=query.order == "desc", limit=query.limit)
    page = reading.list(wanted, query.filter)
    token = None if page.after is None else page_tokens.token_of(page.after, scope)
    return page_response(page.tasks, token)


@router.patch(_TASK)
def change_task(task_id: str) -> Response[str]:
    """Change a task that has not started."""
    event, owner = asked(router)
    no_query(requests.query(event))
    version = version_wanted(requests.header(event, "If-Match"))
    change = task_change(requests.body(event))
    task = composed().task_updater.change(owner, requests.task_id(task_id), change, version)
    return task_response(composed().task_reader.with_contents(task))


@router.delete(_TASK)
def cancel_task(task_id: str) -> Response[str]:
    """Take back a task that has not started; by force, ask a running one to stop."""
    event, owner = asked(router)
    query = cancel_query(requests.query(event))
    version = version_wanted(requests.header(event, "If-Match"))
    wanted = requests.task_id(task_id)
    inside = composed()
    cancel = inside.task_control.cancel_by_force if query.force else inside.task_updater.cancel
    result = inside.topology_service.apply_gate(cancel(owner, wanted, version))
    return control_response(result, is_done=result.task.is_terminal)


def _key(text: str | None, value: object) -> IdempotencyKey | None:
    return IdempotencyKey(text, requests.body_hash(value)) if text else None


def _result(index: int, end: Task | Exception, instance: str) -> responses.BatchAccepted | responses.BatchRejected:
    if isinstance(end, Task):
        return responses.BatchAccepted(status=201, task=entry(end))
    if isinstance(end, FieldInvalid):
        end = FieldsInvalid([Fault(f"tasks[{index}].{end.field}", end.reason)])
    return responses.BatchRejected(status=kind_of(end).status.value, problem=problem_of(end, instance))
