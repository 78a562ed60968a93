"""An action on all tasks of an owner that match a filter, in bounded pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_PAGE
from duetime.domain.operating_parameters import BULK_STEP
from duetime.domain.tasks.action_history import BY_SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.bulk.operation import BulkKind
    from duetime.domain.errors import RequestError
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.creation import TaskChange
    from duetime.domain.tasks.filters import TaskFilter
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class FilterAction:
    """Which of an owner's tasks are meant, and how many of them at once.

    Attributes:
        after: the last id that was examined before; the bulk operation goes on behind it.
        after_name: the last schedule that was examined before, where schedules are meant.
        limit: most tasks that are cancelled or changed, or that reject it.
        per_second: most of them a second; `None` for as fast as it goes.
        is_dry: nothing is done, only counted.
        until: tasks that were created later, or ended later, are not meant; `None` for no such limit.
        budget: how long a piece goes on.
    """

    wanted: TaskFilter
    after: TaskId | None = None
    descending: bool = True
    limit: int = MAX_PAGE
    per_second: float | None = None
    is_dry: bool = False
    until: Millis | None = None
    budget: Millis = BULK_STEP
    after_name: str = ""

    def means(self, task: Task) -> bool:
        """Whether it means a task: what has ended only if its end is requested by name."""
        is_asked_for = not task.is_terminal or task.state in self.wanted.states
        return is_asked_for and self.wanted.matches(task) and self._was_there(task)

    def _was_there(self, task: Task) -> bool:
        """Whether a dry run at that moment may have counted it: it existed, and if it has ended, it had."""
        if self.until is None:
            return True
        return task.created_at <= self.until and (task.finished_at is None or task.finished_at <= self.until)


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """What a user asks for.

    Attributes:
        text: the body as it came, in UTF-8: what goes on later is read from it.
        force: of a cancel: whether a stop of running tasks is requested.
        change: of a change: what is changed.
        by: who asks for it, and why.
    """

    kind: BulkKind
    action: FilterAction
    text: bytes = b""
    force: bool = False
    change: TaskChange | None = None
    by: Attribution = BY_SYSTEM


@dataclass(frozen=True, slots=True)
class FilterResult:
    """What one piece of a bulk operation came to.

    Attributes:
        examined: tasks that were checked.
        matched: of those, tasks that the filter means and that have not ended, or that failed if it means those.
        affected: of those, tasks that were cancelled, asked to stop, updated, or retried.
        rejected: of those, tasks that could not be, by what rejected them.
        after: the id to go on behind; `None` if there are no more.
        after_name: the name of the schedule to go on behind; empty if there are no more, or tasks are meant.
    """

    examined: int
    matched: int
    affected: int
    refused: Mapping[type[RequestError], int]
    after: TaskId | None
    after_name: str = ""
