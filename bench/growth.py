"""Measures how each operation's cost grows with the number of stored tasks, on the embedded engine or a fake DynamoDB.

python -m bench.growth [--fake] [TASKS …]

For each number of tasks, a new table is filled (see `bench.stored_tasks`), and the functions run each operation several
times in a warm process. AWS calls, read units and write units are counted exactly, and the maximum of all repetitions
is reported. CPU time is the minimum of all repetitions, and includes only this process, because the engine is a
separate process that searches larger tables more slowly. For the same reason, wall time, which consists mostly of the
engine's time, is not reported.

The fake can store millions of tasks, with a few hundred bytes for each. The fake runs in this process, so CPU time is
not saved for it.
"""

from __future__ import annotations

import io
import marshal
import os
import sys
import zlib
from argparse import ArgumentParser
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
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
from duetime.adapters.dynamodb.task_items import item_of
from duetime.environment_variables import Variable
from duetime_local import emulator
from tests.adapters.clouds import Cloud
from tests.adapters.examples import task as example
from tests.functions.meter import Meter
from tests.functions.stack import Stack
from tests.metering import item_size, read_units, write_units
from tests.server_dates import drop_server_dates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from bench.growth_operations import CallMeter, Used
    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime_local.emulator import Emulator
    from duetime_testing.fakes.tables import Table as FakeTable

SIZES = (1_000, 10_000, 100_000)
FAKE_SIZES = (1_000, 3_000_000)
SETTINGS: dict[str, str] = {Variable.SHARDS: "16", Variable.SUMMARY_SPREAD: "1"}
"""The settings of the measured deployment, with their default values."""
_TASKS_A_DRAWING = 1_000
_PATIENCE_SECONDS = 600


class PatientSession:
    """A boto3 session whose clients wait long enough for the engine.

    The engine scans an index item by item, which takes longer than AWS's timeouts if the table is large.
    """

    def __init__(self) -> None:
        self._session = boto3.Session()
        self.events = self._session.events

    def client(self, service: Any, *, config: Config | None = None, **settings: Any) -> Any:  # noqa: ANN401 - boto3's own
        """Create a client for a service."""
        patient = (config or Config()).merge(Config(read_timeout=_PATIENCE_SECONDS))
        return self._session.client(service, config=patient, **settings)


def main() -> None:
    """Measure with each number of tasks, print a table, and save the largest growth of each figure."""
    parser = ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("tasks", nargs="*", type=int, help="numbers of tasks in the table")
    parser.add_argument("--fake", action="store_true", help="use a fake of DynamoDB, which can store more tasks")
    asked = parser.parse_args()
    sizes = asked.tasks or (FAKE_SIZES if asked.fake else SIZES)
    found: dict[int, dict[str, Used]] = {}
    console = Console(file=sys.stdout)
    # The functions' clock is set explicitly instead of from the dates in responses.
    drop_server_dates()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        nullcontext() if asked.fake else emulator.running(port=0) as engine,
        # The display is refreshed explicitly, because a refresh thread would add to an operation's CPU time.
        Progress(*columns, console=console, redirect_stdout=False, auto_refresh=False) as progress,
        # The functions print a line of metrics for each invocation.
        redirect_stdout(io.StringIO()),
    ):
        for size in sizes:
            contents = Contents(size, minutes=PASSES)
            if engine is None:
                found[size] = measured_in_fake(contents, progress)
            else:
                os.environ.update(engine.environ)
                found[size] = measured_on_engine(engine, contents, progress)
    console.print(_table(found))
    console.print("\n".join(_rows(found)), soft_wrap=True, markup=False, highlight=False)
    if len(sizes) > 1:
        grown = worst(found[min(sizes)], found[max(sizes)])
        for key, (operation, ratio) in grown.items():
            console.print(f"{key}: {ratio} ({operation})")
        figures = {"growth_tasks": max(sizes), **{key: ratio for key, (_, ratio) in grown.items()}}
        if asked.fake:
            figures = {key.replace("growth", "growth_fake"): value for key, value in figures.items()}
            del figures["growth_fake_cpu_worst"]
        results.keep(Path(__file__).parent, figures)


def measured_on_engine(engine: Emulator, contents: Contents, progress: Progress) -> dict[str, Used]:
    """Fill a new table in the engine, and measure each operation."""
    session: Any = PatientSession()
    meter = Meter(session)
    cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
    stack = Stack(cloud, session, SETTINGS)
    client, table = Clients().dynamodb(), stack.environ[Variable.TABLE]

    def put(items: Sequence[Item]) -> None:
        client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": item}} for item in items]})

    try:
        return _measured(stack, contents, put, meter, progress)
    finally:
        composition.use(None)
        engine.client("dynamodb").delete_table(TableName=table)


def measured_in_fake(contents: Contents, progress: Progress) -> dict[str, Used]:
    """Fill a new table in a fake of DynamoDB, and measure each operation."""
    stack, put, meter = faked()
    try:
        return _measured(stack, contents, put, meter, progress)
    finally:
        composition.use(None)


