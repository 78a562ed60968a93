"""Derives the next action, the progress and the result of a topology's run from the states of its nodes.

The next action is recomputed from the current states after each event and by recovery scans, so after a crash it
consists of the actions that are still missing.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Stopped, Succeeded, failure
from duetime.domain.tasks.states import NOT_STARTED, STARTABLE, TERMINAL, State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND, Millis
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.node_status import WHOLE, Reason
from duetime.domain.topologies.trigger_rules import WHATEVER_HAPPENED, Outcome, TriggerRule
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.node_status import NodeStatus, Statuses

_SHOWN = 5
"""Maximum number of nodes that a reason names; other nodes are only counted."""


@frozen
class NextAction:
    """The state of the run, and the next actions on its nodes, in order.

    Attributes:
        state: state of the run, which is terminal only if there is nothing left to do or wait for.
        cancel: nodes to cancel, with the reason `stopped`; children before parents, so that no cancellation starts
            another node.
        stop: running nodes that were not yet asked to stop.
        pause: waiting nodes and running sub-topologies that must be paused.
        undo: nodes to roll back now.
    """

    state: State
    cancel: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    pause: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.state in TERMINAL


def next_action(
    graph: Graph, statuses: Statuses, requested_action: RequestedAction | None = None, *, overdue: bool = False
) -> NextAction:
    """Decides the next actions.

    After a failure, under `stop` and `rollback`, nodes that have not started are cancelled, and all other nodes run to
    their end, including retries. A cancellation or timeout of the run also cancels nodes that wait for a retry, and
    asks running nodes to stop. With `rollback`, nodes are then rolled back after a failure or timeout (`to_be_undone`),
    but not after a cancellation.

    Args:
        graph: graph of the topology.
        statuses: statuses of its nodes.
        requested_action: the user's request to the topology.
        overdue: whether the run's deadline has passed.

    A cancellation or a deadline has no effect if nothing is left to cancel.
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
    """Whether a failure has stopped the run, so that no more nodes may start."""
    failures = sum(status.is_failure for status in statuses.values())
    return graph.on_failure is not OnFailure.CONTINUE and failures > graph.tolerated_failures


