"""`duetime watch`: changes to tasks as they happen."""

from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.completions import states
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import STATE_STYLES
from duetime_client.commands.output_streams import console, printable, show_json
from duetime_client.commands.task_arguments import tags_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.changes import Change
    from duetime_client.client import Client
    from duetime_client.literals import TaskState
    from duetime_client.task_request_fields import TaskFilter


@examples("duetime watch ID", "duetime watch --mine --state failed", "duetime watch --schedule nightly")
def watch(  # noqa: PLR0913 - a command's options are its parameters
    call: Call,
    task_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Id of a task to watch until it has ended.")
    ] = None,
    *,
    nodes: Annotated[bool, typer.Option("--nodes", help="Also watch the nodes of the topology ID.")] = False,
    schedule: Annotated[str | None, typer.Option(metavar="NAME", help="Watch a schedule and its runs.")] = None,
    mine: Annotated[bool, typer.Option("--mine", help="All of your tasks.")] = False,
    state: Annotated[
        str | None, typer.Option(metavar="STATE", autocompletion=states, help="With --mine: tasks in this state.")
    ] = None,
    task_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="With --mine: tasks of this type.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="With --mine: tasks with this tag.")
    ] = None,
) -> None:
    """Print changes as they happen: to a task, to a topology, to a schedule, or to all of your tasks.

    With an ID, exit code 1 unless the task succeeded.
    """
    if (task_id is not None) + (schedule is not None) + mine != 1:
        raise typer.BadParameter("give one of: an ID, --schedule NAME, --mine")
    filters: TaskFilter = {}
    if state is not None:
        filters["state"] = cast("TaskState", state)
    if task_type is not None:
        filters["type"] = task_type
    if tag:
        filters["tags"] = tags_of(tag)
    if filters and not mine:
        raise typer.BadParameter("--state, --type and --tag need --mine")
    clock = call.clock
    last: Change | None = None
    with call.client() as client:
        for change in _changes(client, task_id, schedule, filters, nodes=nodes):
            _show(change, clock, as_json=call.as_json)
            last = change if task_id is not None and change.id == task_id.upper() else last
    if last is not None and (last.item or {}).get("state") != "succeeded":
        raise typer.Exit(1)


def _changes(
    client: "Client", task_id: str | None, schedule: str | None, filters: "TaskFilter", *, nodes: bool
) -> "Iterator[Change]":
    if task_id is not None:
        # The format of ids in the API.
        return client.topologies.watch(task_id.upper()) if nodes else client.tasks.watch(task_id.upper())
    return client.tasks.watch(**filters) if schedule is None else client.schedules.watch(schedule)


def _show(change: "Change", clock: Clock, *, as_json: bool) -> None:
    if as_json:
        document = {"id": change.id, "version": change.version, "left": change.left, "item": change.item}
        show_json(document, of_many=True)
        return
    item = change.item or {}
    state = str(item.get("state", "deleted"))
    told: list[str | Text] = [f"{clock.local(clock.now()):%H:%M:%S}", "  ", printable(change.id), "  "]
    told += [printable(f"{state:<12}", STATE_STYLES.get(state, "")), "  ", printable(str(item.get("type", "")))]
    progress = item.get("progress")
    if isinstance(progress, dict):
        told += ["  ", printable(f"{progress.get('percent')}% {progress.get('message') or ''}".rstrip(), "dim")]
    if change.left:
        told.append(Text("  (no longer matches)", style="dim"))
    console().print(Text.assemble(*told), soft_wrap=True)
