"""The result of a topology's run: how its attempt ends, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Stopped, Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.topologies.next_actions import unhandled
from duetime.domain.topologies.progress import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.node_status import Statuses

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
