"""Tests how the lateness figures are computed."""

from __future__ import annotations

import pytest

from bench.lateness import KEPT_SIZES, figures_of
from bench.results import OTHERWISE

_SPREAD = list(range(101))


@pytest.mark.parametrize(("size", "in_keys"), [*zip(KEPT_SIZES, ("", "5000_"), strict=True)])
def test_lateness_figures_are_percentiles_with_known_keys(size: int, in_keys: str) -> None:
    """Figures for tasks are in milliseconds; figures for bursts are in seconds and relative to bare functions."""
    burst = [100 * number // size * 1_000 for number in range(size)]
    figures = figures_of(_SPREAD, burst, [each // 4 for each in burst], [each // 2 for each in burst])
    assert figures == {
        "lateness_p50_ms": 50.0,
        "lateness_p99_ms": 99.0,
        f"lateness_burst_{in_keys}p50_s": 49.5,
        f"lateness_burst_{in_keys}p99_s": 98.01,
        f"lateness_burst_{in_keys}vs_empty_function": 4.0,
        f"lateness_burst_{in_keys}vs_two_writes": 2.0,
    }
    assert figures.keys() <= OTHERWISE.keys()
