"""Measures the reads and the time for each task filter's first page, and the writes that task lists need.

python -m bench.task_lists [TASKS …] [--engine]

For each given number, an owner gets this many tasks. Nine out of ten tasks have succeeded, and the others are due from
tomorrow on. A few tasks are running, waiting, paused or failed, have a rare type, tag or name, or are runs of a
schedule. The product's code maintains the lists from the tasks' changes. Then the API responds to a request with each
filter, with ten tasks a page, and to a GET for comparison. Reads are counted exactly, over a fake of DynamoDB or the
embedded engine. Times include the complete process on this machine, so they can only be compared with each other.
"""

from __future__ import annotations

import io
import os
import time
from argparse import ArgumentParser
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from itertools import islice
from math import ceil
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import boto3
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench import results
from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.adapters.dynamodb.task_items import item_of
from duetime.composition import Platform, composed
from duetime.composition.stream import BroadcastServices
from duetime.domain.change_events import Change, ChangeBatch, task_snapshot
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import LIST_BUILD_DELAY, LIST_KNOWN
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.targets import TopologyTarget
from duetime.domain.tasks.task import NodeRef, ScheduleRef
from duetime.domain.tasks.task_lists import writes_of
from duetime.domain.times import DAY, MINUTE, SECOND
from duetime.domain.type_settings import RetentionPolicy
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime_common.cost_estimate import WATCHED_STREAM_SECONDS
from duetime_local import emulator
from duetime_testing.fakes.task_table import new_table
from tests.adapters.examples import task as example
from tests.clocks import NOW, StandingClock
from tests.fakes.session import FakeSession
from tests.functions.api.gateway import Answer, Gateway
from tests.metering import item_size, read_units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Job

T = TypeVar("T")
R = TypeVar("R")
SIZES = (1_000, 100_000)
OWNER = "local"
PAGE = 10
FILTERS = (
    "tasks?",
    "tasks?state=running",
    "tasks?state=waiting",
    "tasks?state=paused",
    "tasks?state=failed",
    "tasks?state=scheduled",
    "tasks?state=scheduled&order=asc",
    "tasks?state=scheduled&state=waiting&order=asc&due_before=2026-12-01T00:00:00Z",
    "tasks?state=scheduled&order=asc&due_before=2026-11-21T02:33:00Z",
    "tasks?state=succeeded",
    "tasks?state=succeeded&state=failed",
    "tasks?state=succeeded&due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z",
    "tasks?order_by=finished_at",
    "tasks?order_by=finished_at&state=succeeded&state=failed",
    "tasks?finished_after=2026-11-21T02:00:00Z",
    "tasks?type=rare",
    "tasks?type=report",
    "tasks?type=rare&state=succeeded",
    "tasks?type=report&state=failed",
    "tasks?name=close",
    "tasks?tag=batch:rare",
    "tasks?schedule=nightly",
    "tasks?parent={topology}",
    "tasks?due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z",
    "tasks?include_nodes=true",
    "tasks?include_nodes=true&due_after=2026-11-21T02:00:00Z&due_before=2026-11-21T02:33:00Z",
    "topologies?",
    "topologies?state=running",
    "topologies?state=failed",
)
"""The filters that the console offers. All filters find tasks except the ninth, which must find no task."""
RATES = (0.4, 1, 10, 100, 1_000)
"""Rates at which tasks are due, in tasks a second, for which the writes are counted."""


