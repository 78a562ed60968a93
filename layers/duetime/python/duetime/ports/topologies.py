"""Ports for the stores of topologies' definitions and runs, and for the state machine that executes runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.conditional_writes import Incarnation
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.definitions import Definition, VersionInfo
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.join_counters import Chunk, JoinCount
    from duetime.domain.topologies.run_state import RunState
    from duetime.domain.topologies.trigger_rules import Counts, Outcome


class GraphReader(Protocol):
    """Parses topologies' payloads."""

    def __call__(self, payload: bytes) -> Graph:
        """Parse the graph in a payload.

        Raises:
            FieldInvalid: the payload is not a graph, which cannot happen for accepted topologies.
        """
        ...


class NewGraphReader(Protocol):
    """Parses payloads of new topologies."""

    def __call__(self, payload: bytes, parameters: Collection[str]) -> Graph:
        """Parse the graph in a payload.

        Args:
            payload: payload of a new task.
            parameters: names of the parameters that the graph's conditions can use.

        Raises:
            FieldInvalid: the payload is not a graph.
        """
        ...


class DefinitionStore(Protocol):
    """Topology definitions. Every method may raise `duetime.domain.errors.Unavailable`."""

    def read(self, owner: str, name: str) -> tuple[Definition | None, Incarnation]:
        """Read the latest version and the name's edition (strong consistency). Deletion markers also have editions."""
        ...

    def read_earlier(self, owner: str, name: str, version: int) -> Definition | None:
        """Read an earlier version with strong consistency; `None` if it does not exist."""
        ...

    def put(self, owner: str, definition: Definition, incarnation: Incarnation, nonce: str) -> bool:
        """Store the next version, if the name still has the edition that was read. The call is safe to resend.

        Returns: Whether the version is stored at the next edition, whose number is also the version's number.

        Raises:
            FieldInvalid: the definition is too large.
        """
        ...

    def keep_earlier(self, owner: str, definition: Definition) -> None:
        """Store a version that is about to be replaced, separately from the latest version.

        The call is safe to repeat.
        """
        ...

    def forget_earlier(self, owner: str, name: str, version: int) -> None:
        """Remove an earlier version, unless it is already removed."""
        ...

    def list_earlier(self, owner: str, name: str) -> list[VersionInfo]:
        """Metadata of the earlier versions, latest first, read with strong consistency."""
        ...

    def remove(self, owner: str, definition: Definition, incarnation: Incarnation, nonce: str, expiry: Millis) -> bool:
        """Remove the latest version if its edition has not changed since it was read.

        Nothing is written if the version is already deleted. A deletion marker replaces the version until `expiry`.

        Returns:
            Whether the version is deleted.
        """
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[Definition]:
        """The latest version of each of an owner's definitions that follow `after`, by name (eventual consistency).

        Fewer than `limit` versions are returned only at the end.
        """
        ...


class TopologyStore(Protocol):
    """The store of topologies' data that is not in the records of their tasks.

    Every method may raise `duetime.domain.errors.Unavailable`.

    A node is identified by the id of its task, which is different in each run.
    """

    def read(self, topology: TaskId) -> RunState | None:
        """Read the run state of a topology with strong consistency; `None` if the topology has never started."""
        ...

    def read_with_task(self, topology: TaskId) -> tuple[Task | None, RunState | None]:
        """Read a topology's task and its run state with strong consistency, in one request."""
        ...

    def save(self, run_state: RunState, nonce: str, expires_at: Millis | None) -> bool:
        """Store the run state of a topology, if it still has the version that was read. The call is safe to resend.

        Args:
            run_state: run state, with the version that was read.
            nonce: nonce of this write.
            expires_at: when the run state may be removed; `None` while the run is active.

        Returns:
            Whether the run state is stored, at the next version.
        """
        ...

    def add_edges(
        self, node: TaskId, edges: int, arrived: Mapping[int, Outcome], expires_at: Millis
    ) -> tuple[Chunk, Chunk]:
        """Count edges in one chunk that have arrived at a node; edges that were already counted change nothing.

        Args:
            node: id of the child.
            edges: total number of its edges.
            arrived: outcomes of the parents of these edges, by the edges' positions.
            expires_at: when the counts may be removed.

        Returns: The edges' chunk before and after the call; both are equal if all edges were already counted.
        """
        ...

    def add_report(self, node: TaskId, edges: int, chunk: int, counts: Counts, expires_at: Millis) -> JoinCount:
        """Store a chunk's report, unless a report with as many or more edges is stored, and return the counts."""
        ...

    def read_join_count(self, node: TaskId, edges: int) -> JoinCount:
        """Read the reports of a node's chunks with strong consistency."""
        ...

    def put_token(self, node: TaskId, token: str, expires_at: Millis) -> None:
        """Store the token with which a node's end is reported to the run's execution; it replaces an older token."""
        ...

    def read_token(self, node: TaskId) -> str | None:
        """The token of a node, read with strong consistency; `None` if no token is stored."""
        ...


class TopologyQuota(Protocol):
    """Limits how many topologies an owner can run at the same time."""

    def refusal(self, task: Task, nodes: int) -> str | None:
        """The reason why a topology with this many nodes must not run now; `None` if it may run.

        Raises:
            Unavailable: the store did not answer.
        """
        ...


class TopologyRollback(Protocol):
    """Rolls back topologies that are nodes of other topologies."""

    def step(self, task: Task, until: Millis) -> Ending:
        """Roll back the nodes that are ready, while time is left.

        Args:
            task: the topology's task, whose rollback has a lease.
            until: when to stop.

        Returns: `Succeeded` once all nodes are rolled back, `Failed` if a node cannot be rolled back, and otherwise
        `Postponed` with the time of the next step.

        Raises:
            Unavailable: a store did not answer; the call must be repeated.
        """
        ...


class StateMachine(Protocol):
    """The state machine that runs topologies."""

    def start(self, topology: TaskId, fence: int) -> None:
        """Start the run of a topology's attempt; starting the run again changes nothing.

        Raises:
            Unavailable: the run could not be started now.
        """
        ...

    def is_running(self, topology: TaskId, fence: int) -> bool:
        """Whether the run of an attempt is active, which means that it has started and neither ended nor been stopped.

        Raises:
            Unavailable: the state is unknown now.
        """
        ...

    def was_aborted(self, topology: TaskId, fence: int) -> bool:
        """Whether the run of an attempt was stopped by a person, and not by a failure or a timeout.

        Raises:
            Unavailable: the state is unknown now.
        """
        ...

    def answer(self, token: str) -> None:
        """Report the end of a node with its token; if no execution waits for the token, the call does nothing.

        Raises:
            Unavailable: the state machine did not answer.
        """
        ...
