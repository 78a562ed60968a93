"""Brings a topology's nodes to the state that its run requires, at every check and on user requests."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from duetime.domain.bulk import BulkKind
from duetime.domain.errors import RequestError, StateConflict
from duetime.domain.operating_parameters import BULK_INLINE_NODES, ROLLBACK_CHECK_PAUSE
from duetime.domain.tasks.attempt_results import Postponed, Succeeded, failure
from duetime.domain.tasks.control_changes import by_topology
from duetime.domain.tasks.states import LEASED, State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.node_status import Reason, decided
from duetime.domain.topologies.run_progress import NextAction, is_stopped, next_action, rollback_action
from duetime.domain.topologies.run_state import Begun, RunState, is_held_by_topology, is_in_progress, never_begun
from duetime.domain.topologies.trigger_rules import Verdict
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.action_history import Attribution
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.node_status import NodeStatus, Statuses
    from duetime.ports.runtime import Runtime
    from duetime.services.bulk.manage import BulkOperations
    from duetime.services.tasks.control import TaskControl
    from duetime.services.topologies.deletion import Retention
    from duetime.services.topologies.node_transitions import NodeActions
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun


KINDS = {None: BulkKind.RESUME, RequestedAction.PAUSE: BulkKind.PAUSE, RequestedAction.CANCEL: BulkKind.CANCEL}
"""For each request on the topology's task, the kind of bulk operation that applies the request to the nodes."""


@frozen
class NodeRequests:
    """Sends requests to nodes on behalf of their topology; drops requests that a node's state no longer allows."""

    task_control: TaskControl
    bulk_operations: BulkOperations

    def pause(self, topology_run: TopologyRun, key: str) -> None:
        """Pause a node."""
        self._ask(self.task_control.pause, topology_run, key)

    def resume(self, topology_run: TopologyRun, key: str) -> None:
        """Resume a node."""
        self._ask(self._resumed, topology_run, key)

    def resume_version(self, topology_run: TopologyRun, key: str, version: int) -> None:
        """Resume a node, unless its task has a different version by now."""
        self._ask(self._resumed, topology_run, key, version)

    def is_held(self, topology_run: TopologyRun, key: str, status: NodeStatus) -> bool:
        """Whether a node is paused, or is a topology whose nodes were paused but not resumed together with it."""
        if status.state is State.PAUSED or not status.is_topology:
            return status.state is State.PAUSED
        if status.is_pausing or status.state not in LEASED:
            return status.is_pausing
        # The process that resumed the topology may have crashed before passing the request on.
        return self.bulk_operations.is_last_pause(topology_run.run_state.task_id(key))

    def _resumed(self, owner: str, task_id: TaskId, version: int | None, by: Attribution) -> Task:
        try:
            return self.task_control.resume(owner, task_id, version, by)
        except StateConflict as refusal:
            if not is_in_progress(refusal.task):
                raise
            return refusal.task

    def stop(self, topology_run: TopologyRun, key: str) -> None:
        """Ask a running node to stop."""
        self._ask(self.task_control.stop, topology_run, key)

    def _ask(
        self,
        ask: Callable[[str, TaskId, int | None, Attribution], Task],
        topology_run: TopologyRun,
        key: str,
        version: int | None = None,
    ) -> None:
        owner, task_id = topology_run.task.owner, topology_run.run_state.task_id(key)
        try:
            task = ask(owner, task_id, version, by_topology(topology_run.task))
        except RequestError:
            return
        if task.is_topology and task.state in LEASED:
            self._pass_on(task)

    def _pass_on(self, task: Task) -> None:
        """Start a bulk operation that passes a request on to the topology's nodes, regardless of their number."""
        kind = KINDS[task.requested_action]
        earlier = self.bulk_operations.replace_other(task.id, kind)
        if earlier is None or not earlier.is_running:
            self.bulk_operations.start_on(task.owner, task.id, kind, earlier)


