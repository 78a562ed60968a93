"""The result of a topology's run: the end of its attempt, with the reason."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Stopped, Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND, Millis
from duetime.domain.topologies.next_actions import unhandled
from duetime.domain.topologies.node_status import WHOLE
from duetime.domain.topologies.trigger_rules import TriggerRule
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.node_status import NodeStatus, Statuses


_SHOWN = 5
"""Maximum number of nodes that a reason names; further ones are counted."""


def run_result(
    state: State, graph: Graph, statuses: Statuses, *, number: int, is_overdue: bool, outputs: bytes = b""
) -> Ending:
    """The end of the attempt at a topology's task.

    Args:
        state: of the run; must be terminal.
        graph: the graph with the run's time limit.
        statuses: of all nodes.
        number: of the run, from 1.
        is_overdue: whether the run has exceeded its time limit.
        outputs: the outputs, as a JSON object; empty if there are none.
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
    """The end of an attempt whose outputs are too large in total."""
    reason = f"the result with its outputs has at least {size} bytes; {MAX_RESULT_BYTES} are allowed"
    return failure("OutputsTooLarge", reason, retriable=False)


def _reason(graph: Graph, statuses: Statuses, *, is_overdue: bool) -> str:
    """The cause of the run's failure, excluding nodes that were rolled back because of it."""
    why = _named([key for key in graph.order if statuses[key].has_failed_itself], "failed")
    why = why or _named([key for key in graph.order if statuses[key].was_taken_back], "was cancelled", "were cancelled")
    if not why and is_overdue:
        why = f"it was not done within {graph.timeout_seconds} s"
    why = why or _named(unhandled(graph, statuses), "failed")
    stuck = [key for key in graph.order if statuses[key].rollback_failed]
    return "; ".join(filter(None, (why, _named(stuck, "could not be rolled back"))))


def _named(keys: Sequence[str], one: str, many: str = "") -> str:
    """Names the nodes with a common state; empty if there are none."""
    if len(keys) <= 1:
        return "".join(f"the node {key} {one}" for key in keys)
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return f"the nodes {', '.join(keys[:_SHOWN])}{more} {many or one}"


@frozen
class CriticalPath:
    """The chain of nodes that determines the duration of the run.

    Attributes:
        nodes: their names, in order.
        seconds: their total duration: a lower bound of the run's duration with any number of workers.
    """

    nodes: tuple[str, ...]
    seconds: float


def counted(statuses: Statuses) -> Mapping[str, int]:
    """Number of nodes by state; cancelled ones by reason, if they have one."""
    return Counter(str(status.reason or status.state) for status in statuses.values())


def percent(graph: Graph, statuses: Statuses) -> int:
    """Progress of the run, 0 to 100, with nodes weighted by their expected duration.

    Nodes count as done after any outcome. 100 means that all nodes have ended.
    """
    if all(status.has_ended for status in statuses.values()):
        return WHOLE
    weights = graph.expected if any(graph.expected.values()) else dict.fromkeys(graph.expected, 1.0)
    done = math.fsum(weights[key] * _done(status) for key, status in statuses.items())
    return min(int(done / math.fsum(weights.values())), WHOLE - 1)


def durations(graph: Graph, statuses: Statuses, now: Millis) -> Mapping[str, float]:
    """Duration of each node, in seconds: measured if it has ended, expected otherwise.

    For a node that runs longer than expected, the time so far; for a node that ended without running, 0.
    """
    return {key: _duration(graph.expected[key], status, now) for key, status in statuses.items()}


def critical_path(graph: Graph, seconds: Mapping[str, float] | None = None) -> CriticalPath:
    """The critical path, as if every node ran.

    A node starts after the last of its parents; under `one_success` and `one_failed` after the first; under `always`
    immediately. Of paths with equal duration, the one with the parent that is named first is used.

    Args:
        graph: of the topology.
        seconds: duration of each node; the expected ones by default.
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
    """The parent whose end lets a node start."""
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
