"""Break the core in one place at a time, and check whether the tests find it: `python -m tests.simulation.mutants`.

The simulation looks for each defect, unless the defect names pairs of operations or a test. A defect is introduced in a
copy of the core, never in the checkout. If the text that a defect replaces does not exist, an error is raised, because
the list must be up to date with the code. All mutants run with the same seeds and the same fault rates.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.simulation.__main__ import BROKEN, CRASHED
from tests.simulation.mutations import MUTANTS

if TYPE_CHECKING:
    from tests.simulation.mutations.mutant import Mutant

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers/duetime/python/duetime"
RATES = (0.06, 0.0, 0.1)
"""Fault probabilities per call, used by successive seeds in turn (many faults, no faults, and very many faults)."""
_SEEDS = 40
_LONGEST = 600
"""The maximum run time of the search for a mutant, in seconds."""
_TOLD = 160


@dataclass(frozen=True)
class Hunt:
    """The result of the search for a mutant.

    Attributes:
        seconds: how long the search took.
        seeds: the number of seeds needed to find the mutant, or 1 for pairs and tests; `None` if the mutant survived.
        violation: the promise that the mutant broke.
        error: why the simulation itself failed, so that the mutant was neither found nor missed.
    """

    seconds: float
    seeds: int | None = None
    violation: str = ""
    error: str = ""

    @property
    def result(self) -> str:
        """Summarize the result in a few words."""
        if self.error:
            return f"the simulation itself failed: {self.error}"
        return "survived" if self.seeds is None else f"{self.seeds}: {self.violation}"


def main(
    seeds: Annotated[int, typer.Option(help="The number of seeds that are run for a mutant.", min=1)] = _SEEDS,
    only: Annotated[
        str, typer.Option(help="Only mutants whose name contains one of these texts, separated by `|`.")
    ] = "",
    subject: Annotated[
        str, typer.Option(help="Only mutants of these subjects (modules of mutations), separated by `|`.")
    ] = "",
    jobs: Annotated[int, typer.Option(help="The number of mutants at a time; 0 for one per core.", min=0)] = 0,
    first: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
) -> None:
    """Run the simulation, or the named tests, for each mutant until it is found."""
    console = Console()
    table = Table("mutant", "found by", "seeds it took", "found as")
    mutants = [
        mutant
        for mutant in MUTANTS
        if any(part in mutant.name for part in only.split("|"))
        and (not subject or mutant.subject in subject.split("|"))
    ]
    hunts: list[Hunt] = []
    with ThreadPoolExecutor(jobs or os.cpu_count()) as threads:
        for mutant, hunt in zip(mutants, threads.map(partial(hunted, seeds=seeds, first=first), mutants), strict=True):
            hunts.append(hunt)
            by = "pairs" if mutant.pairs else "a test" if mutant.test else "simulation"
            table.add_row(mutant.name, by, str(hunt.seeds or "[red]none[/]"), escape(hunt.violation or hunt.result))
            line = f"{mutant.subject}: {mutant.name} ({by}, {hunt.seconds:.0f} s): {hunt.result}"
            console.print(line, soft_wrap=True, markup=False, highlight=False)
    console.print(table)
    errors = sum(bool(hunt.error) for hunt in hunts)
    survivors = sum(hunt.seeds is None for hunt in hunts) - errors
    console.print(f"{len(mutants)} mutants, {survivors} survived, {errors} ended with an error of the simulation")
    sys.exit(CRASHED if errors else 1 if survivors else 0)


def hunted(mutant: Mutant, seeds: int, first: int = 0) -> Hunt:
    """Search for a mutant until a promise is broken, the run itself fails, or the time runs out."""
    began = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "duetime"
        shutil.copytree(CORE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / mutant.file
        file.write_text(mutant.applied(file.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            ended = subprocess.run(  # noqa: S603 - the tests of this checkout
                [sys.executable, "-m", *_looking_for(mutant, seeds, first)],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": folder, "PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "400"},
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST,
            )
        except subprocess.TimeoutExpired:
            return Hunt(monotonic() - began)
    seconds = monotonic() - began
    return found_by(ended, seconds) if mutant.pairs or mutant.test else hunt_of(ended, first, seconds)


def _looking_for(mutant: Mutant, seeds: int, first: int) -> list[str]:
    """The module that searches for a mutant, with the module's arguments."""
    if mutant.pairs:
        return ["tests.pairs", "--jobs", "1", "--only", mutant.pairs]
    if mutant.test:
        return ["pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *shlex.split(mutant.test)]
    theme = ["--theme", mutant.theme.value] if mutant.theme else []
    theme += ["--regions"] if mutant.in_two_regions else []
    rates = [option for rate in RATES for option in ("--rate", str(rate))]
    counts = ["--seeds", str(seeds), "--first", str(first)]
    return ["tests.simulation", "--until-broken", "--jobs", "1", *counts, *theme, *rates]


def found_by(ended: subprocess.CompletedProcess[str], seconds: float) -> Hunt:
    """Read the output of pairs or a test; the mutant is found only if the exit code reports a violation."""
    lines = ended.stdout.strip().splitlines()
    if ended.returncode == 0:
        return Hunt(seconds)
    told = next((line for line in lines if line.startswith(("E  ", "  VIOLATION"))), "")
    if ended.returncode != BROKEN or not told:
        return Hunt(seconds, error=(ended.stderr.strip().splitlines() or lines or [""])[-1][:_TOLD])
    return Hunt(seconds, 1, told.strip()[:_TOLD])


def hunt_of(ended: subprocess.CompletedProcess[str], first: int, seconds: float) -> Hunt:
    """Read the output and the exit code of a simulation; the mutant is found only if a promise was broken."""
    if ended.returncode == 0:
        return Hunt(seconds)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("seed ")]
    if ended.returncode != BROKEN or not lines:
        last = (lines or ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
        return Hunt(seconds, error=last[:_TOLD])
    seed, _, violation = lines[0].partition(": ")
    return Hunt(seconds, int(seed.removeprefix("seed ")) - first + 1, violation.partition(": ")[2][:_TOLD])


if __name__ == "__main__":
    typer.run(main)
