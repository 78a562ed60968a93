from __future__ import annotations

import pytest

from duetime.domain.times import MINUTE
from tests.simulation.storm import Storm

QUICK, SEEDS = 3, 60
"""How many seeds the quick and all tests run; `python -m tests.simulation --of services --first 60` runs more."""


@pytest.mark.parametrize(
    "seed", [*range(QUICK), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(QUICK, SEEDS))]
)
def test_nothing_is_lost_or_run_twice_in_a_storm(seed: int) -> None:
    """Crashes, lost answers, stalls, duplicates, lost messages and missed ticks: every task comes to its end, once."""
    storm = Storm(seed)
    storm.blow(20 * MINUTE)
    assert not storm.violations
    assert storm.facts.counts["worker_defects"] == 0, storm.facts.notes
    assert not storm.unfinished()


def test_the_same_seed_gives_the_same_run() -> None:
    """A failing seed can be looked at again."""
    one, other = Storm(7), Storm(7)
    for storm in (one, other):
        storm.blow(5 * MINUTE)
    assert one.live
    assert [(call.task_id, call.began) for call in one.live] == [(call.task_id, call.began) for call in other.live]
