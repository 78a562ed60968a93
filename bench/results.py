"""Saves a benchmark run's figures, and finds regressions since the last committed run."""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bench.scheduler_comparison.lateness_figures import keys_of
from bench.scheduler_comparison.schedulers import SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bench.paired_timing import Comparison

DATA, TABLE = "results.json", "RESULTS.md"
COMMAND = "make bench"
_KEYS_BY_COMMAND = {
    "python -m bench.celery_comparison": ("requests_vs_celery", "cpu_vs_celery"),
    "python -m bench.scheduler_comparison": tuple(key for each in SCHEDULERS for key in keys_of(each.key)),
    "python -m bench.growth": (
        "growth_tasks",
        "growth_calls_worst",
        "growth_read_units_worst",
        "growth_write_units_worst",
        "growth_cpu_worst",
    ),
    "python -m bench.growth --fake": (
        "growth_fake_tasks",
        "growth_fake_calls_worst",
        "growth_fake_read_units_worst",
        "growth_fake_write_units_worst",
    ),
    "python -m bench.endurance": (
        "schedules_measured",
        "schedule_tick_calls",
        "schedule_tick_write_units",
        "schedule_tick_cpu_ms",
        "dollars_month_100k_minutely_schedules_trigger",
        "worker_tasks",
        "worker_memory_mb",
        "worker_memory_growth_mb",
    ),
    "python -m bench.task_lists": (
        "lists_tasks",
        "lists_read_units_worst",
        "lists_reads_worst",
        "lists_rounds_worst",
    ),
    "python -m bench.lateness": (
        "lateness_p50_ms",
        "lateness_p99_ms",
        "lateness_burst_p50_s",
        "lateness_burst_p99_s",
        "lateness_burst_vs_empty_function",
        "lateness_burst_vs_two_writes",
    ),
    "python -m bench.lateness 5000": (
        "lateness_burst_5000_p50_s",
        "lateness_burst_5000_p99_s",
        "lateness_burst_5000_vs_empty_function",
        "lateness_burst_5000_vs_two_writes",
    ),
    "python -m bench.large_topology": (
        "plan_10000_nodes_s",
        "plan_10000_nodes_cpu_s",
        "plan_vs_bare_puts",
        "get_10000_nodes_first_s",
        "get_10000_nodes_s",
        "get_10000_nodes_cpu_s",
        "list_100_of_10000_nodes_cpu_s",
    ),
}
OTHERWISE = {key: command for command, keys in _KEYS_BY_COMMAND.items() for key in keys}
"""Figures that other commands save, and that `make bench` keeps, with the command for each."""
NOISE = 1.15
"""A ratio's median counts as worse if it exceeds the committed run's largest ratio by this factor; smaller increases
can be noise."""


@dataclass(frozen=True, slots=True)
class Worsening:
    """A figure that is worse than the committed figure by more than noise.

    Attributes:
        key: key of the figure.
        before: committed value.
        now: value in this run.
    """

    key: str
    before: float
    now: float


def key_of(comparison: Comparison) -> str:
    """Return the key for a comparison's median, which is the comparison's name in lower case with underscores."""
    return re.sub(r"[^a-z0-9]+", "_", comparison.name.lower()).strip("_")


def document(comparisons: Iterable[Comparison], counted: Mapping[str, float]) -> dict[str, Any]:
    """Return the content of `results.json`: figures by key, the spread of each ratio, and the machine.

    Args:
        comparisons: ratios of this run.
        counted: figures that are counted or calculated instead of timed.
    """
    measured = {key_of(each): each for each in comparisons}
    return {
        **counted,
        **{key: round(each.ratio, 3) for key, each in measured.items()},
        "spread": {key: [round(each.low, 3), round(each.high, 3)] for key, each in measured.items()},
        "machine": machine(),
        "command": COMMAND,
    }


def machine() -> str:
    """Return a description of the machine that does not contain its name."""
    cores = os.cpu_count()
    return f"{cores} processors, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


def worsenings(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Worsening]:
    """Yield counted figures that are worse than before by any amount, and ratios that are worse by more than noise.

    For all figures, higher is worse.
    """
    spread: Mapping[str, Sequence[float]] = before.get("spread", {})
    for key, was in before.items():
        value = now.get(key)
        if not isinstance(was, (int, float)) or not isinstance(value, (int, float)):
            continue
        limit = spread[key][1] * NOISE if key in spread else was
        if value > limit:
            yield Worsening(key, was, value)


def read(folder: Path) -> dict[str, Any]:
    """Return the committed figures, or an empty dictionary if no figures are committed."""
    path = folder / DATA
    return json.loads(path.read_text()) if path.exists() else {}


def keep(folder: Path, figures: Mapping[str, float]) -> None:
    """Add another command's figures to the committed figures, which `make bench` then keeps.

    Raises:
        KeyError: a figure is not listed in `OTHERWISE`, so `make bench` would remove it.
    """
    unknown = figures.keys() - OTHERWISE.keys()
    if unknown:
        raise KeyError(*sorted(unknown))
    (folder / DATA).write_text(json.dumps(read(folder) | dict(figures), indent=2) + "\n")


def write(folder: Path, figures: Mapping[str, Any], comparisons: Sequence[Comparison]) -> None:
    """Write the figures as JSON for programs and as Markdown for readers."""
    (folder / DATA).write_text(json.dumps(figures, indent=2) + "\n")
    (folder / TABLE).write_text("\n".join(_page(figures, comparisons)) + "\n")


def _page(figures: Mapping[str, Any], comparisons: Sequence[Comparison]) -> Iterator[str]:
    yield "# Results of the benchmark"
    yield ""
    yield f"Written by `{COMMAND}` on {figures['machine']}. Each ratio is the median of pairs timed"
    yield "alternately in one run; the smallest and the largest ratio are also shown. The seconds depend on the"
    yield "machine, and the ratios much less."
    yield ""
    yield "| key | measured | against | ratio | from | to | seconds |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for each in comparisons:
        values = asdict(each)
        timed = f"{values['ratio']:.2f} | {values['low']:.2f} | {values['high']:.2f} | {values['seconds']:.4f}"
        yield f"| `{key_of(each)}` | {each.name} | {each.against} | {timed} |"
    counted = {key: value for key, value in figures.items() if isinstance(value, (int, float)) and key not in OTHERWISE}
    for each in comparisons:
        counted.pop(key_of(each), None)
    if counted:
        yield ""
        yield "Counted or calculated, the same on every machine:"
        yield ""
        yield "| key | figure |"
        yield "| --- | --- |"
        yield from (f"| `{key}` | {value} |" for key, value in counted.items())
    others = [key for key in OTHERWISE if key in figures]
    if others:
        yield ""
        yield "Measured by other commands:"
        yield ""
        yield "| key | figure | command |"
        yield "| --- | --- | --- |"
        yield from (f"| `{key}` | {figures[key]} | `{OTHERWISE[key]}` |" for key in others)
