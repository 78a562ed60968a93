from __future__ import annotations

import pytest

from tests.simulation.fault_simulation import Theme
from tests.simulation.outcomes import defects_of, simulated


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 3, 4, 5, 6, 7, 8, 10])
def test_an_attempt_has_one_job_and_its_outcome_whatever_fails(seed: int) -> None:
    """An attempt has one job and ends as the job does, even if the start gets no response or events are lost."""
    simulation = simulated(seed, 0.02, theme=Theme.JOBS)
    assert not simulation.watching.violations, "\n".join(simulation.watching.violations)
    assert simulation.jobs.names
    assert defects_of(simulation) == []
