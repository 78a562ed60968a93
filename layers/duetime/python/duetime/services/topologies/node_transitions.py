"""Makes a node's transitions: counts its edges, and starts, ends or rolls back the node. Each step may be repeated."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.conditional_writes import Applied, Guard, Write
from duetime.domain.errors import ContentExpired, Unavailable
from duetime.domain.limits import MAX_DEADLINE_SECONDS
from duetime.domain.tasks.action_history import Action, ActorType, Attribution
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.tasks.attempt_run import reported_history
from duetime.domain.tasks.control_changes import fence_raised, recorded
from duetime.domain.tasks.states import LEGAL, NOT_STARTED, Move, State
from duetime.domain.tasks.targets import definition_of
from duetime.domain.tasks.task import unless_referenced
from duetime.domain.times import SECOND
from duetime.domain.topologies.conditions import ConditionFailed, ParentEnd, holds, items_of
from duetime.domain.topologies.inputs import InputsTooLarge, assembled
from duetime.domain.topologies.join_counters import chunk_of, chunks_for, reports
from duetime.domain.topologies.maps import MapFailed, map_payload
from duetime.domain.topologies.node_status import Reason
from duetime.domain.topologies.run_state import counted_status
from duetime.domain.topologies.trigger_rules import Outcome, Verdict
from duetime.services.content_retention import extend, replace_content, retain_open
from duetime.services.task_telemetry import count_outcome
from duetime.services.topologies.node_tasks import result_of
from duetime_common.conditions import parents_in
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges
    from duetime.domain.topologies.graph import Node
    from duetime.domain.topologies.trigger_rules import Counts
    from duetime.domain.type_settings import RetentionPolicy
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun


_TRIES = 5
_MAP_PAYLOAD = "payload.items"
_REASONS = {Verdict.SKIPPED: Reason.SKIPPED, Verdict.UPSTREAM_FAILED: Reason.UPSTREAM_FAILED}


@frozen
class NodeActions:
    """Acts on nodes.

    Attributes:
        retention: how long topologies are kept, which determines how long counts are kept beyond the longest deadline.
    """

    topology_repository: TopologyRepository
    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    conditions: Conditions
    retention: RetentionPolicy

    def count(self, topology_run: TopologyRun, key: str, arrived: Mapping[int, Outcome]) -> Counts:
        """Count edges that belong to one chunk of a node's edges, and return the current counts of its parents.

        If the stored counts have expired, the topology's watchdog decides by the nodes' states instead.
        """
        node, task_id = topology_run.graph.by_key[key], topology_run.run_state.task_id(key)
        edges, expires = (
            len(node.depends_on),
            self.runtime.now() + MAX_DEADLINE_SECONDS * SECOND + self.retention.longest,
        )
        before, after = self.stores.topologies.add_edges(task_id, edges, arrived, expires)
        if chunks_for(edges) == 1:
            return after.counts
        if reports(node.trigger_rule, edges, before, after):
            chunk = chunk_of(min(arrived))
            return self.stores.topologies.add_report(task_id, edges, chunk, after.counts, expires).counts
        return self.stores.topologies.read_join_count(task_id, edges).counts

    def act(self, topology_run: TopologyRun, key: str, verdict: Verdict) -> None:
        """Apply a node's rule, if the node still waits for its parents and the run is active."""
        if verdict is not Verdict.WAIT:
            task = self._read(topology_run.run_state.task_id(key))
            released = self.decide(self.topology_repository.refreshed(topology_run), key, verdict, task)
            self.enqueuer.send_due([] if released is None else [released])

    def decide(self, topology_run: TopologyRun, key: str, verdict: Verdict, task: Task) -> Task | None:
        """Apply a node's rule, as `act` does, but send no message.

        Args:
            topology_run: the run, read after the node's task, so that a pause written later can still hold the node.
            key: key of the node.
            verdict: verdict of the node's rule.
            task: the node's task as read.

        Returns:
            The node's task if it was released; then `send_due` must follow.
        """
        if verdict is Verdict.READY:
            return self._start(topology_run, key, task)
        if verdict is not Verdict.WAIT:
            self.dismiss(topology_run, key, _REASONS[verdict], {State.BLOCKED})
        return None

    def dismiss(
        self, topology_run: TopologyRun, key: str, reason: Reason, among: Collection[State] = NOT_STARTED
    ) -> None:
        """Cancel a node that has not started; a worker runs the steps that follow the node's end."""

        def sets(task: Task) -> TaskChanges:
            node_ref = task.node_ref and replace(task.node_ref, note=reason.value)
            return {"node_ref": node_ref, "finished_at": None}

        self._end(topology_run, key, Move.DISMISS, among, sets)

    def hold(self, topology_run: TopologyRun, key: str) -> bool:
        """Make a release fail if it was decided before the topology was paused, however late it is written.

        Returns:
            Whether the node still waits; `False` if it was released.
        """
        task: Task | None = self._read(topology_run.run_state.task_id(key))
        for _ in range(_TRIES):
            if task is None or task.state is not State.BLOCKED:
                return False
            write = Write(task.id, Move.HOLD, self.runtime.nonce(), Guard(version=task.version), {})
            result = self.stores.tasks.apply(write)
            if isinstance(result, Applied):
                return True
            task = result.task
        raise Unavailable(f"the node {key} has too many concurrent writes")

    def undo(self, topology_run: TopologyRun, key: str) -> None:
        """Roll back a node if all steps that follow its end are done."""
        task = self._read(topology_run.run_state.task_id(key))
        if task.state not in LEGAL[Move.REQUEST_ROLLBACK].sources or task.finished_at is None:
            return
        # The last attempt's error is kept in the attempt history, because the rollback has its own error.
        sets: TaskChanges = {"attempt": 0, "finished_at": None, "expires_at": None, "requested_action": None}
        sets |= {"lease_expires_at": None, "progress": None, "attempt_history": reported_history(task)}
        sets |= fence_raised(task, self.runtime.epoch)
        now = self.runtime.now()
        sets |= recorded(task, Action.ROLLBACK_REQUESTED, Attribution(ActorType.TOPOLOGY), now)
        expiry = unless_referenced(now)
        with suppress(ContentExpired):
            # If the payload has expired, the worker reports that the node cannot be rolled back.
            extend(self.stores.contents, task, expiry)
        result = self.enqueuer.move(task, Move.REQUEST_ROLLBACK, now, Guard(version=task.version), sets)
        if isinstance(result, Applied):
            retain_open(self.stores.tasks, self.stores.contents, result.task, expiry)

    def _start(self, topology_run: TopologyRun, key: str, task: Task) -> Task | None:
        """Start a node whose rule is met, if its condition is also met; returns the task if it was released."""
        if task.state is not State.BLOCKED or not topology_run.starts_nodes:
            return None
        try:
            node = topology_run.graph.by_key[key]
            if self.conditions.hold(topology_run, node):
                return self._release(topology_run, key, task, self.conditions.map_payload(topology_run, node))
        except (ConditionFailed, MapFailed) as failed:
            error = failure(type(failed).__name__, str(failed)).error
            self._end(
                topology_run, key, Move.FAIL_CONDITION, NOT_STARTED, lambda _: {"error": error, "finished_at": None}
            )
        else:
            self.dismiss(topology_run, key, Reason.SKIPPED, {State.BLOCKED})
        return None

    def _end(
        self,
        topology_run: TopologyRun,
        key: str,
        move: Move,
        among: Collection[State],
        sets: Callable[[Task], TaskChanges],
    ) -> None:
        """End a node that has not started; a worker runs the steps that follow the node's end."""
        for _ in range(_TRIES):
            task = self._read(topology_run.run_state.task_id(key))
            if task.state not in among or task.state not in LEGAL[move].sources:
                return
            result = self.enqueuer.move(task, move, self.runtime.now(), Guard(version=task.version), sets(task))
            if isinstance(result, Applied):
                if move is Move.FAIL_CONDITION:
                    count_outcome(self.runtime.telemetry, result.task)
                return
        raise Unavailable(f"the node {key} has too many concurrent writes")

    def _release(
        self, topology_run: TopologyRun, key: str, task: Task | None, map_payload: bytes | None
    ) -> Task | None:
        expiry = unless_referenced(self.runtime.now())
        payload = None
        if map_payload is not None:
            # The name is unique, because a rejected release must not change the expiry of another release's items.
            task_id, name = topology_run.run_state.task_id(key), f"{_MAP_PAYLOAD}.{self.runtime.nonce()}"
            payload = self.stores.contents.keep(task_id, name, map_payload, expiry)
        for _ in range(_TRIES):
            if task is None or task.state is not State.BLOCKED or not topology_run.starts_nodes:
                return None
            due = self.runtime.now() + (topology_run.graph.by_key[key].spec.delay or 0)
            if task.due_at != task.created_at:
                # A user has set a different time while the node was blocked.
                due = max(due, task.due_at)
            sets: TaskChanges = {"due_at": due} if payload is None else {"due_at": due, "payload": payload}
            write = partial(self.enqueuer.write, task, Move.RELEASE, due, Guard(version=task.version), sets)
            if payload is None:
                result = write()
            else:
                stores = (self.stores.tasks, self.stores.contents)
                result = replace_content(stores, task, task.payload, payload, expiry, write)
            if isinstance(result, Applied):
                return result.task
            # A concurrent write has released, paused, cancelled or changed the node.
            task = result.task
            if task is not None and task.state is State.BLOCKED:
                topology_run = self.topology_repository.refreshed(topology_run)
        raise Unavailable(f"the node {key} has too many concurrent writes")

    def _read(self, task_id: TaskId) -> Task:
        task = self.stores.tasks.read(task_id)
        if task is None:
            raise Unavailable(f"the node's task {task_id} is not there yet")
        return task


