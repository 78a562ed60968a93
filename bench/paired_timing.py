"""Compares two pieces of code by running them alternately and taking the ratio of each pair of times."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measurement relative to a reference measurement in the same run.

    Attributes:
        name: what was measured.
        against: the reference to which the code was compared.
        ratio: median of the pairs' ratios.
        low: smallest ratio of a pair.
        high: largest ratio of a pair.
        seconds: median time of the measured code in seconds, which depends much more on the machine than the ratio
            does.
    """

    name: str
    against: str
    ratio: float
    low: float
    high: float
    seconds: float


def compare(
    name: str,
    work: Callable[[], object],
    against: str,
    baseline: Callable[[], object],
    *,
    pairs: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Run each of two pieces of code once to warm up, and then time them alternately with a clock in seconds."""
    work()
    baseline()
    times = [(_seconds(work, clock), _seconds(baseline, clock)) for _ in range(pairs)]
    ratios = [mine / other for mine, other in times]
    return Comparison(
        name, against, statistics.median(ratios), min(ratios), max(ratios), statistics.median(mine for mine, _ in times)
    )


compare_cpu = partial(compare, clock=time.process_time)
"""Like `compare`, but measures this process's CPU time, which depends less on other load, and suits code that never
waits."""


def _seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    began = clock()
    work()
    return clock() - began
