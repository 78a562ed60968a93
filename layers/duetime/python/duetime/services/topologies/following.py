"""What follows the end of a node: its children hear of it, the whole keeps its course, and its frame goes on.

And the end of a topology's task: nothing of it is left waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.states import WAITING, State
from duetime.domain.task import TopologyTarget
from duetime.domain.topologies.graph import OnFailure
from duetime.domain.topologies.head import status_of
from duetime.domain.topologies.rules import verdict

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.task import Member, Task
    from duetime.domain.topologies.graph import Edge
    from duetime.domain.topologies.rules import Outcome
    from duetime.domain.topologies.statuses import NodeStatus
    from duetime.ports.surroundings import Crew
    from duetime.ports.topologies import Machine, TopologyStore
    from duetime.services.topologies.conducting import Conducting
    from duetime.services.topologies.making import Making
    from duetime.services.topologies.nodes import Nodes
    from duetime.services.topologies.wholes import Whole, Wholes


@dataclass(frozen=True, slots=True)
class Following:
    """Does what follows the end of a node, or of a topology.

    Doing it twice is doing it once, and a crash has it all done again.
    """

    wholes: Wholes
    making: Making
    nodes: Nodes
    conducting: Conducting
    store: TopologyStore
    machine: Machine
    crew: Crew

    def follow(self, task: Task) -> bool:
        """Do what the end of a node means for its topology, or the end of a topology for its nodes.

        Returns:
            Whether it is a node of a topology that goes on, and must not expire before.

        Raises:
            Unavailable: a store did not answer; it is to be done again.
        """
        if isinstance(task.target, TopologyTarget):
            self.making.complete(task.id)
            if not self.conducting.dissolve(task):
                self.conducting.retention.let_expire(task.id)
        if task.member is None or (whole := self._whole_of(task.id, task.member)) is None:
            return False
        self._tell_all(task, task.member, whole)
        # As it was read after the node had ended: if the topology ends later, its own follow-up finds the node.
        return not whole.task.is_terminal

    def _tell_all(self, task: Task, member: Member, whole: Whole | None) -> None:
        key, status = member.key, status_of(task)
        if whole is None or status.outcome is None:
            return
        if _concerns_all(whole, status):
            # First of all: a stop must be known before a child of this node may start.
            if self.conducting.is_large(whole):
                self.conducting.hand_over(whole, status)
            else:
                self.conducting.steer(whole, {key: status})
            whole = self._whole_of(task.id, member)
            if whole is None:
                return
        outcome = status.outcome
        self.crew.map(lambda edge: self._tell(whole, edge, outcome), whole.graph.edges_out[key])
        if (token := self.store.read_token(task.id)) is not None:
            self.machine.answer(token)

    def _whole_of(self, task_id: TaskId, member: Member) -> Whole | None:
        """The whole that a node belongs to; `None` if another run is under way, or about to be."""
        whole = self.wholes.read(member.topology)
        is_its = whole is not None and whole.is_present and whole.head.task_id(member.key) == task_id
        return whole if is_its else None

    def _tell(self, whole: Whole, edge: Edge, outcome: Outcome) -> None:
        """Count an edge at a child, and do what the child's rule says then."""
        counts = self.nodes.count(whole, edge.child, edge.position, outcome)
        self.nodes.act(whole, edge.child, verdict(whole.graph.by_key[edge.child].rule, counts))


def _concerns_all(whole: Whole, status: NodeStatus) -> bool:
    """Whether more is to be done about the whole than about the node's children."""
    # A run whose execution was lost goes on while its task waits for another one.
    goes_on = whole.task.state is State.RUNNING or (whole.task.state in WAITING and not whole.head.ended)
    if not goes_on:
        return False
    is_failure = status.is_failure and whole.graph.on_failure is not OnFailure.CONTINUE
    return is_failure or whole.head.stopped or whole.task.asked is not None
