"""The metrics, as the code has them."""

from __future__ import annotations

from docs.sections.markdown import code, table
from duetime.metrics import METRICS, Unit

_UNITS = {Unit.COUNT: "count", Unit.MILLISECONDS: "ms"}


def metric_table() -> str:
    """Each metric with its unit, who writes it, what it may be split by, and what it says."""
    rows = [
        (
            code(name),
            _UNITS[metric.unit],
            ", ".join(metric.functions),
            code(metric.dimension) if metric.dimension else "",
            metric.meaning,
        )
        for name, metric in METRICS.items()
    ]
    return table(("metric", "unit", "written by", "split by", "meaning"), rows)
