from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import MINUTE
from tests.simulation.storm import Storm
from tests.virtual.pulling import PullingWorld
from tests.virtual.world import PULLED

if TYPE_CHECKING:
    from duetime.domain.tasks.task import TaskSpec

SEEDS = 15
QUICK = 2
"""How many of them are run each time."""


class PullStorm(PullingWorld, Storm):
    """A storm in which most tasks are pulled, and their workers die like all others."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.keep_pullers(4)

    def _spec(self) -> TaskSpec:
        spec = super()._spec()
        return replace(spec, type=PULLED, rollback=False) if self.random.random() < 0.7 else spec

    def kill_workers(self) -> None:
        """Kill all workers, of both kinds."""
        super().kill_workers()
        self.kill_pullers()


@pytest.mark.parametrize(
    "seed", [*range(QUICK), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(QUICK, SEEDS))]
)
def test_no_pulled_task_is_lost_or_run_twice_in_a_storm(seed: int) -> None:
    """Whatever fails: no two live effects of a task, none early, one outcome, and every task comes to its end."""
    storm = PullStorm(seed)
    storm.blow(20 * MINUTE)
    assert not storm.violations
    assert storm.facts.counts["worker_defects"] == 0, storm.facts.notes
    assert not storm.unfinished()
    pulled = [task for task in storm.tasks._tasks.values() if task.type == PULLED]
    assert any(task.lease_holder == "puller" for task in pulled)
