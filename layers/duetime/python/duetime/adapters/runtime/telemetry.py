"""Logs and metrics through Powertools: one line of metrics per invocation, whatever the number of tasks.

Source: CloudWatch embedded metric format specification.
"""

from __future__ import annotations

import sys
from threading import Lock
from typing import TYPE_CHECKING, TextIO, cast

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

# ruff: noqa: PLC0415 - only the worker has output to attribute; the other functions start without what that needs

_MAX_VALUES = 100
"""Values of one metric in one line (Source: EMF specification)."""


class CurrentOutput:
    """What `sys.stdout` is at each moment: a logger that is made early writes to the attributed stream, too."""

    def write(self, text: str) -> int:
        """Write to it."""
        return sys.stdout.write(text)

    def flush(self) -> None:
        """Flush it."""
        sys.stdout.flush()


class PowertoolsTelemetry:
    """Counts and measures that `flush` writes as one line.

    Args:
        service: the function, a dimension of its metrics.
        namespace: the CloudWatch namespace.
    """

    def __init__(self, service: str, namespace: str) -> None:
        self._service = service
        self._output = cast("TextIO", CurrentOutput())
        self._logger = Logger(service=service, stream=self._output)
        self._metrics = EphemeralMetrics(service=service, namespace=namespace)
        self._lock = Lock()
        self._counts: dict[str, int] = {}
        self._measures: dict[str, list[Millis]] = {}

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count."""
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + number

    def measure(self, name: str, milliseconds: Millis) -> None:
        """Note one length of time."""
        with self._lock:
            self._measures.setdefault(name, []).append(milliseconds)

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
        """Write everything counted and measured since the last time as one line; nothing if there is nothing."""
        with self._lock:
            counts, self._counts = self._counts, {}
            measures, self._measures = self._measures, {}
        for name, number in counts.items():
            if number:
                self._metrics.add_metric(name, MetricUnit.Count, number)
        for name, values in measures.items():
            for value in values[:_MAX_VALUES]:
                self._metrics.add_metric(name, MetricUnit.Milliseconds, value)
        if self._metrics.metric_set:
            self._metrics.flush_metrics()
