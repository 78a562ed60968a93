"""Tests with a hostile owner: the victim's promises are kept, and the attacker learns and changes nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.simulation.hostile_owner import HostileSimulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Disable logging: the functions log unusual events, and in a simulation all events are unusual."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def attacked(seed: int, rate: float) -> HostileSimulation:
    """A completed simulation in which each kind of attack occurred and no promise was broken."""
    simulation = HostileSimulation(seed, rate)
    simulation.simulate()
    assert not simulation.watching.violations, "\n".join(simulation.watching.violations)
    assert all(simulation.hostile.attacks.values()), simulation.hostile.attacks
    assert simulation.traces_in_others() == []
    assert simulation.watching.effects
    return simulation


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7))
def test_a_hostile_owner_does_not_delay_another_owners_tasks(
    seed: int, record_property: Callable[[str, object], None]
) -> None:
    """Without faults, the victim's tasks start as punctually as they do without an attacker."""
    simulation = attacked(seed, 0.0)
    record_property("attacks, latest start in ms", (simulation.hostile.attacks, simulation.watching.latest))
    assert simulation.watching.latest <= 3_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_hostile_owner_gains_nothing_from_faults(seed: int) -> None:
    """A hostile owner gains nothing from crashed processes, lost responses and differing clocks."""
    attacked(seed, 0.02)
