"""Cost of each operation as the number of stored tasks grows, on the embedded engine.

python -m bench.growth [TASKS …]

For each number of tasks a fresh table is filled (see `bench.stored_tasks`), and the functions run each operation
several times in a warm process. AWS calls, read units and write units are counted exactly, and the most expensive
repetition counts. CPU time covers only this process, in the fastest repetition, because the engine is another process
whose searches grow with the table. For the same reason wall time, which is mostly the engine's, is not reported.
"""

from __future__ import annotations

import io
import os
import sys
from argparse import ArgumentParser
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bench import results
from bench.growth_operations import PASSES, measured, operations_on
from bench.stored_tasks import Contents, Filler
from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.environment_variables import Variable
from duetime_local import emulator
from tests.adapters.clouds import Cloud
from tests.functions.meter import Meter
from tests.functions.stack import Stack
from tests.server_dates import drop_server_dates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bench.growth_operations import Used
    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime_local.emulator import Emulator

SIZES = (1_000, 10_000, 100_000)
SETTINGS: dict[str, str] = {Variable.SHARDS: "16", Variable.SUMMARY_SPREAD: "1"}
"""Settings of a deployment, with their defaults."""
_TASKS_A_DRAWING = 1_000
_PATIENCE_SECONDS = 600


class PatientSession:
    """A boto3 session whose clients wait long enough for the engine.

    The engine scans an index item by item, which for a large table exceeds AWS's timeouts.
    """

    def __init__(self) -> None:
        self._session = boto3.Session()
        self.events = self._session.events

    def client(self, service: Any, *, config: Config | None = None, **settings: Any) -> Any:  # noqa: ANN401 - boto3's own
        """A client of a service."""
        patient = (config or Config()).merge(Config(read_timeout=_PATIENCE_SECONDS))
        return self._session.client(service, config=patient, **settings)


def main() -> None:
    """Measure each size, print a table, and save the operation that grew most."""
    parser = ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("tasks", nargs="*", type=int, default=SIZES, help="how many tasks the table holds")
    sizes = parser.parse_args().tasks
    found: dict[int, dict[str, Used]] = {}
    console = Console(file=sys.stdout)
    # The functions' clock is set explicitly.
    drop_server_dates()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        emulator.running(port=0) as engine,
        # Refreshed explicitly, because a refreshing thread would count as an operation's CPU time.
        Progress(*columns, console=console, redirect_stdout=False, auto_refresh=False) as progress,
        # The functions print a line of metrics for each invocation.
        redirect_stdout(io.StringIO()),
    ):
        os.environ.update(engine.environ)
        for size in sizes:
            found[size] = measured_on_engine(engine, Contents(size, minutes=PASSES), progress)
    console.print(_table(found))
    console.print("\n".join(_rows(found)), soft_wrap=True, markup=False, highlight=False)
    if len(sizes) > 1:
        grown = worst(found[min(sizes)], found[max(sizes)])
        for key, (operation, ratio) in grown.items():
            console.print(f"{key}: {ratio} ({operation})")
        figures = {key: ratio for key, (_, ratio) in grown.items()}
        results.keep(Path(__file__).parent, {"growth_tasks": max(sizes), **figures})


def measured_on_engine(engine: Emulator, contents: Contents, progress: Progress) -> dict[str, Used]:
    """Fill a fresh table of the engine, and measure each operation."""
    session: Any = PatientSession()
    meter = Meter(session)
    cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
    stack = Stack(cloud, session, SETTINGS)
    client, table = Clients().dynamodb(), stack.environ[Variable.TABLE]

    def put(items: Sequence[Item]) -> None:
        client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}} for item in items]})

    def advance(number: int) -> None:
        progress.advance(filling, number)
        if progress.tasks[filling].completed % _TASKS_A_DRAWING < number:
            progress.refresh()

    filling = progress.add_task(f"fill {contents.tasks:,}", total=contents.total)
    try:
        waiting = Filler(stack, contents, put, advance).fill()
        found = {}
        measuring = progress.add_task(f"measure {contents.tasks:,}", total=None)
        for operation in operations_on(stack, waiting):
            progress.update(measuring, description=f"measure {contents.tasks:,}: {operation.name}", refresh=True)
            found[operation.name] = measured(operation, meter)
            progress.advance(measuring)
    finally:
        composition.use(None)
        engine.client("dynamodb").delete_table(TableName=table)
    return found


def worst(few: Mapping[str, Used], many: Mapping[str, Used]) -> dict[str, tuple[str, float]]:
    """The operation that grew most, and its growth factor."""

    def most(what: Callable[[Used], float]) -> tuple[str, float]:
        ratios = {name: what(many[name]) / what(used) for name, used in few.items() if what(used)}
        name = max(ratios, key=lambda each: ratios[each])
        return name, round(ratios[name], 2)

    return {
        "growth_calls_worst": most(lambda used: used.calls),
        "growth_read_units_worst": most(lambda used: used.read_units),
        "growth_write_units_worst": most(lambda used: used.write_units),
        "growth_cpu_worst": most(lambda used: used.cpu),
    }


def _table(found: Mapping[int, Mapping[str, Used]]) -> Table:
    table = Table("operation", title="AWS calls · read units · write units · processor time in ms, by stored tasks")
    for size in found:
        table.add_column(f"{size:,}", justify="right")
    for name in next(iter(found.values())):
        table.add_row(name, *(_cell(each[name]) for each in found.values()))
    return table


def _rows(found: Mapping[int, Mapping[str, Used]]) -> Iterator[str]:
    """The same table for `docs/scale.md`."""
    yield "| | " + " | ".join(f"{size:,}" for size in found) + " |"
    yield "| --- |" + " --- |" * len(found)
    for name in next(iter(found.values())):
        yield f"| {name} | " + " | ".join(_cell(each[name]) for each in found.values()) + " |"


def _cell(used: Used) -> str:
    return f"{used.calls} · {used.read_units:g} · {used.write_units:g} · {used.cpu * 1000:.1f}"


if __name__ == "__main__":
    main()
