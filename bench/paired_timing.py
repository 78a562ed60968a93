"""How two pieces of code are compared: in turn, many times, by the ratio of each pair."""

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
    """One thing measured against another in the same run.

    Attributes:
        name: what was measured.
        against: what it was measured against.
        ratio: median of the pairs' ratios.
        low: the smallest of them.
        high: the largest of them.
        seconds: median time of what was measured; it depends on the machine, the ratio much less.
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
    """Time two pieces of code in turn, after a warm-up of each, by a clock that gives seconds."""
    work()
    baseline()
    times = [(_seconds(work, clock), _seconds(baseline, clock)) for _ in range(pairs)]
    ratios = [mine / other for mine, other in times]
    return Comparison(
        name, against, statistics.median(ratios), min(ratios), max(ratios), statistics.median(mine for mine, _ in times)
    )


compare_cpu = partial(compare, clock=time.process_time)
"""The same by the processor time of this process, for work that waits for nothing: others disturb it less."""


def _seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    began = clock()
    work()
    return clock() - began
