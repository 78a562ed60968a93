"""Lists a task's history in order, as events about its creation, actions on it, its attempts and its end."""

from __future__ import annotations

import heapq
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.action_history import ActorType, Attribution
from duetime.domain.tasks.attempt_records import SKIPPED, AttemptOutcome
from duetime.domain.tasks.states import LEASED, State
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from duetime.domain.tasks.action_history import ActionRecord
    from duetime.domain.tasks.attempt_records import AttemptRecord
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

_BEFORE_ACTIONS, _ACTION, _AFTER_ACTIONS = range(3)
"""Order of events within the same millisecond, in which an action follows an end, and a start follows an action."""


class EventType(StrEnum):
    """The type of an event.

    Attributes:
        EXPIRED: the task did not start in time, and will no longer start.
        FINISHED: the outcome was stored, and all follow-ups were done.
    """

    CREATED = "created"
    UPDATED = "updated"
    PAUSED = "paused"
    PAUSE_REQUESTED = "pause_requested"
    RESUMED = "resumed"
    RUN_REQUESTED = "run_requested"
    RETRIED = "retried"
    ROLLBACK_REQUESTED = "rollback_requested"
    CANCELLED = "cancelled"
    CANCEL_REQUESTED = "cancel_requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    ATTEMPT_STARTED = "attempt_started"
    ATTEMPT_ENDED = "attempt_ended"
    EXPIRED = "expired"
    FINISHED = "finished"


@frozen
class AttemptPart:
    """The attempt that an event is about; if the event is the attempt's end, also how the attempt ended."""

    attempt: int
    fence: int
    worker: str | None
    line: AttemptRecord | None = None


@frozen
class TaskEvent:
    """One event.

    Attributes:
        at: when the event happened; `None` if unknown, for example for an attempt that was lost with its worker.
        by: the actor; `None` for an attempt's events.
        version: version of the record after the event, if known.
        fields: for an update, the changed fields.
        nodes: for a retry of a topology, the nodes that were chosen to run again.
        state: for the end, the final state.
    """

    type: EventType
    at: Millis | None
    by: Attribution | None = None
    version: int | None = None
    fields: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    attempt: AttemptPart | None = None
    state: State | None = None


def events_of(task: Task, ended_attempts: Iterable[AttemptRecord]) -> Sequence[TaskEvent]:
    """The events of a task, oldest first.

    Clocks differ, so events keep the order in which they were written, regardless of their times.

    Args:
        task: the record.
        ended_attempts: its ended attempts, in order.
    """
    actions = ((_event_of(record), _ACTION) for record in task.actions.records)
    merged = heapq.merge(
        _timed(task.created_at, actions),
        _timed(task.created_at, _attempt_events(task, ended_attempts)),
        key=lambda each: each[0],
    )
    return [_creation(task), *(event for _, event in merged), *_end(task)]


def _timed(at: Millis, events: Iterable[tuple[TaskEvent, int]]) -> Iterator[tuple[tuple[Millis, int], TaskEvent]]:
    """Events in a known order, with times that never decrease."""
    last = (at, 0)
    for event, rank in events:
        last = max(last, (event.at or last[0], rank))
        yield last, event


def _creation(task: Task) -> TaskEvent:
    by = Attribution()
    if task.schedule_ref is not None:
        by = Attribution(ActorType.SCHEDULE)
    elif task.node_ref is not None:
        by = Attribution(ActorType.TOPOLOGY)
    return TaskEvent(EventType.CREATED, task.created_at, by, version=1)


def _event_of(record: ActionRecord) -> TaskEvent:
    kind = EventType(record.action.value)
    return TaskEvent(kind, record.at, record.by, record.version, record.fields, record.nodes)


def _attempt_events(task: Task, ended: Iterable[AttemptRecord]) -> Iterator[tuple[TaskEvent, int]]:
    for line in ended:
        # It is unknown when a lost attempt ran.
        is_lost = line.outcome is AttemptOutcome.LOST
        part = AttemptPart(line.attempt, line.fence, None if is_lost else line.worker)
        if not is_lost:
            yield TaskEvent(EventType.ATTEMPT_STARTED, line.started_at, attempt=part), _AFTER_ACTIONS
        ended_at = None if is_lost else line.started_at + line.took
        part = AttemptPart(part.attempt, part.fence, part.worker, line)
        yield TaskEvent(EventType.ATTEMPT_ENDED, ended_at, attempt=part), _BEFORE_ACTIONS
    if task.state in LEASED and task.lease_expires_at is not None:
        part = AttemptPart(task.attempt, task.fence, task.lease_worker)
        yield TaskEvent(EventType.ATTEMPT_STARTED, task.run_at, attempt=part), _AFTER_ACTIONS


def _end(task: Task) -> Iterator[TaskEvent]:
    if task.cancellation is not None:
        yield _event_of(task.cancellation)
    elif task.state is State.CANCELLED and task.error is not None and task.error.type == SKIPPED:
        actor = ActorType.SYSTEM if task.schedule_ref is None else ActorType.SCHEDULE
        by = Attribution(actor, reason=task.error.message)
        yield TaskEvent(EventType.CANCELLED, task.finished_at, by)
    elif task.state is State.CANCELLED and task.node_ref is not None and task.node_ref.note:
        by = Attribution(ActorType.TOPOLOGY, reason=task.node_ref.note)
        yield TaskEvent(EventType.CANCELLED, task.finished_at, by)
    elif task.has_expired and task.error is not None:
        yield TaskEvent(EventType.EXPIRED, task.finished_at, Attribution(ActorType.SYSTEM, reason=task.error.message))
    if task.is_terminal and task.finished_at is not None:
        yield TaskEvent(EventType.FINISHED, task.finished_at, state=task.state)
