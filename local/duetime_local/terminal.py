"""Prints the output of the local stack and the demo to the terminal."""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from duetime_client.commands.contexts import READY_FILE_VARIABLE
from duetime_client.commands.topology_views import Picture
from duetime_local.ready_file import READY_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from duetime_client.topologies import Topology
    from duetime_local.demo import Progress as DemoProgress
    from duetime_local.demo_report import Figures, GraphFigures, RecurringFigures
    from duetime_local.ready_file import Ready

LONGEST_DETAIL = 90
ECHO = "echo"
"""The task type of the example handler that returns its payload."""


class Display:
    """Shows steps, progress bars and results in the terminal."""

    def __init__(self, console: Console | None = None) -> None:
        # Highlighting is off, because otherwise rich would color every number and path.
        self._console = console or Console(highlight=False)

    @contextmanager
    def step(self, title: str) -> Iterator[Callable[[str], None]]:
        """Show a running step with its latest line of output and, when the step has ended, its duration."""
        began = time.monotonic()
        latest = ""
        with self._console.status(f"{title} …") as status:

            def report(line: str) -> None:
                nonlocal latest
                latest = line
                status.update(f"{title} … [dim]{escape(line[:LONGEST_DETAIL])}[/dim]")

            yield report
        seconds = time.monotonic() - began
        self._console.print(
            f"[green]✓[/green] {title} [dim]({seconds:.1f} s) {escape(latest)}[/dim]", overflow="ellipsis", no_wrap=True
        )

    @contextmanager
    def demo(self) -> Iterator[Callable[[DemoProgress], None]]:
        """Show a progress bar for the tasks that have succeeded."""
        columns = (
            TextColumn("  {task.description}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TextColumn("[dim]due {task.fields[due]} · retried {task.fields[retried]}[/dim]"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as progress:
            bar = progress.add_task("creating", total=None, due=0, retried=0)

            def show(now: DemoProgress) -> None:
                progress.update(
                    bar,
                    description="running",
                    total=now.accepted,
                    completed=now.succeeded,
                    due=now.due,
                    retried=now.retried,
                )

            yield show

    @contextmanager
    def graph(self) -> Iterator[Callable[[Topology], None]]:
        """Show a topology's progress if the output is a terminal; the display disappears at the end of the context."""
        with Live(console=self._console, auto_refresh=False, transient=True) as live:

            def show(topology: Topology) -> None:
                if self._console.is_terminal:
                    live.update(Picture(topology, datetime.now(UTC)), refresh=True)

            yield show

    def figures(self, figures: Figures) -> None:
        """Show the demo's results as a table."""
        table = Table(box=box.ROUNDED, title="What the receiver counted", title_justify="left", show_header=False)
        table.add_column()
        table.add_column(justify="right")
        table.add_column(style="dim")
        lateness = figures.lateness_ms
        rows = (
            ("accepted", f"{figures.accepted}", "the API responded with 201"),
            ("succeeded", f"[green]{figures.succeeded}[/green]", "reported by the API and seen by the receiver"),
            ("retried", f"{figures.retried}", "failed at first, as planned, and ran again"),
            ("failed", f"{figures.failed}", "failed after their last attempt"),
            ("lost", _zero(figures.lost), "accepted, without an outcome"),
            ("run twice", _zero(figures.doubled), "concurrently, or again after success"),
            ("early", _zero(figures.early), "started before they were due"),
            ("lateness p50", f"{lateness.p50:.1f} ms", "from the due time to the start of the first attempt"),
            ("lateness p99", f"{lateness.p99:.1f} ms", ""),
            ("lateness max", f"{lateness.max:.1f} ms", ""),
        )
        for row in (*rows, *_recurring_rows(figures.recurring), *_graph_rows(figures.graph)):
            table.add_row(*row)
        self._console.print(table)

    def addresses(self, ready: Ready, types: Collection[str], kept: Path | None, ready_file: Path) -> None:
        """Show the addresses of the console, the API and AWS, commands to try, and what Ctrl-C does."""
        self._console.print()
        for name, url in (("Console", ready.console_url), ("API", ready.api_url), ("AWS", ready.aws_endpoint_url)):
            self._console.print(f"[bold]{name:<7}[/bold]  {url}", soft_wrap=True)
        self._console.print()
        # The lines are not wrapped, so that users can copy them.
        for line in commands_to_try(ready.api_url, types):
            self._console.out(f"  {line}", highlight=False)
        if ready_file != READY_FILE:
            # By default, commands look only for the default file.
            self._console.print("\nFor commands in another terminal:")
            self._console.out(f"  export {READY_FILE_VARIABLE}={ready_file.absolute()}", highlight=False)
        end = (
            "its tasks are deleted; use --keep to keep them"
            if kept is None
            else f"its tasks are kept in {escape(str(kept))}"
        )
        self._console.print(f"\nCtrl-C stops the stack: its processes end, and {end}.", soft_wrap=True)

    def reloaded(self, seconds: float) -> None:
        """Report that new attempts now use the saved handlers."""
        self._console.print(f"[green]✓[/green] handlers reloaded [dim]({seconds:.1f} s after the save)[/dim]")

    def broken(self, reason: str) -> None:
        """Show why handlers cannot be imported."""
        self.error(reason)
        self._console.print("[bold]The last good handlers keep running.[/bold]")

    def error(self, message: str) -> None:
        """Show an error."""
        self._console.print(f"[bold red]✗[/bold red] {escape(message)}")

    def note(self, message: str) -> None:
        """Show a message without styling."""
        self._console.print(message, markup=False)


def commands_to_try(api_url: str, types: Collection[str]) -> Iterator[str]:
    """Yield example commands that create a task, if a task type has a handler, and list tasks."""
    tasks = f"{api_url}/v1/tasks"
    task_type = ECHO if ECHO in types else min(types, default="")
    if task_type:
        # The payload that a project's own handler expects is unknown.
        option, field = (""" --payload '"hello"'""", ' "payload": "hello",') if task_type == ECHO else ("", "")
        yield f"duetime tasks create {task_type}{option} --in 3s --wait"
        body = f'{{"type": "{task_type}",{field} "delay_seconds": 3}}'
        yield f"curl -s {tasks} -H 'Content-Type: application/json' -d '{body}'"
    yield f"curl -s {tasks}"


def _recurring_rows(figures: RecurringFigures | None) -> Iterator[tuple[str, str, str]]:
    if figures is None:
        return
    every = figures.ran == figures.expected
    ran = f"[{'green' if every else 'bold red'}]{figures.ran} of {figures.expected}[/]"
    yield "recurring", ran, f"occurrences of {figures.schedules} schedules, each run at its second"
    yield "run twice or wrong", _zero(figures.doubled + figures.strange), "two runs at a time, or a run at another time"
    yield "lateness max", f"{figures.lateness_ms.max:.1f} ms", "of occurrences"


def _graph_rows(figures: GraphFigures | None) -> Iterator[tuple[str, str, str]]:
    if figures is None:
        return
    every = figures.succeeded and figures.ran == figures.nodes
    ran = f"[{'green' if every else 'bold red'}]{figures.ran} of {figures.nodes}[/]"
    yield "workflow", ran, f"nodes of {figures.name}, each run once"
    yield "started before a parent", _zero(figures.before_parents), f"of {figures.edges} dependencies"
    chain = f"the {figures.shortest_seconds:.1f} s of work in its longest chain"
    yield "last node ended", f"{figures.seconds:.1f} s", f"after its creation: {figures.ratio:.2f} times {chain}"


def _zero(count: int) -> str:
    return f"[green]{count}[/green]" if count == 0 else f"[bold red]{count}[/bold red]"
