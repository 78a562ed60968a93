from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import MINUTE
from tests.simulation.faults import Fault
from tests.simulation.storms import Storm

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = 40
"""How many seeds the ordinary tests run; `make simulate FIRST=40 SEEDS=3000` runs more."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The functions log what is worth a person's look; in a storm that is everything."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_functions_keep_every_promise_in_a_storm(seed: int) -> None:
    """Legal moves, one live effect, none early, none after a cancel, locks kept, and every task comes to its end."""
    storm = Storm(seed)
    storm.blow()
    watching = storm.watching
    assert not watching.violations, f"make simulate FIRST={seed} SEEDS=1\n" + "\n".join(watching.violations)
    assert watching.effects
    defects = [machine for machine in storm.machines if machine.facts.counts["worker_defects"]]
    assert not defects, [machine.facts.notes for machine in defects]


def test_every_kind_of_fault_is_injected() -> None:
    """A kind that never happens would prove nothing."""
    happened: set[str] = set()
    for seed in range(12):
        storm = Storm(seed)
        storm.blow()
        happened |= storm.faults.keys()
    others = {"machine killed", "ticks stopped", "tick missed", "deployed", "message delayed", "message doubled"}
    assert happened >= {fault.name.lower() for fault in Fault} | others


def test_the_same_seed_gives_the_same_trace() -> None:
    """A failing seed can be looked at again, call by call."""
    traces = []
    for _ in range(2):
        storm = Storm(5)
        storm.blow(3 * MINUTE)
        assert storm.faulty
        traces.append(storm.told())
    assert len(traces[0]) > 1000
    assert traces[0] == traces[1]
