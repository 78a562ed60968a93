"""Making the tasks of a topology's nodes; they wait until somebody lets them start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from duetime.domain.tasks.creation import new_task
from duetime.domain.tasks.parent_references import NodeRef
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import HandlerTarget
from duetime.domain.topologies.planning import creation_order
from duetime.services.tasks.creation_rules import PAYLOAD
from duetime.services.topologies.repository import TopologyRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.target_rules import TargetRules
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import TaskSpec
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.services.topologies.repository import TopologyRepository


@dataclass(frozen=True, slots=True)
class NodeTasks:
    """Makes the tasks of nodes exist. Making one again changes nothing.

    Attributes:
        definitions: reads whole graphs, with the templates of their nodes' tasks.
        rules: what the settings let tasks call.
    """

    definitions: TopologyRepository
    stores: Stores
    runtime: Runtime
    rules: TargetRules

    def make(self, topology_run: TopologyRun) -> None:
        """Make the tasks of all nodes of this run.

        Raises:
            FieldInvalid: the settings do not let tasks call what a node calls any more.
        """
        self._make_all(topology_run, self.rules.target_of)

    def complete(self, topology: TaskId) -> None:
        """Make what a plan was cut off from making, when the topology has ended and all of it is to be taken back.

        A plan that is still going, unheard of, then makes nothing more: everything is there.
        """
        task, run_state = self.stores.tasks.read(topology), self.stores.topologies.read(topology)
        if task is None or run_state is None or not task.is_terminal or task.erased:
            return
        if not (run_state.opened or run_state.ended):
            self._make_all(
                TopologyRun(task, self.definitions.graph_of(task), run_state),
                lambda spec: spec.target or HandlerTarget(),
            )

    def _make_all(self, topology_run: TopologyRun, target: Callable[[TaskSpec], Target]) -> None:
        keys = [key for key in topology_run.graph.by_key if key not in topology_run.run_state.ran]
        self.runtime.executor.map(partial(self._make, topology_run, target), creation_order(topology_run.graph, keys))

    def _make(self, topology_run: TopologyRun, target: Callable[[TaskSpec], Target], key: str) -> None:
        node, begun = topology_run.graph.by_key[key], topology_run.run_state.begun_at
        spec = replace(node.spec, target=target(node.spec))
        task_id = topology_run.run_state.task_id(key)
        content = self.stores.contents.keep(task_id, PAYLOAD, spec.payload)
        task = new_task(task_id, spec, topology_run.task.owner, begun, begun, content)
        node_ref = NodeRef(topology_run.task.id, topology_run.run_state.number, key, inputs=bool(node.inputs))
        self.stores.tasks.create(
            replace(
                task,
                state=State.BLOCKED,
                name=spec.name or key,
                node_ref=node_ref,
                topology_schedule_ref=topology_run.task.schedule_ref,
                traceparent=topology_run.task.traceparent,
                nonce=self.runtime.nonce(),
            )
        )
