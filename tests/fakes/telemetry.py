"""Telemetry that is kept, not written."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis


@dataclass
class FakeTelemetry:
    """`duetime.ports.runtime.Telemetry` for a test to look at."""

    counts: Counter[str] = field(default_factory=Counter)
    measures: list[tuple[str, Millis]] = field(default_factory=list)
    notes: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count."""
        self.counts[name] += number

    def measure(self, name: str, milliseconds: Millis) -> None:
        """Keep a length of time."""
        self.measures.append((name, milliseconds))

    def note(self, text: str, **facts: object) -> None:
        """Keep a note."""
        self.notes.append((text, facts))

    def attempt(self, task: Task) -> AbstractContextManager[None]:  # noqa: ARG002 - it keeps no lines
        """Attribute nothing."""
        return nullcontext()

    def attribute_output(self) -> None:
        """Leave the output of the process alone."""

    def flush(self) -> None:
        """Write nothing."""
