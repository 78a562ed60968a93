"""Logs and metrics with Powertools: one line of metrics per invocation, for any number of tasks, and one per split."""

from __future__ import annotations

import sys
from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING, TextIO, cast

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from duetime.ports.runtime import UNTRACED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Tracer

# ruff: noqa: PLC0415 - only the worker attributes output; the other functions start without these modules

_COUNT, _MILLISECONDS = "Count", "Milliseconds"
_SERVICE = "service"
"""The dimension of every metric: the name of the function that writes it."""

_Split = tuple[str, str] | None
"""An additional dimension and its value; `None` for the total."""


class CurrentOutput:
    """`sys.stdout` at the time of each write, so that a logger created early writes to the attributed stream too."""

    def write(self, text: str) -> int:
        """Write to the current stream."""
        return sys.stdout.write(text)

    def flush(self) -> None:
        """Flush the current stream."""
        sys.stdout.flush()


class PowertoolsTelemetry:
    """Counts and measurements, which `flush` writes as lines of metrics.

    Args:
        service: name of the function, which is a dimension of its metrics.
        namespace: the CloudWatch namespace.
        shown: values of each listed dimension that get separate metrics, because CloudWatch bills each metric; a
            dimension that is not listed gets separate metrics for all its values.
        tracer: exports the spans of an invocation at its end.
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
        """Add to a count, and if a dimension is given, to the count for its value."""
        key = (name, self._split(dimension))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + number

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Record one duration, and if a dimension is given, also for its value."""
        key = (name, self._split(dimension))
        with self._lock:
            self._measures.setdefault(key, []).append(milliseconds)

    def note(self, text: str, **facts: object) -> None:
        """Log an event that a person should notice."""
        self._logger.warning(text, extra={"facts": facts})

    def attempt(self, task: Task) -> AbstractContextManager[None]:
        """Attribute lines logged and printed in this block to the attempt at this task."""
        from duetime.adapters.runtime.attributed_output import attributed_to

        return attributed_to(task)

    def attribute_output(self) -> None:
        """Make this process attribute all log and print lines from now on; calling this again changes nothing."""
        from duetime.adapters.runtime.attributed_output import attribute_output

        attribute_output(self._service, self._logger.log_level, self._output)

    def flush(self) -> None:
        """Write all counts and measurements since the last call, if any, and export the spans."""
        with self._lock:
            counts, self._counts = self._counts, {}
            measures, self._measures = self._measures, {}
        by_split: dict[_Split, list[tuple[str, str, Sequence[int]]]] = defaultdict(list)
        for (name, split), number in counts.items():
            if number:
                by_split[split].append((name, _COUNT, (number,)))
        for (name, split), values in measures.items():
            by_split[split].append((name, _MILLISECONDS, values))
        for split, series in by_split.items():
            self._write(split, series)
        self._tracer.flush()

    def _write(self, split: _Split, series: Iterable[tuple[str, str, Sequence[int]]]) -> None:
        """Write the metrics of one split; Powertools begins another line when a line is full.

        A line with an additional dimension also counts for the total, because CloudWatch adds the line's values to both
        metrics.
        """
        whole = {_SERVICE: self._service}
        metrics = AmazonCloudWatchEMFProvider(dimension_set=whole, namespace=self._namespace, service=self._service)
        if split is not None:
            metrics.add_dimensions(**whole, **{split[0]: split[1]})
        for name, unit, values in series:
            for value in values:
                metrics.add_metric(name, unit, value)
        # If the last line is exactly full, it has already been written.
        if metrics.metric_set:
            metrics.flush_metrics()

    def _split(self, dimension: Mapping[str, str]) -> _Split:
        for name, value in dimension.items():
            if name not in self._shown or value in self._shown[name]:
                return (name, value)
        return None
