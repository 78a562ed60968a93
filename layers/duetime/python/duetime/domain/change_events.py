"""Events that notify other systems about changes to records. Each event has a documented kind.

The documents below are the contract, from which `docs/reference/events.md` is generated. Fields may be added to a kind;
any other change requires a new version of the kind.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - the documentation reads the annotations
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Generic, TypeAlias, TypedDict, TypeVar

from duetime.domain.tasks.action_history import NO_ACTIONS
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.task import lateness_of
from duetime.domain.times import to_iso
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.run_history import CalendarEnd, ExpectationState, Remark
    from duetime.domain.schedules.schedule import ScheduleState
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.action_history import ActionHistory
    from duetime.domain.tasks.attempt_records import TaskError
    from duetime.domain.tasks.task import NodeRef, Progress, ScheduleRef, Task
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis


class EventKind(StrEnum):
    """The kinds of events, which are the detail types on the event bus."""

    TASK_ENDED = "duetime.task.ended.v1"
    TASK_FAILED = "duetime.task.failed.v1"
    TASK_LATE = "duetime.task.late.v1"
    TOPOLOGY_ENDED = "duetime.topology.ended.v1"
    SCHEDULE_SKIPPED = "duetime.schedule.skipped.v1"
    EXPECTATION_MISSED = "duetime.schedule.expectation_missed.v1"
    CALENDAR_ENDING = "duetime.schedule.calendar_ending.v1"


class EventDetail(TypedDict):
    """Fields of every event."""

    id: Annotated[
        str, "Id that is the same for each copy of an event, because an event may be delivered more than once."
    ]
    owner: Annotated[str, "Owner of the task or schedule."]


class TaskDetail(EventDetail):
    """Fields of every event about a task."""

    task_id: Annotated[str, "Id of the task."]
    type: Annotated[str, "Type of the task."]
    name: Annotated[str, "Name of the task; empty if there is none."]
    state: Annotated[str, "State after the change."]
    version: Annotated[int, "Version after the change. A greater version means a later event of the task."]
    priority: Annotated[str, "`high`, `normal` or `low`."]
    due_at: Annotated[str, "When the task was due, in UTC."]
    started_at: Annotated[str | None, "When the task's first attempt started; null if no attempt has started."]
    lateness_ms: Annotated[
        int | None,
        "How long after the due time the first attempt started, in milliseconds. If the task was created (except by a "
        "schedule), updated or resumed after its due time, the delay counts from then. Null if no attempt has started.",
    ]
    attempt: Annotated[int, "Number of attempts so far."]
    tags: Annotated[Mapping[str, str], "The task's tags."]
    schedule: Annotated[str | None, "Name of the schedule that created the task; null if there is none."]
    topology_id: Annotated[str | None, "Id of the topology whose node the task is; null if the task is not a node."]
    node: Annotated[str | None, "Name of the node in the topology; null if the task is not a node."]


class TaskEnded(TaskDetail):
    """A task has ended: it has succeeded, failed after its last attempt, was rolled back, or was cancelled."""

    error_type: Annotated[str | None, "Type of the error in the task's last failed attempt; null if there is none."]


class TaskFailed(TaskEnded):
    """A task has failed for good and has no attempts left. This event follows the task's `duetime.task.ended.v1`."""


class TaskLate(TaskDetail):
    """The first attempt of a task has started late by a minute or more.

    A task has at most one such event. The event is sent after the target has been called, when the record is next
    written: at the first heartbeat or at the end of the attempt. A task that waits for a lock, a rate or a switch has
    not started.
    """


class TopologyEnded(TaskEnded):
    """A topology has ended; `task_id` is its id. Its nodes ended earlier, each with a separate event."""


class ScheduleSkipped(EventDetail):
    """A schedule has skipped one or more occurrences."""

    schedule: Annotated[str, "Name of the schedule."]
    occurrence: Annotated[str, "The occurrence, or the first of several, as in `skipped_runs`."]
    reason: Annotated[str, "Human-readable reason."]
    skipped_at: Annotated[str, "When the skip was recorded, in UTC."]
    runs_skipped: Annotated[int, "How many occurrences the schedule has skipped so far."]


class ExpectationMissed(EventDetail):
    """An expected run of a schedule (`expect_success_by`, `expect_every_seconds`) has not succeeded in time."""

    schedule: Annotated[str, "Name of the schedule."]
    deadline: Annotated[str, "The missed deadline, in UTC."]
    met_at: Annotated[str | None, "The latest success that met its deadline, in UTC; null if there was none."]
    misses: Annotated[int, "How many deadlines the schedule has missed so far."]


