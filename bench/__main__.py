"""Runs the benchmarks (`make bench`), shows and saves their results, and reports regressions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import (
    codecs,
    cold_start,
    cron_occurrences,
    http_egress,
    results,
    schedule_expansion,
    task_path,
    task_usage,
    thin_traffic,
    topology_measurements,
)
from bench.scale import tables

if TYPE_CHECKING:
    from bench.paired_timing import Comparison

ROOMS = (codecs, cron_occurrences, schedule_expansion, cold_start, task_path, http_egress)
FOLDER = Path(__file__).parent


def main() -> None:
    """Run the benchmarks, show a table, and write `RESULTS.md` and `results.json`."""
    console = Console()
    comparisons: list[Comparison] = []
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
    ) as progress:
        for room in ROOMS:
            progress.add_task(str(room.__doc__).splitlines()[0], total=None)
            comparisons.extend(room.comparisons())
        counted = {**task_usage.counted(), **topology_measurements.counted()}
        counted |= thin_traffic.counted(counted["write_units_per_task"])
        counted |= tables.counted()
    table = Table("what", "against", "ratio", "from", "to", "seconds", title="Medians of ratios, in one run")
    for comparison in comparisons:
        table.add_row(*_cells(comparison))
    console.print(table)
    before = results.read(FOLDER)
    counted |= {key: before[key] for key in results.OTHERWISE if key in before}
    now = results.document(comparisons, counted)
    for worse in results.worsenings(before, now):
        console.print(f"[yellow]worse than the committed results:[/] {worse.key} {worse.before} → {worse.now}")
    results.write(FOLDER, now, comparisons)
    console.print(f"written to bench/{results.TABLE} and bench/{results.DATA}")


def _cells(comparison: Comparison) -> tuple[str, ...]:
    figures = (comparison.ratio, comparison.low, comparison.high)
    return (
        comparison.name,
        comparison.against,
        *(f"{figure:.2f}" for figure in figures),
        f"{comparison.seconds:.4f}",
    )


if __name__ == "__main__":
    main()
