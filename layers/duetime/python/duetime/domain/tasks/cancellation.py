"""Whether a task's user has requested its cancellation while an attempt was ending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import ConditionFailed
from duetime.domain.tasks.states import LEGAL, Move
from duetime.domain.tasks.task import RequestedAction

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.task import Task


def is_cancelled(task: Task, end: WriteResult) -> bool:
    """Whether the end of an attempt was rejected because its user has asked for a cancel: that is done instead.

    Whoever was answered that it was requested must not find the task waiting or paused.

    Args:
        task: the record as the attempt had it.
        end: what happened to the write.
    """
    stored = end.task
    if not isinstance(end, ConditionFailed) or stored is None:
        return False
    is_requested = stored.requested_action is RequestedAction.CANCEL
    return is_requested and stored.fence == task.fence and stored.state in LEGAL[Move.STOP].sources
