"""The stored state of a topology's run, apart from its graph and its nodes' tasks, and the state that users see."""

from __future__ import annotations

from dataclasses import field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import EDGES_PER_GROUP
from duetime.domain.tasks.action_history import Action, ActorType
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.join_counters import chunk_of, kept_edges
from duetime.domain.topologies.node_status import WHOLE, NodeStatus, Reason, counts_for
from duetime.domain.topologies.trigger_rules import AFTER_ALL, Counts, Outcome, Verdict, verdict
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from duetime.domain.bulk import BulkOperation
    from duetime.domain.tasks.task import NodeRef, Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.node_status import Statuses


ROLLBACK_FAILED = "rollback_failed"
"""Note of a node whose rollback has failed for good; the notes of cancelled nodes are `Reason`s."""
_PAUSES = frozenset({Action.PAUSED, Action.PAUSE_REQUESTED})


@frozen
class Begun:
    """Constants of a run, which are stored before any of the run's tasks is created.

    Attributes:
        at: when the run started, which is the home of its nodes' tasks.
        shards: number of shards when the run started.
    """

    at: Millis
    shards: int


@frozen
class RunState:
    """The state of a topology.

    Attributes:
        runs: its runs in order; the last run is the current run.
        fence: fence of the topology's attempt that started the current run.
        ran: for each node that the current run does not repeat, the number of the run in which the node ran.
        opened: whether all tasks of the current run have been created, and all tasks that can start have been released.
        stopped: whether no more nodes may start.
        ended: whether the current run has ended.
        dissolved: whether the topology's task ended before the run, so that nodes that had not started were cancelled.
        join_group: number of parents in a group, whose members read each other's records so that they need not be
            counted individually.
        version: number of writes; 0 before the first write.
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
        """Number of the current run, counted from 1."""
        return len(self.runs)

    @property
    def begun_at(self) -> Millis:
        """When the current run started."""
        return self.runs[-1].at

    def number_of(self, key: str) -> int:
        """Number of the latest run in which a node ran or is running."""
        return self.ran.get(key, self.number)

    def task_id(self, key: str) -> TaskId:
        """The id of a node's current task."""
        number = self.number_of(key)
        begun = self.runs[number - 1]
        return Run(self.topology, number, begun.at, begun.shards).task_id(key)

    def has_planned(self, node: TaskId, ref: NodeRef) -> bool:
        """Whether one of the topology's runs has created a node's task.

        Tasks that a lost plan created have other ids.
        """
        if ref.run > self.number:
            return False
        begun = self.runs[ref.run - 1]
        return Run(self.topology, ref.run, begun.at, begun.shards).task_id(ref.key) == node


def is_of_present_run(run_state: RunState, task: Task) -> bool:
    """Whether a topology's stored state is about its task's current run.

    A retried topology keeps the state of its last run until the next run is planned; this old state must not be used
    for the next run.
    """
    if task.is_terminal or task.state is State.ROLLING_BACK or run_state.fence == task.fence:
        # A rollback is part of the run that has ended, whatever the fence is.
        return True
    return task.reopened_fence is None or run_state.fence > task.reopened_fence


def is_in_progress(task: Task) -> bool:
    """Whether a topology's task is open and neither paused nor asked to stop, so that resuming it has no effect."""
    return not task.is_terminal and task.state is not State.PAUSED and task.requested_action is None


def was_retried(task: Task, nodes: tuple[str, ...] = ()) -> bool:
    """Whether a topology's task was retried and has not failed since then, so that another retry has no effect.

    Args:
        task: task of the topology.
        nodes: the nodes to run again; empty for the failed nodes. Chosen nodes that have succeeded again can be retried
            once more.
    """
    if nodes:
        return task.rerun_nodes == nodes and not task.is_terminal
    return task.reopened_fence is not None and task.state not in {State.FAILED, State.CANCELLED}


def is_held_by_topology(task: Task) -> bool:
    """Whether a node's pause or pause request was caused by a pause of its topology, not by a user."""
    if task.state is not State.PAUSED and task.requested_action is not RequestedAction.PAUSE:
        return False
    pauses = [each for each in task.actions.records if each.action in _PAUSES]
    return bool(pauses) and pauses[-1].by.actor is ActorType.TOPOLOGY