@frozen
class Conditions:
    """Evaluates conditions. A parent's outcome does not change, so a repeated evaluation gives the same result."""

    topology_repository: TopologyRepository
    stores: Stores

    def hold(self, topology_run: TopologyRun, node: Node) -> bool:
        """Whether a node's condition lets it run; a node without a condition may run.

        Args:
            topology_run: the run, read after the node's parents had ended.
            node: a node whose rule is met.

        Raises:
            ConditionFailed: the condition is neither true nor false.
            Unavailable: a store did not answer; the call must be repeated.
        """
        if node.when is None:
            return True
        ref = definition_of(topology_run.task.target)
        parameters = {} if ref is None else json.loads(ref.parameters)
        return holds(node.when, self._parents(topology_run, node, node.when), parameters)

    def map_payload(self, topology_run: TopologyRun, node: Node) -> bytes | None:
        """The payload of a map's task, once the map's items are known; `None` for any other node.

        Raises:
            ConditionFailed: the results that the map refers to have expired, or are too large in total.
            MapFailed: the items are not a list, or too large.
            Unavailable: a store did not answer; the call must be repeated.
        """
        if node.map is None:
            return None
        items = items_of(node.map, self._parents(topology_run, node, node.map.over))
        content = topology_run.task.payload
        graph = self.stores.contents.fetch(topology_run.task.id, content) if content.data is None else content.data
        return map_payload(node.map, json.loads(graph)["nodes"][node.key], items)

    def _parents(self, topology_run: TopologyRun, node: Node, expression: str) -> Mapping[str, ParentEnd]:
        """The outcomes of the parents that an expression refers to."""
        names = parents_in(expression, node.depends_on)
        tasks = self.topology_repository.read_nodes(topology_run, names)
        kept = topology_run.run_state.ran
        ends = {name: counted_status(tasks.get(name), is_kept=name in kept).outcome for name in names}
        succeeded = {name: tasks[name] for name, outcome in ends.items() if outcome is Outcome.SUCCEEDED}
        try:
            found = assembled((name, result_of(self.stores, task)) for name, task in succeeded.items())
        except (ContentExpired, InputsTooLarge) as error:
            raise ConditionFailed(f"{expression} cannot be evaluated: {error}") from error
        results = json.loads(found)
        errors = {name: tasks[name].error for name, outcome in ends.items() if outcome is Outcome.FAILED}
        return {n: ParentEnd(ends[n], results.get(n), errors.get(n)) for n in names}
