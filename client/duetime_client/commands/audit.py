"""`duetime audit`: who controlled or administered what, why and from where."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime_client.audit_log import AuditFilter, audit_group, audit_records
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.document_output import AsJson  # noqa: TC001 - typer reads it
from duetime_client.commands.logs import Stack, clients_of, ended, since_ms
from duetime_client.commands.output_streams import show_json
from duetime_client.commands.tables import Column, show_table
from duetime_client.commands.times import moment_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Since = Annotated[
    str, typer.Option(metavar="TIME", help="Only calls since this time; a duration, such as 2d, counts back from now.")
]
Until = Annotated[str, typer.Option(metavar="TIME", help="Only calls until this time or duration ago; default: now.")]
Caller = Annotated[str, typer.Option(metavar="TEXT", help="Only calls by identities with this text in their names.")]
OfOwner = Annotated[str, typer.Option(metavar="OWNER", help="Only calls for this owner.")]
OfOperation = Annotated[
    str, typer.Option("--operation", metavar="NAME", help="Only calls of this operation, such as cancelTask.")
]
Subject = Annotated[str, typer.Option(metavar="TEXT", help="Only calls on this resource, such as the id of a task.")]


@examples("duetime audit --stack duetime-prod --since 2d", "duetime audit --since 2026-11-01 --until 2026-11-08 --json")
def audit(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    since: Since = "1d",
    until: Until = "",
    caller: Caller = "",
    of_owner: OfOwner = "",
    operation: OfOperation = "",
    subject: Subject = "",
    stack: Stack = "",
    as_json: AsJson = False,
) -> None:
    """Print who controlled or administered what, why and from where.

    This needs botocore (`pip install "duetime-client[aws]"`), and permission to read the stack's audit log.
    """
    if not stack:
        raise typer.BadParameter("name the stack with --stack or DUETIME_STACK")
    clock, wanted = context.ensure_object(Clock), AuditFilter(of_owner, caller, operation, subject)
    session, failures = clients_of()
    try:
        group = audit_group(session, stack)
        if group is None:
            raise ended(f"the stack {stack} has no audit log; the setting audit_retention enables it", 1)
        first, last = _time_ms(clock, since), _time_ms(clock, until) if until else None
        found = list(audit_records(session.create_client("logs"), group, wanted, first, last))
    except failures as error:
        raise ended(f"the audit log cannot be read: {error}", 1) from error
    if as_json:
        show_json(found)
        return
    columns: list[Column[Mapping[str, Any]]] = [
        Column("at", lambda each: f"{clock.local(datetime.fromisoformat(each['at'])):%Y-%m-%d %H:%M:%S}"),
        Column("caller", lambda each: str(each["caller"])),
        Column("operation", lambda each: str(each["operation"])),
        Column("subject", lambda each: str(each["subject"]), wraps=True),
        Column("status", lambda each: f"{each['status']} {each['code']}".strip()),
        Column("from", lambda each: str(each["source_ip"])),
        Column("reason", lambda each: str(each["reason"]), wraps=True),
    ]
    show_table(found, columns, "no calls")


def _time_ms(clock: Clock, text: str) -> int:
    """Convert a time, or a duration before now, to milliseconds since the epoch."""
    if text[4:5] != "-":
        return since_ms(clock, text)
    try:
        return round(clock.local(moment_of(text)).timestamp() * 1000)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
