"""`duetime quotas`: list, show, set, delete."""

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.tables import Column, show_table
from duetime_client.quotas import OwnerQuotas, OwnQuotas, QuotaList

app = CommandGroup(help="Limit how much each owner may use, and see how much is used.", no_args_is_help=True)

Owner = Annotated[str, typer.Argument(metavar="OWNER", help="The owner, as `duetime summary --by-owner` shows it.")]
NAMES = (
    "creates_per_second",
    "payload_bytes_per_second",
    "reads_per_second",
    "open_tasks",
    "concurrent_attempts",
    "schedules",
    "topology_nodes",
    "long_polls",
    "pull_leases",
)
"""The quotas."""


@app.command("list")
@examples("duetime quotas list")
def list_quotas(call: Call) -> None:
    """List the default quotas and, for operators, the owners with different quotas."""
    with call.client() as client:
        found = client.quotas.list()
    call.show(found, _show_list)


@app.command()
@examples("duetime quotas show 123456789012:role/Reports")
def show(call: Call, name: Owner) -> None:
    """Show the quotas of an owner, and their usage."""
    with call.client() as client:
        found = client.quotas.get(name)
    call.show(found, lambda found, _: show_quotas(found))


@app.command("set")
@examples(
    "duetime quotas set 123456789012:role/Reports creates_per_second=20 concurrent_attempts=50",
    "duetime quotas set 123456789012:role/Reports open_tasks=10000 --reason 'a loop in production'",
)
def set_quotas(
    call: Call,
    name: Owner,
    limits: Annotated[
        list[str], typer.Argument(metavar="QUOTA=LIMIT...", help=f"Any of {', '.join(NAMES)}.", show_default=False)
    ],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason, for other operators.")] = "",
) -> None:
    """Set the quotas of an owner; other quotas get their defaults. This replaces the owner's existing quotas."""
    wanted = _limits_of(limits)
    with call.client() as client:
        found = client.quotas.put(name, wanted, reason=reason)
    call.show(found, lambda found, _: show_quotas(found))


@app.command()
@examples("duetime quotas delete 123456789012:role/Reports")
def delete(call: Call, name: Owner) -> None:
    """Delete the quotas of an owner; the defaults apply within ten seconds."""
    with call.client() as client:
        found = client.quotas.delete(name)
    call.show(found, _show_deleted)


def _limits_of(texts: Iterable[str]) -> dict[str, int]:
    limits = {}
    for text in texts:
        name, _, number = text.partition("=")
        if name not in NAMES or not number.isdecimal():
            raise typer.BadParameter(f"{text!r} is not QUOTA=LIMIT with one of {', '.join(NAMES)} and a whole number")
        limits[name] = int(number)
    return limits


def show_quotas(found: OwnerQuotas) -> None:
    """Print the quotas of an owner as a table."""
    columns: list[Column[str]] = [
        Column("quota", lambda name: name),
        Column("limit", lambda name: f"{found.limits[name]:,}", right=True),
        Column("used", lambda name: f"{found.used.get(name, 0):,g}", right=True),
        Column("from", lambda name: "default" if found.own.get(name) is None else "its own"),
    ]
    show_table([name for name, limit in found.limits.items() if limit is not None], columns, "no quotas")


def _show_list(found: QuotaList, clock: Clock) -> None:
    console().print("defaults: ", _text_of(found.defaults) or "none", sep="", soft_wrap=True)
    columns: list[Column[OwnQuotas]] = [
        Column("owner", lambda each: each.owner),
        Column("quotas", lambda each: _text_of(each.own), wraps=True),
        Column("since", lambda each: timed(each.updated_at, clock, clock.now(), units=1) if each.updated_at else ""),
        Column("by", lambda each: each.updated_by),
        Column("reason", lambda each: each.reason, wraps=True),
    ]
    show_table(found.owners, columns, "no owner has quotas of its own")


def _show_deleted(found: OwnerQuotas, _: Clock) -> None:
    was = printable(_text_of(found.own))
    console().print("deleted the quotas of ", printable(found.owner), " (were: ", was, ")", sep="", soft_wrap=True)


def _text_of(limits: Mapping[str, int | None]) -> str:
    return ", ".join(f"{name} {limit:,}" for name, limit in limits.items() if limit is not None)
