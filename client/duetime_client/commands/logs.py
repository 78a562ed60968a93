"""`duetime logs`: the log lines and output of attempts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Codec, Deployment, resolved
from duetime_client.commands.contexts import LOCAL, DeploymentUnknown, local_ready_file
from duetime_client.commands.document_output import AsJson  # noqa: TC001 - typer reads it
from duetime_client.commands.output_streams import console, printable, show_json
from duetime_client.commands.times import seconds_of_span
from duetime_client.errors import ClientError
from duetime_client.log_groups import NEEDS_BOTOCORE, log_group_of
from duetime_client.logs import LogFilter, LogLine, LogReader
from duetime_common.payload_codecs import decrypted_within

if TYPE_CHECKING:
    from duetime_client.commands.contexts import Choice
    from duetime_common.payload_codecs import PayloadCodec

_STYLES = {"ERROR": "bold red", "CRITICAL": "bold red", "WARNING": "yellow", "WARN": "yellow", "DEBUG": "dim"}
_MILLISECONDS = 1000

TaskId = Annotated[str, typer.Argument(metavar="[ID]", help="Id of a task.", show_default=False)]
TaskType = Annotated[str, typer.Option("--type", metavar="TYPE", help="Lines of all tasks of this type.")]
Schedule = Annotated[str, typer.Option(metavar="NAME", help="Lines of the tasks that this schedule has created.")]
Since = Annotated[str, typer.Option(metavar="DURATION", help="How far back to begin, such as 90s, 30m, 1h or 2d.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Also print new lines, until Ctrl-C.")]
Stack = Annotated[
    str,
    typer.Option(
        "--stack", envvar="DUETIME_STACK", metavar="NAME", help="The CloudFormation stack, such as duetime-dev."
    ),
]


@examples("duetime logs ID --stack duetime-prod", "duetime logs --type report --since 2h --follow --stack duetime-prod")
def show_logs(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    task_id: TaskId = "",
    *,
    task_type: TaskType = "",
    schedule: Schedule = "",
    since: Since = "1h",
    follow: Follow = False,
    stack: Stack = "",
    codec: Codec = None,
    as_json: AsJson = False,
) -> None:
    """Print what tasks have logged and printed, from CloudWatch Logs.

    On the local stack, this runs `duetime local logs`. Other stacks need botocore (`pip install
    "duetime-client[aws]"`), and permission to read the log group of the worker function.
    """
    wanted = LogFilter(task_id.upper(), task_type, schedule)
    if not wanted.wanted:
        raise typer.BadParameter("name a task, a --type or a --schedule")
    chosen = _chosen() if not stack else None
    if chosen is not None and chosen.name == LOCAL:
        of_context = codec or chosen.context.codec
        values = (("type", task_type), ("schedule", schedule), ("codec", of_context))
        named = [f"--{name}={value}" for name, value in values if value]
        flags = [flag for flag, is_set in (("--follow", follow), ("--json", as_json)) if is_set]
        _print_local_logs(context, [*filter(None, [task_id]), *named, f"--since={since}", *flags])
        return
    if chosen is not None:
        stack, codec = chosen.context.stack, codec or chosen.context.codec
    if not stack:
        raise typer.BadParameter("name the stack with --stack or DUETIME_STACK")
    loaded_codec = Deployment(codec=codec).loaded_codec()
    clock = context.ensure_object(Clock)
    print_logs(reader_of(stack, wanted), clock, since, follow=follow, as_json=as_json, codec=loaded_codec)


def _chosen() -> Choice | None:
    """The context in use; `None` if no context is in use."""
    try:
        return resolved()
    except DeploymentUnknown:
        return None
    except ClientError as error:
        raise ended(str(error), 1) from error


def _print_local_logs(context: typer.Context, arguments: list[str]) -> None:
    """Run `duetime local logs` for the context's stack, whose logs are in the embedded AWS."""
    # The command is imported here because it is part of another distribution, which imports this module.
    from duetime_client.commands.plugins import loaded, plugins  # noqa: PLC0415 - see the line above

    plugin = plugins().get(LOCAL)
    group = None if plugin is None else loaded(plugin)
    command = group.get_command(context, "logs") if isinstance(group, TyperGroup) else None
    if command is None:
        raise ended("logs of the stack of this machine need duetime-local: pip install duetime-local", 1)
    if (ready_file := local_ready_file(Path.cwd())) is not None:
        arguments = [*arguments, f"--ready-file={ready_file}"]
    with command.make_context("logs", arguments, parent=context) as inner:
        command.invoke(inner)