def unhandled(graph: Graph, statuses: Statuses) -> tuple[str, ...]:
    """The nodes whose failure makes the run fail, once all nodes have ended.

    A failure is passed on to the node's children. A child that cannot start because of the failure counts as failed
    itself. A child that runs under `one_failed` or `one_success` has handled the failure, so only the child's own
    outcome counts. Children under `all_done` and `always` would have run in any case, so they do not handle the
    failure. For example, a cleanup node does not hide a failure. Children that were skipped because of their condition
    do not handle the failure either.
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
    """Whether to pause this node with the run: it waits for its time, or is a topology with nodes to pause."""
    if status.is_topology and status.state is State.RUNNING:
        return not (status.is_pausing or status.is_stopping)
    return status.state in STARTABLE


def _was_taken_back(statuses: Statuses) -> bool:
    """Whether a node that could have run was cancelled."""
    kept = (Reason.SKIPPED, Reason.UPSTREAM_FAILED)
    return any(status.state is State.CANCELLED and status.reason not in kept for status in statuses.values())


def _is_settled(statuses: Statuses) -> bool:
    """Whether every node has ended or is being rolled back."""
    return all(status.has_ended or status.state is State.ROLLING_BACK for status in statuses.values())


def rollback_action(graph: Graph, statuses: Statuses) -> NextAction:
    """The next step of a rollback, which stops at the level where a node's rollback has failed for good.

    No node is rolled back before all nodes have ended, because nodes may still be stopping when the run's task has
    already ended.
    """
    if not _is_settled(statuses):
        return NextAction(State.ROLLING_BACK)
    is_stuck = any(status.rollback_failed for status in statuses.values())
    undo = () if is_stuck else undone_next(graph, statuses)
    if undo or any(status.state is State.ROLLING_BACK for status in statuses.values()):
        return NextAction(State.ROLLING_BACK, undo=undo)
    return NextAction(State.FAILED if is_stuck else State.ROLLED_BACK)


def reverse_levels(graph: Graph, among: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """Groups the given nodes by level, starting with nodes from which no path leads to another given node.

    Paths may lead through other nodes.
    """
    below: dict[str, int] = {}
    for key in reversed(graph.order):
        below[key] = max((below[e.child] + (e.child in among) for e in graph.edges_out[key]), default=0)
    return _grouped({key: level for key, level in below.items() if key in among})


def to_be_undone(status: NodeStatus) -> bool:
    """Whether a rollback of the run includes this node.

    Nodes that succeeded, or started and then failed, are rolled back because they may have had effects. Other nodes are
    not rolled back: nodes that never started had no effects, rolled-back nodes have no effects left, and failed
    rollbacks require a person's attention.
    """
    if status.state is State.SUCCEEDED:
        return not status.rollback_failed
    return status.state is State.FAILED and status.started_at is not None and not status.rollback_failed


def undone_next(graph: Graph, statuses: Statuses) -> tuple[str, ...]:
    """The nodes whose rollback may start now, because all their descendants have been rolled back."""
    rolling_back = {key for key, status in statuses.items() if status.state is State.ROLLING_BACK}
    wanted = {key for key, status in statuses.items() if to_be_undone(status)}
    first = next(iter(reverse_levels(graph, rolling_back | wanted)), ())
    return tuple(key for key in first if key in wanted)


def _grouped(level_of: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    groups: dict[int, list[str]] = {}
    for key, level in level_of.items():
        groups.setdefault(level, []).append(key)
    return tuple(tuple(groups[level]) for level in sorted(groups))


def run_result(
    state: State, graph: Graph, statuses: Statuses, *, number: int, is_overdue: bool, outputs: bytes = b""
) -> Ending:
    """The result of the attempt of a topology's task.

    Args:
        state: state of the run, which must be terminal.
        graph: the graph with the run's time limit.
        statuses: statuses of all nodes.
        number: number of the run, counted from 1.
        is_overdue: whether the run has exceeded its time limit.
        outputs: the outputs, as a JSON object; empty for no outputs.
    """
    if state is State.SUCCEEDED:
        parts = ",".join(f'"{name}":{count}' for name, count in sorted(counted(statuses).items()))
        head = f'{{"run":{number},"nodes":{{{parts}}}'.encode()
        result = head + b',"outputs":' + outputs + b"}" if outputs else head + b"}"
        return Succeeded(result) if len(result) <= MAX_RESULT_BYTES else outputs_too_large(len(result))
    if state is State.CANCELLED:
        return Stopped()
    why = _reason(graph, statuses, is_overdue=is_overdue)
    if state is State.ROLLED_BACK:
        return failure("RolledBack", f"rolled back after {why}", retriable=False)
    if is_overdue:
        return failure("DeadlineExceeded", f"not done within {graph.timeout_seconds} s", retriable=False)
    return failure("NodesFailed", why, retriable=False)


def outputs_too_large(size: int) -> Ending:
    """The result of an attempt whose outputs are too large in total."""
    reason = f"the result with its outputs has at least {size} bytes; {MAX_RESULT_BYTES} are allowed"
    return failure("OutputsTooLarge", reason, retriable=False)


def _reason(graph: Graph, statuses: Statuses, *, is_overdue: bool) -> str:
    """The cause of the run's failure, which leaves out nodes that were rolled back because of the failure."""
    why = _named([key for key in graph.order if statuses[key].has_failed_itself], "failed")
    why = why or _named([key for key in graph.order if statuses[key].was_taken_back], "was cancelled", "were cancelled")
    if not why and is_overdue:
        why = f"it was not done within {graph.timeout_seconds} s"
    why = why or _named(unhandled(graph, statuses), "failed")
    stuck = [key for key in graph.order if statuses[key].rollback_failed]
    return "; ".join(filter(None, (why, _named(stuck, "could not be rolled back"))))


