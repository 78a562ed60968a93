"""Break the core in one place at a time, and see whether the simulation finds it: `python -m tests.simulation.mutants`.

Each mistake is made in a copy of the core, never in the checkout. A mistake whose text is no longer there is an error:
the list must follow the code. All mutants meet the same seeds with the same rates of faults.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.simulation.mutations import MUTANTS

if TYPE_CHECKING:
    from tests.simulation.mutations.mutant import Mutant

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers/duetime/python/duetime"
RATES = (0.06, 0.0, 0.1)
"""The chance of a fault at each call, one seed after the other: much fails, nothing does, very much does."""
_SEEDS = 40
_LONGEST = 600
"""Seconds that a mutant may survive."""
_TOLD = 160
_BROKEN = 1
"""Exit code of a simulation that found something."""


def main(
    seeds: Annotated[int, typer.Option(help="How many seeds a mutant may survive.", min=1)] = _SEEDS,
    only: Annotated[str, typer.Option(help="Only the mutants with one of these, by `|`, in their names.")] = "",
    jobs: Annotated[int, typer.Option(help="How many at once; 0 for as many as there are cores.", min=0)] = 0,
    first: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
) -> None:
    """Run the simulation over each mutant until it is found."""
    console = Console()
    table = Table("mutant", "seeds it took", "found as")
    mutants = [mutant for mutant in MUTANTS if any(part in mutant.name for part in only.split("|"))]
    survivors = 0
    with ThreadPoolExecutor(jobs or os.cpu_count()) as threads:
        hunts = threads.map(partial(hunted, seeds=seeds, first=first), mutants)
        for mutant, (took, found) in zip(mutants, hunts, strict=True):
            survivors += found is None
            table.add_row(mutant.name, *(found or ("[red]survived[/]", "")))
            end = "survived" if found is None else ": ".join(found)
            console.print(f"{mutant.name} ({took:.0f} s): {end}", soft_wrap=True, markup=False, highlight=False)
    console.print(table)
    console.print(f"{len(mutants)} mutants, {survivors} survived")
    sys.exit(1 if survivors else 0)


def hunted(mutant: Mutant, seeds: int, first: int = 0) -> tuple[float, tuple[str, str] | None]:
    """How long it took and how many seeds to find a mutant, and as what; `None` if no seed does, or not in its time."""
    began = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "duetime"
        shutil.copytree(CORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / mutant.file
        file.write_text(mutant.applied(file.read_text(encoding="utf-8")), encoding="utf-8")
        command = [sys.executable, "-m", "tests.simulation", "--until-broken", "--jobs", "1", "--seeds", str(seeds)]
        theme = ["--theme", mutant.theme.value] if mutant.theme else []
        rates = [option for rate in RATES for option in ("--rate", str(rate))]
        try:
            ended = subprocess.run(  # noqa: S603 - the simulation of this checkout
                [*command, *theme, *rates, "--first", str(first)],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": folder, "PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "400"},
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST,
            )
        except subprocess.TimeoutExpired:
            return monotonic() - began, None
    return monotonic() - began, _found(ended, first)


def _found(ended: subprocess.CompletedProcess[str], first: int) -> tuple[str, str] | None:
    if ended.returncode == 0:
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith("seed ")]
    if ended.returncode != _BROKEN or not lines:
        # What breaks the simulation itself is found as well.
        return "?", (ended.stderr.strip().splitlines() or ["?"])[-1][:_TOLD]
    seed, _, violation = lines[0].partition(": ")
    return str(int(seed.removeprefix("seed ")) - first + 1), violation.partition(": ")[2][:_TOLD]


if __name__ == "__main__":
    typer.run(main)
