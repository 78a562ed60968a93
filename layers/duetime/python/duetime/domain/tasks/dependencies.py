"""Defines the dependencies of a task outside a topology: other tasks, and occurrences of schedules."""

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
        nominal: the occurrence's instant in the schedule's timing, before jitter and calendars are applied.
    """

    schedule: str
    nominal: Millis


@frozen
class Dependency:
    """A dependency of a task, which is another task or an occurrence of a schedule.

    Attributes:
        task_id: the task; for an occurrence, the task that was last found for it, or `None` before a task was found.
        occurrence: the occurrence; `None` for a task that was named by its id.
        outcome: the outcome, which is stored if the record may expire before the waiting task starts; `None` while the
            outcome is read from the record.
    """

    task_id: TaskId | None
    occurrence: OccurrenceRef | None = None
    outcome: Outcome | None = None


@frozen
class Dependencies:
    """All dependencies of a task.

    Attributes:
        rule: how the dependencies must end for the task to start.
        is_met: whether the dependencies have let the task start; if so, they are not checked again.
    """

    on: tuple[Dependency, ...]
    rule: TriggerRule = TriggerRule.ALL_SUCCESS
    is_met: bool = False

    @property
    def forgotten(self) -> Dependencies:
        """A copy for a retry, without stored outcomes, so that all outcomes are read again."""
        return replace(self, on=tuple(replace(each, outcome=None) for each in self.on))

    @property
    def task_ids(self) -> list[TaskId]:
        """The ids of the known tasks, without duplicates."""
        return list(dict.fromkeys(each.task_id for each in self.on if each.task_id is not None))
