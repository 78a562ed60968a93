"""The outcome of a topology's run, with the results of the nodes that are its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Succeeded
from duetime.domain.tasks.states import State
from duetime.domain.topologies.inputs import InputsTooLarge, Reference, assembled
from duetime.domain.topologies.run_result import outputs_too_large, run_result
from duetime.services.topologies.inputs import results_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.times import Millis
    from duetime.domain.topologies.node_status import Statuses
    from duetime.ports.stores import Stores
    from duetime.services.topologies.repository import TopologyRun


def ending_of(stores: Stores, topology_run: TopologyRun, state: State, statuses: Statuses, now: Millis) -> Ending:
    """How the attempt at a topology's task ends.

    Args:
        stores: where the results of nodes are.
        topology_run: the run; all its nodes have ended.
        state: of the run: terminal.
        statuses: of all nodes.
        now: the time.

    Raises:
        Unavailable: a result could not be read.
    """
    graph, run_state = topology_run.graph, topology_run.run_state
    outputs = b""
    if state is State.SUCCEEDED and graph.is_map:
        return _results_in_order(stores, [Reference(key, run_state.task_id(key)) for key in graph.by_key])
    if state is State.SUCCEEDED and graph.outputs:
        try:
            outputs = assembled(results_of(stores, [Reference(key, run_state.task_id(key)) for key in graph.outputs]))
        except InputsTooLarge as refusal:
            return outputs_too_large(sum(refusal.sizes.values()))
    is_overdue = topology_run.overdue_at is not None and topology_run.overdue_at <= now
    return run_result(state, graph, statuses, number=run_state.number, is_overdue=is_overdue, outputs=outputs)


def _results_in_order(stores: Stores, items: Sequence[Reference]) -> Ending:
    """The end of a map: the results of its items in their order, null for one that has none."""
    found, size = [], len(b"[]")
    for _, result in results_of(stores, items):
        found.append(result or b"null")
        size += len(found[-1]) + len(b",")
        if size > MAX_RESULT_BYTES:
            return outputs_too_large(size)
    return Succeeded(b"[" + b",".join(found) + b"]")
