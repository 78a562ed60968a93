"""Computes, as values, the changes that pausing, resuming and stopping make to a task's record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import ConditionFailed
from duetime.domain.errors import StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.tasks.action_history import Action, ActionRecord, ActorType, Attribution
from duetime.domain.tasks.states import GOING_ON, LEGAL, Move, State
from duetime.domain.tasks.targets import TopologyTarget, WaitingTarget, pull_queue_of
from duetime.domain.tasks.task import RequestedAction, fence_of_epoch
from duetime.domain.tasks.task_options import fair_share
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from duetime.domain.conditional_writes import WriteResult
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.times import Millis


DONE: dict[Move, str] = {
    Move.PAUSE: "paused",
    Move.RESUME: "resumed",
    Move.EXPEDITE: "run now",
    Move.REOPEN: "retried",
    Move.BLOCK: "resumed",
    Move.RERUN: "retried",
    Move.REQUEST_ROLLBACK: "rolled back",
    Move.CANCEL: "cancelled",
    Move.CHANGE: "resumed",
    Move.REQUEST_STOP: "asked for that",
}
"""How each move is named in the text of a rejection."""


ASKED = {
    RequestedAction.PAUSE: (Action.PAUSE_REQUESTED, "paused"),
    RequestedAction.CANCEL: (Action.CANCEL_REQUESTED, "cancelled"),
}
"""How a request to a running attempt is recorded, and the text of the rejection if no attempt is running."""
NO_EXPIRY: TaskChanges = {"expires_seconds": None}
"""Changes by a request to run a task now or to retry it, so that the task runs no matter how late it is."""


@frozen
class ControlRequest:
    """A user's request for an action on a task.

    Attributes:
        action: the action.
        version: the required version of the record; `None` for any.
        by: who sent the request, and why.
        sets_of: function that computes the changes from the record as last read.
        nodes: for a retry of a topology, the nodes that were chosen to run again.
    """

    action: Action
    version: int | None
    by: Attribution
    sets_of: Callable[[Task], TaskChanges]
    nodes: tuple[str, ...] = ()

    def changes(self, task: Task, now: Millis) -> TaskChanges:
        """All changes that the request writes, including the record of the action."""
        return {**self.sets_of(task), **recorded(task, self.action, self.by, now, nodes=self.nodes)}

    def after_rejection(self, task: Task) -> Task:
        """Returns the task if this request had already been applied when its write was sent again.

        Raises:
            VersionMismatch: the request was not applied.
        """
        if is_repeated(task, self.action, self.version, self.by, self.nodes):
            return task
        raise VersionMismatch(task)


def require_legal(task: Task, move: Move) -> None:
    """Rejects a move that the state of a task does not allow.

    Raises:
        TaskNotFound: its user has deleted the task.
        StateConflict: its state does not allow the move.
    """
    if task.erased:
        raise TaskNotFound(task.id)
    if task.state not in LEGAL[move].sources:
        raise StateConflict(task, DONE.get(move, move.value))


def require_version(task: Task, version: int | None) -> None:
    """Rejects a task whose version is not the required version; `None` means any version.

    Raises:
        VersionMismatch: the task is at a different version.
    """
    if version not in (None, task.version):
        raise VersionMismatch(task)


def stronger(action: RequestedAction, task: Task) -> TaskChanges:
    """The stronger of the current request and an earlier request. A pause does not replace a cancellation."""
    return {"requested_action": RequestedAction.CANCEL if task.requested_action is RequestedAction.CANCEL else action}


def pause_taken_back(task: Task) -> TaskChanges:
    """Withdraws a pause request, unless another process has withdrawn it or requested a stop in the meantime."""
    if task.requested_action is not RequestedAction.PAUSE:
        raise StateConflict(task, "resumed")
    return {"requested_action": None}


def is_tried_again(task: Task) -> bool:
    """Whether a retry has no effect, because a task that is not a topology is being retried or succeeded after a retry.

    If a task expired before its first attempt, it has no attempts, so its action history shows whether it was retried.
    """
    if isinstance(task.target, TopologyTarget):
        return False
    was_retried = any(each.action is Action.RETRIED for each in task.actions.records)
    if was_retried and task.state is State.SUCCEEDED:
        return True
    if task.state is State.BLOCKED:
        return was_retried
    return task.state in GOING_ON and (was_retried or bool(task.attempt_history))


def resumes_at(task: Task) -> Millis:
    """The time at which a paused task will continue when it is resumed."""
    return task.next_at if task.waiting_for is None else task.due_at


def no_pause(task: Task) -> TaskChanges:
    """Withdraws a pause request from a task that is paused or resumed, but keeps a stop request."""
    return {"requested_action": None} if task.requested_action is RequestedAction.PAUSE else {}


def fence_raised(task: Task, epoch: int) -> TaskChanges:
    """Raises the fence of a reopened task that ended in an earlier epoch; otherwise returns no changes.

    The task may also have been reopened in the table that was lost, and an attempt may have used the next fence there.
    """
    fence = fence_of_epoch(task.fence, epoch)
    return {"fence": fence} if fence != task.fence else {}


def needs_new_check(task: Task, sets: TaskChanges) -> bool:
    """Whether a change that keeps the due time requires a new check for the task."""
    has_other_locks = sets.get("lock", task.lock) != task.lock or sets.get("locks", task.locks) != task.locks
    is_needed_differently = has_other_locks or sets.get("rate", task.rate) != task.rate
    is_needed_differently |= isinstance(task.target, WaitingTarget) and sets.get("target", task.target) != task.target
    if task.waiting_for is not None and is_needed_differently:
        return True
    # If the task moves to another queue or message group, the old message has an older generation and is dropped.
    is_moved = pull_queue_of(task.type, sets.get("target", task.target), task.state) != task.pull_queue
    share = fair_share(task.id, sets.get("fair_key", task.fair_key), sets.get("fair_weight", task.fair_weight))
    return is_moved or share != task.fair_share or sets.get("priority", task.priority) != task.priority


def is_cancelled(task: Task, end: WriteResult) -> bool:
    """Whether an attempt's end was rejected because a cancellation was requested, which is carried out instead.

    Once the request has been acknowledged, the task must not become waiting or paused.

    Args:
        task: the record as known to the attempt.
        end: result of the write.
    """
    stored = end.task
    if not isinstance(end, ConditionFailed) or stored is None:
        return False
    is_requested = stored.requested_action is RequestedAction.CANCEL
    return is_requested and stored.fence == task.fence and stored.state in LEGAL[Move.STOP].sources


def is_awaited_since(task: Task, end: WriteResult) -> bool:
    """Whether an outcome without follow-ups was rejected because another task now waits for the task.

    Args:
        task: the record as known to the writer.
        end: result of the write.
    """
    stored = end.task
    if not isinstance(end, ConditionFailed) or stored is None or task.has_dependents:
        return False
    return stored.has_dependents and stored.fence == task.fence and not stored.is_terminal


def recorded(
    task: Task, action: Action, by: Attribution, at: Millis, fields: Iterable[str] = (), nodes: tuple[str, ...] = ()
) -> TaskChanges:
    """The change that records an action; the write must require this version of the task's record."""
    record = ActionRecord(action, at, by, task.version + 1, tuple(sorted(fields)), nodes)
    return {"actions": task.actions.plus(record)}


def is_repeated(task: Task, action: Action, version: int | None, by: Attribution, nodes: tuple[str, ...] = ()) -> bool:
    """Whether an action was already applied to the version that a request requires.

    In this case, the request was sent again because the first response was lost.
    """
    if version is None:
        return False
    wanted = action, version + 1, by, nodes
    return any((each.action, each.version, each.by, each.nodes) == wanted for each in task.actions.records)


def by_topology(topology: Task) -> Attribution:
    """The attribution for a topology's action on its nodes, with the reason for the latest action on the topology."""
    last = topology.actions.records[-1:]
    return Attribution(ActorType.TOPOLOGY, reason=last[0].by.reason if last else "")
