"""What pausing, resuming and stopping change in a record, as it was last read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import ConditionFailed
from duetime.domain.errors import StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.tasks.action_history import Action, ActionRecord, ActorType, Attribution
from duetime.domain.tasks.states import GOING_ON, LEGAL, Move, State
from duetime.domain.tasks.targets import TopologyTarget, pull_queue_of
from duetime.domain.tasks.task import RequestedAction

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
    Move.RERUN: "retried",
    Move.REQUEST_ROLLBACK: "rolled back",
    Move.CANCEL: "cancelled",
    Move.CHANGE: "resumed",
    Move.REQUEST_STOP: "asked for that",
}
"""What a move does to a task, in the words of a refusal."""


ASKED = {
    RequestedAction.PAUSE: (Action.PAUSE_REQUESTED, "paused"),
    RequestedAction.CANCEL: (Action.CANCEL_REQUESTED, "cancelled"),
}
"""How a request to a running attempt is recorded, and what is refused if there is none."""
NO_EXPIRY: TaskChanges = {"expires_seconds": None}
"""What a request to run a task now, or to try it again, changes: whoever makes it wants it to run, however late."""


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """What a user wants done with a task.

    Attributes:
        action: what is done.
        version: the only version of the record that is meant; `None` for any.
        by: who asks, and why.
        sets_of: what that sets in the record as it was last read.
        nodes: of a retry of a topology, the nodes that were chosen to run again.
    """

    action: Action
    version: int | None
    by: Attribution
    sets_of: Callable[[Task], TaskChanges]
    nodes: tuple[str, ...] = ()

    def changes(self, task: Task, now: Millis) -> TaskChanges:
        """All that its write sets: the record of the action, too."""
        return {**self.sets_of(task), **recorded(task, self.action, self.by, now, nodes=self.nodes)}

    def after_rejection(self, task: Task) -> Task:
        """The task as it is, if this request was carried out before its write was sent again.

        Raises:
            VersionMismatch: it was not.
        """
        if is_repeated(task, self.action, self.version, self.by, self.nodes):
            return task
        raise VersionMismatch(task)


def require_legal(task: Task, move: Move) -> None:
    """Refuse a move that the state of a task does not allow.

    Raises:
        TaskNotFound: its user had it deleted.
        StateConflict: its state does not allow it.
    """
    if task.erased:
        raise TaskNotFound(task.id)
    if task.state not in LEGAL[move].sources:
        raise StateConflict(task, DONE.get(move, move.value))


def require_version(task: Task, version: int | None) -> None:
    """Refuse a task at another version than the one that is meant; `None` means any.

    Raises:
        VersionMismatch: it is at another one.
    """
    if version not in (None, task.version):
        raise VersionMismatch(task)


def stronger(action: RequestedAction, task: Task) -> TaskChanges:
    """Of what is requested now and what was requested before, what prevails: a pause does not replace a cancel."""
    return {"requested_action": RequestedAction.CANCEL if task.requested_action is RequestedAction.CANCEL else action}


def pause_taken_back(task: Task) -> TaskChanges:
    """What is asked no more; somebody else may have taken it back meanwhile, or have asked the attempt to stop."""
    if task.requested_action is not RequestedAction.PAUSE:
        raise StateConflict(task, "resumed")
    return {"requested_action": None}


def is_tried_again(task: Task) -> bool:
    """Whether a task that is no topology is being tried again, or was and has succeeded: a retry has nothing to do.

    One that expired before its first attempt has no attempts; that it was retried tells.
    """
    if isinstance(task.target, TopologyTarget):
        return False
    was_retried = any(each.action is Action.RETRIED for each in task.actions.records)
    if was_retried and task.state is State.SUCCEEDED:
        return True
    return task.state in GOING_ON and (was_retried or bool(task.attempt_history))


def goes_on_at(task: Task) -> Millis:
    """When a paused task goes on."""
    return task.next_at if task.waiting_for is None else task.due_at


def no_pause(task: Task) -> TaskChanges:
    """What a task that is paused or goes on need not be asked any more; what is to stop for good still is."""
    return {"requested_action": None} if task.requested_action is RequestedAction.PAUSE else {}


def needs_new_check(task: Task, sets: TaskChanges) -> bool:
    """Whether a change that leaves its due time alone needs a new check of a task."""
    is_needed_differently = sets.get("lock", task.lock) != task.lock or sets.get("rate", task.rate) != task.rate
    if task.waiting_for is not None and is_needed_differently:
        return True
    # Another queue: the message on the old one is of an older generation, and dropped.
    is_moved = pull_queue_of(task.type, sets.get("target", task.target), task.state) != task.pull_queue
    return is_moved or sets.get("priority", task.priority) != task.priority


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


def recorded(
    task: Task, action: Action, by: Attribution, at: Millis, fields: Iterable[str] = (), nodes: tuple[str, ...] = ()
) -> TaskChanges:
    """What a write that only applies to this version of a record sets, so that it tells of the action."""
    record = ActionRecord(action, at, by, task.version + 1, tuple(sorted(fields)), nodes)
    return {"actions": task.actions.plus(record)}


def is_repeated(task: Task, action: Action, version: int | None, by: Attribution, nodes: tuple[str, ...] = ()) -> bool:
    """Whether an action was carried out on the very version that a request for it names.

    Then it is the same request, sent again since the answer to the first one was lost.
    """
    if version is None:
        return False
    wanted = action, version + 1, by, nodes
    return any((each.action, each.version, each.by, each.nodes) == wanted for each in task.actions.records)


def by_topology(topology: Task) -> Attribution:
    """A topology does it to one of its nodes: for the reason for which something was last done to the topology."""
    last = topology.actions.records[-1:]
    return Attribution(ActorType.TOPOLOGY, reason=last[0].by.reason if last else "")
