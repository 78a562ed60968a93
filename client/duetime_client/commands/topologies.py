"""`duetime topologies`: run, validate, show, and steer graphs of tasks."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from duetime_client.authentication import Authentication
from duetime_client.client import Client
from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Auth, Owner, Url, connected
from duetime_client.commands.console import console, show_json
from duetime_client.commands.messages import show_created, show_refused_file
from duetime_client.commands.topology_views import Picture
from duetime_client.commands.topology_watch import waited_for, watched
from duetime_client.errors import InvalidField, InvalidRequest
from duetime_client.task import Task
from duetime_client.topology_files import TopologyInvalid, read_topology
from duetime_client.topology_runs import Topology

app = typer.Typer(help="Run graphs of tasks, and see how far they are.", no_args_is_help=True)
File = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A topology, or a recorded workflow (JSON).")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the topology.")]
Scale = Annotated[
    float, typer.Option("--time-scale", metavar="X", help="Of a recorded workflow: what its times are multiplied by.")
]
Type = Annotated[str, typer.Option("--type", help="Of a recorded workflow: the type of its tasks.")]


@app.command()
def run(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    file: File,
    *,
    url: Url,
    time_scale: Scale = 1.0,
    task_type: Type = "sleep",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit code 1 if it is no success.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Draw its progress until it has ended; as --wait.")] = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Run the graph of a file."""
    body = _body(file, task_type, time_scale)
    clock = context.ensure_object(Clock)
    with connected(context, url, auth, owner) as client:
        task = _created(client, body, file)
        if watch or wait:
            show_created(task)
        if watch and not as_json:
            topology = watched(client, task.id, clock)
        else:
            topology = waited_for(client, task.id) if wait or watch else client.get_topology(task.id)
    _show(topology, clock, as_json=as_json, drawn=watch)
    if (wait or watch) and topology.state != "succeeded":
        raise typer.Exit(1)


@app.command()
def validate(file: File, *, time_scale: Scale = 1.0, task_type: Type = "sleep") -> None:
    """Check the graph of a file without a server; exit code 1 if it cannot be run."""
    nodes = _body(file, task_type, time_scale)["nodes"]
    edges = sum(len(node.get("depends_on", [])) for node in nodes.values())
    counted = [
        f"{len(nodes)} node{'s'[: len(nodes) != 1]}",
        f"{edges} {'dependency' if edges == 1 else 'dependencies'}",
    ]
    console().print(f"{', '.join(counted)}: it can be run")


@app.command()
def show(
    context: typer.Context,
    topology_id: Id,
    *,
    url: Url,
    watch: Annotated[bool, typer.Option("--watch", help="Draw its progress until it has ended.")] = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Show where a topology and its nodes stand."""
    clock = context.ensure_object(Clock)
    with connected(context, url, auth, owner) as client:
        if watch:
            topology = waited_for(client, topology_id) if as_json else watched(client, topology_id, clock)
        else:
            topology = client.get_topology(topology_id)
    _show(topology, clock, as_json=as_json, drawn=watch)


def _steers(name: str, said: str, steer: Callable[[Client, str], object]) -> None:
    """A command that asks one thing of a topology."""

    @app.command(name, help=said)
    def command(
        context: typer.Context,
        topology_id: Id,
        *,
        url: Url,
        as_json: AsJson = False,
        auth: Auth = Authentication.NONE,
        owner: Owner = None,
    ) -> None:
        with connected(context, url, auth, owner) as client:
            steer(client, topology_id)
            topology = client.get_topology(topology_id)
        _show(topology, context.ensure_object(Clock), as_json=as_json)


_steers("rerun", "Run a failed topology again; what succeeded is kept.", Client.rerun_topology)
_steers("cancel", "Cancel what has not started, and ask what runs to stop.", Client.cancel_topology)
_steers("pause", "Let nothing more start; what runs goes on to its end.", Client.pause_topology)
_steers("resume", "Let a paused topology go on.", Client.resume_topology)


def _body(file: Path, task_type: str, time_scale: float) -> dict[str, Any]:
    """The topology of a file.

    Raises:
        typer.Exit: it is none, or cannot be read; the reasons are printed.
    """
    try:
        return read_topology(file, task_type=task_type, time_scale=time_scale)
    except TopologyInvalid as refusal:
        show_refused_file(file, refusal.errors)
        raise typer.Exit(1) from refusal
    except OSError as error:
        show_refused_file(file, [InvalidField("file", error.strerror or "cannot be read")])
        raise typer.Exit(1) from error


def _created(client: Client, body: dict[str, Any], file: Path) -> Task:
    """The topology, if the API takes what the file says.

    Raises:
        typer.Exit: it does not; the fields that it names are printed.
    """
    try:
        return client.create_topology(body)
    except InvalidRequest as refusal:
        if not refusal.errors:
            raise
        show_refused_file(file, refusal.errors)
        raise typer.Exit(1) from refusal


def _show(topology: Topology, clock: Clock, *, as_json: bool, drawn: bool = False) -> None:
    if as_json:
        show_json(topology.document)
    elif not drawn:
        console().print(Picture(topology, clock.now()))
