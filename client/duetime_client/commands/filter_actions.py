"""Commands on many tasks that a filter names: confirm, show progress, print the totals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from duetime_client.commands.console import console, progress_bar, show_json
from duetime_client.commands.formatting import counted
from duetime_client.commands.task_arguments import task_filter
from duetime_client.commands.task_table import show_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime_client.client import Client
    from duetime_client.commands.clock import Clock
    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.task import Task
    from duetime_client.task_fields import BulkFilter, BulkOptions

SHOWN = 5
"""How many of the matched tasks are shown before the confirmation."""
SCANNED = 100
"""How many tasks of the list are scanned for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the options say of many tasks.

    Attributes:
        every: whether all tasks are meant.
        error: class of the error that failed tasks ended with.
    """

    state: str | None
    task_type: str | None
    name: str | None
    tags: Sequence[str]
    due_from: str | None
    due_to: str | None
    every: bool
    per_second: float | None
    dry_run: bool
    yes: bool
    error: str | None = None

    def matches(self, task_id: str | None) -> bool:
        """Whether many tasks are meant rather than one; either must be said, and not both."""
        many = self.every or any(
            (self.state, self.task_type, self.name, self.tags, self.due_from, self.due_to, self.error)
        )
        if many and task_id is not None:
            raise typer.BadParameter("give either an ID or a filter, not both")
        if not many and task_id is None:
            raise typer.BadParameter("give an ID, a filter such as --type, or --all")
        if not many and (self.per_second is not None or self.dry_run or self.yes):
            raise typer.BadParameter("--per-second, --dry-run and --yes go with a filter")
        return many

    def filter(self, clock: Clock) -> BulkFilter:
        """The filter as the API takes it."""
        found = dict[str, Any](
            **task_filter(
                clock,
                state=self.state,
                task_type=self.task_type,
                name=self.name,
                tags=self.tags,
                due_from=self.due_from,
                due_to=self.due_to,
            )
        )
        if self.error is not None:
            found["error"] = self.error
        return cast("BulkFilter", found)

    @property
    def options(self) -> BulkOptions:
        """How to go through them."""
        options: BulkOptions = {"all": True} if self.every else {}
        if self.per_second is not None:
            options["per_second"] = self.per_second
        return options


@dataclass(slots=True)
class Sum:
    """The totals of all pages."""

    examined: int = 0
    matched: int = 0
    changed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    operation_id: str | None = None
    state: str | None = None

    def add(self, result: FilterActionResult) -> None:
        """Add a page."""
        self.examined += result.examined
        self.matched += result.matched
        self.changed += result.changed
        self.refused.update(result.refused)
        self.operation_id, self.state = result.operation_id, result.state

    @property
    def document(self) -> dict[str, Any]:
        """The totals as JSON."""
        return {
            "examined": self.examined,
            "matched": self.matched,
            "changed": self.changed,
            "refused": dict(self.refused),
        }


def filter_action(
    listed: Callable[[BulkFilter], Iterator[Task]],
    clock: Clock,
    wanted: Wanted,
    done: str,
    pieces: Callable[[BulkFilter, BulkOptions], Iterator[FilterActionResult]],
    *,
    as_json: bool,
) -> None:
    """Do something with many tasks, after a confirmation; exit code 1 if some of them could not be changed.

    Args:
        listed: the tasks that match a filter, as `open_tasks`.
        clock: for times in the reader's zone.
        wanted: which tasks.
        done: the participle for the output: `cancelled`.
        pieces: does it, page by page.
        as_json: whether the totals are printed as JSON.
    """
    task_filter = wanted.filter(clock)
    total: int | None = None
    if wanted.dry_run or not wanted.yes:
        matched = Sum()
        for piece in pieces(task_filter, {**wanted.options, "dry_run": True}):
            matched.add(piece)
        total = matched.matched
        if not as_json:
            show_matched(listed(task_filter), clock, total)
        if wanted.dry_run or not total:
            show_sum(matched, "matched", as_json=as_json)
            return
        typer.confirm(f"{counted(total, 'task')} will be {done}. Continue?", abort=True, err=True)
    came_to = shown_on_the_way(pieces(task_filter, wanted.options), total)
    show_sum(came_to, done, as_json=as_json)
    if came_to.state == "cancelled":
        console(stderr=True).print("the operation was cancelled before it finished", style="yellow")
    if came_to.refused or came_to.state == "cancelled":
        raise typer.Exit(1)


def open_tasks(client: Client) -> Callable[[BulkFilter], Iterator[Task]]:
    """A function that finds tasks that match a filter and have not ended, among the first of the list."""

    def found(task_filter: BulkFilter) -> Iterator[Task]:
        listed = islice(client.list_tasks(page_size=SCANNED, **task_filter), SCANNED)
        return (task for task in listed if not task.is_terminal)

    return found


def show_matched(tasks: Iterator[Task], clock: Clock, total: int) -> None:
    """Print the first of the matched tasks."""
    if found := list(islice(tasks, min(SHOWN, total))):
        show_tasks(found, clock, more=False)


def shown_on_the_way(pieces: Iterator[FilterActionResult], total: int | None) -> Sum:
    """Add up the pages, with a progress bar on the error stream."""
    came_to = Sum()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with progress_bar(*columns) as progress:
        bar = progress.add_task("", total=total)
        for piece in pieces:
            if piece.operation_id is not None and came_to.operation_id is None:
                said = f"continues in the background; to stop it: duetime bulk cancel {piece.operation_id}"
                progress.console.print(said, style="dim", soft_wrap=True)
            came_to.add(piece)
            progress.update(bar, completed=came_to.matched, description=f"{came_to.examined} scanned")
    return came_to


def show_sum(came_to: Sum, done: str, *, as_json: bool) -> None:
    """Print the totals."""
    if as_json:
        show_json(came_to.document)
        return
    number = came_to.matched if done == "matched" else came_to.changed
    console().print(f"{number} {done}, {came_to.examined} scanned")
    for code, count in sorted(came_to.refused.items()):
        console().print(f"{count} rejected: {code}", style="yellow")
