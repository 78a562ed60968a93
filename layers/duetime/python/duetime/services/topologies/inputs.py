"""The results of its parents that a node is given when it starts: fetched where they lie, stored nowhere twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.tasks.states import State
from duetime.domain.topologies.inputs import assembled, references

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.topologies.inputs import Reference
    from duetime.ports.stores import Stores
    from duetime.services.topologies.repository import TopologyRepository


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """Gives nodes their inputs."""

    topology_repository: TopologyRepository
    stores: Stores

    def inputs_of(self, task: Task) -> bytes | None:
        """What a task is given of its parents' results, as one JSON object in UTF-8; `None` if it asks for none.

        Raises:
            InputsTooLarge: they have too many bytes together; trying again does not help.
        """
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
    """The results of nodes by their names, fetched one after the other; `None` for one that has none."""
    found = stores.tasks.read_many([reference.task_id for reference in wanted], consistent=True)
    for reference in wanted:
        yield reference.name, result_of(stores, found.get(reference.task_id))


def result_of(stores: Stores, parent: Task | None) -> bytes | None:
    """The result that a parent's children are given; `None` if there is none."""
    if parent is None or parent.state is not State.SUCCEEDED or parent.result is None:
        return None
    return stores.contents.fetch(parent.id, parent.result)
