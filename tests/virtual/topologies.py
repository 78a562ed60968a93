"""Topologies in the virtual world: a frame that goes through the same states as the state machine."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.adapters.memory.topologies import MemoryTopologyStore
from duetime.contract.http.safe_json import Document
from duetime.contract.topologies.decoding import read_graph, topology_request
from duetime.domain.tasks.attempt_results import Deferred
from duetime.domain.tasks.target_rules import TargetRules
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import SECOND
from duetime.domain.topologies.stored_graph import outline_of
from duetime.services.tasks.create import Order
from duetime.services.topologies.inputs import NodeInputs
from duetime.services.topologies.node_actions import NodeActions
from duetime.services.topologies.node_finished import NodeFinished
from duetime.services.topologies.node_tasks import NodeTasks
from duetime.services.topologies.reconciler import TopologyReconciler
from duetime.services.topologies.repository import TopologyRepository
from duetime.services.topologies.retention import Retention
from duetime.services.topologies.service import TopologyService
from duetime.services.topologies.state_machine import StateMachineSteps
from duetime.services.topologies.watchdog import TopologyWatchdog
from tests.virtual.world import OWNER, RETENTION, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.view import View
    from duetime.ports.targets import Work
    from tests.simulation.virtual_time import Strand

_PATIENCE = 5 * SECOND
"""How long an invocation may take before the frame invokes it again."""
_LOOK = 200


class Topologies(World):
    """A world that runs topologies.

    Attributes:
        begun: the names of the nodes whose targets were called, in order.
        loses: which tokens get lost.
        starting: whether frames that are started begin.
    """

    def _wire(self) -> None:
        super()._wire()
        time = self.time
        self.begun: list[str] = []
        self.topologies: MemoryTopologyStore = self.around(MemoryTopologyStore())
        self._frames: dict[tuple[TaskId, int], Strand] = {}
        self._answered: set[str] = set()
        self.loses: Callable[[str], bool] = lambda _token: False
        self.starting = True
        self.stores.topologies = self.topologies
        stores, runtime, enqueuer = self.stores, self.runtime, self.enqueuer
        topology_repository = TopologyRepository(stores, runtime, read_graph)
        nodes = NodeActions(topology_repository, stores, enqueuer, time, RETENTION)
        retention = Retention(topology_repository, stores, runtime, RETENTION)
        self.reconciler = TopologyReconciler(
            topology_repository, nodes, retention, self.task_control, runtime, self.bulk_operations
        )
        making = NodeTasks(topology_repository, stores, runtime, TargetRules())
        self.node_finished = NodeFinished(
            topology_repository, making, nodes, self.reconciler, self.topologies, self, time
        )
        self.state_machine_steps = StateMachineSteps(
            topology_repository=TopologyRepository(stores, runtime, outline_of),
            definitions=topology_repository,
            node_tasks=making,
            nodes=nodes,
            reconciler=self.reconciler,
            task_control=self.task_control,
            stores=stores,
            machine=self,
            runtime=runtime,
            shards=self.shards,
        )
        self.topology_service = TopologyService(
            topology_repository=topology_repository,
            reconciler=self.reconciler,
            task_creator=self.task_creator,
            task_reader=self.task_reader,
            task_control=self.task_control,
            clock=time,
            bulk_operations=self.bulk_operations,
        )
        closing = replace(self.attempt_runner.completion, node_listener=self.node_finished)
        outcome_writer = replace(self.attempt_runner.outcome_writer, completion=closing)
        elsewhere = self.task_control.outcome_writer
        self.watchdog = TopologyWatchdog(
            topology_repository, self.state_machine_steps, self, elsewhere, enqueuer, runtime
        )
        self.attempt_runner = replace(
            self.attempt_runner,
            completion=closing,
            outcome_writer=outcome_writer,
            input_reader=NodeInputs(topology_repository, stores),
            topology_checker=self.watchdog,
        )
        self.batch_worker = replace(self.batch_worker, attempt_runner=self.attempt_runner)

    def run(self, work: Work) -> TargetEnding:
        """Have a target do a phase; of a topology, begin its frame."""
        if isinstance(work.task.target, TopologyTarget):
            self.start(work.task.id, work.task.fence)
            return Deferred()
        if work.task.node_ref is not None:
            self.begun.append(work.task.node_ref.key)
        return super().run(work)

    # The world is the state machine as well.

    def start(self, topology: TaskId, fence: int) -> None:
        """Start a frame, once for each attempt."""
        if self.starting and (topology, fence) not in self._frames:
            self._frames[topology, fence] = self.time.start_process(partial(self._frame, topology, fence))

    def is_running(self, topology: TaskId, fence: int) -> bool:
        """Whether a frame has begun and not ended."""
        frame = self._frames.get((topology, fence))
        return frame is not None and not frame.done

    def was_aborted(self, topology: TaskId, fence: int) -> bool:
        """Frames only break: `stop_frames`."""
        del topology, fence
        return False

    def stop_frames(self) -> int:
        """Break every frame; how many there were."""
        going = [frame for frame in self._frames.values() if not frame.done]
        for frame in going:
            self.time.kill(frame)
        return len(going)

    def answer(self, token: str) -> None:
        """Note that a node has ended, unless its token gets lost."""
        if not self.loses(token):
            self._answered.add(token)

    def _frame(self, topology: TaskId, fence: int) -> None:
        plan = self._invoke_state(lambda: self.state_machine_steps.plan(topology, fence))
        for chunk in plan.chunks:
            for number in chunk:
                token = f"{topology} {fence} {number}"
                self._invoke_state(partial(self.state_machine_steps.wait, topology, fence, number, token))
                self._until(partial(self._answered.__contains__, token))
        while not (look := self._invoke_state(lambda: self.state_machine_steps.finish(topology, fence))).over:
            self.time.sleep_until(self.time.now() + look.again_after * SECOND)

    def _invoke_state(self, use_case: Callable[[], Any]) -> Any:  # noqa: ANN401 - what a state answers
        """Invoke a state's function, again until it answers."""
        answers: list[Any] = []
        while not answers:
            self.time.start_process(partial(self._invoke, lambda: answers.append(use_case())))
            until = self.time.now() + _PATIENCE
            while not answers and self.time.now() < until:
                self.time.sleep_until(self.time.now() + _LOOK)
        return answers[0]

    def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.time.sleep_until(self.time.now() + _LOOK)

    # What users do.

    def submit(self, nodes: Mapping[str, Mapping[str, Any]], **fields: Any) -> Task:  # noqa: ANN401 - JSON
        """Accept a topology; a node without a type is a report."""
        graph = {key: {"type": "report", **node} for key, node in nodes.items()}
        asked = topology_request(Document(json.loads(json.dumps({"nodes": graph, **fields})), marked=False))
        return self.topology_service.create(OWNER, Order(asked.spec), asked.graph)

    def view(self, topology: Task) -> View:
        """See where a topology stands."""
        return self.topology_service.get(OWNER, topology.id)

    def stands(self, topology: Task) -> dict[str, str]:
        """Where each node stands: its state, or why it was cancelled."""
        return {key: str(status.reason or status.state) for key, status in self.view(topology).statuses.items()}
