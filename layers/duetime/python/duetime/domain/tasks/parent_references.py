"""References of a task to its schedule or topology."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis


class Cause(StrEnum):
    """Why a schedule created a task.

    Attributes:
        SCHEDULE: its timing.
        CATCH_UP: its timing, for a missed run.
        MANUAL: a run by request.
        BACKFILL: a backfill of a past period.
    """

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    MANUAL = "manual"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class ScheduleRef:
    """The reference of a task to the schedule that created it.

    Attributes:
        schedule: the schedule's name.
        revision: of the schedule when the task was placed.
        nominal: the instant of the occurrence.
        cause: why it was placed.
        mark: distinguishes the schedule from an earlier one with the same name.
        reports: whether the schedule must be notified of its end.
        previous: the instant of the timing before `nominal`; `None` if there is none.
        next: the instant of the timing after it.
        is_buffered: whether it is a backfill's run that waits for the end of the schedule's other runs.
    """

    schedule: str
    revision: int
    nominal: Millis
    cause: Cause = Cause.SCHEDULE
    mark: str = ""
    reports: bool = False
    previous: Millis | None = None
    next: Millis | None = None
    is_buffered: bool = False

    @property
    def is_by_timing(self) -> bool:
        """Whether the schedule's timing created it, not a request."""
        return self.cause in {Cause.SCHEDULE, Cause.CATCH_UP}


@dataclass(frozen=True, slots=True)
class NodeRef:
    """The reference of a task to its node in a topology.

    Attributes:
        topology: the id of the topology's task.
        run: number of the topology's run, from 1.
        key: the node's name.
        inputs: whether it receives results of its parents.
        note: why it was cancelled, if not by its user, or that its rollback has failed for good; see
            `domain.topologies.run_state.status_of`.
    """

    topology: TaskId
    run: int
    key: str
    inputs: bool = False
    note: str = ""
