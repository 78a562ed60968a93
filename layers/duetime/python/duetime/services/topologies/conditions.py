"""Asks the conditions of nodes: fetches what its parents have given, and decides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import ContentExpired
from duetime.domain.tasks.targets import definition_of
from duetime.domain.topologies.conditions import ConditionFailed, ParentEnd, holds, items_of, parents_in
from duetime.domain.topologies.inputs import InputsTooLarge, assembled
from duetime.domain.topologies.maps import map_payload
from duetime.domain.topologies.run_state import counted_status
from duetime.domain.topologies.trigger_rules import Outcome
from duetime.services.topologies.inputs import result_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.topologies.graph import Node
    from duetime.ports.stores import Stores
    from duetime.services.topologies.repository import TopologyRepository, TopologyRun


@dataclass(frozen=True, slots=True)
class Conditions:
    """Asks conditions. What a parent ended as does not change, so asking again gives the same."""

    topology_repository: TopologyRepository
    stores: Stores

    def hold(self, topology_run: TopologyRun, node: Node) -> bool:
        """Whether a node may run, as far as its condition says; one without a condition may.

        Args:
            topology_run: as it was read after its parents had ended.
            node: one whose rule holds.

        Raises:
            ConditionFailed: its condition is neither true nor false.
            Unavailable: a store did not answer; it is to be asked again.
        """
        if node.when is None:
            return True
        ref = definition_of(topology_run.task.target)
        parameters = {} if ref is None else json.loads(ref.parameters)
        return holds(node.when, self._parents(topology_run, node, node.when), parameters)

    def map_payload(self, topology_run: TopologyRun, node: Node) -> bytes | None:
        """The payload of a map's task, now that its items are known; `None` for any other node.

        Raises:
            ConditionFailed: the results that it is about are too large together, or gone.
            MapFailed: there is no list of items, or it is too large.
            Unavailable: a store did not answer; it is to be asked again.
        """
        if node.map is None:
            return None
        items = items_of(node.map, self._parents(topology_run, node, node.map.over))
        content = topology_run.task.payload
        graph = self.stores.contents.fetch(topology_run.task.id, content) if content.data is None else content.data
        return map_payload(node.map, json.loads(graph)["nodes"][node.key], items)

    def _parents(self, topology_run: TopologyRun, node: Node, expression: str) -> Mapping[str, ParentEnd]:
        """How those parents have ended that an expression is about."""
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
