"""What happens to the run: from the states of its nodes and what was requested to the next thing to do.

It is asked again after each event and by recovery scans, and takes nothing from what it said before: whoever crashed
half-way through a course finds the rest of it by asking once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.states import NOT_STARTED, STARTABLE, TERMINAL, State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.node_status import Reason
from duetime.domain.topologies.trigger_rules import WHATEVER_HAPPENED, Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.node_status import NodeStatus, Statuses


@dataclass(frozen=True, slots=True)
class NextAction:
    """Where the run stands, and what to do about its nodes now, in the order given.

    Attributes:
        state: of the run; terminal only if there is nothing left to do and nothing to wait for.
        cancel: nodes to be cancelled, with the reason `stopped`; children before parents, so that the end of one
            starts no other.
        stop: nodes that run, and whose stop has not been requested yet.
        pause: nodes that wait for their time and are to be paused, and topologies that run.
        undo: nodes to be rolled back now.
    """

    state: State
    cancel: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    pause: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the run has come to its end."""
        return self.state in TERMINAL


def next_action(
    graph: Graph, statuses: Statuses, requested_action: RequestedAction | None = None, *, overdue: bool = False
) -> NextAction:
    """What to do next.

    A failure under `stop` and `rollback` cancels what has not begun and lets the rest run to its end, with its retries.
    A cancel, or the end of the run's time, also cancels what waits for another attempt and asks what runs to stop.
    Under `rollback`, a failure or the end of its time then rolls back (`to_be_undone`); a cancel does not.

    Args:
        graph: the topology's.
        statuses: where each of its nodes stands.
        requested_action: what its user asks of the topology.
        overdue: whether its deadline has passed.

    Neither a cancel nor a deadline matters if it finds nothing left to take back.
    """
    ended = all(status.has_ended for status in statuses.values())
    if requested_action is RequestedAction.CANCEL and ended and not _was_taken_back(statuses):
        requested_action = None
    at_once = requested_action is RequestedAction.CANCEL or (overdue and not ended)
    if at_once or is_stopped(graph, statuses):
        return _closing(graph, statuses, requested_action, at_once=at_once)
    if ended:
        is_failed = len(unhandled(graph, statuses)) > graph.tolerated_failures
        return NextAction(State.FAILED if is_failed else State.SUCCEEDED)
    if requested_action is RequestedAction.PAUSE:
        return NextAction(State.PAUSED, pause=tuple(key for key in graph.order if _is_to_pause(statuses[key])))
    return NextAction(State.RUNNING)


def is_stopped(graph: Graph, statuses: Statuses) -> bool:
    """Whether a failure has stopped the run: from then on nothing of it may be started."""
    failures = sum(status.is_failure for status in statuses.values())
    return graph.on_failure is not OnFailure.CONTINUE and failures > graph.tolerated_failures


def unhandled(graph: Graph, statuses: Statuses) -> tuple[str, ...]:
    """The nodes whose failure makes the run fail, once all have ended.

    A failure is passed on to the children: one that cannot start counts as failed itself, and one that runs under
    `one_failed` or `one_success` has dealt with it, and answers for itself. Children under `all_done` and `always`
    would have run anyway, so they take nothing over: a node that tidies up hides no failure. Nor do those whose
    condition has skipped them.
    """

    def takes_over(child: str) -> bool:
        is_skipped = statuses[child].outcome is Outcome.SKIPPED
        return not is_skipped and graph.by_key[child].trigger_rule not in WHATEVER_HAPPENED

    return tuple(
        key
        for key in graph.order
        if statuses[key].is_failure and not any(takes_over(edge.child) for edge in graph.edges_out[key])
    )


def _closing(
    graph: Graph, statuses: Statuses, requested_action: RequestedAction | None, *, at_once: bool
) -> NextAction:
    upwards = graph.order[::-1]
    cancel = tuple(
        key for key in upwards if statuses[key].has_not_begun or (at_once and statuses[key].state in NOT_STARTED)
    )
    running = tuple(key for key in upwards if statuses[key].state in {State.PREPARING, State.RUNNING})
    if cancel or running or not _is_settled(statuses):
        stop = tuple(key for key in running if at_once and not statuses[key].is_stopping)
        return NextAction(State.RUNNING, cancel=cancel, stop=stop)
    if graph.on_failure is OnFailure.ROLLBACK and requested_action is not RequestedAction.CANCEL:
        return rollback_action(graph, statuses)
    if any(status.state is State.ROLLING_BACK for status in statuses.values()):
        return NextAction(State.ROLLING_BACK)
    return NextAction(State.CANCELLED if requested_action is RequestedAction.CANCEL else State.FAILED)


def _is_to_pause(status: NodeStatus) -> bool:
    """Whether a pause of the run holds this node: it waits for its time, or is a topology whose own nodes are held."""
    if status.is_topology and status.state is State.RUNNING:
        return not (status.is_pausing or status.is_stopping)
    return status.state in STARTABLE


def _was_taken_back(statuses: Statuses) -> bool:
    """Whether a node was cancelled that could have run."""
    kept = (Reason.SKIPPED, Reason.UPSTREAM_FAILED)
    return any(status.state is State.CANCELLED and status.reason not in kept for status in statuses.values())


def _is_settled(statuses: Statuses) -> bool:
    """Whether every node has ended or is being rolled back."""
    return all(status.has_ended or status.state is State.ROLLING_BACK for status in statuses.values())


def rollback_action(graph: Graph, statuses: Statuses) -> NextAction:
    """The next step of a rollback. It goes no further up once a node's rollback has failed for good.

    Nothing is undone before all nodes have ended: those of a run whose own task has ended may still be stopping.
    """
    if not _is_settled(statuses):
        return NextAction(State.ROLLING_BACK)
    is_stuck = any(status.rollback_failed for status in statuses.values())
    undo = () if is_stuck else undone_next(graph, statuses)
    if undo or any(status.state is State.ROLLING_BACK for status in statuses.values()):
        return NextAction(State.ROLLING_BACK, undo=undo)
    return NextAction(State.FAILED if is_stuck else State.ROLLED_BACK)


def reverse_levels(graph: Graph, among: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Some nodes, those first from which no way leads down to another of them.

    A way counts that leads through other nodes as well.
    """
    below: dict[str, int] = {}
    for key in reversed(graph.order):
        below[key] = max((below[e.child] + (e.child in among) for e in graph.edges_out[key]), default=0)
    return _grouped({key: level for key, level in below.items() if key in among})


def to_be_undone(status: NodeStatus) -> bool:
    """Whether a rollback of the run rolls this node back.

    What succeeded is undone, and what failed after it had begun, because it may have had effects. What never began has
    none, what was rolled back has none left, and one whose rollback failed is left to a person.
    """
    if status.state is State.SUCCEEDED:
        return not status.rollback_failed
    return status.state is State.FAILED and status.started_at is not None and not status.rollback_failed


def undone_next(graph: Graph, statuses: Statuses) -> tuple[str, ...]:
    """The nodes whose rollback may start now: everything that depends on them is undone already."""
    rolling_back = {key for key, status in statuses.items() if status.state is State.ROLLING_BACK}
    wanted = {key for key, status in statuses.items() if to_be_undone(status)}
    first = next(iter(reverse_levels(graph, rolling_back | wanted)), ())
    return tuple(key for key in first if key in wanted)


def _grouped(level_of: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    groups: dict[int, list[str]] = {}
    for key, level in level_of.items():
        groups.setdefault(level, []).append(key)
    return tuple(tuple(groups[level]) for level in sorted(groups))
