"""Compares how schedulers start one-time tasks: `python -m bench.scheduler_comparison`.

Each scheduler runs two cases: tasks due at random milliseconds, which are the same for all schedulers, and tasks due in
the same millisecond. A task only records its start. The first run installs the schedulers into a separate virtual
environment. The user must install Redis; without `redis-server`, the schedulers that need it are skipped. Run the
comparison on an idle machine. The figures are saved in `results.json` if the run has the default numbers of tasks.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import results
from bench.lateness import BURST_TASKS, SPREAD_SECONDS, SPREAD_TASKS, spread_offsets
from bench.scheduler_comparison import report
from bench.scheduler_comparison.lateness_figures import BURST, SPREAD, CaseFigures, SchedulerFigures
from bench.scheduler_comparison.scheduled_tasks import Plan
from bench.scheduler_comparison.schedulers import HERE, SCHEDULERS, ProgramFailed, Scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.scheduler_comparison.scheduled_tasks import Progress as Started

AHEAD_SECONDS = 30.0
"""Seconds from the creation to the first due time, which suffice for the slowest scheduler to create a thousand
tasks."""
PATIENCE_SECONDS = 180.0
_MILLISECOND = timedelta(milliseconds=1)


def main() -> int:
    """Measure the schedulers, print the figures, and return 1 if a scheduler could not be measured."""
    asked = _arguments()
    usual = (asked.spread, asked.seconds, asked.burst) == (SPREAD_TASKS, SPREAD_SECONDS, BURST_TASKS)
    spread = [offset // _MILLISECOND for offset in spread_offsets(asked.spread, asked.seconds)]
    plan = Plan({SPREAD: spread, BURST: [0] * asked.burst}, asked.ahead, PATIENCE_SECONDS)
    console = Console()
    comparison = Comparison(console, plan)
    comparison.run([each for each in SCHEDULERS if each.key in asked.only])
    for table in report.tables(comparison.found):
        console.print(table)
    if asked.markdown:
        print("\n".join(report.markdown(comparison.found)))
    if usual:
        kept = [figures.kept(scheduler.key).items() for scheduler, figures in comparison.found.items()]
        results.keep(HERE.parent, dict(item for items in kept for item in items))
    else:
        console.print(f"unusual numbers of tasks, so the figures are not written to {results.DATA}")
    return int(comparison.has_failed)


def _arguments() -> argparse.Namespace:
    keys = [each.key for each in SCHEDULERS]
    parser = argparse.ArgumentParser(prog="scheduler_comparison", description="Compare lateness and throughput.")
    parser.add_argument("--spread", type=int, default=SPREAD_TASKS, help="number of tasks at random milliseconds")
    parser.add_argument("--seconds", type=int, default=SPREAD_SECONDS, help="seconds within which spread tasks are due")
    parser.add_argument("--burst", type=int, default=BURST_TASKS, help="number of tasks in the same millisecond")
    parser.add_argument("--ahead", type=float, default=AHEAD_SECONDS, help="seconds from creation to first due time")
    parser.add_argument("--only", nargs="+", choices=keys, default=keys, metavar="NAME", help=", ".join(keys))
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown, too")
    return parser.parse_args()


@dataclass(slots=True)
class Comparison:
    """Measures the schedulers one after another.

    Attributes:
        console: console for output.
        plan: the plan for each scheduler.
        found: figures of the schedulers that have been measured.
        has_failed: whether a scheduler failed for a reason other than a missing server.
    """

    console: Console
    plan: Plan
    found: dict[Scheduler, SchedulerFigures] = field(default_factory=dict)
    has_failed: bool = False

    def run(self, schedulers: Sequence[Scheduler]) -> None:
        """Measure the schedulers, and show the progress."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[case]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console) as progress:
            for scheduler in schedulers:
                if scheduler.is_missing:
                    self.console.print(f"{scheduler.name}: skipped, because `{scheduler.server}` is not on the PATH")
                else:
                    self._measure(scheduler, progress)

    def _measure(self, scheduler: Scheduler, progress: Progress) -> None:
        sizes = {case: len(offsets) for case, offsets in self.plan.cases.items()}
        bar = progress.add_task(scheduler.name, total=sum(sizes.values()), case="starting")
        started = dict.fromkeys(sizes, 0)

        def show(now: Started) -> None:
            if now.case in started:
                started[now.case] = now.started
            progress.update(bar, completed=sum(started.values()), case=now.case)

        try:
            outcomes = scheduler.measured(self.plan, show)
        except ProgramFailed as failed:
            self.has_failed = True
            self.console.print(f"[red]{scheduler.name}: not measured:[/] {escape(str(failed))}")
        else:
            progress.update(bar, case="measured")
            figures = {case: CaseFigures.of(outcome) for case, outcome in outcomes.items()}
            self.found[scheduler] = SchedulerFigures(figures[SPREAD], figures[BURST])


if __name__ == "__main__":
    raise SystemExit(main())