@dataclass(slots=True)
class Reads:
    """Counts of DynamoDB reads since the last reset.

    Attributes:
        rounds: number of sequential rounds of reads; reads that run in parallel count as one round.
    """

    requests: int = 0
    units: float = 0.0
    rounds: int = 0

    def count(self, operation: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """Count a successful read (Source: DynamoDB Developer Guide, "Read and write operations")."""
        consistent = bool(request.get("ConsistentRead"))
        self.rounds += 1
        if operation == "query":
            self.requests += 1
            self.units += read_units(sum(map(item_size, answer["Items"])), consistent=consistent)
        elif operation == "get_item":
            self.requests += 1
            self.units += read_units(item_size(answer.get("Item", {})), consistent=consistent)
        elif operation == "batch_get_item":
            self.requests += 1
            for items in answer["Responses"].values():
                self.units += sum(read_units(item_size(item), consistent=False) for item in items)


class RoundExecutor:
    """An executor that runs calls in turn, and counts the reads of calls that would run in parallel as one round."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call a function for each item in turn."""
        before = last = self._reads.rounds
        found = []
        for item in items:
            self._reads.rounds = before
            found.append(work(item))
            last = max(last, self._reads.rounds)
        self._reads.rounds = last
        return found

    def start(self, work: Callable[[], None]) -> NoReturn:
        """Raise `NotImplementedError`, because task lists start no calls without waiting for them."""
        raise NotImplementedError

    def wait(self, jobs: Sequence[Job], until: Millis) -> NoReturn:
        """See `start`."""
        raise NotImplementedError


class CountedClient:
    """A DynamoDB client that counts the reads that it makes."""

    def __init__(self, client: Any, reads: Reads) -> None:  # noqa: ANN401 - boto3's own, or a fake
        self._client = client
        self._reads = reads

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the client has
        found = getattr(self._client, name)
        if name not in {"query", "get_item", "batch_get_item"}:
            return found

        def call(**request: Any) -> Any:  # noqa: ANN401 - the response
            answer = found(**request)
            self._reads.count(name, request, answer)
            return answer

        return call


class CountedSession:
    """A session whose DynamoDB client counts the reads that it makes."""

    def __init__(self, session: Any, reads: Reads) -> None:  # noqa: ANN401 - boto3's own, or a fake
        self._session = session
        self._reads = reads

    def client(self, service: str, **settings: Any) -> Any:  # noqa: ANN401 - boto3's own
        """Create a client for a service."""
        client = self._session.client(service, **settings)
        return CountedClient(client, self._reads) if service == "dynamodb" else client

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the session has
        return getattr(self._session, name)


def tasks_of(number: int, random: Random) -> Iterator[Task]:
    """Yield an owner's tasks in the order of their due times, then a topology's nodes, then topologies.

    Until now, ten tasks a second were due; from tomorrow on, one task a second is due.
    """
    ended = number * 9 // 10
    rare = {place * max(1, ended // 25): kind for place, kind in enumerate(_KINDS * 5)}
    topology = TaskId.of(NOW - MINUTE, 0, 1)
    base = example(owner=OWNER, state=State.SUCCEEDED)
    for place in range(number):
        due = NOW - (ended - place) * 100 if place < ended else NOW + DAY + (place - ended) * SECOND
        of = replace(
            base, id=TaskId.of(due, place % 16, random.getrandbits(64)), due_at=due, next_at=due, created_at=due
        )
        if place >= ended:
            yield replace(of, state=State.SCHEDULED)
            continue
        of = replace(of, finished_at=due + 500, started_at=due)
        yield _of_kind(of, rare.get(place, ""))
    for place in range(600):
        of = replace(base, id=TaskId.of(NOW - SECOND, place % 16, place), due_at=NOW - SECOND, next_at=NOW - SECOND)
        yield replace(of, finished_at=NOW, node_ref=NodeRef(topology, 1, f"n{place}"))
    for place in range(30):
        of = replace(base, id=TaskId.of(NOW - MINUTE, place % 16, place + 1), target=TopologyTarget())
        yield replace(of, state=(State.SUCCEEDED, State.RUNNING, State.FAILED)[place % 3], finished_at=NOW)


_KINDS = ("running", "waiting", "paused", "failed", "rare") * 3
"""The kinds of consecutive rare tasks, all of which have the rare name, tag and schedule."""


def _of_kind(task: Task, kind: str) -> Task:
    if not kind:
        return task
    task = replace(task, name="close", tags={"batch": "rare"}, schedule_ref=ScheduleRef("nightly", 1, task.due_at))
    if kind == "rare":
        return replace(task, type="rare")
    state = State(kind)
    return replace(task, state=state, finished_at=task.finished_at if state in TERMINAL else None)


def fill(client: Any, table: str, number: int, clock: StandingClock) -> None:  # noqa: ANN401 - any client
    """Store the tasks, and let the product's code maintain their lists."""
    services = composed(BroadcastServices)
    consumers = [each for each in services._exact() if each.name == "lists"]  # noqa: SLF001 - without the counts
    some: Sequence[Task] = ()
    batches = _batches(tasks_of(number, Random(1)), 500)  # noqa: S311 - always the same
    for some in track(batches, f"fill {number:,}", number // 500):
        for part in _batches(some, 25):
            requests = [{"PutRequest": {"Item": item_of(task)}} for task in part]
            client.batch_write_item(RequestItems={table: requests})
        changes = tuple(Change(task.id.text, clock.at, None, task_snapshot(task)) for task in some)
        for consumer in consumers:
            consumer.consume(ChangeBatch(changes))
    last = Change("last", clock.at, None, task_snapshot(some[-1]))
    # If the owner has many tasks, the lists are created, then completed, then updated with the latest changes.
    for wait in (LIST_KNOWN, LIST_BUILD_DELAY + SECOND, *[SECOND] * ceil(number / 1_000), MINUTE):
        clock.at += wait
        for consumer in consumers:
            consumer.consume(ChangeBatch((last,)))
    clock.at = NOW


def _batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of a filter's first page, or of a GET.

    Attributes:
        hits: number of tasks or topologies on the page.
        reads: number of read requests to DynamoDB.
        units: number of read units.
        rounds: number of sequential rounds of reads; not meaningful on the engine, where threads send the
            requests.
        seconds: median time.
    """

    name: str
    hits: int
    reads: int
    units: float
    rounds: int
    seconds: float


def measure(number: int, *, on_engine: bool) -> list[Row]:
    """Measure a GET and a request with each filter for an owner with a number of tasks."""
    clock, reads = StandingClock(), Reads()
    with ExitStack() as stack:
        if on_engine:
            engine = stack.enter_context(emulator.running(port=0))
            os.environ.update(engine.environ)
            session: Any = boto3.Session()
        else:
            session = FakeSession(clock.now)
        client = session.client("dynamodb")
        table = new_table(client)
        queues: dict[str, str] = {
            each: session.client("sqs").create_queue(QueueName=name.value)["QueueUrl"]
            for name, each in QUEUE_VARIABLES.items()
        }
        environ: dict[str, str] = {
            Variable.TABLE: table,
            Variable.BUCKET: "contents",
            Variable.AUTHENTICATION: "none",
            Variable.TASK_LISTS: "1",
            Variable.RETENTION_DAYS: "30",
            **queues,
        }
        clients: Any = CountedSession(session, reads)
        threads = None if on_engine else RoundExecutor(reads)
        composition.use(Platform(environ=environ, clock=clock, clients=Clients(clients), threads=threads))
        stack.callback(composition.use, None)
        fill(client, table, number, clock)
        return _answers(reads)


def _answers(reads: Reads) -> list[Row]:
    api = Gateway()
    first = api.send("GET", "/v1/tasks", query="limit=1").body["tasks"][0]["id"]
    topology = TaskId.of(NOW - MINUTE, 0, 1).text
    found = [_timed("GET", reads, partial(api.send, "GET", f"/v1/tasks/{first}"))]
    for each in FILTERS:
        kind, _, query = each.format(topology=topology).partition("?")
        query = f"{query}&limit={PAGE}".lstrip("&")
        found.append(_timed(each, reads, partial(api.send, "GET", f"/v1/{kind}", query=query)))
    return found


def _timed(name: str, reads: Reads, call: Callable[[], Answer]) -> Row:
    times = []
    for _ in range(7):
        reads.requests, reads.units, reads.rounds = 0, 0.0, 0
        began = time.perf_counter()
        with redirect_stdout(io.StringIO()):
            answer = call()
        times.append(time.perf_counter() - began)
        assert answer.status == HTTPStatus.OK, answer.text  # noqa: S101 - a refused request is not measured
    hits = sum(len(answer.body.get(each, ())) for each in ("tasks", "topologies"))
    return Row(name, hits, reads.requests, reads.units, reads.rounds, median(times))


def units_per_task(rate: float) -> tuple[float, float]:
    """Return the lists' write units per task, for thin tasks and for tasks with a name, a tag and a schedule.

    Each task is created, runs for 300 ms and succeeds. The stream delivers the changes in batching windows of the
    default length.
    """
    found = []
    for is_full in (False, True):
        random, units, count = Random(1), 0, 0  # noqa: S311 - always the same
        for window in range(max(12, ceil(20 / rate))):
            seconds = range(window * WATCHED_STREAM_SECONDS, (window + 1) * WATCHED_STREAM_SECONDS)
            due_times = [NOW + second * SECOND + at for second in seconds for at in _times(rate, random)]
            changes = [change for due in due_times for change in _life(due, random, is_full=is_full)]
            writes = writes_of(changes, RetentionPolicy(30 * DAY))
            units += len(writes.blocks) + len(writes.added) + len(writes.removed)
            count += len(due_times)
        found.append(units / max(1, count))
    return found[0], found[1]


def _times(rate: float, random: Random) -> list[int]:
    number = int(rate) if rate >= 1 else int(random.random() < rate)
    return sorted(random.randrange(SECOND) for _ in range(number))


def _life(due: int, random: Random, *, is_full: bool) -> Iterator[Change[Any]]:
    task = example(id=TaskId.of(due, 0, random.getrandbits(64)), due_at=due, created_at=due)
    if is_full:
        more: dict[str, Any] = {"name": "close", "tags": {"team": "red"}, "schedule_ref": ScheduleRef("s", 1, due)}
        task = replace(task, **more)
    running = replace(task, state=State.RUNNING)
    ended = replace(task, state=State.SUCCEEDED, finished_at=due + 300)
    images = [None, *map(task_snapshot, (task, running, ended))]
    for before, after in zip(images, islice(images, 1, None), strict=False):
        yield Change("", due // SECOND * SECOND, before, after)


def main() -> None:
    """Measure with each number of tasks, print tables, and save the worst figures for the last number."""
    parser = ArgumentParser(prog="python -m bench.task_lists", description=__doc__)
    parser.add_argument("tasks", nargs="*", type=int, default=SIZES, help="numbers of tasks that the owner has")
    parser.add_argument("--engine", action="store_true", help="use the embedded engine instead of the fake")
    asked = parser.parse_args()
    console = Console()
    kept: dict[str, float] = {}
    for number in asked.tasks:
        rows = measure(number, on_engine=asked.engine)
        console.print(_table(number, rows))
        kept = {
            "lists_tasks": number,
            "lists_read_units_worst": max(row.units for row in rows[1:]),
            "lists_reads_worst": max(row.reads for row in rows[1:]),
            "lists_rounds_worst": max(row.rounds for row in rows[1:]),
        }
    written = Table("tasks a second", "thin", "with name, tag and schedule", title="write units per task for lists")
    for rate in RATES:
        thin, full = units_per_task(rate)
        written.add_row(f"{rate:g}", f"{thin:.2f}", f"{full:.2f}")
    console.print(written)
    if not asked.engine:
        results.keep(Path(__file__).parent, kept)


def _table(number: int, rows: Sequence[Row]) -> Table:
    columns = ("filter", "tasks", "reads", "read units", "rounds", "time · GET")
    table = Table(*columns, title=f"first page of {PAGE}, {number:,} tasks")
    for row in rows:
        time_ratio = f"{row.seconds / rows[0].seconds:.1f}"
        table.add_row(row.name, str(row.hits), str(row.reads), f"{row.units:g}", str(row.rounds), time_ratio)
    return table


if __name__ == "__main__":
    main()
