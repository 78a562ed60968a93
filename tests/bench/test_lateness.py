"""What the figures of lateness are made of."""

from __future__ import annotations

from bench.lateness import figures_of
from bench.results import OTHERWISE


def test_the_figures_are_percentiles_under_the_keys_that_are_kept() -> None:
    """Single tasks in milliseconds, bursts in seconds; `make bench` keeps all of them."""
    figures = figures_of(list(range(101)), [1_000 * each for each in range(101)])
    assert figures == {
        "lateness_p50_ms": 50.0,
        "lateness_p99_ms": 99.0,
        "lateness_burst_p50_s": 50.0,
        "lateness_burst_p99_s": 99.0,
    }
    assert figures.keys() <= OTHERWISE.keys()
