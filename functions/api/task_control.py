"""The routes by which users and targets steer a task that exists already."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from aws_lambda_powertools.event_handler.api_gateway import Response, Router

from duetime.composition.api import composed
from duetime.contract.http import routes
from duetime.contract.http.etags import version_wanted
from duetime.contract.tasks import attempt_decoding, attempt_history
from duetime.contract.tasks.encoding import json_text, target_reply_text
from duetime.contract.tasks.queries import TargetQuery, no_query, read_query
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Query

from . import requests
from .identity import asked
from .responses import answer, task_response
from .topologies import control_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.contract.http.safe_json import Document
    from duetime.contract.tasks.attempt_decoding import Report
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task

router = Router()  # type: ignore[no-untyped-call] # Powertools leaves its constructor untyped


@router.post(requests.pattern(routes.PAUSE))
def pause_task(task_id: str) -> Response[str]:
    """Hold a task that has not started; ask a running one to pause."""
    result = composed().topology_service.apply_gate(_steered(task_id, composed().task_control.pause))
    return control_response(result, is_done=result.task.state is State.PAUSED)


@router.post(requests.pattern(routes.RESUME))
def resume_task(task_id: str) -> Response[str]:
    """Let a paused task go on."""
    return control_response(
        composed().topology_service.apply_gate(_steered(task_id, composed().task_control.resume)), is_done=True
    )


@router.post(requests.pattern(routes.RUN))
def run_task(task_id: str) -> Response[str]:
    """Have a task that has not started run now."""
    return _response(_steered(task_id, composed().task_control.run_now))


@router.post(requests.pattern(routes.RETRY))
def retry_task(task_id: str) -> Response[str]:
    """Have a failed task tried again."""
    return _response(_steered(task_id, composed().task_control.retry))


@router.post(requests.pattern(routes.ROLLBACK))
def roll_back_task(task_id: str) -> Response[str]:
    """Have an ended task undone."""
    return _response(_steered(task_id, composed().task_control.roll_back), HTTPStatus.ACCEPTED)


@router.post(requests.pattern(routes.NOTIFY))
def notify_task(task_id: str) -> Response[str]:
    """Take the end of an attempt from its target."""
    event, owner = asked(router)
    no_query(requests.query(event))
    notice = attempt_decoding.notice(requests.body(event))
    return _response(composed().task_control.notify(owner, requests.task_id(task_id), notice.fence, notice.ending))


@router.post(requests.pattern(routes.HEARTBEAT))
def heartbeat_task(task_id: str) -> Response[str]:
    """Hear that an attempt is alive."""
    return _reported(task_id, attempt_decoding.heartbeat)


@router.post(requests.pattern(routes.PROGRESS))
def tell_progress(task_id: str) -> Response[str]:
    """Hear how far an attempt has come."""
    return _reported(task_id, attempt_decoding.progress)


@router.get(requests.pattern(routes.ATTEMPTS))
def list_attempts(task_id: str) -> Response[str]:
    """Read the attempt history of a task."""
    event, owner = asked(router)
    no_query(requests.query(event))
    task = composed().task_reader.record(owner, requests.task_id(task_id))
    return answer(json_text(attempt_history.attempts(task, composed().contents.attempts_of(task.id))))


@router.get(requests.pattern(routes.TARGET))
def ask_target(task_id: str) -> Response[str]:
    """Ask the endpoint of a task."""
    event, owner = asked(router)
    query = read_query(TargetQuery, requests.query(event))
    reply = composed().target_queries.ask(owner, requests.task_id(task_id), Query(query.action))
    return answer(target_reply_text(reply.status, reply.body))


def _steered(task_id: str, steer: Callable[[str, TaskId, int | None], Task]) -> Task:
    """The task after what a user asked for, by a request that says no more than at which version."""
    event, owner = asked(router)
    no_query(requests.query(event))
    version = version_wanted(requests.header(event, "If-Match"))
    requests.no_body(event)
    return steer(owner, requests.task_id(task_id), version)


def _reported(task_id: str, read: Callable[[Document], Report]) -> Response[str]:
    event, owner = asked(router)
    no_query(requests.query(event))
    report = read(requests.body(event))
    wanted = requests.task_id(task_id)
    return _response(composed().task_control.heartbeat(owner, wanted, report.fence, report.progress))


def _response(task: Task, status: HTTPStatus = HTTPStatus.OK) -> Response[str]:
    return task_response(composed().task_reader.with_contents(task), status)
