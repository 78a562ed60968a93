"""The store of topology runs, and the state machine that executes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.resource_generations import Incarnation
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.domain.topologies.definitions import Definition, VersionInfo
    from duetime.domain.topologies.graph import Graph
    from duetime.domain.topologies.join_counters import Chunk, JoinCount
    from duetime.domain.topologies.run_state import RunState
    from duetime.domain.topologies.trigger_rules import Counts, Outcome


class GraphReader(Protocol):
    """Makes graphs of topologies' payloads."""

    def __call__(self, payload: bytes) -> Graph:
        """The graph of a payload.

        Raises:
            FieldInvalid: it is none. What was accepted as a topology is one.
        """
        ...


class NewGraphReader(Protocol):
    """Makes graphs of payloads that are to become topologies'."""

    def __call__(self, payload: bytes, parameters: Collection[str]) -> Graph:
        """The graph of a payload.

        Args:
            payload: what a task is to be created with.
            parameters: the names of those that its conditions can ask.

        Raises:
            FieldInvalid: it is none.
        """
        ...


class DefinitionStore(Protocol):
    """Topology definitions. Every method may raise `duetime.domain.errors.Unavailable`."""

    def read(self, owner: str, name: str) -> tuple[Definition | None, Incarnation]:
        """Read the latest version and the edition of what is under the name, consistently; a marker has one too."""
        ...

    def read_earlier(self, owner: str, name: str, version: int) -> Definition | None:
        """Read an earlier version, consistently; `None` if it is not there."""
        ...

    def put(self, owner: str, definition: Definition, incarnation: Incarnation, nonce: str) -> bool:
        """Store the next version, if what is under the name is still at the edition that was read. Safe to resend.

        Returns:
            Whether it is stored, at the next edition, whose number is its version.

        Raises:
            FieldInvalid: it is too large.
        """
        ...

    def keep_earlier(self, owner: str, definition: Definition) -> None:
        """Store a version that is about to be replaced, apart from the latest one. Safe to repeat."""
        ...

    def forget_earlier(self, owner: str, name: str, version: int) -> None:
        """Remove an earlier version; it may be gone already."""
        ...

    def list_earlier(self, owner: str, name: str) -> list[VersionInfo]:
        """What is known of the earlier versions, latest first, read consistently."""
        ...

    def remove(self, owner: str, definition: Definition, incarnation: Incarnation, nonce: str, expiry: Millis) -> bool:
        """Remove the latest version, if it is still at the edition that was read, or gone already.

        A deletion marker takes its place until `expiry`.

        Returns:
            Whether it is gone.
        """
        ...

    def list_after(self, owner: str, after: str, limit: int) -> list[Definition]:
        """The latest versions of an owner's definitions by name, eventually consistently; those behind `after`."""
        ...


class TopologyStore(Protocol):
    """What is kept of topologies besides tasks. Every method may raise `duetime.domain.errors.Unavailable`.

    A node is named by the id of its task, which is another one in each run.
    """

    def read(self, topology: TaskId) -> RunState | None:
        """Read how far a topology has come, consistently; `None` if it has never begun."""
        ...

    def read_with_task(self, topology: TaskId) -> tuple[Task | None, RunState | None]:
        """Read a topology's task and how far it has come, consistently, in one request."""
        ...

    def save(self, run_state: RunState, nonce: str, expires_at: Millis | None) -> bool:
        """Store how far a topology has come, if it is still at the version that was read. Safe to resend.

        Args:
            run_state: with the version that was read.
            nonce: of this write.
            expires_at: when it may be forgotten; `None` while its run goes on.

        Returns:
            Whether it is stored, at the next version.
        """
        ...

    def add_edges(
        self, node: TaskId, edges: int, arrived: Mapping[int, Outcome], expires_at: Millis
    ) -> tuple[Chunk, Chunk]:
        """Count that edges of one chunk have arrived at a node; those that arrive again change nothing.

        Args:
            node: the child.
            edges: how many it has in all.
            arrived: what the parents of these edges have ended as, by the edges' positions.
            expires_at: when the counts may be forgotten.

        Returns:
            Their chunk before and after: the same if all of them had arrived before.
        """
        ...

    def add_report(self, node: TaskId, edges: int, chunk: int, counts: Counts, expires_at: Millis) -> JoinCount:
        """Enter what a chunk has counted, unless a fuller report of it is there; answers the tally."""
        ...

    def read_join_count(self, node: TaskId, edges: int) -> JoinCount:
        """Read what a node's chunks have reported, consistently."""
        ...

    def put_token(self, node: TaskId, token: str, expires_at: Millis) -> None:
        """Keep the token by which the run's execution hears of a node's end, in place of an older one."""
        ...

    def read_token(self, node: TaskId) -> str | None:
        """The token of a node, read consistently; `None` while there is none."""
        ...


class TopologyRollback(Protocol):
    """Rolls back topologies that are nodes of others."""

    def step(self, task: Task, until: Millis) -> Ending:
        """Have the nodes rolled back that may be now, as far as there is time.

        Args:
            task: the topology's, under the lease of its rollback.
            until: when there is no more time.

        Returns:
            `Succeeded` once all are, `Failed` if one cannot be, and else when it is worth another step (`Postponed`).

        Raises:
            Unavailable: a store did not answer; it is to be done again.
        """
        ...


class StateMachine(Protocol):
    """The state machine that runs topologies."""

    def start(self, topology: TaskId, fence: int) -> None:
        """Start the run of an attempt; starting it again is starting it once.

        Raises:
            Unavailable: it could not be started just now.
        """
        ...

    def is_running(self, topology: TaskId, fence: int) -> bool:
        """Whether the run of an attempt is still going: it has begun, and has neither ended nor been stopped.

        Raises:
            Unavailable: it is not known just now.
        """
        ...

    def was_aborted(self, topology: TaskId, fence: int) -> bool:
        """Whether a person has stopped the run of an attempt; it did not just break, or take too long.

        Raises:
            Unavailable: it is not known just now.
        """
        ...

    def answer(self, token: str) -> None:
        """Tell whoever waits with a token that its node has ended; one that waits no more is passed over.

        Raises:
            Unavailable: it did not answer.
        """
        ...
