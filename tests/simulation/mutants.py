"""Break the inside in one place at a time, and see whether the storms find it: `python -m tests.simulation.mutants`.

Each mutation is made in a copy of the inside, never in the checkout. A mutation whose text is no longer there is
an error: the list must follow the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
INSIDE = ROOT / "layers/duetime/python/duetime"
_SEEDS = 150
_BROKEN = 1
"""Exit code of a simulation that found something."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: what it is, and where the text of the inside changes."""

    name: str
    file: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """A file's text with the mistake in it."""
        if self.old not in text:
            raise LookupError(f"mutant {self.name!r}: {self.file} has changed, and so must the mutant")
        return text.replace(self.old, self.new, 1)


MUTANTS = (
    Mutant(
        "the end of an attempt is written without its fence",
        "services/finishing.py",
        "write = Write(task.id, move, self.chance.nonce(), guard or Guard(fence=task.fence), sets)",
        "write = Write(task.id, move, self.chance.nonce(), guard or Guard(), sets)",
    ),
    Mutant(
        "a retry is written without its fence",
        "services/finishing.py",
        "result = self.placing.move(task, Move.RETRY, run.ended_at + wait, Guard(fence=task.fence), sets)",
        "result = self.placing.move(task, Move.RETRY, run.ended_at + wait, Guard(), sets)",
    ),
    Mutant(
        "a lease is taken over without regard to its end",
        "domain/attempts.py",
        "guard=replace(guard, leased_until_before=self.now - MAX_CLOCK_DIFFERENCE)",
        "guard=replace(guard, leased_until_before=self.now + 60_000)",
    ),
    Mutant(
        "the margin for clocks is forgotten",
        "domain/attempts.py",
        "guard=replace(guard, leased_until_before=self.now - MAX_CLOCK_DIFFERENCE)",
        "guard=replace(guard, leased_until_before=self.now + MAX_CLOCK_DIFFERENCE)",
    ),
    Mutant(
        "a claim does not ask whether the task is due",
        "domain/attempts.py",
        "Move.CLAIM, nonce, start, Guard(turn=message.turn, due_by=start))",
        "Move.CLAIM, nonce, start, Guard(turn=message.turn, due_by=start + 60_000))",
    ),
    Mutant(
        "a worker does not hold a message until its time",
        "services/attempting.py",
        "self.clock.sleep_until(message.due - CLAIM_LEAD)",
        "pass",
    ),
    Mutant(
        "the fence does not grow",
        "domain/attempts.py",
        'adds={"fence": 1, "attempt": 1},',
        'adds={"fence": 0, "attempt": 1},',
    ),
    Mutant(
        "leases are not renewed",
        "services/working.py",
        "        for shift in due:\n            self._beat(shift)\n",
        "        for shift in due:\n            shift.renew_at += 10_000\n",
    ),
    Mutant(
        "a worker that lost its lease goes on",
        "services/working.py",
        '            self._doom(self.inside.clock.now(), "a lease was lost", shift)',
        "            pass",
    ),
    Mutant(
        "the message of a leased task is deleted",
        "domain/lifeline.py",
        'return ComeBack((task.lease_ends_at or now) + LEASE_RETURN_MARGIN, "leased")',
        'return LetGo("leased")',
    ),
    Mutant(
        "the trigger moves on although messages were not taken",
        "services/dispatching.py",
        "return self._expand(wakes) and is_sent",
        "return self._expand(wakes) or is_sent or True",
    ),
    Mutant(
        "nothing is patrolled",
        "domain/dispatch.py",
        "    if entry.state in WAITING:\n        return entry.next_at <= now\n",
        "    if entry.state in WAITING:\n        return False\n",
    ),
    Mutant(
        "a look beyond a record's home gets no wake",
        "domain/dispatch.py",
        "return Placement(wake=not at_home, direct=direct)",
        "return Placement(wake=False, direct=direct)",
    ),
    Mutant(
        "a lock is given to one more than its limit",
        "domain/locks.py",
        "return limit - len(self.holders)",
        "return limit + 1 - len(self.holders)",
    ),
    Mutant(
        "a message is sent directly too seldom",
        "domain/dispatch.py",
        "return minute_of(at) <= minute_of(now + look_ahead + DIRECT_SLACK)",
        "return minute_of(at) <= minute_of(now)",
    ),
    Mutant(
        "a repeated write is not known by its nonce",
        "adapters/dynamodb/task_store.py",
        "if existing is not None and existing.nonce == write.nonce:",
        "if existing is None:",
    ),
)


def main(
    seeds: Annotated[int, typer.Option(help="How many seeds a mutant may survive.", min=1)] = _SEEDS,
    only: Annotated[str, typer.Option(help="Only the mutants with this in their name.")] = "",
) -> None:
    """Run the storms over each mutant until one finds it."""
    console = Console()
    table = Table("mutant", "found by", "as")
    survivors = 0
    for mutant in MUTANTS:
        if only not in mutant.name:
            continue
        found = hunted(mutant, seeds)
        survivors += found is None
        table.add_row(mutant.name, *(found or ("[red]nothing[/]", f"survived {seeds} seeds")))
        console.print(f"{mutant.name}: {'survived' if found is None else ' '.join(found)}", soft_wrap=True)
    console.print(table)
    sys.exit(1 if survivors else 0)


def hunted(mutant: Mutant, seeds: int) -> tuple[str, str] | None:
    """The seed that finds a mutant, and what it says; `None` if none does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "duetime"
        shutil.copytree(INSIDE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / mutant.file
        file.write_text(mutant.applied(file.read_text(encoding="utf-8")), encoding="utf-8")
        ended = subprocess.run(  # noqa: S603 - the simulation of this checkout
            [sys.executable, "-m", "tests.simulation", "--seeds", str(seeds), "--until-broken"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": folder, "PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "400"},
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode == 0:
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith("seed ")]
    if ended.returncode != _BROKEN or not lines:
        # What breaks the simulation itself is found as well.
        return "a crash", (ended.stderr.strip().splitlines() or ["?"])[-1][:120]
    seed, _, violation = lines[0].partition(": ")
    return seed, violation.partition(": ")[2][:120]


if __name__ == "__main__":
    typer.run(main)