class CalendarEnding(EventDetail):
    """The known dates of a schedule's calendar end within thirty days, so the calendar should be uploaded again."""

    schedule: Annotated[str, "Name of the schedule."]
    calendar: Annotated[str, "Name of the calendar."]
    known_until: Annotated[str, "When the calendar's known times end, in UTC."]


DOCUMENTS: Mapping[EventKind, type] = {
    EventKind.TASK_ENDED: TaskEnded,
    EventKind.TASK_FAILED: TaskFailed,
    EventKind.TASK_LATE: TaskLate,
    EventKind.TOPOLOGY_ENDED: TopologyEnded,
    EventKind.SCHEDULE_SKIPPED: ScheduleSkipped,
    EventKind.EXPECTATION_MISSED: ExpectationMissed,
    EventKind.CALENDAR_ENDING: CalendarEnding,
}
"""The type of the event's detail, by event kind."""


@frozen
class Event:
    """An event for other systems.

    Attributes:
        at: when the event happened, in whole seconds.
        detail: a document of the event's kind.
    """

    kind: EventKind
    at: Millis
    detail: EventDetail


def events_of(changes: ChangeBatch) -> list[Event]:
    """The events for a batch of changes; most changes cause no events."""
    of_tasks = [event for change in changes.tasks for event in _of_task(change)]
    return [*of_tasks, *(event for change in changes.schedules for event in _of_schedule(change))]


def _of_task(change: TaskChange) -> Iterator[Event]:
    before, task = change.before, change.after
    if task is None:
        return
    if task.started_late and not (before is not None and before.started_late):
        # The event id depends only on the task, no matter which write reports the late start.
        yield Event(EventKind.TASK_LATE, change.at, TaskLate(**_task(task.id.text, "late", task)))
    if task.state not in TERMINAL or (before is not None and before.state == task.state):
        return
    error_type = task.error.type if task.error else None
    if task.is_topology:
        ended = TopologyEnded(**_task(change.id, "ended", task), error_type=error_type)
        yield Event(EventKind.TOPOLOGY_ENDED, change.at, ended)
    else:
        yield Event(
            EventKind.TASK_ENDED, change.at, TaskEnded(**_task(change.id, "ended", task), error_type=error_type)
        )
    if task.state is State.FAILED and not task.is_topology:
        failed = TaskFailed(**_task(change.id, "failed", task), error_type=error_type)
        yield Event(EventKind.TASK_FAILED, change.at, failed)


def _task(source: str, what: str, task: TaskSnapshot) -> TaskDetail:
    return TaskDetail(
        id=f"{source}-{what}",
        owner=task.owner,
        task_id=task.id.text,
        type=task.type,
        name=task.name,
        state=task.state.value,
        version=task.version,
        priority=task.priority.value,
        due_at=to_iso(task.due_at),
        started_at=None if task.started_at is None else to_iso(task.started_at),
        lateness_ms=task.lateness,
        attempt=task.attempt,
        tags=task.tags,
        schedule=task.schedule_ref.schedule if task.schedule_ref else None,
        topology_id=task.node_ref.topology.text if task.node_ref else None,
        node=task.node_ref.key if task.node_ref else None,
    )


def _of_schedule(change: ScheduleChange) -> Iterator[Event]:
    before, schedule = change.before, change.after
    # A new schedule with the same name has not skipped or missed any occurrence.
    if before is None or schedule is None or before.uid != schedule.uid:
        return
    yield from _of_skips(change, before, schedule)
    missed, known = schedule.expectation, before.expectation
    if missed is not None and missed.missed_at is not None and missed.misses > (known.misses if known else 0):
        event = ExpectationMissed(
            id=f"{change.id}-missed",
            owner=schedule.owner,
            schedule=schedule.name,
            deadline=to_iso(missed.missed_at),
            met_at=None if missed.met_at is None else to_iso(missed.met_at),
            misses=missed.misses,
        )
        yield Event(EventKind.EXPECTATION_MISSED, change.at, event)
    if schedule.calendar_end is not None and schedule.calendar_end != before.calendar_end:
        end = schedule.calendar_end
        ending = CalendarEnding(
            id=f"{change.id}-calendar",
            owner=schedule.owner,
            schedule=schedule.name,
            calendar=end.name,
            known_until=to_iso(end.known_until),
        )
        yield Event(EventKind.CALENDAR_ENDING, change.at, ending)


def _of_skips(change: ScheduleChange, before: ScheduleSnapshot, schedule: ScheduleSnapshot) -> Iterator[Event]:
    if schedule.runs_skipped <= before.runs_skipped:
        return
    for number, remark in enumerate(remark for remark in schedule.log if remark.key and remark not in before.log):
        detail = ScheduleSkipped(
            id=f"{change.id}-skipped-{number}",
            owner=schedule.owner,
            schedule=schedule.name,
            occurrence=remark.key,
            reason=remark.note,
            skipped_at=to_iso(remark.at),
            runs_skipped=schedule.runs_skipped,
        )
        yield Event(EventKind.SCHEDULE_SKIPPED, change.at, detail)


