"""The result of a topology's run: how its attempt ends, and why."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Stopped, Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND, Millis
from duetime.domain.topologies.next_actions import unhandled
from duetime.domain.topologies.node_status import WHOLE
from duetime.domain.topologies.trigger_rules import TriggerRule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.topologies.graph import Graph, Node
    from duetime.domain.topologies.node_status import NodeStatus, Statuses


_SHOWN = 5
"""Nodes that a reason names; of more it says how many there are."""


def run_result(
    state: State, graph: Graph, statuses: Statuses, *, number: int, is_overdue: bool, outputs: bytes = b""
) -> Ending:
    """How the attempt at a topology's task ends.

    Args:
        state: of the run: terminal.
        graph: its nodes, and for how long it may run.
        statuses: of all nodes.
        number: of the run, from 1.
        is_overdue: whether the run has taken longer than its deadline.
        outputs: the results of nodes that are a part of its own, as a JSON object; empty if it has none.
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
    """How the attempt ends if the results that it shall have are too large together."""
    reason = f"the result with its outputs has at least {size} bytes; {MAX_RESULT_BYTES} are allowed"
    return failure("OutputsTooLarge", reason, retriable=False)


def _reason(graph: Graph, statuses: Statuses, *, is_overdue: bool) -> str:
    """What made the run fail: not what was undone because of that."""
    why = _named([key for key in graph.order if statuses[key].has_failed_itself], "failed")
    why = why or _named([key for key in graph.order if statuses[key].was_taken_back], "was cancelled", "were cancelled")
    if not why and is_overdue:
        why = f"it was not done within {graph.timeout_seconds} s"
    why = why or _named(unhandled(graph, statuses), "failed")
    stuck = [key for key in graph.order if statuses[key].rollback_failed]
    return "; ".join(filter(None, (why, _named(stuck, "could not be rolled back"))))


def _named(keys: Sequence[str], one: str, many: str = "") -> str:
    """What happened to some nodes, by name; nothing if there are none."""
    if len(keys) <= 1:
        return "".join(f"the node {key} {one}" for key in keys)
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return f"the nodes {', '.join(keys[:_SHOWN])}{more} {many or one}"


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The chain of nodes that the end of the run waits for.

    Attributes:
        nodes: their names, from the first to the last.
        seconds: how long they take together: with any number of workers the run cannot take less.
    """

    nodes: tuple[str, ...]
    seconds: float


def counted(statuses: Statuses) -> Mapping[str, int]:
    """How many nodes there are in each state; cancelled ones by their reason, if they have one."""
    return Counter(str(status.reason or status.state) for status in statuses.values())


def percent(graph: Graph, statuses: Statuses) -> int:
    """How far the run has come, 0 to 100, each node weighing as much as it is expected to take.

    What has ended, in whatever way, is done. 100 means that everything has ended.
    """
    if all(status.has_ended for status in statuses.values()):
        return WHOLE
    weights = graph.expected if any(graph.expected.values()) else dict.fromkeys(graph.expected, 1.0)
    done = math.fsum(weights[key] * _done(status) for key, status in statuses.items())
    return min(int(done / math.fsum(weights.values())), WHOLE - 1)


def durations(graph: Graph, statuses: Statuses, now: Millis) -> Mapping[str, float]:
    """How long each node takes, in seconds: as measured if it has ended, as expected if not.

    One that runs longer than expected has taken what it has taken. One that ended without running takes nothing.
    """
    return {key: _duration(graph.expected[key], status, now) for key, status in statuses.items()}


def critical_path(graph: Graph, seconds: Mapping[str, float] | None = None) -> CriticalPath:
    """The critical path, as if every node ran.

    A node starts after the last of its parents; under `one_success` and `one_failed` after the first; under `always` at
    once. Where two ways take equally long, the one is taken whose parent is named first.

    Args:
        graph: the topology's.
        seconds: how long each node takes; what is expected, if it is left out.
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