def _named(keys: Sequence[str], one: str, many: str = "") -> str:
    """Lists nodes that have the same state; empty if there are no nodes."""
    if len(keys) <= 1:
        return "".join(f"the node {key} {one}" for key in keys)
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return f"the nodes {', '.join(keys[:_SHOWN])}{more} {many or one}"


@frozen
class CriticalPath:
    """The chain of nodes that determines the run's duration.

    Attributes:
        nodes: names of the nodes, in order.
        seconds: total duration of the nodes, which is a lower bound on the run's duration, no matter how many workers
            there are.
    """

    nodes: tuple[str, ...]
    seconds: float


def counted(statuses: Statuses) -> Mapping[str, int]:
    """Number of nodes by state; cancelled nodes that have a reason are counted by reason."""
    return Counter(str(status.reason or status.state) for status in statuses.values())


def percent(graph: Graph, statuses: Statuses) -> int:
    """Progress of the run, from 0 to 100, in which nodes are weighted by their expected duration.

    A node counts as done after any outcome, and 100 means that all nodes have ended.
    """
    if all(status.has_ended for status in statuses.values()):
        return WHOLE
    weights = graph.expected if any(graph.expected.values()) else dict.fromkeys(graph.expected, 1.0)
    done = math.fsum(weights[key] * _done(status) for key, status in statuses.items())
    return min(int(done / math.fsum(weights.values())), WHOLE - 1)


def durations(graph: Graph, statuses: Statuses, now: Millis) -> Mapping[str, float]:
    """Duration of each node, in seconds. The duration is measured if the node has ended, and expected otherwise.

    If a node is running longer than expected, its duration is the time so far. If a node ended without running, its
    duration is 0.
    """
    return {key: _duration(graph.expected[key], status, now) for key, status in statuses.items()}


def critical_path(graph: Graph, seconds: Mapping[str, float] | None = None) -> CriticalPath:
    """The critical path, under the assumption that every node runs.

    A node starts after its last parent; under `one_success` and `one_failed`, it starts after its first parent, and
    under `always`, immediately. Of several paths with the same duration, the path through the parent that is named
    first is used.

    Args:
        graph: graph of the topology.
        seconds: duration of each node; the expected duration by default.
    """
    takes = graph.expected if seconds is None else seconds
    ends: dict[str, float] = {}
    waits_for: dict[str, str | None] = {}
    for key in graph.order:
        binding = _binding(graph.by_key[key], ends)
        waits_for[key] = binding
        ends[key] = takes[key] + (ends[binding] if binding is not None else 0.0)
    last: str | None = max(graph.order, key=ends.__getitem__, default=None)
    whole = ends[last] if last is not None else 0.0
    path: list[str] = []
    while last is not None:
        path.append(last)
        last = waits_for[last]
    return CriticalPath(tuple(reversed(path)), whole)


def _binding(node: Node, ends: Mapping[str, float]) -> str | None:
    """The parent whose end allows a node to start."""
    match node.trigger_rule:
        case TriggerRule.ALWAYS:
            return None
        case TriggerRule.ONE_SUCCESS | TriggerRule.ONE_FAILED:
            return min(node.depends_on, key=ends.__getitem__, default=None)
        case _:
            return max(node.depends_on, key=ends.__getitem__, default=None)


def _done(status: NodeStatus) -> int:
    return WHOLE if status.has_ended or status.state is State.ROLLING_BACK else status.percent


def _duration(expected: float, status: NodeStatus, now: Millis) -> float:
    if status.started_at is None:
        return 0.0 if status.has_ended else expected
    ended_at = status.ended_at or status.finished_at
    if ended_at is not None:
        return max(0, ended_at - status.started_at) / SECOND
    return max(expected, (now - status.started_at) / SECOND)
