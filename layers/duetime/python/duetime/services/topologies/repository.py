"""Reads topology runs: the task, the graph, the run state, and the states of the nodes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import RUN_STATE_LIFE
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.times import SECOND
from duetime.domain.topologies.run_state import is_of_present_run, status_of
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.node_status import NodeStatus, Statuses
    from duetime.domain.topologies.run_state import RunState
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import Stores
    from duetime.ports.topologies import GraphReader

_KNOWN = 8
"""Number of graphs that a process caches, because reading a large graph takes a second."""
_TRIES = 20
_PAGE = 100
"""Number of nodes read in one request (Source: DynamoDB API Reference, BatchGetItem)."""


@frozen
class TopologyRun:
    """A topology that has begun."""

    task: Task
    graph: Graph
    run_state: RunState

    @property
    def is_present(self) -> bool:
        """Whether this is the current run of the topology's task, and not a run before a retry."""
        return is_of_present_run(self.run_state, self.task)

    @property
    def starts_nodes(self) -> bool:
        """Whether the run's nodes may start, because the run is active and neither paused nor stopped."""
        is_running = self.task.state is State.RUNNING and self.task.requested_action is None
        return is_running and not self.run_state.stopped

    @property
    def overdue_at(self) -> Millis | None:
        """When the run times out; `None` without a timeout."""
        seconds = self.graph.timeout_seconds
        return None if seconds is None else self.run_state.begun_at + seconds * SECOND


@frozen
class TopologyRepository:
    """Reads topologies.

    Attributes:
        read_graph: parses a payload that was validated on acceptance.
    """

    stores: Stores
    runtime: Runtime
    read_graph: GraphReader
    _graphs: OrderedDict[tuple[str, str], Graph] = field(default_factory=OrderedDict)
    _mutex: Lock = field(default_factory=Lock)

    def read(self, topology: TaskId) -> TopologyRun | None:
        """Read the current state of a topology; `None` if the topology does not exist or has never begun."""
        task, run_state = self.stores.topologies.read_with_task(topology)
        if task is None or run_state is None or not isinstance(task.target, TopologyTarget):
            return None
        return TopologyRun(task, self.graph_of(task), run_state)

    def refreshed(self, topology_run: TopologyRun) -> TopologyRun:
        """The same run with the topology's task read again, so that it includes the user's latest requests."""
        return replace(topology_run, task=self.stores.tasks.read(topology_run.task.id) or topology_run.task)

    def graph_of(self, task: Task) -> Graph:
        """The graph of a topology's task.

        Raises:
            FieldInvalid: the payload is not a graph, which does not happen for accepted topologies.
        """
        content = task.payload
        if not content.is_outside:
            return self.read_graph(content.data or b"")
        place = task.id.text, content.name
        with self._mutex:
            if (known := self._graphs.get(place)) is not None:
                self._graphs.move_to_end(place)
                return known
        graph = self.read_graph(self.stores.contents.fetch(task.id, content))
        with self._mutex:
            self._graphs[place] = graph
            while len(self._graphs) > _KNOWN:
                self._graphs.popitem(last=False)
        return graph

    def statuses(self, topology_run: TopologyRun, known: Mapping[str, NodeStatus] | None = None) -> Statuses:
        """The status of each node, read with strong consistency; known nodes are not read."""
        known = known or {}
        ids = {key: topology_run.run_state.task_id(key) for key in topology_run.graph.by_key if key not in known}
        found = self._read_all(list(ids.values()))
        return {
            key: known[key] if key in known else status_of(found.get(ids[key])) for key in topology_run.graph.by_key
        }

    def read_nodes(self, topology_run: TopologyRun, keys: Iterable[str]) -> Mapping[str, Task]:
        """The tasks of some nodes, read with strong consistency; missing tasks are left out."""
        ids = {key: topology_run.run_state.task_id(key) for key in keys}
        found = self._read_all(list(ids.values()))
        return {key: found[task_id] for key, task_id in ids.items() if task_id in found}

    def _read_all(self, ids: Sequence[TaskId]) -> Mapping[TaskId, Task]:
        """The tasks of many nodes, several hundred in parallel."""
        pages = [ids[first : first + _PAGE] for first in range(0, len(ids), _PAGE)]
        if len(pages) <= 1:
            return self.stores.tasks.read_many(ids, consistent=True)
        read = partial(self.stores.tasks.read_many, consistent=True)
        return {task_id: task for found in self.runtime.executor.map(read, pages) for task_id, task in found.items()}

    def save(self, run_state: RunState, change: Callable[[RunState], RunState]) -> RunState:
        """Change the state of a topology's run; the write is repeated after concurrent changes.

        If another run has begun since, that run is not changed, because the change belongs to the earlier run.

        Raises:
            Unavailable: a concurrent change came first on every try.
        """
        number = run_state.number
        for _ in range(_TRIES):
            if run_state.number != number:
                return run_state
            wanted = change(run_state)
            if wanted == run_state and run_state.version:
                return run_state
            if self.stores.topologies.save(wanted, self.runtime.nonce(), self._expires_at(wanted)):
                return replace(wanted, version=run_state.version + 1)
            run_state = self.stores.topologies.read(run_state.topology) or run_state
        raise Unavailable(f"the topology {run_state.topology} has too many concurrent writes")

    def _expires_at(self, run_state: RunState) -> Millis | None:
        """When the state of a topology's run expires; `None` while the run is active."""
        return self.runtime.now() + RUN_STATE_LIFE if run_state.ended or run_state.dissolved else None
