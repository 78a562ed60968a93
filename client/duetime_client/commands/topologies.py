"""`duetime topologies`: run, validate, show and control graphs of tasks."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from duetime_client.client import Client
from duetime_client.commands import topology_definitions
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call, SilentCall
from duetime_client.commands.formatting import STATE_STYLES, timed
from duetime_client.commands.list_reader import show_list
from duetime_client.commands.messages import show_created, show_invalid_file
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, say
from duetime_client.commands.tables import Column, show_more, show_table
from duetime_client.commands.task_arguments import tags_of
from duetime_client.commands.task_options import (
    IdempotencyKey,
    IfMatch,
    LimitOptions,
    OnlyName,
    OnlyState,
    OnlyTag,
    Reason,
)
from duetime_client.commands.topology_views import Picture
from duetime_client.commands.topology_watch import waited_for, watched
from duetime_client.errors import InvalidField, InvalidRequest
from duetime_client.plurals import counted
from duetime_client.task import Task
from duetime_client.topologies import Topology, TopologyFilter, TopologySummary
from duetime_client.topology_files import TopologyInvalid, read_topology

app = CommandGroup(help="Run graphs of tasks, and follow their progress.", no_args_is_help=True)
app.add_typer(topology_definitions.app, name="definitions")
File = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A topology, or a recorded workflow (JSON).")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the topology.")]
Scale = Annotated[
    float, typer.Option("--time-scale", metavar="X", help="For a recorded workflow: the factor for its durations.")
]
Type = Annotated[str, typer.Option("--type", help="For a recorded workflow: the type of its tasks.")]


@app.command()
@examples("duetime topologies run graph.json --watch")
def run(
    call: Call,
    file: File,
    *,
    time_scale: Scale = 1.0,
    task_type: Type = "sleep",
    idempotency_key: IdempotencyKey = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the topology has ended; exit code 1 unless it succeeded.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the topology's progress until it ends; implies --wait.")
    ] = False,
) -> None:
    """Run the graph of a file."""
    body = _body(file, task_type, time_scale)
    clock = call.clock
    with call.client() as client:
        task = _created(client, body, file, idempotency_key)
        if watch or wait:
            show_created(task)
        if watch and not call.as_json:
            topology = watched(client, task.id, clock)
        else:
            topology = waited_for(client, task.id) if wait or watch else client.topologies.get(task.id)
    if call.as_json or not watch:
        call.show(topology, _show)
    if (wait or watch) and topology.state != "succeeded":
        raise typer.Exit(1)


@app.command()
@examples("duetime topologies validate graph.json")
def validate(file: File, *, time_scale: Scale = 1.0, task_type: Type = "sleep") -> None:
    """Check the graph of a file offline; exit code 1 if it is not valid."""
    nodes = _body(file, task_type, time_scale)["nodes"]
    edges = sum(len(node.get("depends_on", [])) for node in nodes.values())
    say(f"valid: {counted(len(nodes), 'node')}, {counted(edges, 'dependency', 'dependencies')}")


@app.command()
@examples("duetime topologies show ID --watch")
def show(
    call: Call,
    topology_id: Id,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="Show the topology's progress until it ends.")] = False,
) -> None:
    """Show the state of a topology and its nodes."""
    clock = call.clock
    with call.client() as client:
        if watch:
            topology = waited_for(client, topology_id) if call.as_json else watched(client, topology_id, clock)
        else:
            topology = client.topologies.get(topology_id)
    if call.as_json or not watch:
        call.show(topology, _show)


@app.command("list")
@examples("duetime topologies list --state failed")
def list_(
    call: Call,
    *,
    state: OnlyState = None,
    name: OnlyName = None,
    definition: Annotated[str | None, typer.Option(metavar="NAME", help="Only runs of this definition.")] = None,
    tag: OnlyTag = None,
    limits: LimitOptions,
) -> None:
    """List topologies, latest due time first; with --json, as one array."""
    given = {"tags": tags_of(tag or []), "state": state, "name": name, "definition": definition}
    filters = cast("TopologyFilter", {field: value for field, value in given.items() if value is not None})
    with call.client() as client:
        listed = client.topologies.list(page_size=limits.page_size, **filters)
        show_list(call, client, listed, limits, show_topologies, "topologies")


@app.command()
@examples("duetime topologies retry ID", "duetime topologies retry ID --node load --node report")
def retry(
    call: Call,
    topology_id: Id,
    *,
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node", metavar="NAME", help="Also run this node again, with all of its dependents. Repeatable."
        ),
    ] = None,
    reason: Reason = "",
    if_match: IfMatch = None,
) -> None:
    """Run the failed and the chosen nodes of a topology again; other nodes that succeeded are not repeated."""
    with call.client() as client:
        client.topologies.retry(topology_id, nodes=node or (), reason=reason, if_match=if_match)
        topology = client.topologies.get(topology_id)
    call.show(topology, _show)


def _action(name: str, help_text: str, act: Callable[[Client], Callable[..., object]]) -> None:
    """Register a command that applies an action to a topology and shows it."""

    @app.command(name, help=help_text)
    @examples(f"duetime topologies {name} ID")
    def command(call: Call, topology_id: Id, *, reason: Reason = "", if_match: IfMatch = None) -> None:
        with call.client() as client:
            act(client)(topology_id, reason=reason, if_match=if_match)
            topology = client.topologies.get(topology_id)
        call.show(topology, _show)


_action(
    "cancel",
    "Cancel nodes that have not started, and ask running nodes to stop.",
    lambda client: client.topologies.cancel,
)
_action("pause", "Start no more nodes; running nodes continue.", lambda client: client.topologies.pause)
_action("resume", "Resume a paused topology.", lambda client: client.topologies.resume)


@app.command()
@examples("duetime topologies delete ID")
def delete(call: SilentCall, topology_id: Id, *, if_match: IfMatch = None) -> None:
    """Delete a topology with all of its nodes; a topology that has not started is cancelled first."""
    with call.client() as client:
        client.topologies.delete(topology_id, if_match=if_match)
    say(f"deleted the topology {topology_id} with its nodes")


def _body(file: Path, task_type: str, time_scale: float) -> dict[str, Any]:
    """The topology of a file.

    Raises:
        typer.Exit: the topology is not valid or cannot be read; the reasons are printed.
    """
    try:
        return read_topology(file, task_type=task_type, time_scale=time_scale)
    except TopologyInvalid as error:
        show_invalid_file(file, error.errors)
        raise typer.Exit(1) from error
    except OSError as error:
        show_invalid_file(file, [InvalidField("file", error.strerror or "not valid")])
        raise typer.Exit(1) from error


def _created(client: Client, body: dict[str, Any], file: Path, idempotency_key: str | None) -> Task:
    """The topology that the API has created.

    Raises:
        typer.Exit: the API has rejected the topology; the rejected fields are printed.
    """
    try:
        return client.topologies.create(body, idempotency_key=idempotency_key)
    except InvalidRequest as error:
        if not error.errors:
            raise
        show_invalid_file(file, error.errors)
        raise typer.Exit(1) from error


def _show(topology: Topology, clock: Clock) -> None:
    console().print(Picture(topology, clock.now()))


def show_topologies(topologies: Sequence[TopologySummary], clock: Clock, *, more: bool) -> None:
    """Print topologies as a table."""
    now = clock.now()
    columns: list[Column[TopologySummary]] = [
        Column("id", lambda each: each.id),
        Column("state", lambda each: printable(each.state, STATE_STYLES.get(each.state, ""))),
        Column("created", lambda each: timed(each.created_at, clock, now, units=1)),
        Column("name", lambda each: each.name or "", wraps=True),
    ]
    show_table(topologies, columns, "no topologies")
    if more:
        show_more(topologies)
