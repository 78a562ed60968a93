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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
INSIDE = ROOT / "layers/duetime/python/duetime"
_SEEDS = 300
_LONGEST = 600
"""Seconds that a mutant may survive."""
_TOLD = 160
_BROKEN = 1
"""Exit code of a simulation that found something."""


@dataclass(frozen=True)
class Mutant:
    """One mistake: what it is, and where the text of the inside changes.

    Attributes:
        also: what else changes in the same file, where one condition stands behind the other.
        rate: the chance of a fault at each call of the storms that look for it.
        first: the seed that they begin with.
    """

    name: str
    file: str
    old: str
    new: str
    rate: float = 0.06
    first: int = 0
    also: tuple[tuple[str, str], ...] = ()

    def applied(self, text: str) -> str:
        """A file's text with the mistake in it."""
        for old, new in ((self.old, self.new), *self.also):
            if old not in text:
                raise LookupError(f"mutant {self.name!r}: {self.file} has changed, and so must the mutant")
            text = text.replace(old, new, 1)
        return text


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
        "result = self.placing.move(task, Move.RETRY, at, Guard(fence=task.fence, not_cancelled=True), sets)",
        "result = self.placing.move(task, Move.RETRY, at, Guard(not_cancelled=True), sets)",
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
        "the fence does not grow",
        "domain/attempts.py",
        'adds={"fence": 1, "attempt": 1},',
        'adds={"fence": 0, "attempt": 1},',
    ),
    Mutant(
        "leases are not renewed",
        "services/working.py",
        "            self._run_errand(id(shift), partial(self._beat, shift))",
        "            shift.renew_at += 10_000",
        rate=0.0,
    ),
    Mutant(
        "a worker that cannot renew its lease goes on",
        "services/working.py",
        '                self._doom(now, "a lease could not be renewed", shift)',
        "                pass",
    ),
    Mutant(
        "the message of a leased task is deleted",
        "domain/lifeline.py",
        'return ComeBack((task.lease_ends_at or now) + LEASE_RETURN_MARGIN, "leased")',
        'return LetGo("leased")',
    ),
    Mutant(
        "the trigger moves on although messages were not taken",
        "services/due_messages.py",
        "return Served(sent, frozenset(queue_of(each.message) for each in unsent))",
        "return Served(sent, frozenset())",
        rate=0.0,
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
        "a lock's hold ends without the margin for clocks",
        "domain/locks.py",
        "if h.until + MAX_CLOCK_DIFFERENCE > now)",
        "if h.until > now)",
    ),
    Mutant(
        "a lock is removed by its TTL while it is held",
        "domain/locks.py",
        "return max(until, now + LONGEST_LOCK_HOLD) + LOCK_LIFE",
        "return now",
    ),
    Mutant(
        "a message is sent directly too seldom",
        "domain/dispatch.py",
        "return minute_of(at) <= minute_of(now + look_ahead + DIRECT_SLACK)",
        "return minute_of(at) <= minute_of(now)",
        rate=0.0,
    ),
    Mutant(
        "a heartbeat that comes late takes back what a later one has given",
        "services/working.py",
        "guard = Guard(fence=task.fence, leased_until_before=until)",
        "guard = Guard(fence=task.fence)",
        rate=0.1,
        first=100_068,
    ),
    Mutant(
        "a heartbeat is heard without regard to its fence",
        "services/reporting.py",
        "guard = Guard(fence=key.fence, leased_until_before=until)",
        "guard = Guard(leased_until_before=until)",
        also=(
            ("if task.fence != key.fence or task.state is not State.RUNNING", "if task.state is not State.RUNNING"),
            ("result.task is None or result.task.fence != key.fence or result", "result.task is None or result"),
        ),
    ),
    Mutant(
        "a task that is placed again in a minute that was read gets no message",
        "services/placing.py",
        "        if isinstance(result, Applied):\n            self.send_due([result.task])\n",
        "",
        rate=0.0,
    ),
    Mutant(
        "the trigger reads no minute before it has come",
        "composition.py",
        "look_ahead=settings.look_ahead_ms,\n            precision=settings.precision,\n            expanding",
        "look_ahead=0,\n            precision=settings.precision,\n            expanding",
        rate=0.0,
    ),
    Mutant(
        "an idempotency key makes another task each time",
        "adapters/dynamodb/keys.py",
        "return _remembered(kept) if kept else wanted",
        "return wanted",
    ),
    Mutant(
        "an edge counts twice",
        "domain/topologies/counting.py",
        "return Counts(self.edges, len(self.succeeded), len(self.failed), len(self.skipped))",
        "return Counts(self.edges, min(self.edges, 2 * len(self.succeeded)), len(self.failed), len(self.skipped))",
    ),
    Mutant(
        "a node that has ended is not told to the state machine",
        "services/topologies/following.py",
        "if (token := self.store.read_token(task.id)) is not None:",
        "if (token := self.store.read_token(task.id)) is not None and False:",
        rate=0.0,
    ),
    Mutant(
        "a node that has ended does not tell its children",
        "services/topologies/following.py",
        "        self.nodes.act(whole, edge.child, verdict(whole.graph.by_key[edge.child].rule, counts))\n",
        "        verdict(whole.graph.by_key[edge.child].rule, counts)\n",
        rate=0.0,
    ),
    Mutant(
        "the last run of a topology is taken for the one that was asked for since",
        "domain/topologies/head.py",
        "return head.fence > task.reopened_fence",
        "return not (head.dissolved or (head.ended and task.attempt == 1))",
    ),
    Mutant(
        "a node expires by its own end, not by its topology's",
        "services/finishing.py",
        'sets["expires_at"] = None if task.member is not None else ended_at + self.retention',
        'sets["expires_at"] = ended_at + self.retention',
        rate=0.0,
    ),
    Mutant(
        "the end of a topology does not let its nodes expire",
        "services/topologies/following.py",
        "if not self.conducting.dissolve(task):\n                self.conducting.retention.let_expire(task.id)\n",
        "self.conducting.dissolve(task)\n",
        rate=0.0,
    ),
    Mutant(
        "an occurrence does not look at the revision of its schedule",
        "services/recurring.py",
        "    if recurrence.state is ScheduleState.PAUSED:\n        return f",
        "    return None\n    if recurrence.state is ScheduleState.PAUSED:\n        return f",
    ),
    Mutant(
        "the ids of occurrences are drawn from how often their schedule was looked at",
        "domain/schedules/recurrence.py",
        "revision = 0 if purpose else self.revision",
        "revision = 0 if purpose else self.turn",
    ),
    Mutant(
        "an expanded schedule gets no next wake",
        "services/expanding.py",
        "if at is not None:\n            at = max(unread",
        "if at is not None and self.chance.below(4):\n            at = max(unread",
    ),
    Mutant(
        "a schedule moves on although its occurrences were not all placed",
        "services/expanding.py",
        "        at_work.failed = True\n        return None\n",
        "        return None\n",
    ),
    Mutant(
        "of what is missed while nothing ran, nothing is told",
        "services/expanding.py",
        "            skipped=recurrence.skipped + found.skipped,",
        "            skipped=recurrence.skipped,",
    ),
)


