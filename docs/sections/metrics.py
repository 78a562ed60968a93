"""Generates the list of metrics from the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.sections.markdown import code
from duetime.metrics import METRICS, Unit

if TYPE_CHECKING:
    from duetime.metrics import Metric


def metric_list() -> str:
    """List each metric with its unit (unless it is a count), its dimension and its meaning."""
    return "\n".join(f"* {_name(name, metric)}: {metric.meaning}" for name, metric in METRICS.items())


def _name(name: str, metric: Metric) -> str:
    unit = " (ms)" if metric.unit is Unit.MILLISECONDS else ""
    return f"{code(name)}{unit}{f' by {code(metric.dimension)}' if metric.dimension else ''}"
