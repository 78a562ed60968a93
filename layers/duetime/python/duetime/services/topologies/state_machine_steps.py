"""Implements the states of the state machine: plan a run, wait for each node, and finish the run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import ContentExpired, FieldInvalid, RequestError
from duetime.domain.limits import MAX_DEADLINE_SECONDS, MAX_RESULT_BYTES
from duetime.domain.operating_parameters import (
    LONGEST_CHECK_INTERVAL,
    TOPOLOGY_RETRY_PAUSE,
    WAITS_AT_ONCE,
)
from duetime.domain.tasks.attempt_results import Postponed, Stopped, Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import MINUTE, SECOND
from duetime.domain.topologies.inputs import InputsTooLarge, Reference, assembled
from duetime.domain.topologies.node_status import NodeStatus
from duetime.domain.topologies.run_progress import outputs_too_large, run_result
from duetime.domain.topologies.run_state import (
    Begun,
    RunState,
    arrivals,
    is_awaited,
    is_of_present_run,
    opening,
    retry_plan,
    status_of,
)
from duetime.domain.topologies.watchdog_times import pause_before_check, reminders
from duetime.services.topologies.node_tasks import results_of
from duetime.services.topologies.repository import TopologyRun
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.node_status import Statuses
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.topologies import StateMachine
    from duetime.services.enqueue import Enqueuer, Shards
    from duetime.services.outcomes.outcome import OutcomeWriter
    from duetime.services.tasks.attempt_reports import AttemptReports
    from duetime.services.tasks.control import TaskControl
    from duetime.services.topologies.node_tasks import NodeTasks
    from duetime.services.topologies.node_transitions import NodeActions
    from duetime.services.topologies.reconciler import TopologyReconciler
    from duetime.services.topologies.repository import TopologyRepository


_LAST_RUN = "nodes of its last run have not ended"


@frozen
class Plan:
    """The nodes that a run waits for.

    Attributes:
        chunks: positions, in the graph's order, of the nodes to wait for, in parts of limited size.
    """

    chunks: list[list[int]]

    @property
    def is_large(self) -> bool:
        """Whether there are too many nodes for a single execution to wait for."""
        return len(self.chunks) > 1


@frozen
class TopologyCheck:
    """The result of a check of the run.

    Attributes:
        state: state of the run.
        over: whether nothing is left to do for the run.
        again_after: seconds until the next check, if work is left.
    """

    state: State
    over: bool
    again_after: int


@frozen
class StateMachineSteps:
    """Runs topologies, state by state. Each state may be entered repeatedly. Every method may raise `Unavailable`.

    Attributes:
        topology_repository: reads outlines of graphs, which are enough for waiting and finishing.
        definitions: reads complete graphs, with the templates for their nodes' tasks.
        shards: how many shards ids are spread over.
    """

    topology_repository: TopologyRepository
    definitions: TopologyRepository
    node_tasks: NodeTasks
    nodes: NodeActions
    reconciler: TopologyReconciler
    attempt_reports: AttemptReports
    stores: Stores
    machine: StateMachine
    runtime: Runtime
    shards: Shards

    def plan(self, topology: TaskId, fence: int) -> Plan:
        """Begin or continue a run: create every node's task, and start the nodes that may start."""
        task = self._current(topology, fence)
        if task is None:
            return Plan([[]])
        try:
            topology_run = self._begun(task)
            if topology_run is None:
                return Plan([[]])
            if topology_run.run_state.opened:
                self.reconciler.repair(topology_run)
            else:
                self._open(topology_run)
        except (ContentExpired, FieldInvalid) as refusal:
            self._notify(task, failure("TopologyInvalid", str(refusal), retriable=False))
            return Plan([[]])
        graph, ran = topology_run.graph, topology_run.run_state.ran
        numbers = [number for number, key in enumerate(graph.order) if key not in ran and is_awaited(graph, key)]
        return Plan([numbers[first : first + WAITS_AT_ONCE] for first in range(0, len(numbers), WAITS_AT_ONCE)] or [[]])

    def wait(self, topology: TaskId, fence: int, number: int, token: str) -> None:
        """Store the token that reports a node's end; if the node has already ended, report its end at once.

        The token is stored before the node is checked. The process that ends the node writes the end before it looks
        for a token, so at least one of the two processes sees both the end and the token.
        """
        topology_run = self.topology_repository.read(topology)
        if (
            topology_run is None
            or topology_run.task.fence != fence
            or topology_run.task.is_terminal
            or not topology_run.is_present
        ):
            self.machine.answer(token)
            return
        task_id = topology_run.run_state.task_id(topology_run.graph.order[number])
        self.stores.topologies.put_token(task_id, token, self.runtime.now() + MAX_DEADLINE_SECONDS * SECOND)
        if status_of(self.stores.tasks.read(task_id)).has_ended:
            self.machine.answer(token)

    def finish(self, topology: TaskId, fence: int, looks: int = 0) -> TopologyCheck:
        """End the attempt of the topology's task if the run has ended; otherwise advance the run.

        A run that is not planned yet has not ended, regardless of the previous run's state.

        Args:
            topology: id of the topology's task.
            fence: fence of the attempt.
            looks: number of earlier checks by this execution.
        """
        topology_run = self.topology_repository.read(topology)
        if topology_run is None or self._current(topology, fence) is None:
            return TopologyCheck(_state_of_ended(topology_run, fence), over=True, again_after=0)
        if not topology_run.is_present:
            return TopologyCheck(
                State.RUNNING, over=False, again_after=pause_before_check(looks, LONGEST_CHECK_INTERVAL)
            )
        found, statuses = self.reconciler.repair(topology_run)
        if not found.is_over:
            took = self.runtime.now() - topology_run.run_state.begun_at
            return TopologyCheck(found.state, over=False, again_after=pause_before_check(looks, took))
        self.topology_repository.save(topology_run.run_state, lambda run_state: replace(run_state, ended=True))
        ending = ending_of(self.stores, topology_run, found.state, statuses, self.runtime.now())
        self._notify(topology_run.task, ending)
        return TopologyCheck(found.state, over=True, again_after=0)

    def break_off(self, topology: TaskId, fence: int, reason: str) -> None:
        """Fail an attempt of the topology's task because its execution failed; the next attempt continues the run."""
        if (task := self._current(topology, fence)) is not None:
            self._notify(task, failure("StateMachineFailed", reason))

    def cancel_unplanned(self, topology: TaskId, fence: int) -> None:
        """End the attempt of a topology whose nodes may no longer start and whose run has not been planned yet."""
        if (task := self._current(topology, fence)) is not None:
            self._notify(task, Stopped())

    def _current(self, topology: TaskId, fence: int) -> Task | None:
        """The topology's task, if the fence belongs to the task's running attempt; otherwise `None`."""
        task = self.stores.tasks.read(topology)
        return task if task is not None and task.fence == fence and task.state is State.RUNNING else None

    def _begun(self, task: Task) -> TopologyRun | None:
        """The topology's current run, with all its nodes created; `None` if the run may not begin, or must wait."""
        graph = self.definitions.graph_of(task)
        run_state = self._head(task, graph)
        if run_state is None:
            # The postponed attempt is not counted, and the task shows the reason for the wait.
            self.attempt_reports.outcome_writer.postpone(
                task, Postponed(self.runtime.now() + TOPOLOGY_RETRY_PAUSE, _LAST_RUN)
            )
            return None
        if not (run_state.opened or run_state.dissolved):
            self.node_tasks.make(TopologyRun(task, graph, run_state))
        # Creating thousands of tasks takes a while, so the run may have been stopped, have ended, or even have been
        # retried in the meantime.
        topology_run = self.definitions.read(task.id)
        is_same = (
            topology_run is not None
            and topology_run.task.fence == task.fence
            and topology_run.run_state.number == run_state.number
        )
        return topology_run if is_same and topology_run is not None and not topology_run.run_state.dissolved else None

    def _head(self, task: Task, graph: Graph) -> RunState | None:
        """The state of the current run.

        On the initial run, and on the first run after a retry, the state is stored before it is returned.

        Returns:
            `None` while nodes of the last run have not ended, for example because a user retried one of these nodes.
        """
        begun = Begun(self.runtime.now(), self.shards.count())
        run_state = self.stores.topologies.read(task.id)
        if run_state is None:
            first = RunState(task.id, (begun,), task.fence)
            return self.topology_repository.save(first, lambda known: known)
        if is_of_present_run(run_state, task):
            return run_state
        statuses = self.topology_repository.statuses(TopologyRun(task, graph, run_state))
        if any(status.is_open for status in statuses.values()):
            return None
        ran = {key: run_state.number_of(key) for key in retry_plan(graph, statuses, task.rerun_nodes).kept}
        further = RunState(task.id, (*run_state.runs, begun), task.fence, ran)
        return self.topology_repository.save(run_state, lambda known: replace(further, version=known.version))

    def _open(self, topology_run: TopologyRun) -> None:
        """Start the nodes of this run that need not wait; the tasks of all other nodes exist already."""
        again = [key for key in topology_run.graph.by_key if key not in topology_run.run_state.ran]
        kept = self._kept(topology_run)
        self.reconciler.retention.keep(topology_run, kept)
        for arrival in arrivals(topology_run.graph, again, kept, topology_run.run_state.join_group):
            self.nodes.count(topology_run, arrival.child, arrival.edges)
        verdicts = dict(opening(topology_run.graph, again, kept))
        started, present = self.node_tasks.start(topology_run)
        for key in started:
            del verdicts[key]
        self.runtime.executor.map(lambda key: self.nodes.act(topology_run, key, verdicts[key]), verdicts)
        self.topology_repository.save(topology_run.run_state, lambda run_state: replace(run_state, opened=True))
        if not present.starts_nodes:
            self.reconciler.reconcile(present)

    def _kept(self, topology_run: TopologyRun) -> Statuses:
        ids = {key: topology_run.run_state.task_id(key) for key in topology_run.run_state.ran}
        found = self.stores.tasks.read_many(list(ids.values()), consistent=True)
        kept = {key: status_of(found.get(task_id)) for key, task_id in ids.items()}
        return {key: kept.get(key, NodeStatus()) for key in topology_run.graph.by_key}

    def _notify(self, task: Task, ending: Ending) -> None:
        """End the attempt, unless it has ended already."""
        with suppress(RequestError):
            self.attempt_reports.notify(task.owner, task.id, task.fence, ending)


