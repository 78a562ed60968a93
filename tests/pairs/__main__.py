"""Run every interleaving of every pair of operations, or of some pairs: `python -m tests.pairs --part 3/10`.

`--part commit/20` runs one of twenty parts, which the checked-out commit selects. Over many commits, CI runs all parts.

This command runs a single interleaving and prints its calls: `python -m tests.pairs --again "scheduled patch-name pause
1 - late"`.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tests.pairs.interleaving_report import told
from tests.pairs.parts import Summary, chosen, interleaving_named, make_ready, spread
from tests.parts import Part, read_part

_SHOWN = 3
"""The number of interleavings that are printed for each pair of operations.

All other interleavings are only counted.
"""


def main(
    part: Annotated[str, typer.Option(help="The part and the number of parts, such as 3/10 or commit/10.")] = "1/1",
    only: Annotated[
        str, typer.Option(help="Run only the pairs whose name 'subject first second' matches this pattern.")
    ] = "",
    faults: Annotated[bool, typer.Option(help="Also run interleavings in which one call fails.")] = True,  # noqa: FBT002 - a flag
    jobs: Annotated[int, typer.Option(help="The number of parallel processes; 0 means one for each core.", min=0)] = 0,
    again: Annotated[
        str, typer.Option(help="Run only the interleaving with this name, which a violation prints.")
    ] = "",
) -> None:
    """Interleave the AWS calls of two operations on one subject."""
    console = Console(soft_wrap=True, highlight=False)
    if again:
        sys.exit(_run_one(again, console))
    chosen_part = _part_of(part)
    console.print(f"part {chosen_part}")
    pairs = chosen(chosen_part, only)
    summary = Summary()
    columns = (TextColumn("Pairs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("{task.fields[runs]} interleavings"), console=console, transient=True) as bar:
        task = bar.add_task("pairs", total=len(pairs), runs=0)
        for explored in spread(pairs, jobs or os.cpu_count() or 1, with_faults=faults):
            summary.add(explored)
            bar.update(task, advance=1, runs=summary.runs)
            for text in explored.told[:_SHOWN]:
                console.print(text, markup=False)
            if len(explored.told) > _SHOWN:
                console.print(f"{explored.pair}: and {len(explored.told) - _SHOWN} more interleavings", markup=False)
    console.print(
        f"{summary.pairs} pairs of operations on {len(summary.subjects)} subjects, {summary.runs} interleavings"
        f" ({summary.known} of them left a state that had settled before), {summary.calls} calls of AWS:"
        f" {summary.broken} interleavings of {summary.broken_pairs} pairs broke a promise"
    )
    sys.exit(1 if summary.broken else 0)


def _part_of(text: str) -> Part:
    try:
        return read_part(text)
    except ValueError as refusal:
        raise typer.BadParameter(str(refusal)) from None


def _run_one(name: str, console: Console) -> int:
    """Run one interleaving, and print its calls in order and its outcome."""
    make_ready()
    found = interleaving_named(name)
    console.print(told(found), markup=False)
    for part in found.result.state:
        console.print("  " + ", ".join(part), markup=False)
    return 1 if found.violations else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Python orders sets differently in each process, but only the name may determine an interleaving.
        command = [sys.executable, "-m", "tests.pairs", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606 - itself once more
    typer.run(main)
