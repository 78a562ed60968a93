"""`duetime intake-rules`: list, show, put, delete."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.messages import show_invalid_file
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import say
from duetime_client.commands.tables import Column, show_lines, show_table
from duetime_client.commands.target_arguments import json_object_in
from duetime_client.errors import InvalidRequest
from duetime_client.intake_rules import IntakeRule, IntakeRuleList

app = CommandGroup(help="Let events create, cancel and wake tasks; for operators.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the rule.")]


@app.command("list")
@examples("duetime intake-rules list")
def list_rules(call: Call) -> None:
    """List the rules by name, with their events and actions."""
    with call.client() as client:
        found = client.intake_rules.list()
    call.show(found, _show_list)


@app.command()
@examples("duetime intake-rules show order-placed")
def show(call: Call, name: Name) -> None:
    """Show one rule: its pattern, its task, filter or signal, and the fields that are set from the event."""
    with call.client() as client:
        found = client.intake_rules.get(name)
    call.show(found, _show_rule)


@app.command()
@examples("duetime intake-rules put order-placed order-placed.json")
def put(
    call: Call,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="The rule (JSON).")],
) -> None:
    """Set a rule from a file; an existing rule is replaced, and the rule is in force within ten seconds."""
    rule = json_object_in(file)
    with call.client() as client:
        try:
            found = client.intake_rules.put(name, rule)
        except InvalidRequest as error:
            if not error.errors:
                raise
            show_invalid_file(file, error.errors, "intake rule")
            raise typer.Exit(1) from error
    call.show(found, _show_rule)


@app.command()
@examples("duetime intake-rules delete order-placed")
def delete(call: Call, name: Name) -> None:
    """Delete a rule; after ten seconds, events no longer match the rule."""
    with call.client() as client:
        found = client.intake_rules.delete(name)
    call.show(found, lambda found, _: say(f"deleted the intake rule {found.name}"))


def _show_list(found: IntakeRuleList, clock: Clock) -> None:
    columns: list[Column[IntakeRule]] = [
        Column("name", lambda each: each.name),
        Column("events", lambda each: _text_of(each.pattern), wraps=True),
        Column("does", _action_of, wraps=True),
        Column("owner", lambda each: each.owner),
        Column("since", lambda each: timed(each.updated_at, clock, clock.now(), units=1)),
    ]
    show_table(found.rules, columns, "no intake rules")


def _show_rule(found: IntakeRule, clock: Clock) -> None:
    fields = (found.create or found.cancel or found.signal or {}).get("fields", {})
    show_lines(
        [
            ("name", found.name),
            ("description", found.description or None),
            ("pattern", _text_of(found.pattern)),
            ("creates", _text_of(found.create["task"]) if found.create else None),
            ("cancels", _text_of(found.cancel["filter"]) if found.cancel else None),
            ("signals", _text_of(_signal_of(found)) if found.signal else None),
            *((f"  {name}", str(expression)) for name, expression in fields.items()),
            ("owner", found.owner),
            ("updated", timed(found.updated_at, clock, clock.now())),
            ("by", found.updated_by),
        ]
    )


def _action_of(rule: IntakeRule) -> str:
    if rule.create:
        return f"creates {rule.create['task'].get('type', '')}"
    if rule.signal:
        return f"signals {rule.signal['name']}"
    conditions = {**(rule.cancel or {}).get("filter", {}), **(rule.cancel or {}).get("fields", {})}
    return f"cancels {_text_of(conditions)}"


def _signal_of(rule: IntakeRule) -> Mapping[str, Any]:
    return {name: value for name, value in (rule.signal or {}).items() if name != "fields"}


def _text_of(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
