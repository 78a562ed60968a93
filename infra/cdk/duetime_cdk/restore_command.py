"""`duetime restore` restores the table to an earlier time, and reports what has run since."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duetime.composition.recovery import restore_of, table_restore
from duetime.domain.restore import AfterRestore
from duetime.domain.times import from_datetime, to_iso
from duetime.ports.restore import TableFailed, TableStatus
from duetime.services.restore import RestoreReport
from duetime_cdk.stack_resources import StackUnreadable, outputs_of
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.messages import show_error
from duetime_client.commands.output_streams import say
from duetime_client.commands.progress_bars import counting_bar
from duetime_client.commands.times import moment_of
from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.times import Millis
    from duetime.ports.restore import TableRestore

DECLINED = 3
"""Exit code if the user did not confirm, in which case nothing was done."""
_LOOK_SECONDS = 15


class RestoreRejected(ClientError):
    """The options do not describe a restore."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A restore.

    Attributes:
        source: the current table; empty if that table is lost.
        target: the restored table, which may already exist.
        at: the restore point; `None` for an existing restored table, for which nothing is compared.
        bucket: the bucket with payloads and results.
        epoch: the new epoch.
    """

    source: str
    target: str
    at: Millis | None
    bucket: str
    epoch: int
    after: AfterRestore
    segments: int


@examples(
    "duetime restore --stack duetime-prod --to 2026-11-27T09:30:00Z",
    "duetime restore --stack duetime-prod --to 2026-11-27T09:30:00Z --after rerun --yes",
)
def restore(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    to: Annotated[str, typer.Option("--to", metavar="TIME", help="Restore point, such as 2026-11-27T09:30:00Z.")] = "",
    stack: Annotated[str, typer.Option("--stack", metavar="STACK", help="The deployment, for table and bucket.")] = "",
    source: Annotated[str, typer.Option("--from", metavar="TABLE", help="The table, instead of --stack.")] = "",
    table: Annotated[str, typer.Option("--table", metavar="NAME", help="Restored table; resumed if it exists.")] = "",
    bucket: Annotated[str, typer.Option("--bucket", metavar="NAME", help="Bucket of payloads, with --from.")] = "",
    after: Annotated[
        AfterRestore, typer.Option(help="What to do with tasks that have run since: pause (ask), end (skip) or rerun.")
    ] = (AfterRestore.ASK),
    epoch: Annotated[int, typer.Option(min=0, help="New epoch, if the old table is lost.")] = 0,
    report: Annotated[Path, typer.Option(metavar="FILE", help="Where the report goes.")] = Path("restore.jsonl"),
    segments: Annotated[int, typer.Option(min=1, max=64, help="Parallel reads of the table.")] = 8,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Restore the table to an earlier time, as a new table; report what has run since.

    The table is restored from its continuous backup, and the current table is only read. After an interruption, run the
    same command again with the --table that it has printed. Exit codes: 0 restored; 1 failed; 3 not confirmed.
    """
    try:
        tables, clock = table_restore(), context.ensure_object(Clock)
        at = _at(to, clock.now()) if to else None
        plan = _plan(tables, at=at, stack=stack, source=source, table=table, bucket=bucket, epoch=epoch, after=after)
        plan = replace(plan, segments=segments)
        if not yes and not _confirmed(plan):
            say("Nothing was done.")
            raise typer.Exit(DECLINED)
        _restore(tables, plan, report, clock)
    except (TableFailed, StackUnreadable, ClientError) as error:
        show_error(error if isinstance(error, ClientError) else RestoreRejected(str(error)))
        raise typer.Exit(1) from None


def _plan(  # noqa: PLR0913 - same
    tables: TableRestore,
    *,
    at: Millis | None,
    stack: str,
    source: str,
    table: str,
    bucket: str,
    epoch: int,
    after: AfterRestore,
) -> Plan:
    if stack:
        outputs = outputs_of(stack)
        source, bucket = source or outputs["TableName"], bucket or outputs["BucketName"]
    exists = bool(table) and tables.status(table) is not TableStatus.MISSING
    if at is None and not exists:
        raise RestoreRejected("give --to TIME, or --table with the name of a table that was restored before")
    if at is not None and not source:
        raise RestoreRejected("give --stack, or --from with the name of the table")
    if not bucket:
        raise RestoreRejected("give --stack, or --bucket with the name of the bucket of payloads and results")
    if source and tables.status(source) is TableStatus.MISSING:
        raise RestoreRejected(
            f"there is no table {source}; restore it from its backup, and name the restored table with --table"
        )
    if source == table:
        raise RestoreRejected("--table is the table itself; name another one, which need not exist")
    known = tables.epoch_of(table) if exists else 0
    # A takeover by another Region has also raised the epoch.
    epoch = epoch or known or (max(tables.epoch_of(source), tables.takeovers_of(source)) + 1 if source else 0)
    if not epoch:
        raise RestoreRejected("give --epoch with a higher number than the current setting `epoch`")
    named = table or f"{source}-{to_iso(at or 0)[:16].replace(':', '')}"
    return Plan(source, named, at, bucket, epoch, after, 1)


