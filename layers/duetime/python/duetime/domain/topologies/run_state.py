"""What is kept of a topology besides its graph and its nodes' tasks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.node_status import Statuses


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


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a topology: its first, or a retry.

    Attributes:
        topology: the id of the topology's task.
        number: counts its runs, from 1.
        begun_at: when this run began, stored before anything is created: the ids of its nodes' tasks derive from it.
        shards: how many shards there were then, stored likewise.
    """

    topology: TaskId
    number: int
    begun_at: Millis
    shards: int

    def task_id(self, key: str) -> TaskId:
        """The id of the task that a node has in this run. Nodes of one run are spread over all shards."""
        # No node's name holds a NUL, so no two runs and nodes are written alike.
        digest = sha256("\0".join((str(self.topology), str(self.number), key)).encode()).digest()
        spread, tail = int.from_bytes(digest[:2], "big"), int.from_bytes(digest[2:10], "big")
        return TaskId.of(self.begun_at, spread % self.shards, tail)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Edges of one chunk that are counted from the beginning of a run: their parents are kept from an earlier one."""

    child: str
    edges: Mapping[int, Outcome]


def creation_order(graph: Graph, again: Collection[str] | None = None) -> tuple[str, ...]:
    """The nodes whose tasks a run creates, children before parents: whatever ends finds its children there.

    Args:
        graph: the topology's.
        again: the nodes that a retry runs again; all, if it is left out.
    """
    return tuple(key for key in reversed(graph.order) if again is None or key in again)


def starts_at_once(node: Node) -> bool:
    """Whether a node waits for no other, however others end."""
    return verdict(node.trigger_rule, Counts(len(node.depends_on))) is Verdict.READY


def is_awaited(graph: Graph, key: str) -> bool:
    """Whether the execution of a run waits for a node: for those that no child outlasts as long as nothing fails."""
    return not any(graph.by_key[edge.child].trigger_rule in AFTER_ALL for edge in graph.edges_out[key])


def opening(
    graph: Graph, again: Collection[str] | None = None, statuses: Statuses | None = None
) -> Mapping[str, Verdict]:
    """What is decided as soon as all nodes are created, parents before children: those that nothing postpones.

    In a first run these are the nodes that are ready. In a retry there may be others, which no parent that is still to
    run would ever decide: one under `one_failed` whose parents have all been kept is skipped.

    Args:
        graph: the topology's.
        again: the nodes that a retry runs again; all, if it is left out.
        statuses: how the nodes that a retry keeps have ended.
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
    """The edges from kept nodes that a retry counts before it starts any node.

    Args:
        graph: the topology's.
        again: the nodes that run again.
        statuses: how those have ended that are kept.
        group: how many parents a group holds (`parent_groups`).
    """
    running = set(again)
    kept = graph.by_key.keys() - running
    for key in creation_order(graph, running):
        chunks: dict[int, dict[int, Outcome]] = {}
        for position, outcome in kept_edges(graph.by_key[key], statuses, kept, group).items():
            chunks.setdefault(chunk_of(position), {})[position] = outcome
        yield from (Arrival(key, edges) for edges in chunks.values())


_MADE_BY = {Outcome.SUCCEEDED: Verdict.READY, Outcome.SKIPPED: Verdict.SKIPPED}
"""The verdict that a node's rule must have come to for the node to have ended so."""


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """What a retry does, parents before children.

    Attributes:
        again: nodes that run again, each as a new task.
        kept: nodes that stay as they ended, with their tasks and results.
    """

    again: tuple[str, ...]
    kept: tuple[str, ...]


def retry_plan(graph: Graph, statuses: Statuses, chosen: Collection[str] = ()) -> RetryPlan:
    """What runs again when all nodes have ended.

    Kept is a node that succeeded or was skipped, and whose rule says the same when only kept parents count. So
    everything runs again that did not succeed, and of what succeeded only that which had waited for a failure: what
    tidies up (`all_done`) or steps in (`one_failed`) after a node that runs again. What one kept parent sufficed for
    (`one_success`) stays, unless it depends on a chosen node.

    Args:
        graph: the topology's.
        statuses: how its nodes have ended.
        chosen: nodes that run again in any case, with all that depends on them.

    Raises:
        FieldInvalid: a chosen name is no node.
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
    """Refuse names that are no nodes.

    Raises:
        FieldInvalid: one is not.
    """
    for name in names:
        if name not in graph.by_key:
            raise FieldInvalid("nodes", f"there is no node {name!a} to run again", FaultCode.NOT_ALLOWED)


def _with_descendants(graph: Graph, chosen: Collection[str]) -> frozenset[str]:
    """Nodes, and all that depend on them, directly or not."""
    wanted = set(chosen)
    for key in graph.order if wanted else ():
        if key in wanted:
            wanted.update(edge.child for edge in graph.edges_out[key])
    return frozenset(wanted)


def _stands(node: Node, statuses: Statuses, kept: Collection[str]) -> bool:
    outcome, counts = statuses[node.key].outcome, counts_for(node, statuses, kept)
    found = verdict(node.trigger_rule, counts)
    if outcome is Outcome.SKIPPED and node.when is not None and found is Verdict.READY:
        # By its condition, which is false again if all that it was about is as it was.
        return counts.is_complete
    return outcome in _MADE_BY and found is _MADE_BY[outcome]
