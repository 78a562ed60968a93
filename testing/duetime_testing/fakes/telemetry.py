"""Keeps telemetry in memory for tests."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.metrics import METRICS, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass
class FakeTelemetry:
    """An in-memory `duetime.ports.runtime.Telemetry` that rejects metrics that are missing from the table of metrics.

    Attributes:
        counts: the counts by metric name and, for each dimension value, by `name{dimension=value}`.
        measures: the measured milliseconds with the metric name and, for each dimension value, with
            `name{dimension=value}`.
    """

    counts: Counter[str] = field(default_factory=Counter)
    measures: list[tuple[str, Millis]] = field(default_factory=list)
    notes: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def count(self, name: str, number: int = 1, **dimension: str) -> None:
        """Increase a count."""
        for each in _names(name, Unit.COUNT, dimension):
            self.counts[each] += number

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Record a duration."""
        self.measures += [(each, milliseconds) for each in _names(name, Unit.MILLISECONDS, dimension)]

    def note(self, text: str, **facts: object) -> None:
        """Record a note."""
        self.notes.append((text, facts))

    def attempt(self, task: Task) -> AbstractContextManager[None]:  # noqa: ARG002 - it keeps no lines
        """Do nothing."""
        return nullcontext()

    def attribute_output(self) -> None:
        """Do nothing, because log output is not attributed to tasks."""

    def flush(self) -> None:
        """Write nothing."""

    def write_metrics(self) -> None:
        """Write nothing."""


def _names(name: str, unit: Unit, dimension: Mapping[str, str]) -> list[str]:
    metric = METRICS[name]
    assert metric.unit is unit, name
    assert set(dimension) <= {metric.dimension}, (name, dimension)
    return [name, *(f"{name}{{{key}={value}}}" for key, value in dimension.items())]
