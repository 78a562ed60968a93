"""`duetime archive`: queries archived tasks, which TTL has removed from the table."""

import json
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn
from rich.table import Table

from duetime_client.archive import Archive, ArchiveQuery, ArchiveQueryInvalid
from duetime_client.archive_columns import COLUMNS, SHOWN
from duetime_client.archive_objects import ArchiveObjects, BucketObjects, FolderObjects, bucket_of
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.document_output import AsJson
from duetime_client.commands.formatting import STATE_STYLES
from duetime_client.commands.logs import Stack
from duetime_client.commands.messages import show_error
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, show_json
from duetime_client.commands.progress_bars import progress_bar
from duetime_client.errors import ClientError

NEEDS_EXTRA = 'querying the archive needs DuckDB and botocore: pip install "duetime-client[archive]"'

_SHOWN = ",".join(SHOWN)

app = CommandGroup(help="Query the tasks that TTL has removed from the table.", no_args_is_help=True)

Where = Annotated[
    str,
    typer.Option(
        metavar="SQL",
        help="Condition in DuckDB's SQL, such as \"state = 'failed'\" or \"error->>'type' = 'Timeout'\".",
    ),
]
From = Annotated[
    str, typer.Option("--from", metavar="DAY", help="First UTC day on which tasks ended, such as 2026-11-01.")
]
To = Annotated[str, typer.Option("--to", metavar="DAY", help="Last day; default: today.")]
Columns = Annotated[
    str, typer.Option(metavar="NAMES", help=f"Columns to show, separated by commas: {', '.join(COLUMNS)}.")
]
Limit = Annotated[int, typer.Option(min=1, max=100_000, help="Maximum number of tasks; latest tasks first.")]
Bucket = Annotated[str, typer.Option(metavar="NAME", help="The archive's bucket, in place of --stack.")]
Folder = Annotated[
    Path | None, typer.Option(metavar="PATH", help="Folder with a copy of the archive, in place of --stack.")
]


class ArchiveUnreadable(ClientError):
    """The objects of the archive cannot be read."""


@app.command("query")
@examples("duetime archive query --from 2026-10-01 --stack duetime-prod --where \"state = 'failed'\"")
def query_archive(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    first: From,
    last: To = "",
    where: Where = "true",
    columns: Columns = _SHOWN,
    limit: Limit = 100,
    stack: Stack = "",
    bucket: Bucket = "",
    folder: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Find archived tasks that ended within a range of days and match a condition.

    The objects of these days are downloaded and queried on this machine. This needs the extra `archive` (`pip install
    "duetime-client[archive]"`), and permission to list and read the archive's bucket.
    """
    today = context.ensure_object(Clock).now().date()
    names = [name.strip() for name in columns.split(",")]
    try:
        wanted = ArchiveQuery(_day(first), _day(last) if last else today, where, names, limit)
        found = _run(_objects(stack, bucket, folder), wanted)
    except ArchiveQueryInvalid as error:
        raise typer.BadParameter(str(error)) from error
    except ArchiveUnreadable as error:
        show_error(error)
        raise typer.Exit(1) from error
    if as_json:
        show_json(found)
        return
    _show(found, names)
    if len(found) == limit:
        console(stderr=True).print(f"there may be more: these are the latest {limit}", style="dim")


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a day such as 2026-11-01") from None


def _objects(stack: str, bucket: str, folder: Path | None) -> ArchiveObjects:
    """Choose the source of the archive's objects."""
    if [bool(stack), bool(bucket), folder is not None].count(True) == 0:
        raise typer.BadParameter(
            "name the stack with --stack or DUETIME_STACK, or the archive with --bucket or --folder"
        )
    if bucket and folder is not None:
        raise typer.BadParameter("--bucket and --folder name different archives: give one of them")
    if folder is not None:
        return FolderObjects(folder)
    try:
        # botocore is imported here because it is an extra, and takes longer to import than all other modules.
        import botocore.session  # noqa: PLC0415 - see the line above
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - same
    except ModuleNotFoundError:
        raise ArchiveUnreadable(NEEDS_EXTRA) from None
    session = botocore.session.get_session()
    try:
        name = bucket or bucket_of(session, stack)
        s3 = session.create_client("s3")
    except (BotoCoreError, ClientError) as error:
        raise ArchiveUnreadable(f"the stack {stack} cannot be read: {error}") from error
    if not name:
        raise ArchiveUnreadable(f"the stack {stack} has no archive: its setting `archive_days` is 0")
    return BucketObjects(s3, name)


def _run(objects: ArchiveObjects, wanted: ArchiveQuery) -> list[dict[str, Any]]:
    """Run a query, and show the progress of the download."""
    with progress_bar(TextColumn("reading the archive"), BarColumn(), DownloadColumn()) as bar:
        task = bar.add_task("", total=None)
        try:
            return Archive(objects).query(wanted, lambda done, size: bar.update(task, completed=done, total=size))
        except ModuleNotFoundError:
            raise ArchiveUnreadable(NEEDS_EXTRA) from None
        except ArchiveQueryInvalid:
            raise
        except Exception as error:
            if not type(error).__module__.startswith("botocore") and not isinstance(error, OSError):
                raise
            raise ArchiveUnreadable(f"the archive cannot be read: {error}") from error


def _show(found: list[dict[str, Any]], columns: list[str]) -> None:
    if not found:
        console().print("no matching tasks in the archive", style="dim")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in found:
        table.add_row(*(_cell(name, row[name]) for name in columns))
    console().print(table)


def _cell(name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON, and rich's `Text`
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(text, STATE_STYLES.get(text, "") if name == "state" else "")
