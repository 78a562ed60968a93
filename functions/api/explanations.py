"""Handlers for explanations. Modules are imported at first use, so that other requests do not wait for the imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.composition import composed
from duetime.composition.tasks import TaskServices
from duetime.contract.explanations import (
    EXPLAIN_SCHEDULE,
    EXPLAIN_TASK,
    PREVIEW_TASK,
    schedule_explanation,
    start_preview,
    task_explanation,
)
from duetime.contract.schedules.decoding import schedule_name
from duetime.contract.tasks.encoding import json_text

from .responses import Response, answer
from .routing import route

if TYPE_CHECKING:
    from duetime.contract.explanations import ScheduleExplanationQuery

    from .requests import Request

# ruff: noqa: PLC0415 - see the docstring


@route(EXPLAIN_TASK)
def explain_task(request: Request) -> Response:
    """Explain why a task has not run yet, or how its time was spent."""
    explainer = composed(TaskServices).explainer
    return answer(json_text(task_explanation(explainer.explain(request.owner, request.task_id))))


@route(PREVIEW_TASK)
def preview_task(request: Request) -> Response:
    """Report when a task would start if it were created now."""
    from duetime.composition.api import LimitServices
    from duetime.contract.tasks.decoding import task_spec
    from duetime.domain.tasks.creation import Order

    order = Order(task_spec(request.document()), parent=request.parent)
    found = composed(LimitServices).previewer.preview(request.owner, order, request.size)
    return answer(json_text(start_preview(found)))


@route(EXPLAIN_SCHEDULE)
def explain_schedule(request: Request[ScheduleExplanationQuery]) -> Response:
    """Explain why a schedule ran or did not run at a time."""
    from duetime.composition.schedules import ScheduleServices

    explainer = composed(ScheduleServices).explainer
    found = explainer.explain(request.owner, schedule_name(request.name), request.query.at)
    return answer(json_text(schedule_explanation(found)))
