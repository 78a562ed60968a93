"""`duetime schedules apply`."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from duetime_client.client import Client
from duetime_client.commands.apply_views import DONE, show_outcome, show_plan
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call, exit_code_of
from duetime_client.commands.output_streams import show_json
from duetime_client.commands.task_arguments import tags_of
from duetime_client.commands.task_options import Yes
from duetime_client.errors import ApiError
from duetime_client.manifests.apply import Done, apply_steps, present_schedules
from duetime_client.manifests.differences import Action, Step, plan
from duetime_client.manifests.prow import schedule_of_prow
from duetime_client.manifests.reader import Entry, ManifestUnreadable, entries_of, names_of, with_defaults
from duetime_client.schedule_models import Schedule

STANDARD_INPUT = "-"


class Format(StrEnum):
    """The format of a file's entries."""

    SCHEDULES = "schedules"
    PROW = "prow"


FILE = Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON lines; - for standard input.")]
TaskTypeDefault = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Task type for entries without a type.")
]
Zone = Annotated[
    str | None, typer.Option("--timezone", metavar="ZONE", help="Time zone for entries without a zone; default: UTC.")
]


@examples(
    "duetime schedules apply schedules.yaml --dry-run", "duetime schedules apply schedules.yaml --tag app=shop --prune"
)
def apply(  # noqa: PLR0913 - a command's options are its parameters
    call: Call,
    file: FILE,
    *,
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="schedules: the API's fields; prow: periodic jobs of Prow, as robfig/cron reads them."
        ),
    ] = Format.SCHEDULES,
    task_type: TaskTypeDefault = None,
    timezone: Zone = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="KEY=VALUE", help="A tag for the tasks of all schedules; may be repeated."),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Delete schedules that are not in the file: schedules with the --tag, or --all."),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="With --prune: all schedules of the owner.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show and validate the changes, and change nothing.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Make the schedules match a file: create, change and, with --prune, delete schedules.

    The changes are shown first. A rejected entry does not stop the other entries; apply the file again for the changes
    that are left.
    """
    if prune and not tag and not everything:
        raise typer.BadParameter(
            "needs --tag KEY=VALUE or --all, to say which schedules belong to the file", param_hint="--prune"
        )
    if everything and not prune:
        raise typer.BadParameter("goes with --prune", param_hint="--all")
    tags = tags_of(tag or [])
    entries = [with_defaults(each, task_type=task_type, timezone=timezone, tags=tags) for each in _read(file, form)]
    with call.client() as client:
        present = present_schedules(client, entries)
        surplus = _surplus(present, entries, {} if everything else tags) if prune else []
        done = _applied(client, plan(entries, present, surplus), dry_run=dry_run, yes=yes, quiet=call.as_json)
    end_with(done, as_json=call.as_json)


def add_to(app: typer.Typer) -> None:
    """Register the command in the group of schedules."""
    app.command()(apply)


def _read(file: str, form: Format) -> list[Entry]:
    try:
        entries = entries_of(_text_of(file))
    except ManifestUnreadable as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error
    return [_of_prow(each) for each in entries] if form is Format.PROW else entries


def _of_prow(entry: Entry) -> Entry:
    try:
        return replace(entry, fields=schedule_of_prow(entry.fields))
    except ValueError as error:
        return replace(entry, fault=entry.fault or str(error))


def _text_of(file: str) -> str:
    try:
        if file == STANDARD_INPUT:
            return sys.stdin.read().removeprefix("\ufeff")
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from error


def _surplus(present: Mapping[str, Schedule], entries: Sequence[Entry], tags: Mapping[str, str]) -> list[str]:
    """The schedules to prune, which have the file's tags, but neither a valid nor an invalid entry in the file."""
    named = names_of(entries)

    def owned(schedule: Schedule) -> bool:
        found = schedule.task.get("tags")
        return isinstance(found, Mapping) and tags.items() <= found.items()

    return [name for name, schedule in present.items() if name not in named and owned(schedule)]


def apply_entries(client: Client, entries: Sequence[Entry], *, dry_run: bool, yes: bool) -> list[Done]:
    """Show how the entries differ from the deployment's schedules, and apply them if confirmed; nothing is deleted."""
    steps = plan(entries, present_schedules(client, entries))
    return _applied(client, steps, dry_run=dry_run, yes=yes, quiet=False)


def _applied(client: Client, steps: Sequence[Step], *, dry_run: bool, yes: bool, quiet: bool) -> list[Done]:
    """Show the steps, ask for confirmation, and apply them."""
    if not quiet:
        show_plan(steps)
    invalid = [Done(step, _invalid(step)) for step in steps if step.action is Action.REJECT]
    wanted = [step for step in steps if step.action not in {Action.KEEP, Action.REJECT}]
    unchanged = [Done(step) for step in steps if step.action is Action.KEEP]
    if not wanted:
        return [*unchanged, *invalid]
    if not (dry_run or yes or typer.confirm("Apply these changes?", err=True)):
        raise typer.Exit(1)
    from duetime_client.commands.progress_bars import counting_bar  # noqa: PLC0415 - see that module

    with counting_bar("refused") as progress:
        shown = progress.add_task("checking" if dry_run else "applying", total=len(wanted), refused="")
        errors = 0

        def on_done(done: Done) -> None:
            nonlocal errors
            errors += done.error is not None
            progress.update(shown, advance=1, refused=f"{errors} rejected" if errors else "")

        done = apply_steps(client, wanted, on_done, only_check=dry_run)
    if not quiet:
        show_outcome(done, checked=dry_run, invalid=len(invalid))
    return [*unchanged, *done, *invalid]


def _invalid(step: Step) -> ApiError:
    """An error in the API's format for an invalid entry."""
    from duetime_client.errors import InvalidRequest, Problem  # noqa: PLC0415

    return InvalidRequest(Problem(0, "entry_invalid", "The entry is not valid", step.fault))


def end_with(done: Sequence[Done], *, as_json: bool) -> None:
    """Print the results as JSON if requested; exit code 1 if an entry was rejected, 3 if the API did not respond."""
    if as_json:
        show_json(_document(done))
    errors = [each.error for each in done if each.error is not None]
    if any(not each.tried for each in done):
        raise typer.Exit(3)
    if errors:
        raise typer.Exit(max(exit_code_of(error) for error in errors))


def _document(done: Sequence[Done]) -> dict[str, object]:
    groups: dict[str, list[str]] = {word: [] for word in DONE.values()}
    failed: list[dict[str, object]] = []
    for each in done:
        if each.error is None and each.tried:
            groups[DONE[each.step.action]].append(each.step.name)
        elif each.error is not None:
            failed.append({"name": each.step.name, "line": each.step.line, "reasons": _reasons(each.error)})
    left = [each.step.name for each in done if not each.tried]
    return {**groups, "refused": failed, "not_tried": left}


def _reasons(error: Exception) -> list[str]:
    if isinstance(error, ApiError) and error.problem.errors:
        return [f"{field.field}: {field.reason}" for field in error.problem.errors]
    return [error.problem.detail if isinstance(error, ApiError) else str(error)]
