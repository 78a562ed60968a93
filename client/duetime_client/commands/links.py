"""`duetime links`: create, list, delete."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call, SilentCall
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, say
from duetime_client.commands.tables import Column, show_table
from duetime_client.commands.task_arguments import seconds
from duetime_client.commands.task_options import TaskId
from duetime_client.task_links import CreatedTaskLink, TaskLink

if TYPE_CHECKING:
    from duetime_client.task_links import LinkAction

app = CommandGroup(help="Create links to tasks, for people without credentials.", no_args_is_help=True)


class ActionName(StrEnum):
    """What a link permits."""

    APPROVE = "approve"
    REJECT = "reject"
    COMPLETE = "complete"
    FAIL = "fail"
    WATCH = "watch"


@app.command()
@examples(
    "duetime links create ID --action approve --action reject --message 'Pay Ann?' --expires 2d",
    "duetime links create ID --action complete --takes-payload",
)
def create(
    call: Call,
    task_id: TaskId,
    *,
    action: Annotated[list[ActionName], typer.Option("--action", help="What the link permits; may be repeated.")],
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DURATION", help="How long the link is valid; default: 1d.")
    ] = None,
    message: Annotated[str, typer.Option(metavar="TEXT", help="For the person who opens the link.")] = "",
    takes_payload: Annotated[
        bool, typer.Option("--takes-payload", help="Let the link's holder send the result of the task.")
    ] = False,
) -> None:
    """Create a link and print it. The link is shown only now; anyone who has the link can use it once."""
    life = None if expires is None else round(seconds(expires, "--expires"))
    with call.client() as client:
        actions = cast("list[LinkAction]", [each.value for each in action])
        link = client.task_links.create(
            task_id, actions, expires_seconds=life, message=message, takes_payload=takes_payload
        )
    call.show(link, _show_created)


def _show_created(link: CreatedTaskLink, clock: Clock) -> None:
    until = timed(link.expires_at, clock, clock.now(), units=1)
    facts = f"link {link.id} to {' or '.join(link.actions)}, until {until}; it is not shown again:"
    console(stderr=True).print(printable(facts), soft_wrap=True)
    say(link.url)


@app.command("list")
@examples("duetime links list ID")
def list_links(call: Call, task_id: TaskId) -> None:
    """List the links of a task, including links that ended in the last few days."""
    with call.client() as client:
        call.show_all(client.task_links.list(task_id), _show_links)


def _show_links(found: Sequence[TaskLink], clock: Clock) -> None:
    columns: list[Column[TaskLink]] = [
        Column("id", lambda each: each.id),
        Column("actions", lambda each: ", ".join(each.actions)),
        Column("state", _state),
        Column("expires", lambda each: timed(each.expires_at, clock, clock.now(), units=1)),
        Column("by", lambda each: each.created_by),
        Column("message", lambda each: each.message, wraps=True),
    ]
    show_table(found, columns, "no links")


def _state(link: TaskLink) -> str:
    if link.used_for is not None:
        return f"used to {link.used_for}"
    return "valid" if link.ended is None else link.ended.removeprefix("it has ")


@app.command()
@examples("duetime links delete ID 01a1fc020e348e0a2aaf")
def delete(
    call: SilentCall, task_id: TaskId, link: Annotated[str, typer.Argument(metavar="LINK", help="The link's id.")]
) -> None:
    """Delete a link: the link is rejected from now on."""
    with call.client() as client:
        client.task_links.delete(task_id, link)
    say(f"deleted the link {link}")
