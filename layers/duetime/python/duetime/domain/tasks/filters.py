"""Filters, which select an owner's tasks for a list."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.change_events import TaskSnapshot
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.states import State
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@frozen
class Range:
    """A time range, which contains every instant if it has no bounds.

    Attributes:
        after: start of the range, inclusive.
        before: end of the range, exclusive.
    """

    after: Millis | None = None
    before: Millis | None = None

    def holds(self, at: Millis | None) -> bool:
        """Whether an instant is in the range; `None` is in the range only if the range has no bounds."""
        if at is None:
            return self.after is None and self.before is None
        return (self.after is None or at >= self.after) and (self.before is None or at < self.before)


@frozen
class TaskFilter:
    """Conditions of a list, all of which must be met.

    Attributes:
        states: allowed states; empty for any state.
        tags: required keys and values.
        name_contains: a part of the name, ignoring case. No lists are maintained for this condition or for the error
            conditions.
        error_type: error type of the last failed attempt.
        error_contains: a part of the error's type or message, ignoring case.
        schedule: name of the schedule that created the tasks.
        parent: the topology whose nodes match.
        parent_task_id: the task that started the tasks.
        group: the group that the tasks are members of.
        is_topology: whether only topologies match.
        definition: name of the definition that the topologies run.
    """

    states: tuple[State, ...] = ()
    type: str | None = None
    name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    name_contains: str | None = None
    error_type: str | None = None
    error_contains: str | None = None
    schedule: str | None = None
    parent: TaskId | None = None
    parent_task_id: TaskId | None = None
    group: str | None = None
    due: Range = Range()
    created: Range = Range()
    finished: Range = Range()
    is_topology: bool = False
    definition: str | None = None

    def matches(self, task: Task | TaskSnapshot) -> bool:
        """Whether a task meets all conditions."""
        return (
            (not self.states or task.state in self.states)
            and self.type in (None, task.type)
            and self.name in (None, task.name)
            and all(task.tags.get(key) == value for key, value in self.tags.items())
            and (not self.is_topology or task.is_topology)
            and self._matches_references(task)
            and self._matches_times(task)
            and self._matches_text(task)
        )

    def _matches_references(self, task: Task | TaskSnapshot) -> bool:
        error_type = task.error.type if task.error is not None else None
        schedule = task.schedule_ref.schedule if task.schedule_ref is not None else None
        parent = task.node_ref.topology if task.node_ref is not None else None
        return (
            self.error_type in (None, error_type)
            and self.schedule in (None, schedule)
            and self.parent in (None, parent)
            and self.parent_task_id in (None, task.parent_task_id)
            and self.group in (None, task.group)
            and self.definition in (None, task.definition)
        )

    def _matches_text(self, task: Task | TaskSnapshot) -> bool:
        error = "" if task.error is None else f"{task.error.type}: {task.error.message}"
        return _contains(task.name, self.name_contains) and _contains(error, self.error_contains)

    def _matches_times(self, task: Task | TaskSnapshot) -> bool:
        return (
            self.due.holds(task.due_at)
            and self.created.holds(task.created_at)
            and self.finished.holds(task.finished_at)
        )


def _contains(text: str, part: str | None) -> bool:
    return part is None or part.casefold() in text.casefold()


@frozen
class MatchCount:
    """How many tasks match a filter.

    Attributes:
        is_exact: whether all tasks that may match were examined.
        dollars: estimated cost of the matching tasks so far, in dollars.
    """

    tasks: int
    is_exact: bool
    dollars: float
