"""Logs and metrics through Powertools: a line of metrics an invocation, for any number of tasks, and one a split."""

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

# ruff: noqa: PLC0415 - only the worker has output to attribute; the other functions start without what that needs

_COUNT, _MILLISECONDS = "Count", "Milliseconds"
_SERVICE = "service"
"""The dimension that every metric has: the function that writes it."""

_Split = tuple[str, str] | None
"""A further dimension and its value; `None` for the whole."""


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
        """Write metrics of one split: Powertools begins another line whenever one holds no more.

        A line with a further dimension counts for the whole, too: CloudWatch adds each of its values to both.
        """
        whole = {_SERVICE: self._service}
        metrics = AmazonCloudWatchEMFProvider(dimension_set=whole, namespace=self._namespace, service=self._service)
        if split is not None:
            metrics.add_dimensions(**whole, **{split[0]: split[1]})
        for name, unit, values in series:
            for value in values:
                metrics.add_metric(name, unit, value)
        # What fills a line to the last place has been written already.
        if metrics.metric_set:
            metrics.flush_metrics()

    def _split(self, dimension: Mapping[str, str]) -> _Split:
        for name, value in dimension.items():
            if name not in self._shown or value in self._shown[name]:
                return (name, value)
        return None
