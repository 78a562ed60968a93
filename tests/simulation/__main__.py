"""Run many seeds and tell which of them broke a promise: `python -m tests.simulation --first 60 --seeds 1000`.

One seed alone also prints its trace: `python -m tests.simulation --first 17 --seeds 1`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from duetime.domain.times import MINUTE
from tests.simulation.storm import Storm as ServicesStorm
from tests.simulation.storms import Storm

_LAST_LINES = 200
"""Of a trace, unless all of it is written to a file."""


class Of(StrEnum):
    """What is simulated."""

    FUNCTIONS = "functions"
    """The unmodified functions over fakes of AWS."""
    SERVICES = "services"
    """The use cases over stores in memory."""


def main(
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 100,
    of: Annotated[Of, typer.Option(help="What is simulated.")] = Of.FUNCTIONS,
    trace: Annotated[Path | None, typer.Option(help="Where the whole trace of a single seed goes.")] = None,
    until_broken: Annotated[bool, typer.Option(help="Stop at the first seed that breaks a promise.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Run seeds, each some minutes of storm and hours of calm in virtual time."""
    logging.disable(logging.CRITICAL)
    console = Console()
    broken: list[int] = []
    totals: Counter[str] = Counter()
    for seed in track(range(first, first + seeds), "Storms", console=console, transient=True):
        found = _run_services(seed, totals) if of is Of.SERVICES else _run_functions(seed, totals, seeds == 1, trace)
        for violation in found:
            console.print(f"[red]seed {seed}:[/] {violation}", soft_wrap=True)
        if found:
            broken.append(seed)
            if until_broken:
                break
    told = ", ".join(f"{number} {name}" for name, number in totals.items())
    console.print(f"{seeds} seeds, {told}: {len(broken)} seeds broke a promise", soft_wrap=True)
    for seed in broken[:5]:
        console.print(f"again, with its trace: make simulate FIRST={seed} SEEDS=1")
    sys.exit(1 if broken else 0)


def _run_services(seed: int, totals: Counter[str]) -> list[str]:
    storm = ServicesStorm(seed)
    storm.blow(20 * MINUTE)
    totals.update({"faults": storm.faults, "target calls": len(storm.live)})
    return [*storm.violations, *(f"{task.id} is still {task.state}" for task in storm.unfinished())]


def _run_functions(seed: int, totals: Counter[str], is_single: bool, trace: Path | None) -> list[str]:  # noqa: FBT001 - same
    storm = Storm(seed)
    storm.blow()
    watching = storm.watching
    totals.update(
        {
            "tasks": len(watching.accepted),
            "AWS calls": storm.calls,
            "faults": sum(storm.faults.values()),
            "target calls": watching.effects,
        }
    )
    if trace is not None:
        trace.write_text("\n".join(storm.told()) + "\n", encoding="utf-8")
    elif is_single:
        sys.stdout.write("\n".join(storm.told(_LAST_LINES)) + "\n")
    return watching.violations


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets are walked in an order that Python draws anew for each process: a seed alone must decide.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606 - itself once more
    typer.run(main)
