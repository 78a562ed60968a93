"""Filters of bulk operations."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from duetime.contract.tasks.fields import (
    Tags,
)
from duetime.contract.tasks.queries import (
    FinishedAfter,
    FinishedBefore,
    States,
    TaskConditions,
    WantedErrorType,
    WantedSchedule,
)
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import State

WRAPPED = 1
"""Levels of nesting around the update in a body."""


def _as_filter(schema: dict[str, Any]) -> None:
    """Writes omitted times as optional, not as nullable."""
    for field in schema["properties"].values():
        if field.get("format") == "date-time":
            field.pop("default", None)


class Conditions(TaskConditions):
    """Conditions of a filter, as in the parameters of a list."""

    model_config = ConfigDict(json_schema_extra=_as_filter)

    tags: Annotated[Tags, Field(description="Only tasks that have all of these tags.")] = Field(default_factory=dict)
    error_type: WantedErrorType = None
    schedule: WantedSchedule = None

    @property
    def task_filter(self) -> TaskFilter:
        """The filter of the conditions."""
        return replace(self.conditions, tags=self.tags, error_type=self.error_type, schedule=self.schedule)

    @property
    def is_empty(self) -> bool:
        """Whether there are no conditions."""
        return self.task_filter == TaskFilter()


class OpenTaskFilter(Conditions):
    """A filter for tasks that have not ended; a task must meet all conditions."""

    state: Annotated[States, Field(description="Only tasks in this state, or in one of these.")] = ()

    @property
    def task_filter(self) -> TaskFilter:
        """The filter of the conditions."""
        return replace(super().task_filter, states=self.state)


class FailedTaskFilter(Conditions):
    """A filter for failed tasks; a task must meet all conditions."""

    finished_after: FinishedAfter = None
    finished_before: FinishedBefore = None

    @property
    def task_filter(self) -> TaskFilter:
        """The filter of the conditions, always limited to failed tasks."""
        finished = Range(self.finished_after, self.finished_before)
        return replace(super().task_filter, states=(State.FAILED,), finished=finished)

    @property
    def is_empty(self) -> bool:
        """Whether the filter matches every failed task."""
        return self.task_filter == TaskFilter(states=(State.FAILED,))
