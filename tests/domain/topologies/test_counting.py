from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from duetime.domain.operating_parameters import EDGES_PER_CHUNK
from duetime.domain.topologies.join_counters import Chunk, JoinCount, chunk_of, chunks_for, reports
from duetime.domain.topologies.trigger_rules import Counts, Outcome, TriggerRule, Verdict, verdict
from tests.domain.topologies.world import with_report

if TYPE_CHECKING:
    from random import Random

OK, BAD = Outcome.SUCCEEDED, Outcome.FAILED


@given(st.integers(1, 1_000))
def test_every_edge_belongs_to_exactly_one_chunk(edges: int) -> None:
    """The chunks' sizes add up to the number of edges, and no chunk is empty."""
    sizes = Counter(chunk_of(position) for position in range(edges))
    numbers = range(chunks_for(edges))
    assert sizes == {number: Chunk.numbered(number, edges).edges for number in numbers}


def test_a_repeated_edge_counts_once_with_its_first_outcome() -> None:
    """Repeating an edge changes nothing, even with another outcome."""
    chunk = Chunk(3).with_edge(1, OK)
    assert chunk.with_edge(1, OK) == chunk.with_edge(1, BAD) == chunk
    assert chunk.with_edge(0, BAD).counts == Counts(3, succeeded=1, failed=1)


def test_a_chunk_reports_when_complete_or_decisive() -> None:
    """With `all_success`, a chunk reports its first failure and its last edge; with `all_done`, only its last edge."""
    empty = Chunk(3)
    first = empty.with_edge(0, BAD)
    second = first.with_edge(1, BAD)
    third = second.with_edge(2, OK)
    steps = [(empty, first), (first, second), (second, third)]
    assert [reports(TriggerRule.ALL_SUCCESS, 500, *step) for step in steps] == [True, False, True]
    assert [reports(TriggerRule.ALL_DONE, 500, *step) for step in steps] == [False, False, True]


def test_repeating_an_edge_sends_its_chunks_report_again() -> None:
    """Repeating a decisive edge sends the chunk's report again, because a crash may have lost the report."""
    decisive = Chunk(3).with_edge(0, BAD)
    assert reports(TriggerRule.ONE_FAILED, 500, decisive, decisive)
    assert not reports(TriggerRule.ONE_SUCCESS, 500, decisive, decisive)


@settings(deadline=None)
@given(
    st.sampled_from(TriggerRule),
    st.lists(st.sampled_from(Outcome), min_size=EDGES_PER_CHUNK + 1, max_size=3 * EDGES_PER_CHUNK),
    st.randoms(use_true_random=False),
)
def test_counting_in_chunks_leads_to_the_same_verdict(
    rule: TriggerRule, ends: list[Outcome], random_source: Random
) -> None:
    """In any order and with repeats, the counts lead to the same verdict as the rule applied to all ends."""
    whole = Counter(ends)
    final = verdict(rule, Counts(len(ends), whole[OK], whole[BAD], whole[Outcome.SKIPPED]))
    chunks = {number: Chunk.numbered(number, len(ends)) for number in range(chunks_for(len(ends)))}
    join_count = JoinCount(len(ends))
    told = 0
    edges = [*range(len(ends)), *random_source.choices(range(len(ends)), k=20)]
    random_source.shuffle(edges)
    for position in edges:
        before = chunks[chunk_of(position)]
        after = chunks[chunk_of(position)] = before.with_edge(position, ends[position])
        if reports(rule, len(ends), before, after):
            told += before != after
            join_count = with_report(join_count, chunk_of(position), after.counts)
        assert verdict(rule, join_count.counts) in {Verdict.WAIT, final}
    assert verdict(rule, join_count.counts) is final
    assert told <= 2 * len(chunks)
