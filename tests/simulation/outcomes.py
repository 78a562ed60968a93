"""What comes of a seed, and seeds run side by side: the same comes of a seed whatever runs beside or before it."""

from __future__ import annotations

import gc
import logging
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.storms import Storm, Theme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from duetime.domain.times import Millis

_AT_ONCE = 4
"""Seeds that a process is given in one go."""
CONDITIONS = frozenset(
    {
        *("stale read", "clock skewed", "messages reordered", "ticks overlap", "shards doubled"),
        *("deployed older code", "deployed present code", "deployed newer code"),
    }
)
"""What is counted besides faults: how things are in any account, and what else is told of a fault that is counted."""
_BETWEEN_COLLECTIONS = 10
"""Seeds."""


@dataclass(frozen=True)
class Outcome:
    """What came of a seed.

    Attributes:
        violations: the promises that did not hold.
        counts: how much happened, by its name.
        faults: how often each kind of fault was injected.
        calm_after: how long after the last fault everything had come to its end.
    """

    seed: int
    violations: list[str]
    counts: dict[str, int]
    faults: dict[str, int] = field(default_factory=dict)
    calm_after: Millis = 0


def rate_of(seed: int, rates: Sequence[float] | float | None) -> float | None:
    """The chance of a fault at each call of a seed: the one of all, or of several one after the other; else its own."""
    if rates is None or isinstance(rates, float):
        return rates
    return rates[seed % len(rates)] if rates else None


def run_functions(
    seed: int, rate: Sequence[float] | float | None = None, *, briefly: bool = False, theme: Theme | None = None
) -> Outcome:
    """Run a storm over the functions; one that is run briefly ends with the first promise that it breaks."""
    return outcome_of(blown(seed, rate_of(seed, rate), briefly=briefly, theme=theme))


def blown(seed: int, rate: float | None = None, *, briefly: bool = False, theme: Theme | None = None) -> Storm:
    """A storm over the functions that is over."""
    storm = Storm(seed, rate, theme)
    storm.is_brief = briefly
    storm.blow()
    return storm


def outcome_of(storm: Storm) -> Outcome:
    """What came of a storm over the functions."""
    watching = storm.watching
    counts = {
        "tasks": watching.tasks_made,
        "AWS calls": storm.calls,
        "faults": sum(number for name, number in storm.faults.items() if name not in CONDITIONS),
        "target calls": watching.effects,
    }
    return Outcome(storm.seed, watching.violations, counts, storm.faults, storm.calm_after)


def spread(run: Callable[[int], Outcome], seeds: Iterable[int], jobs: int) -> Iterator[Outcome]:
    """Run seeds on so many cores, and give what comes of them in their order."""
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
    # A storm makes much that lives until its end, and nothing that must go before: looking for garbage takes a fifth.
    gc.collect()
    gc.freeze()
    gc.disable()


def _run(run: Callable[[int], Outcome], seed: int) -> Outcome:
    outcome = run(seed)
    if seed % _BETWEEN_COLLECTIONS == 0:
        gc.collect()
    return outcome
