"""`duetime doctor`: finds out what is wrong with a deployment, and what to do."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import SilentCall, client_of, resolved
from duetime_client.commands.contexts import LOCAL, local_ready_file
from duetime_client.commands.logs import Stack  # noqa: TC001 - typer reads it
from duetime_client.commands.output_streams import console, printable, say
from duetime_client.doctor.checks import CHECKS, Finding, Severity, examine
from duetime_client.doctor.deployment import Deployment
from duetime_client.errors import ClientError
from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.client import Client

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow", Severity.PROBLEM: "bold red", Severity.UNKNOWN: "cyan"}
_BAD = frozenset({Severity.WARNING, Severity.PROBLEM})
_LOCAL_STACK, _LOCAL_REGION = "duetime-local", "us-east-1"

JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the findings to this file.")]
Brief = Annotated[bool, typer.Option("--brief", help="Omit checks that passed.")]


@examples("duetime doctor", "duetime doctor --stack duetime-prod --json findings.json")
def doctor(call: SilentCall, *, stack: Stack = "", brief: Brief = False, json_file: JsonFile = None) -> None:
    """Find out what is wrong with a deployment, and what to do.

    The command only reads from AWS and the API. Exit code 1 if something is wrong. Checks for which you have no
    permission are listed as not known. The stack comes from the context, unless it is named. This needs botocore (`pip
    install "duetime-client[aws]"`).
    """
    with ExitStack() as opened:
        deployment = _deployment(call, stack, opened)
        columns = (TextColumn("  {task.description}"), BarColumn(bar_width=40), MofNCompleteColumn())
        found: list[Finding] = []
        with Progress(*columns, console=console(stderr=True), transient=True) as bars:
            bar = bars.add_task("asking", total=len(CHECKS))
            for name, findings in examine(deployment):
                found += findings
                bars.update(bar, advance=1, description=f"asked: {name}")
    _show([each for each in found if not brief or each.severity is not Severity.OK])
    bad = [each for each in found if each.severity in _BAD]
    if json_file is not None:
        json_file.write_text(
            json.dumps({"passed": not bad, "findings": [asdict(each) for each in found]}, indent=2) + "\n"
        )
    unknown = sum(each.severity is Severity.UNKNOWN for each in found)
    say(f"{counted(len(bad), 'finding')}; {counted(unknown, 'check')} not known")
    raise typer.Exit(1 if bad else 0)


def _deployment(call: SilentCall, stack: str, opened: ExitStack) -> Deployment:
    """The deployment that the options and the context select; the local stack uses the embedded AWS."""
    session = _session()
    endpoint = ""
    client: Client | ClientError
    try:
        if not stack and call.deployment.url is None:
            choice = resolved()
            stack = choice.context.stack
            if choice.name == LOCAL and (file := local_ready_file(Path.cwd())) is not None:
                stack, endpoint = _LOCAL_STACK, str(json.loads(file.read_text())["aws_endpoint_url"])
                if session is not None:
                    session.set_credentials("duetime-local", "none")
                    session.set_config_variable("region", _LOCAL_REGION)
        client = opened.enter_context(client_of(call.context, call.deployment))
    except ClientError as error:
        client = error
    return Deployment(session, stack, client, call.clock.now, endpoint)


def _session() -> Any:  # noqa: ANN401 - botocore has no types
    try:
        # botocore is imported here because it is an extra, and takes longer to import than all other modules.
        import botocore.session  # noqa: PLC0415 - see the line above
    except ModuleNotFoundError:
        return None
    return botocore.session.get_session()


def _show(found: Sequence[Finding]) -> None:
    table = Table(box=box.ROUNDED)
    for heading in ("check", "", "what is so", "what to do"):
        table.add_column(heading, overflow="fold")
    for each in found:
        table.add_row(
            printable(each.check),
            printable(each.severity, _STYLES[each.severity]),
            printable(each.seen),
            printable(each.advice),
        )
    if found:
        console().print(table)
