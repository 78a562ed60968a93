"""Commands on all tasks that match a filter: confirmation, progress and totals."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import typer

from duetime_client.commands.output_streams import console, show_json
from duetime_client.commands.task_arguments import task_filter
from duetime_client.commands.task_views import show_tasks
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime_client.client import Client
    from duetime_client.commands.clock import Clock
    from duetime_client.commands.connection import Call
    from duetime_client.commands.task_options import BulkActionOptions, FilterOptions
    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.task import Task
    from duetime_client.task_request_fields import BulkFilter, BulkOptions

SHOWN = 5
"""Maximum number of matching tasks that are shown before the confirmation."""
SCANNED = 100
"""Maximum number of listed tasks that are scanned to find tasks to show."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The filter of a command on many tasks.

    Attributes:
        error: type of the error that failed tasks ended with.
        reason: the reason for the action.
    """

    filters: FilterOptions
    bulk: BulkActionOptions
    state: str | None = None
    error: str | None = None
    reason: str = ""

    def is_given(self, task_id: str | None) -> bool:
        """Whether options select many tasks; exactly one of filter options and an id is required."""
        many = self.bulk.every or any((*astuple(self.filters), self.state, self.error))
        if many and task_id is not None:
            raise typer.BadParameter("give either an ID or a filter, not both")
        if not many and task_id is None:
            raise typer.BadParameter("give an ID, a filter such as --type, or --all")
        if not many and (self.bulk.per_second is not None or self.bulk.dry_run or self.bulk.yes):
            raise typer.BadParameter("--per-second, --dry-run and --yes need a filter")
        return many

    def filter(self, clock: Clock) -> BulkFilter:
        """The filter in the API's format."""
        found = dict[str, Any](**task_filter(self.filters, clock, self.state))
        if self.error is not None:
            found["error_type"] = self.error
        return cast("BulkFilter", found)

    @property
    def options(self) -> BulkOptions:
        """The options in the API's format."""
        options: BulkOptions = {"all": True} if self.bulk.every else {}
        if self.bulk.per_second is not None:
            options["per_second"] = self.bulk.per_second
        if self.reason:
            options["reason"] = self.reason
        return options


@dataclass(slots=True)
class Totals:
    """The totals over all pages of an action."""

    examined: int = 0
    matched: int = 0
    affected: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    confirmation_token: str | None = None
    operation_id: str | None = None
    state: str | None = None

    def add(self, result: FilterActionResult) -> None:
        """Add a page."""
        self.examined += result.examined
        self.matched += result.matched
        self.affected += result.affected
        self.refused.update(result.refused)
        self.confirmation_token = result.confirmation_token
        self.operation_id, self.state = result.operation_id, result.state

    @property
    def document(self) -> dict[str, Any]:
        """The totals as JSON."""
        return {
            "examined": self.examined,
            "matched": self.matched,
            "affected": self.affected,
            "refused": dict(self.refused),
        }


def filter_action(
    call: Call,
    selection: Selection,
    done: str,
    listed: Callable[[BulkFilter], Iterator[Task]],
    pages: Callable[[BulkFilter, BulkOptions], Iterator[FilterActionResult]],
) -> None:
    """Apply an action to many tasks after confirmation; exit code 1 if some tasks could not be changed.

    Args:
        call: the call of the command.
        selection: the tasks to change.
        done: the participle for the output, such as `cancelled`.
        listed: lists the matching tasks, as `open_tasks` does.
        pages: applies the action, page by page.
    """
    task_filter, options = selection.filter(call.clock), selection.options
    total: int | None = None
    if selection.bulk.dry_run or not selection.bulk.yes:
        matched = Totals()
        for page in pages(task_filter, {**options, "dry_run": True}):
            matched.add(page)
        total = matched.matched
        if not call.as_json:
            show_matched(listed(task_filter), call.clock, total)
        if selection.bulk.dry_run or not total:
            show_totals(matched, "matched", as_json=call.as_json)
            return
        typer.confirm(f"{counted(total, 'task')} will be {done}. Continue?", abort=True, err=True)
        if matched.confirmation_token is not None:
            options["confirmation_token"] = matched.confirmation_token
    totals = run_with_progress(pages(task_filter, options), total)
    show_totals(totals, done, as_json=call.as_json)
    if totals.state == "cancelled":
        console(stderr=True).print("the operation was cancelled before it finished", style="yellow")
    if totals.refused or totals.state == "cancelled":
        raise typer.Exit(1)


def open_tasks(client: Client) -> Callable[[BulkFilter], Iterator[Task]]:
    """A function that returns open tasks matching a filter, from the start of the list."""

    def found(task_filter: BulkFilter) -> Iterator[Task]:
        listed = islice(client.tasks.list(page_size=SCANNED, **task_filter), SCANNED)
        return (task for task in listed if not task.is_terminal)

    return found


def show_matched(tasks: Iterator[Task], clock: Clock, total: int) -> None:
    """Print the first few matching tasks."""
    if found := list(islice(tasks, min(SHOWN, total))):
        show_tasks(found, clock, more=False)


def run_with_progress(pages: Iterator[FilterActionResult], total: int | None) -> Totals:
    """Add up the pages, with a progress bar on the error stream."""
    from duetime_client.commands.progress_bars import counting_bar  # noqa: PLC0415 - see that module

    totals = Totals()
    with counting_bar() as progress:
        bar = progress.add_task("", total=total)
        for page in pages:
            if page.operation_id is not None and totals.operation_id is None:
                said = f"continues in the background; to stop it: duetime bulk cancel {page.operation_id}"
                progress.console.print(said, style="dim", soft_wrap=True)
            totals.add(page)
            progress.update(bar, completed=totals.matched, description=f"{totals.examined} scanned")
    return totals


def show_totals(totals: Totals, done: str, *, as_json: bool) -> None:
    """Print the totals."""
    if as_json:
        show_json(totals.document)
        return
    number = totals.matched if done == "matched" else totals.affected
    console().print(f"{number} {done}, {totals.examined} scanned")
    for code, count in sorted(totals.refused.items()):
        console().print(f"{count} rejected: {code}", style="yellow")