def status_of(task: Task | None) -> NodeStatus:
    """The status of a node; a node without a task is blocked."""
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
    """The status of a node as seen by its children. A node that its user retried individually still counts as failed.

    Args:
        task: task of the node.
        is_kept: whether the node ended in an earlier run and a retry keeps its outcome.
    """
    status = status_of(task)
    if task is None or task.reopened_at is None or is_kept:
        return status
    return replace(status, state=State.FAILED, reason=None)


def _ended_at(task: Task) -> Millis | None:
    """When a task's last attempt ended; `None` if the task has no outcome or the time is unknown."""
    if not task.is_terminal or not task.attempt_history or task.attempt_history[-1].outcome is AttemptOutcome.LOST:
        return None
    return task.attempt_history[-1].started_at + task.attempt_history[-1].took


@frozen
class Run:
    """One run of a topology: the first run, or a retry.

    Attributes:
        topology: id of the topology's task.
        number: number of the run, counted from 1.
        begun_at: when the run started; stored before any task is created, because the ids of its nodes' tasks are
            derived from this time.
        shards: number of shards when the run started; stored for the same reason.
    """

    topology: TaskId
    number: int
    begun_at: Millis
    shards: int

    def task_id(self, key: str) -> TaskId:
        """The id of a node's task in this run. A run's nodes are spread over all shards."""
        # Node names contain no NUL character, so the text is unique for each run and node.
        digest = sha256("\0".join((str(self.topology), str(self.number), key)).encode()).digest()
        spread, tail = int.from_bytes(digest[:2], "big"), int.from_bytes(digest[2:10], "big")
        return TaskId.of(self.begun_at, spread % self.shards, tail)


@frozen
class Arrival:
    """Edges in one chunk that have arrived when a run starts, because their parents are kept from an earlier run."""

    child: str
    edges: Mapping[int, Outcome]


def creation_order(graph: Graph, again: Collection[str] | None = None) -> tuple[str, ...]:
    """The nodes whose tasks a run creates, children before parents, so that nodes find their children when they end.

    Args:
        graph: graph of the topology.
        again: the nodes that a retry runs again; `None` for all nodes.
    """
    return tuple(key for key in reversed(graph.order) if again is None or key in again)


def starts_at_once(node: Node) -> bool:
    """Whether a node can start regardless of other nodes."""
    return verdict(node.trigger_rule, Counts(len(node.depends_on))) is Verdict.READY


def is_awaited(graph: Graph, key: str) -> bool:
    """Whether a run's execution waits for a node, because no child is certain to start after the node's end."""
    return not any(graph.by_key[edge.child].trigger_rule in AFTER_ALL for edge in graph.edges_out[key])


def opening(
    graph: Graph, again: Collection[str] | None = None, statuses: Statuses | None = None
) -> Mapping[str, Verdict]:
    """The verdicts on nodes that need not wait once all nodes have been created, parents before children.

    In a first run, all these nodes are ready. In a retry, these nodes include nodes whose verdict depends on no running
    parent. For example, a node under `one_failed` whose parents are all kept is skipped.

    Args:
        graph: graph of the topology.
        again: the nodes that a retry runs again; `None` for all nodes.
        statuses: statuses of the nodes that a retry keeps.
    """
    wanted = graph.by_key.keys() if again is None else set(again)
    kept = graph.by_key.keys() - wanted
    verdicts = {
        key: verdict(graph.by_key[key].trigger_rule, counts_for(graph.by_key[key], statuses or {}, kept))
        for key in graph.order
        if key in wanted
    }
    return {key: found for key, found in verdicts.items() if found is not Verdict.WAIT}


def arrivals(graph: Graph, again: Collection[str], statuses: Statuses, group: int) -> Iterator[Arrival]:
    """The edges from kept nodes; a retry counts these edges before it starts any node.

    Args:
        graph: graph of the topology.
        again: the nodes that run again.
        statuses: statuses of the kept nodes.
        group: number of parents per group (`parent_groups`).
    """
    running = set(again)
    kept = graph.by_key.keys() - running
    for key in creation_order(graph, running):
        chunks: dict[int, dict[int, Outcome]] = {}
        for position, outcome in kept_edges(graph.by_key[key], statuses, kept, group).items():
            chunks.setdefault(chunk_of(position), {})[position] = outcome
        yield from (Arrival(key, edges) for edges in chunks.values())


