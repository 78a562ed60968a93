"""The pace of bulk operations."""

from __future__ import annotations

from math import ceil

import pytest

from duetime.domain.bulk import FilterAction
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.times import SECOND
from duetime.services.bulk.filter_actions import Counts, Pace
from tests.clocks import StandingClock


@pytest.mark.parametrize("per_second", [0.1, 3, 300, 667, 700, 999, 1_000])
def test_the_total_time_of_a_fractional_pace_is_rounded(per_second: float) -> None:
    """The total time of an operation is rounded up, not the time for each task."""
    clock = StandingClock()
    began, pace = clock.now(), Pace(clock, FilterAction(TaskFilter(), per_second=per_second))
    for done in range(1, 701):
        pace.keep(Counts(None, examined=done, matched=done))
        assert clock.now() - began == ceil(done * SECOND / per_second)
