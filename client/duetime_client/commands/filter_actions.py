"""What the commands do that name many tasks by a filter: ask first, show how far, sum up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from duetime_client.commands.console import console, show_json
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
"""So many of the tasks that are meant are shown before a person says yes."""
LOOKED_THROUGH = 100
"""So many tasks of the list are looked through for them."""


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
    """What all pieces came to together."""

    examined: int = 0
    matched: int = 0
    changed: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    operation_id: str | None = None
    state: str | None = None

    def add(self, result: FilterActionResult) -> None:
        """Add a piece."""
        self.examined += result.examined
        self.matched += result.matched
        self.changed += result.changed
        self.refused.update(result.refused)
        self.operation_id, self.state = result.operation_id, result.state

    @property
    def document(self) -> dict[str, Any]:
        """The sums as JSON."""
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
    """Do something with many tasks, once its user has seen which; exit code 1 if some of them refused.

    Args:
        listed: the tasks that a filter means, as `open_tasks`.
        clock: time and place.
        wanted: which tasks.
        done: what was done to them then: `cancelled`.
        pieces: does it, piece by piece.
        as_json: whether the sums are printed as JSON.
    """
    task_filter = wanted.filter(clock)
    total: int | None = None
    if wanted.dry_run or not wanted.yes:
        counted = Sum()
        for piece in pieces(task_filter, {**wanted.options, "dry_run": True}):
            counted.add(piece)
        total = counted.matched
        if not as_json:
            show_matched(listed(task_filter), clock, total)
        if wanted.dry_run or not total:
            show_sum(counted, "meant", as_json=as_json)
            return
        typer.confirm(f"{total} tasks will be {done}. Go on?", abort=True, err=True)
    came_to = shown_on_the_way(pieces(task_filter, wanted.options), total)
    show_sum(came_to, done, as_json=as_json)
    if came_to.state == "cancelled":
        console(stderr=True).print("the operation was cancelled before its end", style="yellow")
    if came_to.refused or came_to.state == "cancelled":
        raise typer.Exit(1)


def open_tasks(client: Client) -> Callable[[BulkFilter], Iterator[Task]]:
    """How the tasks are found that a filter means and that have not ended, among the first of the list."""

    def found(task_filter: BulkFilter) -> Iterator[Task]:
        listed = islice(client.list_tasks(page_size=LOOKED_THROUGH, **task_filter), LOOKED_THROUGH)
        return (task for task in listed if not task.is_terminal)

    return found


def show_matched(tasks: Iterator[Task], clock: Clock, total: int) -> None:
    """Print the first of the tasks that are meant."""
    if found := list(islice(tasks, min(SHOWN, total))):
        show_tasks(found, clock, more=False)


def shown_on_the_way(pieces: Iterator[FilterActionResult], total: int | None) -> Sum:
    """Go through the pieces, with a bar on the error stream."""
    came_to = Sum()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=total)
        for piece in pieces:
            if piece.operation_id is not None and came_to.operation_id is None:
                said = f"goes on by itself; to stop it: duetime bulk cancel {piece.operation_id}"
                progress.console.print(said, style="dim")
            came_to.add(piece)
            progress.update(bar, completed=came_to.matched, description=f"{came_to.examined} looked at")
    return came_to


def show_sum(came_to: Sum, done: str, *, as_json: bool) -> None:
    """Print what came of it."""
    if as_json:
        show_json(came_to.document)
        return
    number = came_to.matched if done == "meant" else came_to.changed
    console().print(f"{number} {done}, {came_to.examined} looked at")
    for code, count in sorted(came_to.refused.items()):
        console().print(f"{count} refused: {code}", style="yellow")
