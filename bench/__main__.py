"""Run every measurement and show the ratios: `make bench`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import codecs, cold_start, http_egress, recurrence, schedule_expansion, task_path

if TYPE_CHECKING:
    from bench.paired_timing import Comparison

ROOMS = (codecs, recurrence, schedule_expansion, cold_start, task_path, http_egress)


def main() -> None:
    """Measure, then show a table."""
    console = Console()
    table = Table("what", "against", "ratio", "from", "to", "seconds", title="Ratios of medians, in one run")
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
    ) as progress:
        for room in ROOMS:
            progress.add_task(str(room.__doc__).splitlines()[0], total=None)
            for comparison in room.comparisons():
                table.add_row(*_cells(comparison))
    console.print(table)


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
