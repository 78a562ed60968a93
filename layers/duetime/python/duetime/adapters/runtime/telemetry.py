"""Logs through Powertools, and metrics: a line per invocation, whatever the number of tasks, and one a split.

Source: CloudWatch embedded metric format specification.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, TextIO, cast

from aws_lambda_powertools import Logger

from duetime.ports.runtime import UNTRACED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.tracing import Tracer

# ruff: noqa: PLC0415 - only the worker has output to attribute; the other functions start without what that needs

_COUNT, _MILLISECONDS = "Count", "Milliseconds"
_MAX_VALUES = 100
"""Values of one metric in one line (Source: EMF specification)."""
_MAX_METRICS = 100
"""Metrics in one line (Source: EMF specification)."""
_SERVICE = "service"
"""The dimension that every metric has: the function that writes it."""

_Split = tuple[str, str] | None
"""A further dimension and its value; `None` for the whole."""


@dataclass(frozen=True, slots=True)
class _Series:
    """Values of one metric.

    Attributes:
        split: the further dimension by which CloudWatch should keep them apart, if any.
    """

    name: str
    unit: str
    split: _Split
    values: tuple[int, ...]


class CurrentOutput:
    """What `sys.stdout` is at each moment: a logger that is made early writes to the attributed stream, too."""

    def write(self, text: str) -> int:
        """Write to it."""
        return sys.stdout.write(text)

    def flush(self) -> None:
        """Flush it."""
        sys.stdout.flush()


class PowertoolsTelemetry:
    """Counts and measures that `flush` writes as lines of metrics.

    Args:
        service: the function, a dimension of its metrics.
        namespace: the CloudWatch namespace.
        shown: the values of a dimension that have metrics of their own, because CloudWatch bills each one; all values
            of a dimension that is not named here have.
        tracer: what exports the spans of an invocation when that ends.
    """

    def __init__(
        self, service: str, namespace: str, shown: Mapping[str, frozenset[str]], tracer: Tracer = UNTRACED
    ) -> None:
        self._service = service
        self._tracer = tracer
        self._output = cast("TextIO", CurrentOutput())
        self._logger = Logger(service=service, stream=self._output)
        self._namespace = namespace
        self._shown = shown
        self._lock = Lock()
        self._counts: dict[tuple[str, _Split], int] = {}
        self._measures: dict[tuple[str, _Split], list[Millis]] = {}

    def count(self, name: str, number: int = 1, **dimension: str) -> None:
        """Add to a count, and to that of one value of its dimension if that is named."""
        key = (name, self._split(dimension))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + number

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Note one length of time, also for one value of its dimension if that is named."""
        key = (name, self._split(dimension))
        with self._lock:
            self._measures.setdefault(key, []).append(milliseconds)

    def note(self, text: str, **facts: object) -> None:
        """Log something worth a person's attention."""
        self._logger.warning(text, extra={"facts": facts})

    def attempt(self, task: Task) -> AbstractContextManager[None]:
        """Attribute what is logged and printed in this block to an attempt at this task."""
        from duetime.adapters.runtime.attributed_output import attributed_to

        return attributed_to(task)

    def attribute_output(self) -> None:
        """Have this process attribute what it logs and prints from now on; doing it twice is doing it once."""
        from duetime.adapters.runtime.attributed_output import attribute_output

        attribute_output(self._service, self._logger.log_level, self._output)

    def flush(self) -> None:
        """Write everything counted and measured since the last time, and export the spans; nothing if there is none."""
        with self._lock:
            counts, self._counts = self._counts, {}
            measures, self._measures = self._measures, {}
        series = [_Series(name, _COUNT, split, (number,)) for (name, split), number in counts.items() if number]
        series += [_Series(name, _MILLISECONDS, split, tuple(values)) for (name, split), values in measures.items()]
        for line in _lines(series, self._service, self._namespace, time.time_ns() // 1_000_000):
            sys.stdout.write(f"{line}\n")
        self._tracer.flush()

    def _split(self, dimension: Mapping[str, str]) -> _Split:
        for name, value in dimension.items():
            if name not in self._shown or value in self._shown[name]:
                return (name, value)
        return None


def _lines(series: Sequence[_Series], service: str, namespace: str, now: Millis) -> Iterator[str]:
    """The lines that say all of it: one, as long as nothing is split and there is no more than one line holds.

    A line with a further dimension counts for the whole, too: CloudWatch adds each of its values to both.
    """
    by_split: dict[_Split, list[_Series]] = defaultdict(list)
    for each in series:
        by_split[each.split].append(each)
    for split, found in by_split.items():
        for names in _batches(found, _MAX_METRICS):
            longest = max(len(each.values) for each in names)
            for start in range(0, longest, _MAX_VALUES):
                values = {each: each.values[start : start + _MAX_VALUES] for each in names}
                yield _line({each: some for each, some in values.items() if some}, split, service, namespace, now)


def _batches(series: Sequence[_Series], size: int) -> Iterator[Sequence[_Series]]:
    for start in range(0, len(series), size):
        yield series[start : start + size]


def _line(values: Mapping[_Series, Sequence[int]], split: _Split, service: str, namespace: str, now: Millis) -> str:
    further = {} if split is None else {split[0]: split[1]}
    directive = {
        "Namespace": namespace,
        "Dimensions": [[_SERVICE], *([[_SERVICE, *further]] if further else [])],
        "Metrics": [{"Name": each.name, "Unit": each.unit} for each in values],
    }
    line = {
        "_aws": {"Timestamp": now, "CloudWatchMetrics": [directive]},
        _SERVICE: service,
        **further,
        **{each.name: list(some) for each, some in values.items()},
    }
    return json.dumps(line, separators=(",", ":"))
