"""Creates the tasks of a topology's nodes, which wait until they are released."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_DEADLINE_SECONDS
from duetime.domain.tasks.creation import new_task
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.tasks.task import NodeRef
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.topologies.inputs import assembled, references
from duetime.domain.topologies.maps import map_payload
from duetime.domain.topologies.run_state import creation_order, starts_at_once
from duetime.services.tasks.creation_rules import PAYLOAD
from duetime.services.topologies.repository import TopologyRun
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.allowed_targets import TargetRules
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.graph import Node
    from duetime.domain.topologies.inputs import Reference
    from duetime.domain.topologies.maps import NodeMap
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.enqueue import Enqueuer
    from duetime.services.tasks.creation_rules import TypeDefaults
    from duetime.services.topologies.repository import TopologyRepository


@frozen
class NodeTasks:
    """Creates the tasks of nodes. Creating a task again changes nothing.

    Attributes:
        definitions: reads complete graphs, with the templates of their nodes' tasks.
        rules: targets that the settings allow.
        types: gives tasks the defaults of their types.
    """

    definitions: TopologyRepository
    stores: Stores
    enqueuer: Enqueuer
    runtime: Runtime
    rules: TargetRules
    types: TypeDefaults

    def make(self, topology_run: TopologyRun) -> None:
        """Create the tasks of this run's nodes that wait for other nodes; `start` creates all other nodes' tasks.

        Raises:
            FieldInvalid: the settings no longer allow a node's target.
        """
        self._make_all(topology_run, self._keys(topology_run, waits=True), self._target_rule(topology_run))

    def start(self, topology_run: TopologyRun) -> tuple[Collection[str], TopologyRun]:
        """Create the tasks of nodes that wait for no other node, due at once, and send their messages together.

        Args:
            topology_run: the run, read after the tasks of all other nodes had been created. If the run lets no node
                start, the created tasks wait.

        Returns:
            The started nodes, and the current run. If the current run no longer lets nodes start, the started nodes
            must be reconciled, because no message was sent. Nodes whose tasks an interrupted plan created may still
            have to be released.

        Raises:
            FieldInvalid: the settings no longer allow a node's target.
        """
        keys = self._keys(topology_run, waits=False)
        self.types.look(topology_run.task.owner)
        if not topology_run.starts_nodes:
            self._make_all(topology_run, keys, self._target_rule(topology_run))
            return (), topology_run
        tasks = self.runtime.executor.map(partial(self._due, topology_run, self._target_rule(topology_run)), keys)
        inserted = self.enqueuer.insert(tasks)
        is_new = self.runtime.executor.map(lambda task: task.nonce in inserted or self.enqueuer.create(task), tasks)
        started = {key: task for key, task, new in zip(keys, tasks, is_new, strict=True) if new}
        # Creating thousands of tasks takes a while, so the run may have been paused since, or a task may have failed.
        present = self.definitions.read(topology_run.task.id) or topology_run
        if present.starts_nodes:
            self.enqueuer.send_due(list(started.values()))
        return started.keys(), present

    def complete(self, topology: TaskId) -> None:
        """Create the tasks that an interrupted plan of an ended topology left out, so that all nodes can be cancelled.

        If the plan is in fact still running, it creates no more tasks, because every task exists.
        """
        task, run_state = self.stores.tasks.read(topology), self.stores.topologies.read(topology)
        if task is None or run_state is None or not task.is_terminal or task.erased:
            return
        if not (run_state.opened or run_state.ended):
            topology_run = TopologyRun(task, self.definitions.graph_of(task), run_state)
            keys = [*self._keys(topology_run, waits=True), *self._keys(topology_run, waits=False)]
            self._make_all(topology_run, keys, lambda spec: spec.target or HandlerTarget())

    def _keys(self, topology_run: TopologyRun, *, waits: bool) -> Sequence[str]:
        """The nodes of this run that wait for other nodes, or the nodes that do not wait; children precede parents."""
        graph = topology_run.graph
        again = graph.by_key.keys() - topology_run.run_state.ran.keys()
        return [key for key in creation_order(graph, again) if starts_at_once(graph.by_key[key]) is not waits]

    def _target_rule(self, topology_run: TopologyRun) -> Callable[[TaskSpec], Target]:
        """A function that returns the target of a task in the run, if the settings still allow that target."""
        return partial(self.rules.target_of, topology_run.task.owner)

    def _make_all(self, topology_run: TopologyRun, keys: Sequence[str], target: Callable[[TaskSpec], Target]) -> None:
        # The defaults are read once, before parallel calls need them.
        self.types.look(topology_run.task.owner)
        tasks = self.runtime.executor.map(partial(self._blocked, topology_run, target), keys)
        inserted = self.stores.tasks.insert(tasks)
        present = {task.id for task in (*inserted.written, *inserted.existing)}
        self.runtime.executor.map(self.stores.tasks.create, [task for task in tasks if task.id not in present])

    def _due(self, topology_run: TopologyRun, target: Callable[[TaskSpec], Target], key: str) -> Task:
        """The task of a node that waits for no other node, due at once."""
        due = self.runtime.now() + (topology_run.graph.by_key[key].spec.delay or 0)
        return replace(self._blocked(topology_run, target, key), state=State.SCHEDULED, due_at=due, next_at=due)

    def _blocked(self, topology_run: TopologyRun, target: Callable[[TaskSpec], Target], key: str) -> Task:
        """The task of a node that waits for other nodes; stores a large payload outside the record."""
        node, begun = topology_run.graph.by_key[key], topology_run.run_state.begun_at
        spec = _map_spec(node.spec, node.map) if node.map is not None else self._spec(topology_run, node, target)
        task_id = topology_run.run_state.task_id(key)
        content = self.stores.contents.keep(task_id, PAYLOAD, spec.payload)
        topology = topology_run.task
        fair = topology if spec.fair_key is None else spec
        return replace(
            new_task(task_id, spec, topology.owner, begun, begun, content, self.runtime.epoch),
            state=State.BLOCKED,
            name=spec.name or key,
            node_ref=NodeRef(topology.id, topology_run.run_state.number, key, inputs=bool(node.inputs)),
            topology_schedule_ref=topology.schedule_run,
            traceparent=topology.traceparent,
            fair_key=fair.fair_key,
            fair_weight=fair.fair_weight,
            nonce=self.runtime.nonce(),
        )

    def _spec(self, topology_run: TopologyRun, node: Node, target: Callable[[TaskSpec], Target]) -> TaskSpec:
        """The task of a node that is not a map, with the defaults of its type; nodes have no unique key."""
        spec = self.types.completed(topology_run.task.owner, node.spec)
        return replace(spec, unique=None, target=target(spec))


def _map_spec(item: TaskSpec, node_map: NodeMap) -> TaskSpec:
    """The task of a map whose items are not known yet; options not copied here apply to the items' tasks."""
    spec = TaskSpec(
        item.type,
        name=item.name,
        tags=item.tags,
        priority=item.priority,
        fair_key=item.fair_key,
        fair_weight=item.fair_weight,
    )
    return spec.of_graph(map_payload(node_map, {}, None), MAX_DEADLINE_SECONDS)


