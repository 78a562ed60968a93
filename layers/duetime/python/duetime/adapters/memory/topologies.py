"""The counts and tokens of topologies, in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from duetime.domain.topologies.join_counters import Chunk, JoinCount, chunk_of

if TYPE_CHECKING:
    from duetime.domain.ids import TaskId
    from duetime.domain.times import Millis
    from duetime.domain.topologies.run_state import RunState
    from duetime.domain.topologies.trigger_rules import Counts, Outcome


class MemoryTopologyStore:
    """`duetime.ports.topologies.TopologyStore` in memory."""

    def __init__(self) -> None:
        self._mutex = Lock()
        self._heads: dict[TaskId, tuple[RunState, str]] = {}
        self._chunks: dict[tuple[TaskId, int], Chunk] = {}
        self._tallies: dict[TaskId, JoinCount] = {}
        self._tokens: dict[TaskId, str] = {}

    def read(self, topology: TaskId) -> RunState | None:
        """Read how far a topology has come."""
        with self._mutex:
            found = self._heads.get(topology)
            return found and found[0]

    def save(self, run_state: RunState, nonce: str, expires_at: Millis | None) -> bool:
        """Store how far a topology has come, if it is still at the version that was read."""
        del expires_at  # memory forgets with its process
        with self._mutex:
            stored, stored_nonce = self._heads.get(run_state.topology, (None, ""))
            if stored is not None and stored_nonce == nonce:
                return True
            if (stored.version if stored else 0) != run_state.version:
                return False
            self._heads[run_state.topology] = (replace(run_state, version=run_state.version + 1), nonce)
            return True

    def add_edge(
        self, node: TaskId, edges: int, position: int, outcome: Outcome, expires_at: Millis
    ) -> tuple[Chunk, Chunk]:
        """Count that an edge has arrived at a node."""
        del expires_at  # memory forgets with its process
        number = chunk_of(position)
        with self._mutex:
            before = self._chunks.get((node, number)) or Chunk.numbered(number, edges)
            after = self._chunks[node, number] = before.with_edge(position, outcome)
        return before, after

    def add_report(self, node: TaskId, edges: int, chunk: int, counts: Counts, expires_at: Millis) -> JoinCount:
        """Enter what a chunk has counted."""
        del expires_at  # memory forgets with its process
        with self._mutex:
            join_count = self._tallies[node] = self._tallies.get(node, JoinCount(edges)).with_report(chunk, counts)
            return join_count

    def read_join_count(self, node: TaskId, edges: int) -> JoinCount:
        """Read what a node's chunks have reported."""
        with self._mutex:
            return self._tallies.get(node, JoinCount(edges))

    def put_token(self, node: TaskId, token: str, expires_at: Millis) -> None:
        """Keep a node's token."""
        del expires_at  # memory forgets with its process
        with self._mutex:
            self._tokens[node] = token

    def read_token(self, node: TaskId) -> str | None:
        """The token of a node."""
        with self._mutex:
            return self._tokens.get(node)