def _at(text: str, now: datetime) -> Millis:
    try:
        moment = moment_of(text)
    except ValueError as error:
        raise RestoreRejected(f"--to: {error}") from None
    if moment.tzinfo is None:
        moment = moment.astimezone()
    at = from_datetime(moment.astimezone(UTC))
    if at >= from_datetime(now.astimezone(UTC)):
        raise RestoreRejected("--to: lies in the future")
    return at


def _confirmed(plan: Plan) -> bool:
    when = "" if plan.at is None else f" of {to_iso(plan.at)}"
    say(f"Table {plan.target}: {plan.source or 'the lost table'}{when}, in epoch {plan.epoch}.")
    say(f"Tasks that have run since: {plan.after.value}. All tasks of the restored table are stopped by a switch.")
    if not sys.stdin.isatty():
        show_error(RestoreRejected("there is no terminal to confirm on: give --yes"))
        return False
    return typer.confirm("Restore it?")


def _restore(tables: TableRestore, plan: Plan, path: Path, clock: Clock) -> None:
    if plan.at is not None and plan.source:
        tables.begin(plan.source, plan.target, plan.at)
        say(f"1. {plan.target} is being restored; this takes DynamoDB minutes, or hours for a large table")
        while tables.status(plan.target) is not TableStatus.READY:
            clock.sleep(_LOOK_SECONDS)
    arn = tables.complete(plan.source, plan.target, plan.epoch)
    say(f"2. {plan.target} has a stream, TTL and a continuous backup")
    with path.open("a", encoding="utf-8") as file, ExitStack() as stack:
        writer = _Writer(file)
        work = restore_of(plan.target, plan.source, plan.bucket, plan.epoch, plan.after, writer.add, at=plan.at or 0)
        work.stop()
        say("3. all of its tasks are stopped by a switch")
        bar = stack.enter_context(counting_bar())
        taken = _in_parallel(plan, bar, "taking over", work.take_over)
        say(f"4. {taken.taken_over} open tasks have a fence of epoch {plan.epoch}")
        if plan.at is not None and plan.source:
            taken.add(_in_parallel(plan, bar, "comparing", work.compare))
    _show(plan, taken, path)
    _say_next(plan, arn)


class _Writer:
    """Writes the report's lines, which several threads add concurrently."""

    def __init__(self, file: Any) -> None:  # noqa: ANN401 - an open text file
        self._file = file
        self._lock = Lock()

    def add(self, line: Mapping[str, str]) -> None:
        """Write a line."""
        with self._lock:
            self._file.write(json.dumps(line) + "\n")


def _in_parallel(
    plan: Plan,
    bar: Any,  # noqa: ANN401 - of rich
    title: str,
    run: Callable[[int, int, Callable[[int], None]], RestoreReport],
) -> RestoreReport:
    total, row = RestoreReport(), bar.add_task(title, total=None)

    def one(segment: int) -> RestoreReport:
        return run(segment, plan.segments, lambda scanned: bar.advance(row, scanned))

    with ThreadPoolExecutor(plan.segments) as pool:
        for report in pool.map(one, range(plan.segments)):
            total.add(report)
    bar.remove_task(row)
    return total


def _show(plan: Plan, report: RestoreReport, path: Path) -> None:
    if not plan.source:
        say("5. The replaced table is lost: the tasks that ran after the restore point are not known")
    for (divergence, effect), number in sorted(report.divergences.items()):
        if divergence not in {"none", "unknown"}:
            say(f"   {number} {divergence} after the restore point: {_EFFECTS[effect]}")
    if report.cancelled:
        say(f"   {report.cancelled} nodes are cancelled: their topology, or its plan, is not in the backup (PlanLost)")
    for key in report.unreadable:
        say(f"   the record {key} cannot be read, and stays as it is")
    say(f"   each of them: {path}")


_EFFECTS = {
    "ended": "they stay ended",
    "paused": "they are paused; resume or cancel them, or run this command again with --after rerun or skip",
    "runs": "they run again",
    "lost": "the restored table does not have them",
}


def _say_next(plan: Plan, arn: str) -> None:
    say("Now deploy with these settings:")
    say(f'    table="{plan.target}",')
    say(f'    table_stream_arn="{arn}",')
    say(f"    epoch={plan.epoch},")
    say("Then let tasks start: duetime switches delete all")
