"""Run many seeds and list those that broke a promise: `python -m tests.simulation --first 60 --seeds 1000`.

A single seed also prints its trace: `python -m tests.simulation --first 17 --seeds 1`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from tests.simulation.fault_simulation import Theme  # noqa: TC001 - typer reads the annotations
from tests.simulation.outcomes import Outcome, outcome_of, rate_of, run_functions, simulated, spread
from tests.simulation.restoring import restored
from tests.simulation.trace_text import told, told_before
from tests.simulation.two_regions import in_two_regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LAST_LINES = 200
"""The number of trace lines that are printed, unless the complete trace is written to a file."""
_SHOWN = 5
_AT_ONCE = 200
"""The number of seeds that are given to the processes at a time if the total number of seeds is unknown."""
BROKEN, CRASHED = 1, 3
"""The exit codes for a broken promise, and for an error in the simulation itself, which is not an error in the core."""


def main(  # noqa: PLR0913, PLR0917 - the options of a command
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(help="The number of seeds.", min=1)] = 100,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="The probability of a fault at each call. Several rates are used in turn; default: by seed."),
    ] = None,
    theme: Annotated[Theme | None, typer.Option(help="What the users do; default: random.")] = None,
    jobs: Annotated[int, typer.Option(help="The number of processes; 0 for one per core.", min=0)] = 0,
    trace: Annotated[Path | None, typer.Option(help="The file for the complete trace of a single seed.")] = None,
    restore: Annotated[bool, typer.Option(help="Restore the table to an earlier time at a random time.")] = False,  # noqa: FBT002 - a flag
    regions: Annotated[bool, typer.Option(help="Let a second Region take over at a random time.")] = False,  # noqa: FBT002 - a flag
    faults: Annotated[int, typer.Option(help="Run as many seeds as are needed to inject this many faults.")] = 0,
    report: Annotated[Path | None, typer.Option(help="A file for a copy of the output.")] = None,
    until_broken: Annotated[bool, typer.Option(help="Stop at the first seed that breaks a promise.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Run seeds in virtual time, each with some minutes of faults and then enough calm time for its tasks to end."""
    console = Console(record=report is not None)
    if seeds == 1 and not (restore or regions or faults):
        sys.exit(_run_one(first, rate_of(first, rate), theme, trace, console))
    plain = partial(run_functions, rate=rate, briefly=until_broken, theme=theme)
    run: Callable[[int], Outcome] = restored if restore else in_two_regions if regions else plain
    broken: list[int] = []
    crashed: list[int] = []
    totals: Counter[str] = Counter()
    injected: Counter[str] = Counter()
    latest = 0
    jobs = jobs or os.cpu_count() or 1
    outcomes = until_injected(faults, run, first, jobs) if faults else spread(run, range(first, first + seeds), jobs)
    ran = 0
    # If a user interrupts the run, the summary of the finished seeds is still printed.
    with suppress(KeyboardInterrupt):
        for outcome in track(outcomes, "Simulations", None if faults else seeds, console=console, transient=True):
            ran += 1
            totals.update(outcome.counts)
            injected.update(outcome.faults)
            latest = max(latest, outcome.calm_after)
            _tell(outcome, console)
            if outcome.crash:
                crashed.append(outcome.seed)
            if outcome.violations:
                broken.append(outcome.seed)
            if until_broken and (outcome.crash or outcome.violations):
                break
    summary = ", ".join(f"{number} {name}" for name, number in totals.items())
    console.print(f"{ran} seeds from {first}, {summary}: {len(broken)} seeds broke a promise", soft_wrap=True)
    if injected:
        console.print(", ".join(f"{number} {name}" for name, number in injected.most_common()), soft_wrap=True)
        console.print(f"all was at its end at most {latest / 60_000:.0f} minutes after the last fault")
    if crashed:
        console.print(f"[red]the simulation itself failed in {len(crashed)} seeds[/]", soft_wrap=True)
    for seed in [*crashed, *broken][:_SHOWN]:
        options = _options_of(seed, rate, theme, restore=restore, regions=regions)
        console.print(f"again: python -m tests.simulation --first {seed} --seeds 1{options}", soft_wrap=True)
    if report is not None:
        report.write_text(console.export_text(), encoding="utf-8")
    sys.exit(CRASHED if crashed else BROKEN if broken else 0)


def _options_of(seed: int, rate: list[float] | None, theme: Theme | None, *, restore: bool, regions: bool) -> str:
    """The options that repeat a seed of this run."""
    if restore or regions:
        return " --restore" if restore else " --regions"
    own = rate_of(seed, rate)
    return ("" if own is None else f" --rate {own}") + ("" if theme is None else f" --theme {theme.value}")


def until_injected(
    faults: int, run: Callable[[int], Outcome], first: int, jobs: int, at_once: int = _AT_ONCE
) -> Iterator[Outcome]:
    """Run seeds until this many faults have been injected, and yield the outcomes of the seeds."""
    injected = 0
    for begin in count(first, at_once):
        for outcome in spread(run, range(begin, begin + at_once), jobs):
            yield outcome
            injected += outcome.counts.get("faults", 0)
            if injected >= faults:
                return


def _tell(outcome: Outcome, console: Console) -> None:
    if outcome.crash:
        console.print(f"[red]seed {outcome.seed}:[/] the simulation itself failed: {outcome.crash}", soft_wrap=True)
    for violation in outcome.violations:
        console.print(f"[red]seed {outcome.seed}:[/] {violation}", soft_wrap=True)


def _run_one(seed: int, rate: float | None, theme: Theme | None, trace: Path | None, console: Console) -> int:
    """Run one seed, print the end of its trace or write the trace to a file, and print what led to a violation."""
    simulation = simulated(seed, rate, theme=theme)
    lines = told(simulation.lines)
    if trace is not None:
        trace.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        sys.stdout.write("\n".join(lines[-_LAST_LINES:]) + "\n")
    outcome = outcome_of(simulation)
    if outcome.violations:
        sys.stdout.write("\nwhat led to the first violation:\n" + "\n".join(told_before(simulation.lines)) + "\n\n")
    _tell(outcome, console)
    summary = ", ".join(f"{number} {name}" for name, number in outcome.counts.items())
    console.print(f"seed {seed}: {summary}, {len(outcome.violations)} promises broken", soft_wrap=True)
    return BROKEN if outcome.violations else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Python orders sets differently in each process, but a run must depend only on its seed.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606 - itself once more
    typer.run(main)
