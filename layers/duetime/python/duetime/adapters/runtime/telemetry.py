"""Writes logs and metrics with Powertools. Each invocation writes a metrics line for totals, and a line per split."""

from __future__ import annotations

import sys
from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING, TextIO, cast

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from duetime.ports.runtime import SHARED_COUNTS, SHARED_SERVICE, UNTRACED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Tracer

# ruff: noqa: PLC0415 - only the worker attributes output, so other functions start without these modules

_COUNT, _MILLISECONDS = "Count", "Milliseconds"
_SERVICE = "service"
"""Name of the dimension that every metric has. Its value is the name of the function that writes the metric, or
`SHARED_SERVICE`."""

_Split = tuple[str, str] | None
"""An additional dimension and its value; `None` for the total."""


class CurrentOutput:
    """Writes to the current `sys.stdout`, so that loggers that were created early also use the attributed stream."""

    def write(self, text: str) -> int:
        """Write to the current stream."""
        return sys.stdout.write(text)

    def flush(self) -> None:
        """Flush the current stream."""
        sys.stdout.flush()


class PowertoolsTelemetry:
    """Collects counts and measurements, which `flush` writes as metrics lines.

    Args:
        service: the function's name, which is a dimension of the metrics.
        namespace: the CloudWatch namespace.
        shown: the values of each listed dimension that have separate metrics, because CloudWatch bills each metric. A
            dimension that is not listed has separate metrics for all its values.
        tracer: exports an invocation's spans at the end of the invocation.
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
        """Add to a count and, if a dimension is given, also to the count for the dimension's value."""
        key = (name, self._split(dimension))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + number

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Record one duration and, if a dimension is given, also record it for the dimension's value."""
        key = (name, self._split(dimension))
        with self._lock:
            self._measures.setdefault(key, []).append(milliseconds)

    def note(self, text: str, **facts: object) -> None:
        """Log an event that people should notice."""
        self._logger.warning(text, extra={"facts": facts})

    def attempt(self, task: Task) -> AbstractContextManager[None]:
        """Attribute the lines that are logged and printed in this block to this task's attempt."""
        from duetime.adapters.runtime.attributed_output import attributed_to

        return attributed_to(task)

    def attribute_output(self) -> None:
        """Make this process attribute all log and print lines from now on. Calling this again changes nothing."""
        from duetime.adapters.runtime.attributed_output import attribute_output

        attribute_output(self._service, self._logger.log_level, self._output)

    def flush(self) -> None:
        """Write any counts and measurements since the last call, and export the spans."""
        self.write_metrics()
        self._tracer.flush()

    def write_metrics(self) -> None:
        """Write any counts and measurements since the last call."""
        with self._lock:
            counts, self._counts = self._counts, {}
            measures, self._measures = self._measures, {}
        by_dimensions: dict[tuple[str, _Split], list[tuple[str, str, Sequence[int]]]] = defaultdict(list)
        for (name, split), number in counts.items():
            if number:
                service = SHARED_SERVICE if name in SHARED_COUNTS else self._service
                by_dimensions[service, split].append((name, _COUNT, (number,)))
        for (name, split), values in measures.items():
            by_dimensions[self._service, split].append((name, _MILLISECONDS, values))
        for (service, split), series in by_dimensions.items():
            self._write(service, split, series)

    def _write(self, service: str, split: _Split, series: Iterable[tuple[str, str, Sequence[int]]]) -> None:
        """Write the metrics of one service and split. Powertools begins another line when a line is full.

        A line with an additional dimension also counts for the total, because CloudWatch adds the line's values to both
        metrics.
        """
        whole = {_SERVICE: service}
        metrics = AmazonCloudWatchEMFProvider(dimension_set=whole, namespace=self._namespace, service=service)
        if split is not None:
            metrics.add_dimensions(**whole, **{split[0]: split[1]})
        for name, unit, values in series:
            for value in values:
                metrics.add_metric(name, unit, value)
        # Powertools has already written a line that is exactly full.
        if metrics.metric_set:
            metrics.flush_metrics()

    def _split(self, dimension: Mapping[str, str]) -> _Split:
        for name, value in dimension.items():
            if name not in self._shown or value in self._shown[name]:
                return (name, value)
        return None
