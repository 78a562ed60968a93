"""Responses about a task's history: events, attempts and steps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from duetime.contract.mapping import response_of
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.responses import (
    AttemptErrorResponse,
    AttemptList,
    AttemptResponse,
    Instant,
    StepList,
    StepResponse,
    TaskErrorResponse,
)
from duetime.domain.limits import MAX_STEPS
from duetime.domain.tasks.action_history import ActorType
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_run import ended_attempts
from duetime.domain.tasks.costs import dollars_of, worker_time
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task_events import EventType, events_of
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.steps import StepResult
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_events import AttemptPart, TaskEvent
    from duetime.domain.tracebacks import AttemptTraceback


class ActorResponse(TypedDict):
    """Who performed an action on a task."""

    kind: Annotated[ActorType, Field(description="The kind of actor.")]
    name: Annotated[
        str | None,
        Field(
            description="The caller's name in the API, the schedule's name, or the topology's id; null for the system."
        ),
    ]


class TaskHistoryEventResponse(TypedDict):
    """An event in the life of a task. Fields that do not apply to the event's type are null."""

    type: Annotated[EventType, Field(description="What happened.")]
    at: Annotated[
        Instant | None, Field(description="When the event happened; null for an attempt that was lost with its worker.")
    ]
    actor: Annotated[
        ActorResponse | None, Field(description="The actor; null for events of an attempt and for `finished`.")
    ]
    reason: Annotated[str | None, Field(description="The reason that the actor gave; null if there is none.")]
    version: Annotated[int | None, Field(description="Version of the task after the event; null if unknown.")]
    fields: Annotated[Sequence[str], Field(description="For an update, the names of the changed fields.")]
    nodes: Annotated[
        Sequence[str],
        Field(description="For a retry of a topology, the names of the nodes that were chosen to run again."),
    ]
    bulk_operation_id: Annotated[
        str | None,
        Field(
            description="The bulk operation that caused the event. An operation that completed at once is not stored "
            "separately."
        ),
    ]
    attempt: Annotated[int | None, Field(description="Number of the attempt.")]
    fence: Annotated[int | None, Field(description="Fence of the attempt.")]
    worker: Annotated[str | None, Field(description="The worker that ran the attempt.")]
    outcome: Annotated[AttemptOutcome | None, Field(description="How the attempt ended.")]
    error: Annotated[TaskErrorResponse | None, Field(description="Why the attempt failed.")]
    state: Annotated[State | None, Field(description="The state that the task ended in.")]


class TaskEventList(TypedDict):
    """The events of a task, oldest first."""

    events: Annotated[Sequence[TaskHistoryEventResponse], Field(description="The events.")]
    dropped: Annotated[
        int,
        Field(description="How many of the oldest actions are no longer listed, because only the latest are kept."),
    ]


def task_events(task: Task, older: Iterable[AttemptRecord]) -> TaskEventList:
    """The response with a task's events.

    Args:
        task: the record.
        older: attempts that did not fit into the record.
    """
    events = events_of(task, ended_attempts(task, older))
    return TaskEventList(events=[_event(each, task) for each in events], dropped=task.actions.dropped)


def _event(event: TaskEvent, task: Task) -> TaskHistoryEventResponse:
    by, part = event.by, event.attempt
    line = None if part is None else part.line
    return response_of(
        TaskHistoryEventResponse,
        event,
        at=instant(event.at),
        actor=None if by is None else _actor(by, task),
        reason=(by.reason or None) if by else None,
        bulk_operation_id=by.operation.text if by and by.operation else None,
        attempt=None if part is None else part.attempt,
        fence=None if part is None else part.fence,
        worker=_worker(part),
        outcome=None if line is None else line.outcome,
        error=None if line is None else response_of(TaskErrorResponse, line.error),
    )


def _worker(part: AttemptPart | None) -> str | None:
    return None if part is None else part.worker or None


def _actor(by: Attribution, task: Task) -> ActorResponse:
    """The actor of an event; the actor's name is taken from other fields of the record where possible."""
    match by.actor:
        case ActorType.USER:
            name: str | None = by.name or task.owner
        case ActorType.SCHEDULE:
            name = task.schedule_ref.schedule if task.schedule_ref else None
        case ActorType.TOPOLOGY:
            name = task.node_ref.topology.text if task.node_ref else None
        case ActorType.SYSTEM:
            name = None
    return ActorResponse(kind=by.actor, name=name)


def steps(done: Iterable[StepResult]) -> StepList:
    """The response with the steps of a task."""
    return StepList(steps=[_step(step) for step in islice(done, len(Phase) * MAX_STEPS)])


def _step(step: StepResult) -> StepResponse:
    return response_of(StepResponse, step, duration_ms=step.took, result=json.loads(step.result))


def attempts(task: Task, older: Iterable[AttemptRecord], traceback: AttemptTraceback | None = None) -> AttemptList:
    """The ended attempts of a task, oldest first.

    Args:
        task: the record, which contains the latest attempts.
        older: attempts that did not fit into the record; attempts that the record contains are ignored.
        traceback: traceback of the last attempt that has a traceback.
    """
    return AttemptList(attempts=[_attempt(line, task, traceback) for line in ended_attempts(task, older)])


def _attempt(line: AttemptRecord, task: Task, traceback: AttemptTraceback | None) -> AttemptResponse:
    if line.outcome is AttemptOutcome.LOST:
        return _lost(line)
    return response_of(
        AttemptResponse,
        line,
        function_version=line.function_version or None,
        planned_at=to_iso(line.started_at - line.late),
        lateness_ms=line.late,
        duration_ms=line.took,
        error=_error(line, traceback),
        cost_dollars=dollars_of(worker_time(line, task)),
    )


def _error(line: AttemptRecord, traceback: AttemptTraceback | None) -> AttemptErrorResponse | None:
    if line.error is None:
        return None
    text = traceback.text if traceback is not None and traceback.fence == line.fence else None
    return response_of(AttemptErrorResponse, line.error, traceback=text)


def _lost(line: AttemptRecord) -> AttemptResponse:
    return AttemptResponse(
        attempt=line.attempt,
        fence=line.fence,
        worker=None,
        function_version=None,
        planned_at=None,
        started_at=None,
        lateness_ms=None,
        duration_ms=None,
        outcome=line.outcome,
        error=None,
        cost_dollars=None,
    )