def faked(settings: dict[str, str] = SETTINGS) -> tuple[Stack, Callable[[Sequence[Item]], None], FakeMeter]:
    """Return a deployment over fakes of AWS, a function that writes items to its table, and a call meter."""
    stack = Stack.faked(settings)
    client: Any = stack.cloud.dynamodb
    table = client.fake.tables[stack.environ[Variable.TABLE]]

    def put(items: Sequence[Item]) -> None:
        for item in items:
            put_packed(table, item)

    return stack, put, FakeMeter(client._session, table)  # noqa: SLF001 - it has no other way to hear calls


def _measured(
    stack: Stack,
    contents: Contents,
    put: Callable[[Sequence[Item]], object],
    meter: CallMeter,
    progress: Progress,
) -> dict[str, Used]:
    def advance(number: int) -> None:
        progress.advance(filling, number)
        if progress.tasks[filling].completed % _TASKS_A_DRAWING < number:
            progress.refresh()

    filling = progress.add_task(f"fill {contents.tasks:,}", total=contents.total)
    waiting = Filler(stack, contents, put, advance).fill()
    found = {}
    measuring = progress.add_task(f"measure {contents.tasks:,}", total=None)
    for operation in operations_on(stack, waiting):
        progress.update(measuring, description=f"measure {contents.tasks:,}: {operation.name}", refresh=True)
        found[operation.name] = measured(operation, meter)
        progress.advance(measuring)
    return found


@dataclass
class FakeMeter:
    """Counts calls to AWS fakes, and read and write units by DynamoDB's documented rules.

    A read counts only the returned items and, with a projection, only the returned attributes. Index writes and
    rejected writes are not counted.
    """

    session: Any
    table: FakeTable
    total_requests: int = 0
    table_units: float = 0.0
    index_units: float = 0.0
    read_units: float = 0.0

    def __post_init__(self) -> None:
        """Observe every call and write of the fakes."""
        self.session.heard = self._heard
        self.table.watch = self._written
        for name in ("get_item", "query", "batch_get_item"):
            setattr(self.session.dynamodb, name, self._reading(getattr(self.session.dynamodb, name)))

    def reset(self) -> None:
        """Reset the counters."""
        self.total_requests, self.read_units, self.table_units = 0, 0.0, 0.0

    def _heard(self, _operation: str, _request: Mapping[str, Any]) -> None:
        self.total_requests += 1

    def _written(self, old: Item | None, new: Item | None) -> None:
        self.table_units += write_units(max(item_size(image) for image in (old, new) if image is not None))

    def _reading(self, call: Any) -> Any:  # noqa: ANN401 - a method of a fake
        def read(**request: Any) -> Any:  # noqa: ANN401 - its arguments and its answer
            answer = call(**request)
            for items in answer.get("Responses", {}).values():
                self.read_units += sum(read_units(item_size(item), consistent=False) for item in items)
            if "Responses" not in answer:
                items = answer.get("Items", [answer.get("Item", {})])
                consistent = request.get("ConsistentRead", False)
                self.read_units += read_units(sum(map(item_size, items)), consistent=consistent)
            return answer

        return read


class PackedItems(dict[str, Any]):
    """A partition's items, each of which stays compressed until it is written again."""

    __slots__ = ()

    def get(self, sort: str, default: Any = None) -> Any:  # noqa: ANN401 - an item, as the fake has it
        """Return an item, decompressed."""
        found = super().get(sort, default)
        return _unpacked(found) if isinstance(found, bytes) else found


_USUAL = marshal.dumps(item_of(example()), 2)
"""A typical item, used as the compression dictionary because most bytes are the same in every item."""


def put_packed(table: FakeTable, item: Item) -> None:
    """Write a new item to a fake table in compressed form."""
    partition, sort = sys.intern(item[table.partition_name]["S"]), item[table.sort_name]["S"]
    items: dict[str, Any] = table.partitions.setdefault(partition, PackedItems())
    items[sort] = _packed(item)
    for index in table.indexes.values():
        index.change(0, (partition, sort), None, item)


def _packed(item: Item) -> bytes:
    compressor = zlib.compressobj(1, zdict=_USUAL)
    return compressor.compress(marshal.dumps(item, 2)) + compressor.flush()


def _unpacked(packed: bytes) -> Item:
    item: Item = marshal.loads(zlib.decompressobj(zdict=_USUAL).decompress(packed))  # noqa: S302 - written above
    return item


def worst(few: Mapping[str, Used], many: Mapping[str, Used]) -> dict[str, tuple[str, float]]:
    """Return, for each figure, the operation whose cost grew most and its growth factor."""

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
    """Yield the lines of the table for `docs/scale.md`."""
    yield "| | " + " | ".join(f"{size:,}" for size in found) + " |"
    yield "| --- |" + " --- |" * len(found)
    for name in next(iter(found.values())):
        yield f"| {name} | " + " | ".join(_cell(each[name]) for each in found.values()) + " |"


def _cell(used: Used) -> str:
    return f"{used.calls} · {used.read_units:g} · {used.write_units:g} · {used.cpu * 1000:.1f}"


if __name__ == "__main__":
    main()
