"""An action on all tasks of an owner that match a filter, executed in bounded pieces."""

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
    from duetime.domain.tasks.creation import IdempotencyKey, TaskChange
    from duetime.domain.tasks.event_waits import Signal
    from duetime.domain.tasks.filters import TaskFilter
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass(frozen=True, slots=True)
class FilterAction:
    """Selects tasks of an owner, and limits how many are processed in one piece.

    Attributes:
        after: id of the last examined task; the bulk operation continues after it.
        after_name: name of the last examined schedule, if the operation is on schedules.
        limit: maximum number of tasks that are cancelled or changed, or that reject it.
        per_second: maximum number of those per second; `None` for no limit.
        is_dry: only count, change nothing.
        until: exclude tasks that were created or ended after this time; `None` for no such limit.
        budget: maximum duration of one piece.
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
        """Whether a task matches; ended tasks match only if the filter names their state."""
        is_asked_for = not task.is_terminal or task.state in self.wanted.states
        return is_asked_for and self.wanted.matches(task) and self._was_there(task)

    def _was_there(self, task: Task) -> bool:
        """Whether a dry run at `until` could have counted the task: it existed, and any end it has came before."""
        if self.until is None:
            return True
        return task.created_at <= self.until and (task.finished_at is None or task.finished_at <= self.until)


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """A user's request.

    Attributes:
        text: the original body in UTF-8; later pieces are decoded from it.
        force: for a cancel, whether to stop running tasks.
        change: for an update, the changes.
        signal: the signal, if it is one; its filter is not used.
        by: who requested it, and why.
    """

    kind: BulkKind
    action: FilterAction
    text: bytes = b""
    force: bool = False
    change: TaskChange | None = None
    by: Attribution = BY_SYSTEM
    signal: Signal | None = None


@dataclass(frozen=True, slots=True)
class EventRequest:
    """An event's request to cancel tasks, or to wake those that wait for it.

    Attributes:
        request: which tasks.
        key: by which a repeated delivery is recognized.
    """

    request: BulkRequest
    key: IdempotencyKey


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The result of one piece of a bulk operation.

    Attributes:
        examined: tasks that were checked.
        matched: examined tasks that match the filter and are open, or failed if the filter asks for failed tasks.
        affected: matched tasks that were cancelled, asked to stop, updated, or retried.
        rejected: matched tasks that could not be changed, by error.
        after: the id after which to continue; `None` if there are no more.
        after_name: the name of the schedule after which to continue; empty if there are no more, or for tasks.
    """

    examined: int
    matched: int
    affected: int
    refused: Mapping[type[RequestError], int]
    after: TaskId | None
    after_name: str = ""