_AT_ONCE = 48
"""Number of actions between two checks of the remaining time."""
Work: TypeAlias = "Sequence[Callable[[], object]]"
"""Actions on nodes, in order; each action may be repeated."""


@frozen
class TopologyReconciler:
    """Acts on nodes as the state of the run requires. No state is kept, so the calls are simply repeated after a crash.

    Attributes:
        bulk_operations: ends the nodes that are left of a large topology.
    """

    topology_repository: TopologyRepository
    nodes: NodeActions
    retention: Retention
    node_requests: NodeRequests
    runtime: Runtime
    bulk_operations: BulkOperations

    def reconcile(
        self, topology_run: TopologyRun, known: Mapping[str, NodeStatus] | None = None
    ) -> tuple[NextAction, Statuses]:
        """Determine the state of the run, and do the necessary actions, in the background if there are many.

        Args:
            topology_run: the run, just read.
            known: statuses of nodes that need not be read.
        """
        found, statuses = self._next_action(topology_run, known)
        if statuses:
            self._do_or_hand_over(topology_run, self._work(topology_run, found, statuses))
        return found, statuses

    def work(self, topology_run: TopologyRun) -> Work:
        """Return the actions that a topology's nodes need now, without doing them."""
        found, statuses = self._next_action(topology_run)
        return self._work(topology_run, found, statuses) if statuses else ()

    def suspension(self, topology_run: TopologyRun) -> Work:
        """The actions for a pause, which are the actions of both `work` and `holds`."""
        found, statuses = self._next_action(topology_run)
        return [*self._work(topology_run, found, statuses), *self._holds(topology_run, found, statuses)]

    def holds(self, topology_run: TopologyRun) -> Work:
        """Actions that invalidate releases decided before a pause. Actions already done are also returned."""
        return self._holds(topology_run, *self._next_action(topology_run))

    def resumption(self, topology_run: TopologyRun) -> Work:
        """The actions that resume the nodes that were paused with the run."""
        found, statuses = self._next_action(topology_run)
        if not statuses:
            return ()
        paused = [key for key, status in statuses.items() if self.node_requests.is_held(topology_run, key, status)]
        return [
            *self._work(topology_run, found, statuses),
            *self._repairs(topology_run, found, statuses),
            *(partial(self.node_requests.resume, topology_run, key) for key in paused),
        ]

    def do(self, work: Work, until: Millis | None = None) -> int:
        """Do the actions, several in parallel, while time is left; returns how many actions were begun."""
        done = 0
        while done < len(work) and (until is None or self.runtime.now() < until):
            self.runtime.executor.map(partial(self._do, until), work[done : done + _AT_ONCE])
            done = min(done + _AT_ONCE, len(work))
        return done

    def dissolve(self, task: Task) -> bool:
        """Cancel the nodes that are left of a topology whose task has ended before its run.

        Args:
            task: the topology's ended task; if it has been retried since, nothing is cancelled.

        Returns:
            Whether a bulk operation cancels the nodes, and lets them expire afterwards.
        """
        topology_run = self.topology_repository.read(task.id)
        if topology_run is None:
            return self._mark_ended(task)
        if not topology_run.task.is_terminal:
            return False
        if not topology_run.run_state.ended:
            # The stop is stored before any node is cancelled, because a node that ends in between must not start other
            # nodes.
            self.topology_repository.save(
                topology_run.run_state, lambda run_state: replace(run_state, stopped=True, dissolved=True)
            )
        if self.is_large(topology_run):
            self.bulk_operations.end_topology(topology_run.task.owner, task.id)
            return True
        if not topology_run.run_state.ended:
            self.do(self.work(topology_run))
        return False

    def _mark_ended(self, task: Task) -> bool:
        """Ensure that a plan that has begun, but not yet created its run, finds that the topology has ended."""
        if task.claims:
            begun = Begun(self.runtime.now(), 1)
            over = RunState(task.id, (begun,), task.fence, stopped=True, dissolved=True)
            # If the plan has already created its run, the run is read and cancelled.
            if not self.topology_repository.save(over, lambda known: known).dissolved:
                return self.dissolve(task)
        return False

    def is_large(self, topology_run: TopologyRun) -> bool:
        """Whether a topology has so many nodes that a bulk operation must do the actions on them."""
        return len(topology_run.graph.nodes) > BULK_INLINE_NODES

    def hand_over(self, topology_run: TopologyRun, status: NodeStatus) -> None:
        """Let a bulk operation handle the effects of a node's end on a large topology."""
        stops_at_once = topology_run.graph.on_failure is not OnFailure.CONTINUE
        if status.is_failure and stops_at_once and not topology_run.graph.tolerated_failures:
            # The stop is stored first, because it must be known before a child of this node may start.
            self.topology_repository.save(topology_run.run_state, lambda run_state: replace(run_state, stopped=True))
        # No operation is started for the end of a node that was stopped together with other nodes, or for an end during
        # a pause, because the pause has its own operation.
        is_news = (
            status.reason is not Reason.STOPPED and topology_run.task.requested_action is not RequestedAction.PAUSE
        )
        if is_news:
            self.bulk_operations.end_topology(topology_run.task.owner, topology_run.task.id)

    def repair(self, topology_run: TopologyRun) -> tuple[NextAction, Statuses]:
        """Reconcile, and complete actions that crashes may have interrupted.

        Starts or ends nodes that no longer wait for a parent, and resumes nodes that a past pause still holds.
        """
        found, statuses = self.reconcile(topology_run)
        if not topology_run.task.is_terminal:
            # An interrupted plan of a retry may not have removed the expiry from the nodes that the retry keeps.
            self.retention.keep(topology_run, statuses)
        self.do([*self._repairs(topology_run, found, statuses), *self._releases(topology_run, found, statuses)])
        return found, statuses

    def roll_back(self, topology_run: TopologyRun, until: Millis | None = None) -> tuple[NextAction, Statuses]:
        """Roll back the nodes that are ready, in a topology that is rolled back as a node of another topology."""
        statuses = self.topology_repository.statuses(topology_run)
        if topology_run.run_state.dissolved:
            # Missing nodes count as never begun, because the topology's worker may have been lost before it created
            # them.
            statuses = never_begun(statuses)
        found = rollback_action(topology_run.graph, statuses)
        self.do(self._undone(topology_run, found, statuses), until)
        return found, statuses

    def _next_action(
        self, topology_run: TopologyRun, known: Mapping[str, NodeStatus] | None = None
    ) -> tuple[NextAction, Statuses]:
        if not topology_run.is_present:
            # The topology was retried, so the next run's plan decides about the last run's nodes.
            return NextAction(State.RUNNING), {}
        statuses = self.topology_repository.statuses(topology_run, known)
        overdue = topology_run.overdue_at is not None and topology_run.overdue_at <= self.runtime.now()
        # If the topology's task has ended, its remaining nodes are cancelled, regardless of earlier requests.
        requested_action = (
            RequestedAction.CANCEL if topology_run.task.is_terminal else topology_run.task.requested_action
        )
        return next_action(topology_run.graph, statuses, requested_action, overdue=overdue), statuses

    def _do_or_hand_over(self, topology_run: TopologyRun, work: Work) -> None:
        if len(work) > BULK_INLINE_NODES:
            self.bulk_operations.end_topology(topology_run.task.owner, topology_run.task.id)
        else:
            self.do(work)

    def _work(self, topology_run: TopologyRun, found: NextAction, statuses: Statuses) -> Work:
        if found.cancel or found.stop or is_stopped(topology_run.graph, statuses):
            # The stop is stored before any node is cancelled, because a node that ends in between must not start other
            # nodes.
            self.topology_repository.save(topology_run.run_state, lambda run_state: replace(run_state, stopped=True))
        return [
            *(partial(self.nodes.dismiss, topology_run, key, Reason.STOPPED) for key in found.cancel),
            *(partial(self.node_requests.stop, topology_run, key) for key in found.stop),
            *(partial(self.node_requests.pause, topology_run, key) for key in found.pause),
            *self._undone(topology_run, found, statuses),
        ]

    def _undone(self, topology_run: TopologyRun, found: NextAction, statuses: Statuses) -> Work:
        # Nodes that are not finished still have steps to run, and are rolled back later.
        ready = (key for key in found.undo if statuses[key].finished_at is not None)
        return [partial(self.nodes.undo, topology_run, key) for key in ready]

    def _repairs(self, topology_run: TopologyRun, found: NextAction, statuses: Statuses) -> Work:
        if found.state is not State.RUNNING or not topology_run.run_state.opened or not statuses:
            return ()
        verdicts = decided(topology_run.graph, statuses).items()
        left = (
            (key, verdict)
            for key, verdict in verdicts
            if not (topology_run.run_state.stopped and verdict is Verdict.READY)
        )
        return [partial(self.nodes.act, topology_run, key, verdict) for key, verdict in left]

    def _releases(self, topology_run: TopologyRun, found: NextAction, statuses: Statuses) -> Work:
        """Actions for nodes that the topology still holds although it is running.

        A delayed pause may reach a node after the topology was resumed, and a topology may be resumed while no attempt
        is running.
        """
        held = [key for key, status in statuses.items() if status.is_held_by_topology]
        if found.state is not State.RUNNING or not held:
            return ()
        # If there are many nodes, the next check handles the rest, unless a bulk operation has done so by then.
        tasks = self.topology_repository.read_nodes(topology_run, held[:BULK_INLINE_NODES])
        # The run is read after the nodes, so that a pause that has just held one of these nodes is seen.
        if not self.topology_repository.refreshed(topology_run).starts_nodes:
            return ()
        return [
            partial(self.node_requests.resume_version, topology_run, key, task.version)
            for key, task in tasks.items()
            if is_held_by_topology(task)
        ]

    def _holds(self, topology_run: TopologyRun, found: NextAction, statuses: Statuses) -> Work:
        if found.state is not State.PAUSED or not statuses:
            return ()
        verdicts = decided(topology_run.graph, statuses).items()
        # Missing nodes need no hold, because the plan that creates them reads the run again before it starts any node.
        ready = (key for key, verdict in verdicts if verdict is Verdict.READY and not statuses[key].is_missing)
        return [partial(self._hold, topology_run, key) for key in ready]

    def _hold(self, topology_run: TopologyRun, key: str) -> None:
        if not self.nodes.hold(topology_run, key):
            self.node_requests.pause(topology_run, key)

    def _do(self, until: Millis | None, part: Callable[[], object]) -> None:
        # The time is checked before each action, because a suspended process must not act on outdated decisions.
        if until is None or self.runtime.now() < until:
            part()


_GOES_ON = "its nodes are being rolled back"


@frozen
class TopologyRollback:
    """`duetime.ports.topologies.TopologyRollback`. No state is kept, because each step reads the nodes' states."""

    reconciler: TopologyReconciler

    def step(self, task: Task, until: Millis) -> Ending:
        """Roll back the nodes that are ready, and return the rollback's progress."""
        topology_run = self.reconciler.topology_repository.read(task.id)
        if topology_run is None:
            # The topology's run never began.
            return Succeeded(b"null")
        found, statuses = self.reconciler.roll_back(topology_run, until)
        if found.state is State.ROLLED_BACK:
            return Succeeded(b"null")
        if found.state is State.FAILED:
            stuck = next(key for key in topology_run.graph.order if statuses[key].rollback_failed)
            return failure("RollbackFailed", f"the node {stuck} could not be rolled back", retriable=False)
        return Postponed(self.reconciler.runtime.now() + ROLLBACK_CHECK_PAUSE, _GOES_ON)
