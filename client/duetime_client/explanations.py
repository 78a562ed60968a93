"""Explanations of why a task waits and where its time went, and of why a schedule ran or did not run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same

from duetime_client.open_literals import (  # noqa: TC001 - pydantic reads the annotations
    GateName,
    GateState,
    OccurrenceOutcome,
    TaskState,
)
from duetime_client.task import Failure, ResponseModel


class Gate(ResponseModel):
    """A condition for a task's start, which the task has passed, is waiting for, or has not reached yet."""

    name: GateName
    state: GateState
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    duration_ms: int | None = None
    waits_for: Mapping[str, object] | None = None
    """The lock, switch, circuit or other cause that holds the task at this gate; the keys of other causes are
    `None`."""


class TaskExplanation(ResponseModel):
    """Why a task waits, or where its time went; the durations of its gates sum to `total_ms`."""

    task_id: str
    state: TaskState
    as_of: datetime
    text: str
    since: datetime
    due_at: datetime
    until: datetime
    total_ms: int
    overdue_ms: int
    gates: Sequence[Gate]
    steps: Sequence[str] = ()
    """Names of the steps that the task's handler has completed and the next attempt does not repeat."""


class StartPreview(ResponseModel):
    """When a task would start if it were created now; `expected_start_at` is `None` if a wait has no known end."""

    as_of: datetime
    due_at: datetime
    expected_start_at: datetime | None
    text: str
    reasons: Sequence[Gate]
    """The gates at which the task would wait, in order."""


class ScheduleExplanation(ResponseModel):
    """Why a schedule did or did not run at a given time."""

    schedule: str
    at: datetime
    outcome: OccurrenceOutcome
    text: str
    scheduled_at: datetime | None = None
    local_time: str | None = None
    due_at: datetime | None = None
    task_id: str | None = None
    state: TaskState | None = None
    error: Failure | None = None
    previous_at: datetime | None = None
    next_at: datetime | None = None
