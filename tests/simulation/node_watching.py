"""Invariants of nodes under all faults: no node begins after a stop, and children are rolled back before parents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.field_codecs import read_state
from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.tasks.action_history import ActorType
from duetime.domain.tasks.states import State
from duetime.domain.times import MINUTE, SECOND, Millis
from duetime.domain.topologies.graph import OnFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.graph import Graph
    from tests.simulation.fault_simulation import FaultSimulation

_NODE_REF, _FINISHED, _STATE = (ATTRIBUTES[name].name for name in ("node_ref", "finished_at", "state"))
_BEGINNING = frozenset({"prepare", "run"})
_NOT_UNDONE = "rollback_failed"
_OVERDUE = 2 * MINUTE
"""How long after its deadline a topology may end without faults, because its nodes must first be asked to stop."""


class NodeWatching:
    """Watches the order in which nodes begin, stop and are rolled back."""

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._stopped_at: dict[str, Millis] = {}
        self._held_at: dict[str, Millis] = {}
        self._by_hand: set[str] = set()
        self._resumed: set[str] = set()
        self._failed_at: dict[tuple[str, int], Millis] = {}

    # The following methods record users' requests and responses.

    def stopped(self, topology: str) -> None:
        """Record that a topology's cancellation was accepted; from then on, all nodes have the cancel request."""
        self._stopped_at[topology] = self._account.time.now()

    def held(self, topology: str) -> None:
        """Record that a topology's pause was accepted; from then on, all nodes have the pause request."""
        self._held_at[topology] = self._account.time.now()

    def let_go(self, topology: str) -> None:
        """Record that a user sends a request to resume or retry, which may take effect before its response."""
        self._stopped_at.pop(topology, None)
        self._held_at.pop(topology, None)

    # The following methods check what happens.

    def written(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Check a change to a task's record."""
        if _NODE_REF not in new:
            return
        before, after = read_state(old[_STATE]), read_state(new[_STATE])
        if before is State.PAUSED and after is State.SCHEDULED and is_by_user(task_of(new)):
            self._resumed.add(task_of(new).id.text)
        elif after is State.PAUSED:
            self._resumed.discard(task_of(new).id.text)
        if after is State.FAILED and _FINISHED in new and _FINISHED not in old:
            node_ref = task_of(new).node_ref
            if node_ref is not None:
                self._failed_at.setdefault((node_ref.topology.text, node_ref.run), self._account.time.now())
        elif before is State.FAILED and after is not State.FAILED:
            task = task_of(new)
            node_ref = task.node_ref
            if after is State.SCHEDULED:
                self._by_hand.add(task.id.text)
            if node_ref is not None:
                # A user has retried the node, or the node was rolled back, so later events do not follow from the
                # failure alone.
                self._failed_at[node_ref.topology.text, node_ref.run] = 1 << 60

    def began(self, task: Task, phase: str, whole: Task, graph: Graph) -> None:
        """Check a call of a node's target in the current run of its topology."""
        node_ref = task.node_ref
        assert node_ref is not None
        if phase == "rollback" and not is_by_user(task):
            self._check_undone_below(task, whole, graph)
        if phase not in _BEGINNING or task.id.text in self._by_hand:
            # A node that a user retries runs independently of the topology's runs.
            return
        topology, name = node_ref.topology.text, task.id.text
        claimed_at = self._account.watching.claimed_at.get(name, self._account.time.now())
        stopped_at, held_at = self._stopped_at.get(topology), self._held_at.get(topology)
        what = f"{name}, node {node_ref.key} of {topology}, began"
        self._check(stopped_at is None or claimed_at <= stopped_at, f"{what} after its topology was cancelled")
        if task.attempt_history or task.attempt > 1:
            # Nodes that have begun continue to their end, including their retries.
            return
        # A user may resume a single node of a paused topology.
        is_held = held_at is not None and claimed_at > held_at and name not in self._resumed
        self._check(not is_held, f"{what} after its topology was paused")
        failed_at = self._failed_at.get((topology, node_ref.run))
        is_stop = graph.on_failure is not OnFailure.CONTINUE and not graph.tolerated_failures
        is_late = is_stop and failed_at is not None and claimed_at > failed_at
        self._check(not is_late, f"{what} after a failure had stopped its topology")

    def _check_undone_below(self, task: Task, whole: Task, graph: Graph) -> None:
        """Check that a node's dependents are rolled back before the node itself."""
        node_ref, run_state = task.node_ref, self._account.topologies.store.read(whole.id)
        if node_ref is None or run_state is None or run_state.task_id(node_ref.key) != task.id:
            return
        is_rolled_back = whole.state is State.RUNNING and graph.on_failure is OnFailure.ROLLBACK
        # In the state `ROLLING_BACK`, the outer topology rolls this topology back.
        if not (is_rolled_back or whole.state is State.ROLLING_BACK):
            return
        for edge in graph.edges_out[node_ref.key]:
            child = self._account.watching.record(run_state.task_id(edge.child).text)
            note = child.node_ref.note if child is not None and child.node_ref is not None else ""
            has_effects = child is not None and (
                child.state in {State.SUCCEEDED, State.ROLLING_BACK, State.RUNNING, State.PREPARING}
                or (child.state is State.FAILED and child.started_at is not None)
            )
            is_wrong = has_effects and note != _NOT_UNDONE
            state = child and child.state
            self._check(
                not is_wrong, f"{task.id}, node {node_ref.key}, is undone while its child {edge.child} is {state}"
            )

    def check_end(self, whole: Task, graph: Graph, begun_at: Millis) -> None:
        """Check that a topology without control requests and faults ends soon after its deadline."""
        if (
            graph.timeout_seconds is None
            or self._account.faulty
            or whole.id.text in self._account.topologies.controlled
        ):
            return
        late = (whole.finished_at or 0) - begun_at - graph.timeout_seconds * SECOND
        self._check(late <= _OVERDUE, f"{whole.id} ended {late} ms after its deadline")

    def _check(self, holds: bool, violation: str) -> None:  # noqa: FBT001 - what is checked
        self._account.watching.check(holds, violation)


def is_by_user(task: Task) -> bool:
    """Whether the last action on a task was made by a user, and not by the task's topology."""
    return _last_actor(task) is ActorType.USER


def is_by_topology(task: Task) -> bool:
    """Whether the last action on a node's task was made by the node's topology."""
    return _last_actor(task) is ActorType.TOPOLOGY


def _last_actor(task: Task) -> ActorType | None:
    records = task.actions.records
    return records[-1].by.actor if records else None
