"""Calculates a scheduler's figures from the start times of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from statistics import quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.scheduler_comparison.scheduled_tasks import Outcome

SPREAD, BURST = "spread", "burst"
"""The two cases, which are tasks due at random milliseconds and tasks due in the same millisecond."""
KEYS = (
    "lateness_p50_ms",
    "lateness_p99_ms",
    "burst_p50_s",
    "burst_p99_s",
    "burst_all_started_s",
    "early",
    "early_by_ms",
    "lost",
    "spread_processor_s",
    "burst_processor_s",
)
"""Prefixes of a scheduler's figures in `results.json`, each followed by the scheduler's key."""


@dataclass(frozen=True, slots=True)
class CaseFigures:
    """The figures of one case.

    Attributes:
        p50_ms, p99_ms: lateness of started tasks, which is negative if a task started early, and NaN if fewer than two
            tasks started.
        early: number of tasks that started before their due time.
        early_by_ms: the most milliseconds by which a task started early; 0 if none did.
        lost: number of tasks that have not started.
        all_started_s: seconds from the first due time to the last start; NaN if no task has started.
        processor_s: CPU seconds of all of the scheduler's processes.
    """

    p50_ms: float
    p99_ms: float
    early: int
    early_by_ms: int
    lost: int
    all_started_s: float
    processor_s: float

    @classmethod
    def of(cls, outcome: Outcome) -> CaseFigures:
        """Calculate the figures of an outcome."""
        pairs = zip(outcome.due_ms, outcome.started_ms, strict=True)
        started = [(due, start) for due, start in pairs if start is not None]
        late = [start - due for due, start in started]
        percentiles = quantiles(late, n=100, method="inclusive") if len(late) > 1 else [nan] * 99
        return cls(
            p50_ms=round(percentiles[49], 1),
            p99_ms=round(percentiles[98], 1),
            early=sum(each < 0 for each in late),
            early_by_ms=max(0, -min(late, default=0)),
            lost=len(outcome.due_ms) - len(started),
            all_started_s=(max(start for _, start in started) - min(outcome.due_ms)) / 1_000 if started else nan,
            processor_s=outcome.processor_seconds,
        )


@dataclass(frozen=True, slots=True)
class SchedulerFigures:
    """The figures of one scheduler.

    Attributes:
        spread: figures of tasks due at random milliseconds.
        burst: figures of tasks due in the same millisecond.
    """

    spread: CaseFigures
    burst: CaseFigures

    @property
    def early(self) -> int:
        """The number of tasks that started before their due time, in both cases together."""
        return self.spread.early + self.burst.early

    @property
    def early_by_ms(self) -> int:
        """The most milliseconds by which a task started early, in either case."""
        return max(self.spread.early_by_ms, self.burst.early_by_ms)

    @property
    def lost(self) -> int:
        """The number of tasks that have not started, in both cases together."""
        return self.spread.lost + self.burst.lost

    def kept(self, scheduler: str) -> dict[str, float]:
        """Return the available figures by their keys in `results.json`."""
        spread, burst = self.spread, self.burst
        seconds = [round(each, 3) for each in (burst.p50_ms / 1_000, burst.p99_ms / 1_000, burst.all_started_s)]
        counts = self.early, self.early_by_ms, self.lost
        values = (spread.p50_ms, spread.p99_ms, *seconds, *counts, spread.processor_s, burst.processor_s)
        return {key: value for key, value in zip(keys_of(scheduler), values, strict=True) if not isnan(value)}


def keys_of(scheduler: str) -> Sequence[str]:
    """Return a scheduler's keys in `results.json`."""
    return [f"{key}_{scheduler}" for key in KEYS]