S = TypeVar("S")


@frozen
class Change(Generic[S]):
    """One write of one record.

    A write may be delivered more than once, and writes of different records arrive in any order.

    Attributes:
        id: id of the write, which is the same for each delivery.
        at: when the record was written, in whole seconds.
        before: the record before the write; `None` if there was no record.
        after: the record after the write; `None` if the record was removed.
    """

    id: str
    at: Millis
    before: S | None
    after: S | None


TaskChange: TypeAlias = "Change[TaskSnapshot]"
ScheduleChange: TypeAlias = "Change[ScheduleSnapshot]"


@frozen
class ChangeBatch:
    """One delivery from the stream. The writes of each record are in order.

    Attributes:
        tasks: writes of tasks, including topologies and nodes.
        schedules: writes of schedules.
    """

    tasks: tuple[TaskChange, ...] = ()
    schedules: tuple[ScheduleChange, ...] = ()


@frozen(kw_only=True)
class TaskSnapshot:
    """A task in one version of its record.

    Attributes:
        schedule_ref: the schedule occurrence that it runs; `None` if it has none.
        node_ref: the node of a topology that it runs; `None` if it is not a node.
        parent_task_id: the task that started it; `None` if no task did.
        group: id of the group that it is a member of; `None` if it is in no group.
        is_topology: whether it runs a topology.
        definition: name of the definition that it runs; `None` if it does not run a definition.
        actions: the latest actions that users took on it.
        erased: whether its user deleted it.
        started_late: whether its target was first called so late that an event reports it.
    """

    id: TaskId
    owner: str
    type: str
    state: State
    version: int
    due_at: Millis
    created_at: Millis
    priority: Priority
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    attempt: int = 0
    progress: Progress | None = None
    error: TaskError | None = None
    started_at: Millis | None = None
    started_late: bool = False
    finished_at: Millis | None = None
    schedule_ref: ScheduleRef | None = None
    node_ref: NodeRef | None = None
    parent_task_id: TaskId | None = None
    group: str | None = None
    is_topology: bool = False
    definition: str | None = None
    actions: ActionHistory = NO_ACTIONS
    erased: bool = False

    @property
    def lateness(self) -> Millis | None:
        """How long after the due time the first attempt started (see `lateness_of`); `None` before the start."""
        return lateness_of(self.started_at, self.due_at, self.created_at, self.schedule_ref, self.actions)


@frozen(kw_only=True)
class ScheduleSnapshot:
    """A schedule in one edition of its record.

    Attributes:
        uid: distinguishes it from an earlier schedule with the same name.
        version: version of its definition, which is the ETag.
        edition: number that every write increments; a new schedule with the same name continues the count.
        log: the latest remarks.
        expectation: progress of checking its expectations; `None` without expectations, or before the first check.
        calendar_end: its calendars' last reported `known_until`; `None` if none was reported.
    """

    owner: str
    name: str
    uid: TaskId
    state: ScheduleState
    version: int
    edition: int
    runs_skipped: int = 0
    log: tuple[Remark, ...] = ()
    expectation: ExpectationState | None = None
    calendar_end: CalendarEnd | None = None


def task_snapshot(task: Task) -> TaskSnapshot:
    """The snapshot of a task, without content that is not published."""
    return TaskSnapshot(
        id=task.id,
        owner=task.owner,
        type=task.type,
        state=task.state,
        version=task.version,
        due_at=task.due_at,
        created_at=task.created_at,
        priority=task.priority,
        name=task.name,
        tags=task.tags,
        attempt=task.attempt,
        progress=task.progress,
        error=task.error,
        started_at=task.started_at,
        started_late=task.started_late,
        finished_at=task.finished_at,
        schedule_ref=task.schedule_ref,
        node_ref=task.node_ref,
        parent_task_id=task.parent_task_id,
        group=task.group,
        is_topology=task.is_topology,
        definition=task.definition,
        actions=task.actions,
        erased=task.erased,
    )


def schedule_snapshot(stored: StoredSchedule) -> ScheduleSnapshot:
    """The snapshot of a schedule, without its tasks' payload."""
    return ScheduleSnapshot(
        owner=stored.owner,
        name=stored.name,
        uid=stored.uid,
        state=stored.state,
        version=stored.version,
        edition=stored.incarnation,
        runs_skipped=stored.runs_skipped,
        log=stored.log,
        expectation=stored.expectation,
        calendar_end=stored.calendar_end,
    )
