from __future__ import annotations

import pytest

from duetime.domain.times import MINUTE
from tests.simulation.schedule_storm import ScheduleStorm

pytestmark = pytest.mark.slow

SEEDS = 10


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_occurrence_is_lost_or_doubled_in_a_storm(seed: int) -> None:
    """Users steer schedules while everything fails: afterwards each occurrence has one task, or a word about it."""
    storm = ScheduleStorm(seed, 25 * MINUTE)
    storm.blow(20 * MINUTE)
    assert not storm.violations
    assert storm.facts.counts["worker_defects"] == 0, storm.facts.notes
    assert storm.facts.counts["expansions_failed"] == 0, storm.facts.notes
    assert not storm.unfinished()
    assert storm.doubled() == []
    assert storm.missing() == []
    assert storm.going_on() == []
