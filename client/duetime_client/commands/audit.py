"""`duetime audit`: who controlled or administered what, why and from where."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime_client.audit_log import AuditFilter, audit_group, audit_records
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.document_output import AsJson  # noqa: TC001 - typer reads it
from duetime_client.commands.logs import Since, Stack, clients_of, ended, since_ms
from duetime_client.commands.output_streams import show_json
from duetime_client.commands.tables import Column, show_table

if TYPE_CHECKING:
    from collections.abc import Mapping

OfOwner = Annotated[str, typer.Option(metavar="OWNER", help="Only calls for this owner.")]
OfOperation = Annotated[
    str, typer.Option("--operation", metavar="NAME", help="Only this operation, such as cancelTask.")
]
Subject = Annotated[str, typer.Option(metavar="TEXT", help="Only what concerns this, such as the id of a task.")]


@examples("duetime audit --stack duetime-prod --since 2d", "duetime audit --subject ID --json")
def audit(
    context: typer.Context,
    *,
    since: Since = "1d",
    of_owner: OfOwner = "",
    operation: OfOperation = "",
    subject: Subject = "",
    stack: Stack = "",
    as_json: AsJson = False,
) -> None:
    """Print who controlled or administered what, why and from where.

    Needs botocore (`pip install "duetime-client[aws]"`), and permission to read the stack's audit log.
    """
    if not stack:
        raise typer.BadParameter("name the stack with --stack or DUETIME_STACK")
    clock, wanted = context.ensure_object(Clock), AuditFilter(of_owner, operation, subject)
    session, failures = clients_of()
    try:
        group = audit_group(session, stack)
        if group is None:
            raise ended(f"the stack {stack} has no audit log: its setting is audit_retention", 1)
        found = list(audit_records(session.create_client("logs"), group, wanted, since_ms(clock, since)))
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
