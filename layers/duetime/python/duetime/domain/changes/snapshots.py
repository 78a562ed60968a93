"""What a version of a record says to others: never a payload or a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.tasks.action_history import NO_ACTIONS
from duetime.domain.tasks.task import lateness_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.run_history import CalendarEnd, ExpectationState, Remark
    from duetime.domain.schedules.schedule import ScheduleState
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.action_history import ActionHistory
    from duetime.domain.tasks.attempt_records import TaskError
    from duetime.domain.tasks.parent_references import NodeRef, ScheduleRef
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task import Progress, Task
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSnapshot:
    """A task as one version of its record has it.

    Attributes:
        schedule_ref: the schedule's occurrence that it is; `None` for a task that no schedule placed.
        node_ref: the node of a topology that it is; `None` for a task that is none.
        is_topology: whether it runs a topology.
        definition: the name of the definition that its topology is a run of; `None` if it is none.
        actions: the latest things that were done to it from outside.
        erased: its user had it deleted.
        started_late: its target was called for the first time so late that an event says so.
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
    is_topology: bool = False
    definition: str | None = None
    actions: ActionHistory = NO_ACTIONS
    erased: bool = False

    @property
    def lateness(self) -> Millis | None:
        """How long after its due time the first attempt started, as `lateness_of` has it; `None` before that."""
        return lateness_of(self.started_at, self.due_at, self.created_at, self.schedule_ref, self.actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSnapshot:
    """A schedule as one edition of its record has it.

    Attributes:
        uid: tells it from another one that had its name before.
        version: of its definition, the ETag.
        edition: grows with every write, and goes on growing when the name is used again.
        log: the latest remarks: what did not run, and why.
        expectation: how far what is expected of it was looked into; `None` if nothing is, or not yet.
        calendar_end: the latest `known_until` of one of its calendars that was reported; `None` if none was.
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
    """A task, without what nobody else is told."""
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
        is_topology=task.is_topology,
        actions=task.actions,
        erased=task.erased,
    )


def schedule_snapshot(stored: StoredSchedule) -> ScheduleSnapshot:
    """A schedule, without what its tasks are given."""
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
