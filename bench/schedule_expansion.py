"""Compares the expansion of a schedule with the bare creation of the same number of tasks, over a fake of the table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

from bench.paired_timing import Comparison, compare
from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb.keys import DynamoKeyStore
from duetime.adapters.dynamodb.schedules import DynamoCalendarStore, DynamoScheduleStore
from duetime.adapters.dynamodb.task_store import DynamoTaskStore
from duetime.adapters.dynamodb.trigger_cursors import DynamoShardStore
from duetime.adapters.dynamodb.type_defaults import DynamoTypeDefaultsStore
from duetime.adapters.runtime.process import SystemRandom
from duetime.adapters.sqs import SqsQueues
from duetime.composition.core import read_graph
from duetime.domain.dispatch.enqueue_plan import Precision, ScheduleTimer
from duetime.domain.ids import TaskId
from duetime.domain.schedules.definition import Overlap, ScheduleSpec, Written
from duetime.domain.tasks.allowed_targets import TargetRules
from duetime.domain.tasks.creation import new_task
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import MINUTE, SECOND
from duetime.domain.type_settings import RetentionPolicy
from duetime.ports.runtime import Runtime
from duetime.services.enqueue import Enqueuer, Shards
from duetime.services.schedules.expander import ScheduleExpander
from duetime.services.schedules.expansion_planner import ExpansionPlanner
from duetime.services.schedules.occurrence_tasks import OccurrenceTasks
from duetime.services.schedules.schedule_writer import RepeatedRequests, ScheduleCreator, ScheduleWriter
from duetime.services.tasks.creation_rules import CreationRules, TypeDefaults
from duetime.services.topologies.definitions import TopologyDefinitions
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.s3 import FakeS3
from duetime_testing.fakes.sqs import FakeSQS
from duetime_testing.fakes.task_table import new_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Job

T = TypeVar("T")
R = TypeVar("R")
_NOW = 1_795_228_387_000
_LOOK_AHEAD = 180 * SECOND
_OWNER, _NAME = "bench", "each-second"
_TASKS = 60


@dataclass
class _Runtime:
    """A settable clock, a sequential executor and disabled telemetry in one object."""

    at: Millis = _NOW

    def now(self) -> Millis:
        return self.at

    def sleep_until(self, at: Millis) -> None:
        self.at = at

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        return list(map(work, items))

    def start(self, work: Callable[[], None]) -> Job:
        raise NotImplementedError

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        raise NotImplementedError

    def count(self, name: str, number: int = 1, **dimension: str) -> None:
        """Do nothing."""

    def measure(self, name: str, milliseconds: Millis, **dimension: str) -> None:
        """Do nothing."""

    def note(self, text: str, **facts: object) -> None:
        """Do nothing."""

    def attempt(self, task: Task) -> AbstractContextManager[None]:
        raise NotImplementedError


def comparisons() -> Iterator[Comparison]:
    """Measure the expansion of one minute of a schedule that runs every second."""
    yield compare(
        f"expand {_TASKS} occurrences", _expansion(), f"{_TASKS} bare tasks in the fake", _bare_creations(), pairs=7
    )


def _fakes(around: _Runtime) -> tuple[Any, Any, Any]:
    """Create fakes of DynamoDB, SQS and S3."""
    return FakeDynamoDB(around.now), FakeSQS(around.now), FakeS3()


def _expansion() -> Callable[[], object]:
    around, random_source = _Runtime(), SystemRandom()
    fake, sqs, s3 = _fakes(around)
    table = new_table(fake)
    runtime = Runtime(around, random_source, around, around)
    tasks = DynamoTaskStore(fake, table, around, around)
    contents = SplitContentStore(fake, table, s3, "contents")
    schedules, calendars = DynamoScheduleStore(fake, table, around), DynamoCalendarStore(fake, table, around)
    keys = DynamoKeyStore(fake, table)
    stores: Any = SimpleNamespace(tasks=tasks, contents=contents, schedules=schedules, calendars=calendars, keys=keys)
    urls = {each: sqs.create_queue(QueueName=each.value)["QueueUrl"] for each in Priority}
    enqueuer = Enqueuer(
        tasks, SqsQueues(sqs, urls, around), runtime, _LOOK_AHEAD, Precision.NORMAL, None, lambda: stores.order_lines
    )
    shards = Shards(DynamoShardStore(fake, table), around, 16)
    types = TypeDefaults(DynamoTypeDefaultsStore(fake, table), {}, shards, runtime)
    rules = CreationRules(TargetRules(), read_graph, lambda: TopologyDefinitions(stores, runtime), types)
    occurrence_tasks = OccurrenceTasks(contents, enqueuer, runtime, rules)
    expander = ScheduleExpander(ExpansionPlanner(stores, occurrence_tasks, runtime, _LOOK_AHEAD), runtime)
    scheduling = ScheduleCreator(
        ScheduleWriter(stores, enqueuer, expander, runtime, _LOOK_AHEAD, RetentionPolicy(MINUTE)),
        stores,
        runtime,
        shards,
        RepeatedRequests(keys),
    )
    spec = ScheduleSpec(Written(rate="1 second"), TaskSpec("bench"), _NAME, overlap=Overlap.ALLOW_ALL)
    made = scheduling.create(_OWNER, spec).value

    def step() -> None:
        around.at += MINUTE
        stored, _ = schedules.read(_OWNER, _NAME)
        generation = made.generation if stored is None else stored.generation
        expander.expand([ScheduleTimer(made.uid, _OWNER, _NAME, generation, around.at)])

    return step


def _bare_creations() -> Callable[[], object]:
    around, tails = _Runtime(), count()
    fake, _sqs, _s3 = _fakes(around)
    tasks = DynamoTaskStore(fake, new_table(fake), around, around)
    payload = Content(ContentPlace.RECORD, "payload", b"null")

    def step() -> None:
        for second in range(_TASKS):
            due = _NOW + second * SECOND
            task = new_task(TaskId.of(due, 0, next(tails)), TaskSpec("bench"), _OWNER, due, _NOW, payload)
            tasks.create(replace(task, nonce=str(second)))

    return step
