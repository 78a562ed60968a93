"""The outcome of a topology's run, with the results of the nodes that are its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tasks.states import State
from duetime.domain.topologies.inputs import InputsTooLarge, Reference, assembled
from duetime.domain.topologies.run_result import outputs_too_large, run_result
from duetime.services.topologies.inputs import results_of

if TYPE_CHECKING:
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
    if state is State.SUCCEEDED and graph.outputs:
        try:
            outputs = assembled(results_of(stores, [Reference(key, run_state.task_id(key)) for key in graph.outputs]))
        except InputsTooLarge as refusal:
            return outputs_too_large(sum(refusal.sizes.values()))
    is_overdue = topology_run.overdue_at is not None and topology_run.overdue_at <= now
    return run_result(state, graph, statuses, number=run_state.number, is_overdue=is_overdue, outputs=outputs)
