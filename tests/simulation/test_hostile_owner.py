"""A hostile owner beside a victim: the victim's promises are kept, and the attacker learns and changes nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.simulation.hostile_owner import HostileSimulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The functions log events for a person; in a simulation that is everything."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def attacked(seed: int, rate: float) -> HostileSimulation:
    """A simulation that is over, in which every kind of attack happened and no promise was broken."""
    simulation = HostileSimulation(seed, rate)
    simulation.simulate()
    assert not simulation.watching.violations, "\n".join(simulation.watching.violations)
    assert all(simulation.hostile.attacks.values()), simulation.hostile.attacks
    assert simulation.traces_in_others() == []
    assert simulation.watching.effects
    return simulation


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7))
def test_a_hostile_owner_delays_and_changes_nothing_of_others(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    """Without faults every start of the victim is as punctual as without the attacker."""
    simulation = attacked(seed, 0.0)
    record_property("attacks, latest start in ms", (simulation.hostile.attacks, simulation.watching.latest))
    assert simulation.watching.latest <= 3_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_hostile_owner_gains_nothing_by_faults(seed: int) -> None:
    """Processes die, responses are lost and clocks differ during the attacks."""
    attacked(seed, 0.02)
