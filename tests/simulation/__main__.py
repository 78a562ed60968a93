"""Run many seeds and tell which of them broke a promise: `python -m tests.simulation --first 60 --seeds 1000`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from duetime.domain.times import MINUTE
from tests.simulation.storm import Storm


def main(
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 100,
) -> None:
    """Run seeds, each twenty minutes of storm and hours of calm in virtual time."""
    console = Console()
    broken = faults = calls = 0
    for seed in track(range(first, first + seeds), "Storms", console=console):
        storm = Storm(seed)
        storm.blow(20 * MINUTE)
        faults, calls = faults + storm.faults, calls + len(storm.live)
        found = [*storm.violations, *(f"{task.id} is still {task.state}" for task in storm.unfinished())]
        for violation in found:
            console.print(f"[red]seed {seed}:[/] {violation}", soft_wrap=True)
        broken += bool(found)
    console.print(f"{seeds} seeds, {faults} faults, {calls} target calls: {broken} seeds broke a promise")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    typer.run(main)
