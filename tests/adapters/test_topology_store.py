"""Tests the stored counts and tokens of topologies on the fakes, on moto and on the embedded engine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.dynamodb.topology_run_state import DynamoTopologyStore
from duetime.domain.times import DAY
from duetime.domain.topologies.join_counters import Chunk, JoinCount
from duetime.domain.topologies.run_state import Begun, RunState
from duetime.domain.topologies.trigger_rules import Counts, Outcome
from tests.adapters.clouds import EXECUTOR, SILENT
from tests.adapters.examples import HOME, numbered, task

if TYPE_CHECKING:
    from duetime.ports.topologies import TopologyStore
    from tests.adapters.clouds import Cloud

LATER = HOME + DAY
NODE = numbered(2)
HEAD = RunState(numbered(1), (Begun(HOME, 16),), fence=3, join_group=9)


def test_a_topology_head_is_read_back_unchanged(topology_store: TopologyStore) -> None:
    """A saved head is read back with the next version; before the first save, reading it returns `None`."""
    assert topology_store.read(HEAD.topology) is None
    full = replace(HEAD, runs=(*HEAD.runs, Begun(HOME + 5, 32)), ran={"a": 1, "b/c:d": 1}, opened=True, stopped=True)
    assert topology_store.save(full, "n1", LATER)
    assert topology_store.read(HEAD.topology) == replace(full, version=1)
    ended = replace(full, ran={}, opened=False, stopped=False, ended=True, version=1)
    assert topology_store.save(ended, "n2", LATER)
    assert topology_store.read(HEAD.topology) == replace(ended, version=2)


def test_only_the_version_that_was_read_is_replaced(topology_store: TopologyStore) -> None:
    """Saving an outdated version is refused, but a repeated save is accepted."""
    assert topology_store.save(HEAD, "n1", LATER)
    assert topology_store.save(HEAD, "n1", LATER)
    assert not topology_store.save(replace(HEAD, stopped=True), "n2", LATER)


def test_only_the_first_outcome_of_an_edge_counts(topology_store: TopologyStore) -> None:
    """Only an edge's first outcome counts, and repeating an edge leaves the chunk unchanged."""
    before, after = topology_store.add_edges(NODE, 3, {1: Outcome.FAILED}, LATER)
    assert (before, after) == (Chunk(3), Chunk(3, failed=frozenset({1})))
    assert topology_store.add_edges(NODE, 3, {1: Outcome.SUCCEEDED}, LATER) == (after, after)
    _, more = topology_store.add_edges(NODE, 3, {0: Outcome.SUCCEEDED}, LATER)
    _, most = topology_store.add_edges(NODE, 3, {2: Outcome.SKIPPED}, LATER)
    assert more.counts == Counts(3, succeeded=1, failed=1)
    assert most.counts == Counts(3, succeeded=1, failed=1, skipped=1)


def test_only_missing_edges_of_a_batch_are_added(topology_store: TopologyStore) -> None:
    """If several edges arrive together, only edges not stored yet are added; stored edges keep their outcome."""
    topology_store.add_edges(NODE, 4, {1: Outcome.FAILED}, LATER)
    ends = {0: Outcome.SUCCEEDED, 1: Outcome.SUCCEEDED, 2: Outcome.SKIPPED, 3: Outcome.SUCCEEDED}
    _, after = topology_store.add_edges(NODE, 4, ends, LATER)
    assert after == Chunk(4, frozenset({0, 3}), frozenset({1}), frozenset({2}))
    assert topology_store.add_edges(NODE, 4, ends, LATER) == (after, after)


def test_a_run_and_its_task_are_read_together(engine_cloud: Cloud) -> None:
    """A run and its task are read together, and either is `None` if it does not exist."""
    table = engine_cloud.table()
    topologies = DynamoTopologyStore(engine_cloud.dynamodb, table)
    tasks = DynamoTaskStore(engine_cloud.dynamodb, table, EXECUTOR, SILENT)
    mine = task(id=HEAD.topology)
    assert topologies.read_with_task(mine.id) == (None, None)
    assert topologies.save(HEAD, "n1", None)
    assert topologies.read_with_task(mine.id) == (None, replace(HEAD, version=1))
    tasks.create(mine)
    assert topologies.read_with_task(mine.id) == (mine, replace(HEAD, version=1))


def test_edges_beyond_a_hundred_are_in_another_chunk(topology_store: TopologyStore) -> None:
    """A chunk contains only the edges that were stored in this chunk."""
    topology_store.add_edges(NODE, 150, {7: Outcome.SUCCEEDED}, LATER)
    before, after = topology_store.add_edges(NODE, 150, {107: Outcome.SUCCEEDED}, LATER)
    assert (before, after) == (Chunk(50), Chunk(50, succeeded=frozenset({107})))


def test_the_fullest_report_of_each_chunk_is_kept(topology_store: TopologyStore) -> None:
    """If reports are reordered or repeated, the fullest report of each chunk is kept."""
    assert topology_store.read_join_count(NODE, 150) == JoinCount(150)
    full, empty, other = Counts(100, succeeded=99, failed=1), Counts(100, failed=1), Counts(50, skipped=50)
    assert topology_store.add_report(NODE, 150, 0, full, LATER) == JoinCount(150, {0: full})
    assert topology_store.add_report(NODE, 150, 0, empty, LATER) == JoinCount(150, {0: full})
    assert topology_store.add_report(NODE, 150, 1, other, LATER) == JoinCount(150, {0: full, 1: other})
    assert topology_store.read_join_count(NODE, 150).counts.is_complete


def test_the_last_token_of_a_node_replaces_earlier_tokens(topology_store: TopologyStore) -> None:
    """A node has one token at a time, and the latest token replaces the earlier ones."""
    assert topology_store.read_token(NODE) is None
    topology_store.put_token(NODE, "first", LATER)
    topology_store.put_token(NODE, "second", LATER)
    assert topology_store.read_token(NODE) == "second"
