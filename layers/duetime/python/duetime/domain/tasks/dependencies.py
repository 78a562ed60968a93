"""The dependencies of an ordinary task before its start: other tasks, and occurrences of schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.topologies.trigger_rules import Outcome, TriggerRule
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis


@frozen
class OccurrenceRef:
    """An occurrence of a schedule, which may be in the future.

    Attributes:
        nominal: the instant of the schedule's timing, before jitter and calendars.
    """

    schedule: str
    nominal: Millis


@frozen
class Dependency:
    """One thing that a task waits for: a task, or an occurrence of a schedule.

    Attributes:
        task_id: the task; for an occurrence, the one last found for it, `None` before.
        occurrence: the occurrence; `None` for a task that was named by its id.
        outcome: as remembered in case the task's record expires first; `None` while it is read from the record.
    """

    task_id: TaskId | None
    occurrence: OccurrenceRef | None = None
    outcome: Outcome | None = None


@frozen
class Dependencies:
    """All that a task waits for.

    Attributes:
        rule: how they must end for it to start.
        is_met: whether they have let it start; never checked again after that.
    """

    on: tuple[Dependency, ...]
    rule: TriggerRule = TriggerRule.ALL_SUCCESS
    is_met: bool = False

    @property
    def forgotten(self) -> Dependencies:
        """The same, for a retry: the outcomes are read anew."""
        return replace(self, on=tuple(replace(each, outcome=None) for each in self.on))

    @property
    def task_ids(self) -> list[TaskId]:
        """The known tasks, each once."""
        return list(dict.fromkeys(each.task_id for each in self.on if each.task_id is not None))
