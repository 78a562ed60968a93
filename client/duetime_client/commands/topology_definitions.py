"""`duetime topologies definitions`: list, show, put, versions, diff, run, delete."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.messages import show_created, show_invalid_file
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, say
from duetime_client.commands.tables import Column, show_table
from duetime_client.commands.target_arguments import json_object_in, values_of
from duetime_client.commands.task_options import IdempotencyKey, IfMatch
from duetime_client.errors import InvalidRequest
from duetime_client.plurals import counted
from duetime_client.topology_definitions import DefinitionDiff, DefinitionSummary, DefinitionVersion, TopologyDefinition

app = CommandGroup(help="Keep graphs of tasks by name, with versions and parameters.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the definition.")]
Version = Annotated[int | None, typer.Option("--version", metavar="N", min=1, help="A version; default: the latest.")]


@app.command("list")
@examples("duetime topologies definitions list")
def list_definitions(call: Call) -> None:
    """List definitions by name; with --json, as one array."""
    with call.client() as client:
        found = list(client.topology_definitions.list())
    call.show_all(found, _show_definitions)


@app.command()
@examples("duetime topologies definitions show nightly --version 3")
def show(call: Call, name: Name, *, version: Version = None) -> None:
    """Show a version of a definition: its parameters, and its nodes with their parents."""
    with call.client() as client:
        definition = client.topology_definitions.get(name, version=version)
    call.show(definition, _show_one)


@app.command()
@examples("duetime topologies definitions put nightly nightly.json")
def put(
    call: Call,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The definition (JSON).")],
    *,
    if_match: IfMatch = None,
) -> None:
    """Create a definition from a file, or its next version if the file differs from the latest version."""
    body = json_object_in(file)
    with call.client() as client:
        try:
            definition = client.topology_definitions.put(name, body, if_match=if_match)
        except InvalidRequest as error:
            if not error.errors:
                raise
            show_invalid_file(file, error.errors)
            raise typer.Exit(1) from error
    call.show(definition, _show_one)


@app.command()
@examples("duetime topologies definitions versions nightly")
def versions(call: Call, name: Name) -> None:
    """List the versions of a definition, latest first; with --json, as one array."""
    with call.client() as client:
        found = client.topology_definitions.list_versions(name)
    call.show_all(found, _show_versions)


@app.command()
@examples("duetime topologies definitions diff nightly 1 2")
def diff(
    call: Call,
    name: Name,
    before: Annotated[int, typer.Argument(metavar="FROM", min=1, help="The first version.")],
    after: Annotated[
        int | None, typer.Argument(metavar="[TO]", min=1, help="The second version; default: the latest.")
    ] = None,
) -> None:
    """Show what differs between two versions, field by field."""
    with call.client() as client:
        found = client.topology_definitions.get_diff(name, before, after)
    call.show(found, _show_diff)


@app.command()
@examples("duetime topologies definitions run nightly -p region=eu")
def run(
    call: Call,
    name: Name,
    *,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter: JSON, or else text; repeatable."),
    ] = None,
    version: Version = None,
    idempotency_key: IdempotencyKey = None,
) -> None:
    """Run a definition, with values for its parameters; `duetime topologies show ID` shows the run."""
    with call.client() as client:
        definition = client.topology_definitions.get(name, version=version) if parameter else None
        types = {} if definition is None else {key: each.get("type") for key, each in definition.parameters.items()}
        values = values_of(parameter or [], types)
        task = client.topology_definitions.run(name, values, version=version, idempotency_key=idempotency_key)
    call.show(task, lambda task, _: show_created(task))


@app.command()
@examples("duetime topologies definitions delete nightly")
def delete(call: Call, name: Name, *, if_match: IfMatch = None) -> None:
    """Delete a definition that no schedule runs, with all of its versions."""
    with call.client() as client:
        definition = client.topology_definitions.delete(name, if_match=if_match)
    call.show(definition, lambda definition, _: say(f"deleted the definition {definition.name}"))


def _created(clock: Clock) -> Callable[[DefinitionVersion], Text]:
    now = clock.now()
    return lambda version: timed(version.created_at, clock, now, units=1)


def _show_definitions(found: Sequence[DefinitionSummary], clock: Clock) -> None:
    columns: list[Column[DefinitionSummary]] = [
        Column("name", lambda each: each.name),
        Column("version", lambda each: str(each.version)),
        Column("changed", _created(clock)),
        Column("description", lambda each: each.description, wraps=True),
    ]
    show_table(found, columns, "no definitions")


def _show_versions(found: Sequence[DefinitionVersion], clock: Clock) -> None:
    columns: list[Column[DefinitionVersion]] = [
        Column("version", lambda each: str(each.version)),
        Column("created", _created(clock)),
        Column("by", lambda each: each.created_by or ""),
    ]
    show_table(found, columns, "no versions")


def _show_diff(found: DefinitionDiff, _: Clock) -> None:
    for change in found.changes:
        for sign, side, style in (("-", "from", "red"), ("+", "to", "green")):
            if side in change:
                text = f"{sign} {change['path']}: {json.dumps(change[side], ensure_ascii=False)}"
                console().print(printable(text, style))
    if not found.changes:
        say("no difference")


def _show_one(definition: TopologyDefinition, clock: Clock) -> None:
    size = counted(len(definition.nodes), "node")
    heading = f"{definition.name}  version {definition.version}  {size}  {_created(clock)(definition)}"
    console().print(printable(heading, "bold"))
    if definition.description:
        console().print(printable(definition.description))
    for name, parameter in definition.parameters.items():
        default = f" = {json.dumps(parameter['default'], ensure_ascii=False)}" if "default" in parameter else ""
        console().print(
            printable(f"parameter {name}: {parameter.get('type')}{default}  {parameter.get('description')}".rstrip())
        )
    for key, node in definition.nodes.items():
        parents = node.get("depends_on") or [] if isinstance(node, Mapping) else []
        console().print(printable(f"node {key}" + (f" after {', '.join(parents)}" if parents else "")))