@frozen
class NodeInputs:
    """Provides the inputs of nodes."""

    topology_repository: TopologyRepository
    stores: Stores

    def inputs_of(self, task: Task) -> bytes | None:
        """The parents' results that a task needs, as one JSON object in UTF-8; `None` if the task needs no results.

        For a task that runs after the members of a group, the object describes the group.

        Raises:
            InputsTooLarge: the results are too large in total, so a retry does not help.
        """
        if task.completes is not None:
            # Few tasks run after a group, so the module is imported only for such tasks.
            from duetime.services.groups import summary_of  # noqa: PLC0415 - see the line above

            return summary_of(self.stores, task)
        node_ref = task.node_ref
        if (
            node_ref is None
            or not node_ref.inputs
            or (topology_run := self.topology_repository.read(node_ref.topology)) is None
        ):
            return None
        node = topology_run.graph.by_key[node_ref.key]
        wanted = references(node, {key: topology_run.run_state.task_id(key) for key in node.inputs})
        return assembled(results_of(self.stores, wanted))


def results_of(stores: Stores, wanted: Sequence[Reference]) -> Iterator[tuple[str, bytes | None]]:
    """The results of nodes by name, fetched one after another; `None` for a node without a result."""
    found = stores.tasks.read_many([reference.task_id for reference in wanted], consistent=True)
    for reference in wanted:
        yield reference.name, result_of(stores, found.get(reference.task_id))


def result_of(stores: Stores, parent: Task | None) -> bytes | None:
    """The result that a parent passes to its children; `None` if the parent has no result."""
    if parent is None or parent.state is not State.SUCCEEDED or parent.result is None:
        return None
    return stores.contents.fetch(parent.id, parent.result)
