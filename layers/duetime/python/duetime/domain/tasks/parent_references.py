"""References of a task to the schedule or the topology that it belongs to."""

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
        CATCH_UP: its timing, and that run was missed: it is made up for.
        MANUAL: a run by request.
        BACKFILL: a backfill of a past period.
    """

    SCHEDULE = "schedule"
    CATCH_UP = "catch_up"
    MANUAL = "manual"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class ScheduleRef:
    """What a task that a schedule placed carries of it.

    Attributes:
        schedule: the schedule's name.
        revision: of the schedule, under which it was placed.
        nominal: the instant that it stands for.
        cause: why it was placed.
        mark: tells the schedule from another one that had its name before.
        reports: whether the schedule wants to hear of its end.
        previous: the instant before `nominal` that the timing means; `None` if there is none.
        next: the instant after it.
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
        """Whether the schedule's timing made it, and nobody's request."""
        return self.cause in {Cause.SCHEDULE, Cause.CATCH_UP}


@dataclass(frozen=True, slots=True)
class NodeRef:
    """Which node of a topology a task is.

    Attributes:
        topology: the id of the topology's task.
        run: number of the topology's run that it was made for, from 1.
        key: the node's name.
        inputs: whether it is given results of its parents.
        note: why it was cancelled, if not by its user, or that its rollback has failed for good; see
            `topologies.head.status_of`.
    """

    topology: TaskId
    run: int
    key: str
    inputs: bool = False
    note: str = ""
