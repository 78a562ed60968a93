"""A write of a record, as the table's stream tells of it: what was there before, and what is there now.

A change holds what others may be told, never a payload or a result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.schedules.run_history import Remark
    from duetime.domain.schedules.schedule import ScheduleState
    from duetime.domain.tasks.attempt_records import TaskError
    from duetime.domain.tasks.parents import NodeRef, ScheduleRef
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task import Progress
    from duetime.domain.tasks.task_options import Priority
    from duetime.domain.times import Millis

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSnapshot:
    """A task as one version of its record has it.

    Attributes:
        schedule_ref: the schedule's occurrence that it is; `None` for a task that no schedule placed.
        node_ref: the node of a topology that it is; `None` for a task that is none.
        is_topology: whether it runs a topology.
        erased: its user had it deleted.
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
    finished_at: Millis | None = None
    schedule_ref: ScheduleRef | None = None
    node_ref: NodeRef | None = None
    is_topology: bool = False
    erased: bool = False

    @property
    def lateness(self) -> Millis | None:
        """How long after its due time the first attempt started; `None` before that."""
        return None if self.started_at is None else max(0, self.started_at - self.due_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSnapshot:
    """A schedule as one edition of its record has it.

    Attributes:
        uid: tells it from another one that had its name before.
        version: of its definition, the ETag.
        edition: grows with every write, and goes on growing when the name is used again.
        log: the latest remarks: what did not run, and why.
    """

    owner: str
    name: str
    uid: TaskId
    state: ScheduleState
    version: int
    edition: int
    runs_started: int = 0
    runs_skipped: int = 0
    log: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    """One write of one record. It may be told more than once, and writes of different records in any order.

    Attributes:
        id: of this write: the same each time it is told.
        at: when it was written, in whole seconds.
        before: the record before it; `None` if there was none.
        after: the record after it; `None` if it was removed.
    """

    id: str
    at: Millis
    before: S | None
    after: S | None


TaskChange: TypeAlias = "Change[TaskSnapshot]"
ScheduleChange: TypeAlias = "Change[ScheduleSnapshot]"


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """What one delivery of the stream tells; of each record, its writes are in their order.

    Attributes:
        tasks: the writes of tasks, those that run topologies and their nodes included.
        schedules: the writes of schedules.
    """

    tasks: tuple[TaskChange, ...] = ()
    schedules: tuple[ScheduleChange, ...] = ()
