"""One schedule on its way through one pass of the trigger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.domain.dispatch.enqueue_plan import ScheduleTimer
    from duetime.domain.schedules.run_history import CalendarEnd
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_spec import TaskSpec
    from duetime.domain.times import Millis
    from duetime.services.schedules.occurrence_tasks import Due


@dataclass(slots=True)
class ExpansionPass:
    """One schedule on its way through one pass.

    Attributes:
        before: as it was read.
        after: as it is to be saved.
        due: the occurrences to place, in order.
        task: what the due occurrences are.
        next_at: when its timing wants it checked next.
        more: whether another pass must follow at once.
        tasks: those that now exist.
        failed: whether it must not be saved, for the store did not answer.
        calendar_end: the end of what a calendar knows that this pass has found.
        broken: whether it failed by a defect, which another try would only repeat.
    """

    timer: ScheduleTimer
    before: StoredSchedule
    after: StoredSchedule
    due: list[Due] = field(default_factory=list)
    next_at: Millis | None = None
    more: bool = False
    task: TaskSpec | None = None
    tasks: list[Task] = field(default_factory=list)
    failed: bool = False
    broken: bool = False
    calendar_end: CalendarEnd | None = None

    @property
    def misses(self) -> int:
        """How many deadlines of what is expected of it this pass has found missed."""
        before, after = self.before.expectation, self.after.expectation
        return (after.misses if after else 0) - (before.misses if before else 0)

    @property
    def alone(self) -> int:
        """How many of the due are placed one by one, before the others: the first, and a missed one in front of it."""
        return 1 + (self.before.owed is not None)