def main(
    seeds: Annotated[int, typer.Option(help="How many seeds a mutant may survive.", min=1)] = _SEEDS,
    only: Annotated[str, typer.Option(help="Only the mutants with this in their name.")] = "",
    jobs: Annotated[int, typer.Option(help="How many at once; 0 for as many as there are cores.", min=0)] = 0,
) -> None:
    """Run the storms over each mutant until one finds it."""
    console = Console()
    table = Table("mutant", "seeds it took", "found as")
    mutants = [mutant for mutant in MUTANTS if only in mutant.name]
    survivors = 0
    with ThreadPoolExecutor(jobs or os.cpu_count()) as threads:
        hunts = threads.map(partial(hunted, seeds=seeds), mutants)
        for mutant, found in zip(mutants, hunts, strict=True):
            survivors += found is None
            table.add_row(mutant.name, *(found or ("[red]survived[/]", "")))
            console.print(f"{mutant.name}: {'survived' if found is None else ' '.join(found)}", soft_wrap=True)
    console.print(table)
    console.print(f"{len(mutants)} mutants, {survivors} survived")
    sys.exit(1 if survivors else 0)


def hunted(mutant: Mutant, seeds: int) -> tuple[str, str] | None:
    """How many seeds it took to find a mutant, and what was found; `None` if none does, or not in its time."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "duetime"
        shutil.copytree(INSIDE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / mutant.file
        file.write_text(mutant.applied(file.read_text(encoding="utf-8")), encoding="utf-8")
        command = [sys.executable, "-m", "tests.simulation", "--until-broken", "--jobs", "1", "--seeds", str(seeds)]
        try:
            ended = subprocess.run(  # noqa: S603 - the simulation of this checkout
                [*command, "--rate", str(mutant.rate), "--first", str(mutant.first)],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": folder, "PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "400"},
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST,
            )
        except subprocess.TimeoutExpired:
            return None
    if ended.returncode == 0:
        return None
    lines = [line for line in ended.stdout.splitlines() if line.startswith("seed ")]
    if ended.returncode != _BROKEN or not lines:
        # What breaks the simulation itself is found as well.
        return "?", (ended.stderr.strip().splitlines() or ["?"])[-1][:_TOLD]
    seed, _, violation = lines[0].partition(": ")
    return str(int(seed.removeprefix("seed ")) - mutant.first + 1), violation.partition(": ")[2][:_TOLD]


if __name__ == "__main__":
    typer.run(main)