def reader_of(stack: str, wanted: LogFilter) -> LogReader:
    """A reader of the worker's log lines."""
    return LogReader(*worker_logs(stack), wanted)


def since_ms(clock: Clock, since: str) -> int:
    """The time a given duration ago, in milliseconds since the epoch."""
    try:
        return round((clock.now().timestamp() - seconds_of_span(since)) * _MILLISECONDS)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def clients_of() -> tuple[Any, tuple[type[Exception], ...]]:
    """A botocore session, which creates clients, and the errors of the clients' calls."""
    try:
        # botocore is imported here because it is an extra, and takes longer to import than all other modules.
        import botocore.session  # noqa: PLC0415 - see the line above
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - same
    except ModuleNotFoundError:
        raise ended(NEEDS_BOTOCORE, 2) from None
    return botocore.session.get_session(), (BotoCoreError, ClientError)


def worker_logs(stack: str) -> tuple[Any, str]:
    """A CloudWatch Logs client, and the log group of the stack's worker."""
    session, failures = clients_of()
    try:
        group = log_group_of(session, stack, "worker")
        logs = session.create_client("logs")
    except failures as error:
        raise ended(f"the stack {stack} cannot be read: {error}", 1) from error
    if group is None:
        raise ended(f"the stack {stack} names no worker function", 1)
    return logs, group


def ended(why: str, code: int) -> typer.Exit:
    """Print an error, and return the exit to raise."""
    console(stderr=True).print(Text.assemble(("error: ", "bold red"), printable(why)), soft_wrap=True)
    return typer.Exit(code)


def print_logs(
    reader: LogReader,
    clock: Clock,
    since: str,
    *,
    follow: bool,
    as_json: bool = False,
    codec: PayloadCodec | None = None,
) -> None:
    """Print recent lines and, with `follow`, new lines until Ctrl-C; a codec decrypts the lines."""
    first = since_ms(clock, since)
    lines = reader.follow(first, clock.sleep) if follow else reader.read(first)
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - an optional package, found above

    try:
        for logged in lines:
            line = logged if codec is None else _decrypted(codec, logged)
            if as_json:
                show_json(line.fields, of_many=True)
            else:
                _print(line, clock)
    except KeyboardInterrupt:
        return
    except (BotoCoreError, ClientError) as error:
        raise ended(f"the logs cannot be read: {error}", 1) from error


def _decrypted(codec: PayloadCodec, line: LogLine) -> LogLine:
    try:
        return LogLine(line.at_ms, decrypted_within(codec, line.fields))
    except Exception:  # noqa: BLE001 - a codec may raise what it likes; the line stays as it was logged
        return line


def _print(line: LogLine, clock: Clock) -> None:
    out, fields = console(), line.fields
    at = clock.local(datetime.fromtimestamp(line.at_ms / _MILLISECONDS, UTC))
    level = str(fields.get("level", ""))
    attempt = f"{fields.get('task_id', '')} #{fields.get('attempt', '?')}"
    head = Text.assemble(
        (f"{at:%H:%M:%S}.{at.microsecond // _MILLISECONDS:03d} ", "dim"), printable(f"{attempt} ", "cyan")
    )
    head.append_text(printable(f"{level:<7} ", _STYLES.get(level, "")))
    for number, text in enumerate(line.text.splitlines() or [""]):
        out.print(Text.assemble(head if number == 0 else "    ", printable(text)), soft_wrap=True)
    for text in line.traceback.splitlines():
        out.print(Text.assemble("    ", printable(text, "dim")), soft_wrap=True)
