"""What is kept of a topology besides its graph and its nodes' tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import EDGES_PER_GROUP
from duetime.domain.tasks.action_history import Action, ActorType
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.node_status import WHOLE, NodeStatus, Reason
from duetime.domain.topologies.run_plan import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

ROLLBACK_FAILED = "rollback_failed"
"""The note of a node whose rollback has failed for good; a `Reason` is one that was cancelled."""
_PAUSES = frozenset({Action.PAUSED, Action.PAUSE_REQUESTED})


@dataclass(frozen=True, slots=True)
class Begun:
    """What never changes of a run, stored before anything of it is created.

    Attributes:
        at: when it began: the home of its nodes' tasks.
        shards: how many shards there were then.
    """

    at: Millis
    shards: int


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a topology has come.

    Attributes:
        runs: its runs, the first one first; the last one is the present one.
        fence: of the attempt at the topology's task that began the present run.
        ran: of the nodes that the present run did not repeat: the number of the run that they ran in.
        opened: whether all tasks of the present run were created and those that may start were released.
        stopped: whether nothing of it may be started any more.
        ended: whether the present run has come to its end.
        dissolved: whether the topology's task ended before that: what had not begun was cancelled.
        join_group: how many parents of a node read each other instead of being counted.
        version: counts its writes; 0 while it is not stored.
    """

    topology: TaskId
    runs: tuple[Begun, ...]
    fence: int
    ran: Mapping[str, int] = field(default_factory=dict)
    opened: bool = False
    stopped: bool = False
    ended: bool = False
    dissolved: bool = False
    join_group: int = EDGES_PER_GROUP
    version: int = 0

    @property
    def number(self) -> int:
        """Number of the present run, from 1."""
        return len(self.runs)

    @property
    def begun_at(self) -> Millis:
        """When the present run began."""
        return self.runs[-1].at

    def number_of(self, key: str) -> int:
        """Number of the run in which a node ran last, or runs now."""
        return self.ran.get(key, self.number)

    def task_id(self, key: str) -> TaskId:
        """The id of the task that a node has now."""
        number = self.number_of(key)
        begun = self.runs[number - 1]
        return Run(self.topology, number, begun.at, begun.shards).task_id(key)


def is_of_present_run(run_state: RunState, task: Task) -> bool:
    """Whether what is kept of a topology is about the run that its task is at, or ended with.

    A retried topology keeps its last run's head until the next run is planned. Before that, nothing of the last run may
    be taken for the next one's.
    """
    if task.is_terminal or task.state is State.ROLLING_BACK or run_state.fence == task.fence:
        # What is rolled back is the run that ended, under whatever fence.
        return True
    return task.reopened_fence is None or run_state.fence > task.reopened_fence


def goes_on(task: Task) -> bool:
    """Whether a topology's task has not ended, and nobody holds or stops it: asked to go on, it stays as it is."""
    return not task.is_terminal and task.state is not State.PAUSED and task.requested_action is None


def was_retried(task: Task, nodes: tuple[str, ...] = ()) -> bool:
    """Whether a topology's task was retried and has not failed since: asked for that again, it stays as it is.

    Args:
        task: the topology's.
        nodes: those that shall run again; empty for what has failed. That they ran again and succeeded does not mean
            that they shall not run once more.
    """
    if nodes:
        return task.rerun_nodes == nodes and not task.is_terminal
    return task.reopened_fence is not None and task.state not in {State.FAILED, State.CANCELLED}


def is_held_by_topology(task: Task) -> bool:
    """Whether a node is held, or asked to pause, because its topology was paused, and not by its user."""
    if task.state is not State.PAUSED and task.requested_action is not RequestedAction.PAUSE:
        return False
    pauses = [each for each in task.actions.records if each.action in _PAUSES]
    return bool(pauses) and pauses[-1].by.actor is ActorType.TOPOLOGY


def status_of(task: Task | None) -> NodeStatus:
    """Where a node stands; one whose task is not there yet is blocked."""
    if task is None:
        return NodeStatus(is_missing=True)
    note = task.node_ref.note if task.node_ref else ""
    return NodeStatus(
        state=task.state,
        reason=Reason(note) if note and note != ROLLBACK_FAILED else None,
        percent=_percent_of(task),
        started_at=task.started_at,
        ended_at=_ended_at(task),
        finished_at=task.finished_at,
        rollback_failed=note == ROLLBACK_FAILED,
        has_result=task.result is not None,
        expires_at=task.expires_at,
        is_stopping=task.requested_action is RequestedAction.CANCEL,
        is_pausing=task.requested_action is RequestedAction.PAUSE,
        is_topology=task.is_topology,
        is_held_by_topology=is_held_by_topology(task),
    )


def _percent_of(task: Task) -> int:
    if task.state is State.SUCCEEDED:
        return WHOLE
    return task.progress.percent if task.progress else 0


def counted_status(task: Task | None, *, is_kept: bool) -> NodeStatus:
    """Where a node stands for its children: one that its user had tried again has failed, as what it was first.

    Args:
        task: the node's.
        is_kept: whether it ended in an earlier run, which a retry has judged.
    """
    status = status_of(task)
    if task is None or task.reopened_at is None or is_kept:
        return status
    return replace(status, state=State.FAILED, reason=None)


def _ended_at(task: Task) -> Millis | None:
    """When the last attempt ended, if there is an outcome and somebody saw it end."""
    if not task.is_terminal or not task.attempt_history or task.attempt_history[-1].outcome is AttemptOutcome.LOST:
        return None
    return task.attempt_history[-1].started_at + task.attempt_history[-1].took
