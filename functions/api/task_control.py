"""Handlers with which users and targets control an existing task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices, TopologyServices
from duetime.contract.mapping import response_of
from duetime.contract.tasks import history, operations
from duetime.contract.tasks.encoding import json_text, target_reply_text
from duetime.contract.tasks.operations import TaskCancel
from duetime.contract.tasks.responses import CancelledChildrenResponse
from duetime.domain.errors import StateConflict
from duetime.domain.tasks.states import State

from .responses import Response, answer, no_content, task_response, with_field
from .routing import route
from .topologies import control_response

if TYPE_CHECKING:
    from duetime.contract.tasks.operations import Report
    from duetime.domain.tasks.task import Task

    from .requests import Request


@route(operations.DELETE)
def delete_task(request: Request) -> Response:
    """Erase a task; if the task is a topology, its nodes are erased too."""
    composed(TopologyServices).eraser.erase(request.owner, request.task_id, request.version)
    return no_content()


@route(operations.PAUSE)
def pause_task(request: Request) -> Response:
    """Pause a task that has not started, or ask a running task to pause."""
    task = composed(TaskServices).control.pause(request.owner, request.task_id, request.version, request.attribution)
    result = composed(TopologyServices).service.apply_gate(task)
    return control_response(result, is_done=result.task.state is State.PAUSED)


@route(operations.RESUME)
def resume_task(request: Request) -> Response:
    """Resume a paused task."""
    task = composed(TaskServices).control.resume(request.owner, request.task_id, request.version, request.attribution)
    return control_response(composed(TopologyServices).service.apply_gate(task), is_done=True)


@route(operations.CANCEL)
def cancel_task(request: Request) -> Response:
    """Cancel a task that has not started or, with force, ask a running task to stop."""
    wanted = operations.cancellation(request.document()) if request.has_body else TaskCancel()
    cancel = composed(TaskServices).control.cancel_by_force if wanted.force else composed(TaskServices).updater.cancel
    by = request.attributed(wanted.reason)
    try:
        task = cancel(request.owner, request.task_id, request.version, by)
    except StateConflict as refusal:
        # The task's children may be open although the task has ended.
        if not (wanted.include_children and refusal.task.is_terminal):
            raise
        task = refusal.task
    result = composed(TopologyServices).service.apply_gate(task)
    response = control_response(result, is_done=result.task.is_terminal)
    if not wanted.include_children:
        return response
    children = composed(TopologyServices).child_canceller.cancel(request.owner, task.id, by, force=wanted.force)
    return with_field(response, "children", response_of(CancelledChildrenResponse, children))


@route(operations.RUN)
def run_task(request: Request) -> Response:
    """Run a task now, if it has not started."""
    run_now = composed(TaskServices).control.run_now
    return _response(request, run_now(request.owner, request.task_id, request.version, request.attribution))


@route(operations.RETRY)
def retry_task(request: Request) -> Response:
    """Retry a failed task."""
    retry = composed(TaskServices).control.retry
    return _response(request, retry(request.owner, request.task_id, request.version, request.attribution))


@route(operations.ROLL_BACK)
def rollback_task(request: Request) -> Response:
    """Roll back a task that has succeeded or failed."""
    roll_back = composed(TaskServices).control.roll_back
    return _response(request, roll_back(request.owner, request.task_id, request.version, request.attribution))


@route(operations.SIGNAL)
def signal_task(request: Request) -> Response:
    """Approve or reject a task that waits for an approval."""
    # Few requests are decisions, so the module is imported only for decisions.
    from duetime.services.tasks.approvals import Decision  # noqa: PLC0415 - see the line above

    signal = operations.signal(request.document())
    decision, by = Decision(signal.approve, signal.payload), request.attributed(signal.reason)
    decide = composed(TaskServices).approvals.decide
    return _response(request, decide(request.owner, request.task_id, decision, request.version, by))


@route(operations.NOTIFY)
def notify_task(request: Request) -> Response:
    """Record the end of an attempt that its target reports."""
    notice = operations.notice(request.document())
    task = composed(TaskServices).attempt_reports.notify(request.owner, request.task_id, notice.fence, notice.ending)
    return _response(request, task)


@route(operations.HEARTBEAT)
def heartbeat_task(request: Request) -> Response:
    """Record a heartbeat."""
    return _reported(request, operations.heartbeat(request.document()))


@route(operations.PROGRESS)
def report_progress(request: Request) -> Response:
    """Record progress."""
    return _reported(request, operations.progress(request.document()))


@route(operations.LIST_ATTEMPTS)
def list_task_attempts(request: Request) -> Response:
    """Read a task's attempts."""
    task = composed(TaskServices).reader.record(request.owner, request.task_id)
    older = composed(CoreServices).stores.contents.attempts_of(task.id)
    return answer(json_text(history.attempts(task, older, composed(CoreServices).tracebacks.find(task.id))))


@route(operations.LIST_STEPS)
def list_task_steps(request: Request) -> Response:
    """Read the stored steps of a task."""
    task = composed(TaskServices).reader.record(request.owner, request.task_id)
    return answer(json_text(history.steps(composed(CoreServices).steps.list_of(task.id))))


@route(operations.LIST_EVENTS)
def list_task_events(request: Request) -> Response:
    """Read the events of a task."""
    task = composed(TaskServices).reader.record(request.owner, request.task_id)
    return answer(json_text(history.task_events(task, composed(CoreServices).stores.contents.attempts_of(task.id))))


@route(operations.QUERY)
def query_task(request: Request) -> Response:
    """Send a query to a task's endpoint."""
    query = operations.query(request.document())
    reply = composed(TaskServices).target_queries.ask(request.owner, request.task_id, query)
    return answer(target_reply_text(reply.status, reply.body))


def _reported(request: Request, report: Report) -> Response:
    task = composed(TaskServices).attempt_reports.heartbeat(
        request.owner, request.task_id, report.fence, report.progress
    )
    return _response(request, task)


def _response(request: Request, task: Task) -> Response:
    return task_response(composed(TaskServices).reader.with_contents(task), request.operation.returns.status)