def ending_of(stores: Stores, topology_run: TopologyRun, state: State, statuses: Statuses, now: Millis) -> Ending:
    """The end of an attempt of a topology's task.

    Args:
        stores: stores of the nodes' results.
        topology_run: the run, whose nodes have all ended.
        state: terminal state of the run.
        statuses: statuses of all nodes.
        now: the current time.

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
    """The result of a map, which is a list of its items' results in order, with null for an item without a result."""
    found, size = [], len(b"[]")
    for _, result in results_of(stores, items):
        found.append(result or b"null")
        size += len(found[-1]) + len(b",")
        if size > MAX_RESULT_BYTES:
            return outputs_too_large(size)
    return Succeeded(b"[" + b",".join(found) + b"]")


EXECUTION_LOST = "its state machine's execution was lost"


@frozen
class TopologyWatchdog:
    """Watches topologies. Each check sets the next check first, so a crash cannot end the checks."""

    topology_repository: TopologyRepository
    state_machine_steps: StateMachineSteps
    task_control: TaskControl
    machine: StateMachine
    outcome_writer: OutcomeWriter
    enqueuer: Enqueuer
    runtime: Runtime

    def check_topology(self, task: Task) -> None:
        """Advance a topology, and end it if its run has ended; start a new execution if its execution is lost.

        If a person aborted the execution, the topology is cancelled. Otherwise the attempt is not counted, and the next
        attempt continues the run.

        Args:
            task: the topology's task, just read, with its running attempt.

        Raises:
            Unavailable: a store or the state machine did not answer; the check must be repeated.
        """
        now = self.runtime.now()
        for at in reminders(task, task.lease_expires_at or now, now, self.enqueuer.look_ahead):
            self.enqueuer.remind(task, at)
        topology_run = self.topology_repository.read(task.id)
        # An unplanned run is left to an execution, because only an execution creates the missing tasks of nodes.
        is_planned = topology_run is not None and topology_run.is_present and topology_run.run_state.opened
        if is_planned and self.state_machine_steps.finish(task.id, task.fence).over:
            return
        if self.machine.is_running(task.id, task.fence):
            return
        if self.machine.was_aborted(task.id, task.fence):
            self._cancel(task, is_planned=is_planned)
        else:
            # The fence guards this report, which is rejected if the attempt has ended in the meantime, perhaps by that
            # execution.
            self.outcome_writer.postpone(task, Postponed(now, EXECUTION_LOST))
            self.runtime.telemetry.count("topology_executions_lost")
            self.runtime.telemetry.note("a topology's execution is gone; another begins", task=task.id.text)

    def _cancel(self, task: Task, *, is_planned: bool) -> None:
        """Cancel a topology whose execution a person has aborted, because the abort is meant to stop the topology."""
        if task.requested_action is not RequestedAction.CANCEL:
            self.runtime.telemetry.note("a topology's execution was aborted, which cancels it", task=task.id.text)
            # Nodes that end now need a moment for their steps; regular checks handle nodes that continue to run.
            self.enqueuer.remind(task, self.runtime.now() + MINUTE)
            with suppress(RequestError):
                self.task_control.cancel_by_force(task.owner, task.id, None)
        if is_planned:
            self.state_machine_steps.finish(task.id, task.fence)
        else:
            self.state_machine_steps.cancel_unplanned(task.id, task.fence)


def _state_of_ended(topology_run: TopologyRun | None, fence: int) -> State:
    """The final state of a run whose task has ended; cancelled if the task has another attempt by now."""
    if topology_run is None or topology_run.task.fence != fence or not topology_run.task.is_terminal:
        return State.CANCELLED
    return topology_run.task.state
