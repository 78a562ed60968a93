"""`duetime types`: list, show, set, delete."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import say
from duetime_client.commands.tables import Column, show_lines, show_table
from duetime_client.commands.target_arguments import values_of
from duetime_client.task_types import TypeInfo

if TYPE_CHECKING:
    from duetime_common.option_fields import TypeOptions

app = CommandGroup(help="See the types of tasks, and set the options of their tasks.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="TYPE", help="The type of the tasks.")]


@app.command("list")
@examples("duetime types list")
def list_types(call: Call) -> None:
    """List types with a handler, with pull workers or with your defaults; with --json, as one array."""
    with call.client() as client:
        found = list(client.types.list())
    call.show_all(found, _show_types)


@app.command()
@examples("duetime types show mail.send")
def show(call: Call, name: Name) -> None:
    """Show one type: its defaults, where they come from, and the schema of its payload."""
    with call.client() as client:
        found = client.types.get(name)
    call.show(found, _show_type)


@app.command("set")
@examples(
    "duetime types set resize timeout_seconds=300 retry.max_attempts=3",
    "duetime types set resize lock.key=gpu priority=low rate=null",
)
def set_type(
    call: Call,
    name: Name,
    options: Annotated[
        list[str],
        typer.Argument(
            metavar="OPTION=VALUE...",
            help="Options of new tasks: JSON, or else text; `lock.key` names a part, and null disables an option.",
        ),
    ],
) -> None:
    """Set the options that your tasks of a type have by default. This replaces all options that you set before."""
    with call.client() as client:
        found = client.types.put(name, **cast("TypeOptions", _nested(values_of(options))))
    call.show(found, _show_type)


@app.command()
@examples("duetime types delete resize")
def delete(call: Call, name: Name) -> None:
    """Delete the defaults that you set; a handler's defaults apply again."""
    with call.client() as client:
        found = client.types.delete(name)
    call.show(found, lambda each, _: say(f"deleted your defaults of {each.type}"))


def _nested(values: dict[str, object]) -> dict[str, object]:
    """Nest options by name; a dotted name, such as `lock.key`, sets a part of an option."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *parts, last = path.split(".")
        place = nested
        for part in parts:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise typer.BadParameter(f"{part} is given both as a whole and in part", param_hint="OPTION=VALUE...")
        place[last] = value
    return nested


def _runs(found: TypeInfo) -> str:
    if found.is_pulled:
        return "pull workers"
    return {True: "handler", False: "", None: "unknown"}[found.has_handler]


def _show_types(found: Sequence[TypeInfo], _: Clock) -> None:
    columns: list[Column[TypeInfo]] = [
        Column("type", lambda each: each.type),
        Column("run by", _runs),
        Column("defaults", lambda each: ", ".join(each.defaults), wraps=True),
    ]
    show_table(found, columns, "no types")


def _show_type(found: TypeInfo, _: Clock) -> None:
    show_lines(_lines(found))


def _lines(found: TypeInfo) -> Iterator[tuple[str, str | None]]:
    yield "type", found.type
    yield "run by", _runs(found) or "nothing that is known"
    yield "phases", ", ".join(found.phases) or None
    for name, value in found.defaults.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield name, f"{text} ({found.sources.get(name, 'handler')})"
    if found.retention_days is not None:
        yield "kept for", f"{found.retention_days:g} days after the end"
    yield "redacted", ", ".join(found.redacted) or None
    if found.payload_schema is not None:
        yield "payload", json.dumps(found.payload_schema, ensure_ascii=False)
