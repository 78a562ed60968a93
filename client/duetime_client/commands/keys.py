"""`duetime keys`: create, list, revoke."""

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from duetime_client.api_keys import ApiKey, CreatedApiKey
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, say
from duetime_client.commands.tables import Column, show_table
from duetime_client.commands.task_arguments import seconds

if TYPE_CHECKING:
    from duetime_client.api_keys import Role

app = CommandGroup(help="Manage API keys that let programs call the API; for administrators.", no_args_is_help=True)


class RoleName(StrEnum):
    """The roles that requests with a key can have."""

    READER = "reader"
    WRITER = "writer"
    WORKER = "worker"
    OPERATOR = "operator"
    ADMIN = "admin"


@app.command()
@examples(
    "duetime keys create 'billing api' --role writer --for billing --expires 90d",
    "duetime keys create 'billing workers' --role worker --for billing",
)
def create(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for, as a note for people.")],
    *,
    role: Annotated[list[RoleName], typer.Option("--role", help="Role for requests with the key; may be repeated.")],
    acts_for: Annotated[
        str | None,
        typer.Option("--for", metavar="OWNER", help="Owner that requests with the key act for; default: yours."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="DURATION", help="How long the key is valid, such as 90d.")
    ] = None,
) -> None:
    """Create a key and print it.

    The key is shown only now; pass the key in DUETIME_API_KEY, or send it as `Authorization: Bearer`.
    """
    ends = None if expires is None else call.clock.now() + timedelta(seconds=seconds(expires, "--expires"))
    with call.client() as client:
        roles = cast("list[Role]", [each.value for each in role])
        key = client.api_keys.create(name, roles, owner=acts_for, expires_at=ends)
    call.show(key, _show_created)


def _show_created(key: CreatedApiKey, _: Clock) -> None:
    ends = f" until {key.expires_at:%Y-%m-%d %H:%M} UTC" if key.expires_at else ""
    facts = f"key {key.id} of {key.owner}, {', '.join(key.roles)}{ends}; it is not shown again:"
    console(stderr=True).print(printable(facts), soft_wrap=True)
    say(key.key)


@app.command("list")
@examples("duetime keys list")
def list_keys(call: Call) -> None:
    """List the keys of all owners, including keys that ended in the last 30 days."""
    with call.client() as client:
        found = list(client.api_keys.list())
    call.show_all(found, _show_keys)


def _show_keys(found: Sequence[ApiKey], clock: Clock) -> None:
    styles = {"active": "green", "revoked": "red"}
    columns: list[Column[ApiKey]] = [
        Column("id", lambda each: each.id),
        Column("name", lambda each: each.name, wraps=True),
        Column("owner", lambda each: each.owner),
        Column("roles", lambda each: ", ".join(each.roles)),
        Column("state", lambda each: printable(each.state, styles.get(each.state, "dim"))),
        Column("created", lambda each: timed(each.created_at, clock, clock.now(), units=1)),
        Column("used", lambda each: timed(each.used_at, clock, clock.now(), units=1) if each.used_at else "never"),
        Column("expires", lambda each: timed(each.expires_at, clock, clock.now(), units=1) if each.expires_at else ""),
    ]
    show_table(found, columns, "no keys")


@app.command()
@examples("duetime keys revoke 01a1fc020e348e0a2aaf")
def revoke(call: Call, key: Annotated[str, typer.Argument(metavar="ID", help="The key's id.")]) -> None:
    """Revoke a key: requests with the key are rejected from now on."""
    with call.client() as client:
        revoked = client.api_keys.revoke(key)
    call.show(revoked, lambda each, _: say(f"revoked the key {each.id} ({each.name}) of {each.owner}"))