_MADE_BY = {Outcome.SUCCEEDED: Verdict.READY, Outcome.SKIPPED: Verdict.SKIPPED}
"""The verdict that a node's rule must give for the node to keep a given outcome."""


@frozen
class RetryPlan:
    """The plan of a retry, which lists parents before children.

    Attributes:
        again: nodes that run again, each as a new task.
        kept: nodes that keep their outcome, with their tasks and results.
    """

    again: tuple[str, ...]
    kept: tuple[str, ...]


def retry_plan(graph: Graph, statuses: Statuses, chosen: Collection[str] = ()) -> RetryPlan:
    """Decides which nodes a retry runs again once all nodes have ended.

    A node is kept if it succeeded or was skipped, and if its rule has the same verdict when only kept parents count.
    Therefore, all failed nodes run again. Succeeded nodes run again only if they cleaned up (`all_done`) or stepped in
    (`one_failed`) after a node that runs again. Nodes for which one kept parent is enough (`one_success`) are kept,
    unless they depend on a chosen node.

    Args:
        graph: graph of the topology.
        statuses: statuses of its nodes.
        chosen: nodes that run again in any case, with all their descendants.

    Raises:
        FieldInvalid: a chosen name is not a node.
    """
    require_nodes(graph, chosen)
    wanted = _with_descendants(graph, chosen)
    kept: set[str] = set()
    for key in graph.order:
        if key not in wanted and _stands(graph.by_key[key], statuses, kept):
            kept.add(key)
    again = tuple(key for key in graph.order if key not in kept)
    return RetryPlan(again, tuple(key for key in graph.order if key in kept))


def require_nodes(graph: Graph, names: Iterable[str]) -> None:
    """Rejects names that are not nodes.

    Raises:
        FieldInvalid: a name is not a node.
    """
    for name in names:
        if name not in graph.by_key:
            raise FieldInvalid("nodes", f"there is no node {name!a} to run again", FaultCode.NOT_ALLOWED)


def _with_descendants(graph: Graph, chosen: Collection[str]) -> frozenset[str]:
    """The given nodes and all their direct and indirect descendants."""
    wanted = set(chosen)
    for key in graph.order if wanted else ():
        if key in wanted:
            wanted.update(edge.child for edge in graph.edges_out[key])
    return frozenset(wanted)


def _stands(node: Node, statuses: Statuses, kept: Collection[str]) -> bool:
    outcome, counts = statuses[node.key].outcome, counts_for(node, statuses, kept)
    found = verdict(node.trigger_rule, counts)
    if outcome is Outcome.SKIPPED and node.when is not None and found is Verdict.READY:
        # The node's condition was false, and will be false again if the inputs are unchanged.
        return counts.is_complete
    return outcome in _MADE_BY and found is _MADE_BY[outcome]


@frozen
class View:
    """A topology with its nodes' statuses.

    Attributes:
        run_state: its state; `None` before its start.
        statuses: statuses of all or the requested nodes, in the graph's order.
        operation: the latest bulk operation on its nodes, if the operation is still stored.
    """

    task: Task
    graph: Graph
    run_state: RunState | None
    statuses: Statuses
    operation: BulkOperation | None = None


_NEVER_BEGAN = NodeStatus(State.CANCELLED, Reason.STOPPED, is_missing=True)


def shown_statuses(task: Task, statuses: Statuses) -> Statuses:
    """The status of each node as shown to users.

    A topology can end before all of its nodes have tasks. Nodes without a task will then not start, and are shown like
    other nodes that were stopped before they started.

    Args:
        task: task of the topology.
        statuses: statuses of the nodes, according to the records of their tasks.
    """
    return never_begun(statuses) if task.is_terminal else statuses


def never_begun(statuses: Statuses) -> Statuses:
    """The statuses of a run whose nodes without a task will not start."""
    return {key: _NEVER_BEGAN if status.is_missing else status for key, status in statuses.items()}
