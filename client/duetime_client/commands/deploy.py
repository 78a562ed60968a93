"""`duetime deploy`: deploy a project, with a confirmation before data is lost."""

import sys
import time
from typing import Annotated

import typer

from duetime_client.cdk_project import CdkProject, StackNotFound, chosen_stack, project_here
from duetime_client.change_sets import ChangeSets
from duetime_client.commands.command_help import examples
from duetime_client.commands.messages import show_error
from duetime_client.commands.output_streams import console, printable, say
from duetime_client.errors import ClientError
from duetime_client.stack_changes import StackChanges, changes_of, is_empty

DECLINED = 3
"""Exit code: the changes were not confirmed, and nothing was deployed."""
_MOST_LINES = 40


@examples("duetime deploy", "duetime deploy -e prod")
def deploy(
    *,
    environment: Annotated[
        str, typer.Option("--environment", "-e", metavar="NAME", help="Environment of the project's settings.")
    ] = "dev",
    stack: Annotated[str, typer.Option("--stack", metavar="STACK", help="Stack, if the app has several.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, unless data would be lost.")] = False,
    confirm_loss: Annotated[
        str, typer.Option("--confirm-loss", metavar="STACK", help="Name the stack whose data may be lost.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes only.")] = False,
) -> None:
    """Deploy this project with the CDK: show the changes, and ask for confirmation.

    If a resource that holds data would be replaced or deleted, the name of the stack must be typed. The command
    executes exactly the change set that was shown. Exit codes: 0 deployed, or nothing to change; 1 failed; 2 no such
    stack; 3 not confirmed.
    """
    try:
        project = project_here()
        name = chosen_stack(project.synthesize(environment), stack)
        change_set = f"duetime-{time.time_ns() // 1_000_000}"
        project.prepare(name, change_set)
        change_sets = ChangeSets(name)
        pages = change_sets.describe(change_set)
        if is_empty(pages):
            if pages:
                change_sets.delete(change_set)
            say(f"{name}: nothing to change")
            return
        changes = changes_of(pages)
        _show(project, name, changes)
        if dry_run or not _confirmed(name, changes, yes=yes, confirmed=confirm_loss):
            change_sets.delete(change_set)
            say("Nothing was deployed.")
            raise typer.Exit(0 if dry_run else DECLINED)
        project.execute(name, change_set)
    except StackNotFound as error:
        show_error(error)
        raise typer.Exit(2) from None
    except ClientError as error:
        show_error(error)
        raise typer.Exit(1) from None


def _show(project: CdkProject, name: str, changes: StackChanges) -> None:
    """Print the differences; for a new stack, only its number of resources."""
    counts = changes.counts()
    if set(counts) - {"added"}:
        project.diff(name)
        lines = changes.lines()
        for line in lines[:_MOST_LINES]:
            say(line)
        if len(lines) > _MOST_LINES:
            say(f"and {len(lines) - _MOST_LINES} more")
    say(f"{name}: " + (", ".join(f"{number} {kind}" for kind, number in counts.items()) or "outputs only"))
    if changes.losses:
        err = console(stderr=True)
        err.print(printable("This deployment loses data:", "bold red"), soft_wrap=True)
        for line in changes.loss_lines():
            err.print(printable(f"  {line}"), soft_wrap=True)


def _confirmed(name: str, changes: StackChanges, *, yes: bool, confirmed: str) -> bool:
    """Whether the user confirms the changes; if data would be lost, the stack's name must be typed."""
    if changes.losses:
        if confirmed:
            return confirmed == name
        if not sys.stdin.isatty():
            show_error(ClientError(f"confirm the loss with --confirm-loss {name}"))
            return False
        answer: str = typer.prompt(f"Type {name} to continue", default="", show_default=False)
        return answer == name
    if yes:
        return True
    if not sys.stdin.isatty():
        show_error(ClientError("there is no terminal to confirm on: give --yes"))
        return False
    return typer.confirm("Deploy these changes?")
