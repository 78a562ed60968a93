"""Operations that explain tasks and schedules."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from duetime.contract.explanations import responses
from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.query_parameters import Parameters
from duetime.contract.http.timestamps import instant_of
from duetime.contract.tasks.bodies import TaskCreate
from duetime.contract.tasks.fields import TIME_SCHEMA
from duetime.domain.callers import Role
from duetime.domain.times import Millis


class ScheduleExplanationQuery(Parameters):
    """Parameters of `GET /v1/schedules/{name}/explain`."""

    at: Annotated[
        Millis | None,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(
            description="The time in question: a whole minute stands for all of that minute, others for one second. "
            "The latest past occurrence if left out."
        ),
    ] = None


EXPLAIN_TASK = Operation(
    "explainTask",
    "GET /v1/tasks/{task_id}/explain",
    "Explain why a task waits, or where its time went",
    Returns(responses.TaskExplanationResponse, "The explanation."),
    description="In words and as data: each thing that the task has waited for, with its time, and what it waits for "
    "now: its due time, a lock and who holds it, a switch and who set it, a retry, a worker, its schedule, its "
    "parents. The durations sum to the whole life of the task. It is derived from what is stored, and changes "
    "nothing.",
)
PREVIEW_TASK = Operation(
    "previewTask",
    "POST /v1/tasks/preview",
    "Preview when a task would start",
    Returns(responses.StartPreviewResponse, "When it would start, and why then."),
    description="Takes the body of `createTask` and creates nothing. The answer considers the present state: its due "
    "time, its unique key, quotas, switches, concurrency limits, its lock, its rate, the circuit of its host and the "
    "backlog of its queue. What other tasks do in the meantime can change it. Errors are those of `createTask`.",
    body=TaskCreate,
    is_question=True,
    role=Role.WRITER,
)
EXPLAIN_SCHEDULE = Operation(
    "explainSchedule",
    "GET /v1/schedules/{name}/explain",
    "Explain why a schedule did or did not run at a time",
    Returns(responses.ScheduleExplanationResponse, "The explanation."),
    description="Its occurrence at that time and what became of it: it ran, was skipped, was excluded by a calendar, "
    "was missed, fell into a pause or a change of the clock, or is still to come. Otherwise the nearest occurrences.",
    query=ScheduleExplanationQuery,
)
