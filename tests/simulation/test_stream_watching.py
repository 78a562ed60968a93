from __future__ import annotations

import pytest

from tests.simulation.fault_simulation import FaultSimulation, Theme
from tests.simulation.outcomes import simulated


def watched(seed: int, rate: float) -> FaultSimulation:
    """A completed simulation in which no invariant was violated; in every fifth seed, the stream was read."""
    simulation = simulated(seed, rate, theme=Theme.TASKS)
    assert not simulation.watching.violations, "\n".join(simulation.watching.violations)
    return simulation


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 5, 20])
def test_counts_events_updates_and_the_archive_agree_with_the_records(seed: int) -> None:
    """Counts, events, live updates and the archive agree with the records, under any faults."""
    streams = watched(seed, 0.03).streams
    assert streams.counted
    assert streams.published > 10
    # In other seeds, a fault ends the live connection early, or no record has expired by the end.
    assert seed or min(streams.pushed, streams.archived) > 10


@pytest.mark.slow
def test_without_a_fault_no_reader_of_the_stream_misses_anything() -> None:
    """Without faults, each end has an event, and live updates have the current state of each task."""
    streams = watched(10, 0.0).streams
    assert min(streams.published, streams.pushed) > 10


@pytest.mark.slow
def test_bulk_operations_that_outlast_their_requests_come_to_an_end() -> None:
    """Paced bulk operations, which last longer than their requests and sometimes lose their holders, come to an end."""
    ended = [watched(seed, 0.06).bulk.ended for seed in (3, 6)]
    assert sum(ended) > 2
