"""Runs seeds in parallel, independently of each other, and collects their outcomes."""

from __future__ import annotations

import gc
import logging
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from greenlet import GreenletExit

from tests.simulation.fault_simulation import FaultSimulation, Theme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from duetime.domain.times import Millis

_AT_ONCE = 4
"""The number of seeds that a process gets at a time."""
CONDITIONS = frozenset(
    {
        *(
            "stale read",
            "clock skewed",
            "messages reordered",
            "ticks overlap",
            "shards doubled",
            "hot key",
            "dependency",
            *("due after hours", "bulk operation"),
        ),
        *("deployed older code", "deployed present code", "deployed newer code"),
    }
)
"""Counted events that are not faults: conditions that occur in every account, and consequences of counted faults."""
_BETWEEN_COLLECTIONS = 10
"""The number of seeds between garbage collections."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a seed.

    Attributes:
        violations: the promises that were broken.
        counts: the number of events, by name.
        faults: how often each kind of fault was injected.
        calm_after: the time from the last fault until everything had ended.
        crash: why the simulation itself failed, if it did, which is not a failure of the core.
    """

    seed: int
    violations: list[str]
    counts: dict[str, int]
    faults: dict[str, int] = field(default_factory=dict)
    calm_after: Millis = 0
    crash: str = ""


def rate_of(seed: int, rates: Sequence[float] | float | None) -> float | None:
    """The fault rate of a seed: a common rate, one of several rates in turn, or `None` if the seed draws its rate."""
    if rates is None or isinstance(rates, float):
        return rates
    return rates[seed % len(rates)] if rates else None


def run_functions(
    seed: int, rate: Sequence[float] | float | None = None, *, briefly: bool = False, theme: Theme | None = None
) -> Outcome:
    """Run a fault simulation, and return its outcome; a brief simulation ends as soon as a promise is broken."""
    try:
        return outcome_of(simulated(seed, rate_of(seed, rate), briefly=briefly, theme=theme))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported with its seed
        return Outcome(seed, [], {}, crash=_place_of(error))


def _place_of(error: Exception) -> str:
    """An error and the place where it was raised, in one line."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error!r} in {Path(raised.filename).name}:{raised.lineno}"


def simulated(
    seed: int, rate: float | None = None, *, briefly: bool = False, theme: Theme | None = None
) -> FaultSimulation:
    """Run a fault simulation to its end, and return the simulation."""
    simulation = FaultSimulation(seed, rate, theme)
    simulation.is_brief = briefly
    simulation.simulate()
    return simulation


def defects_of(simulation: FaultSimulation) -> list[object]:
    """The logged facts about deliveries that failed in duetime's own code, and not because their process was ended."""
    notes = (note for machine in simulation.machines for note in machine.facts.notes)
    failed = (facts for text, facts in notes if text == "a delivery could not be processed")
    return [facts for facts in failed if not str(facts["error"]).startswith(GreenletExit.__name__)]


def outcome_of(simulation: FaultSimulation) -> Outcome:
    """The outcome of a fault simulation."""
    watching = simulation.watching
    counts = {
        "tasks": watching.tasks_made,
        "AWS calls": simulation.calls,
        "faults": sum(number for name, number in simulation.faults.items() if name not in CONDITIONS),
        "target calls": watching.effects,
    }
    return Outcome(simulation.seed, watching.violations, counts, simulation.faults, simulation.calm_after)


def spread(run: Callable[[int], Outcome], seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    """Run seeds in this many processes, and yield their outcomes in order."""
    if jobs == 1:
        _make_ready()
        yield from map(partial(_run, run), seeds)
        return
    with ProcessPoolExecutor(jobs, initializer=_make_ready) as processes:
        try:
            yield from processes.map(partial(_run, run), seeds, chunksize=_AT_ONCE)
        finally:
            processes.shutdown(wait=False, cancel_futures=True)


def _make_ready() -> None:
    logging.disable(logging.CRITICAL)
    # Most objects in a simulation are used until its end, and garbage collection would take a fifth of the time.
    gc.collect()
    gc.freeze()
    gc.disable()


def _run(run: Callable[[int], Outcome], seed: int) -> Outcome:
    outcome = run(seed)
    if seed % _BETWEEN_COLLECTIONS == 0:
        gc.collect()
    return outcome
