"""Fills a table with many tasks, which are copies of a few real tasks with other ids and times.

The functions create and run one task of each kind, whose record is then read. Each stored task is a copy of one of
these records with its own id and times. The product's codec encodes the copies, so that keys and index attributes are
real, and the copies are written in batches. Other data that tasks leave is not stored: attempts outside records,
idempotency keys, and queue messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count, islice
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from duetime.adapters.dynamodb.task_items import item_of
from duetime.composition import composed
from duetime.composition.core import CoreServices, SummaryServices
from duetime.domain.dispatch.cursors import Cursors, horizons
from duetime.domain.ids import TaskId
from duetime.domain.summary import CountedSteps, Group, Step, StepSet
from duetime.domain.tasks.task_options import Priority, RetryPolicy
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import DAY, MINUTE, SECOND, minute_of, start_of
from duetime.handlers import REGISTRY, Registered
from tests.functions.stack import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from duetime.adapters.dynamodb.attribute_values import Item
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from tests.functions.stack import Stack

T = TypeVar("T")

SUCCEEDING, FAILING, REPORT = "bench.nothing", "bench.failure", "bench.report"
"""Types of the tasks. Failed tasks have the type `FAILING`; half of the owner's other tasks have the type `REPORT`."""
TEAMS = ("red", "blue")
"""Values of the tag `team`."""
RARE = ("batch", "rare")
"""A tag that only `RARE_TASKS` tasks have."""
FAILED_TASKS, RARE_TASKS = 20, 10
"""Numbers of failed and of rare tasks, which do not depend on the total, so that queries for these tasks always return
the same number of results."""
_PAYLOAD = b'{"table":"public.orders","action":"vacuum","threshold":0.2}'
_BATCH = 25
"""Maximum size of a BatchWriteItem (Source: DynamoDB API Reference)."""
_COUNTED_AT_ONCE = 10_000
"""Number of summary steps that are stored in one item, with 8 bytes for each step."""
_TIMES = ("due_at", "next_at", "created_at", "started_at", "run_at", "finished_at", "expires_at")


@dataclass(frozen=True, slots=True)
class Contents:
    """The tasks in the filled table.

    Nine out of ten of the owner's tasks have ended, at a constant rate until a minute ago; the other tasks are due from
    tomorrow on. Ten other owners together have a tenth as many tasks. In addition, a few upcoming minutes are full of
    tasks that the trigger has not read yet.

    Attributes:
        tasks: number of the owner's tasks.
        a_minute: number of tasks due in each past and future minute.
        minutes: number of full upcoming minutes, starting with the next one that the trigger reads.
    """

    tasks: int
    a_minute: int = 100
    minutes: int = 5

    @property
    def total(self) -> int:
        """The number of stored tasks, including upcoming tasks and those of other owners."""
        return self.tasks + self.tasks // 10 + self.a_minute * self.minutes


@dataclass(slots=True)
class Filler:
    """Fills the table of a stack, and marks everything before the upcoming minutes as read by the trigger.

    Attributes:
        put: writes up to 25 items.
        advance: called after each write with the number of tasks written.
    """

    stack: Stack
    contents: Contents
    put: Callable[[Sequence[Item]], object]
    advance: Callable[[int], object] = lambda _number: None
    _tails: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - the same ids each time

    def fill(self) -> list[TaskId]:
        """Write the tasks, their counts and the trigger's position, and return the ids of the owner's open tasks."""
        register_handlers()
        groups: dict[tuple[str, Group], int] = {}
        waiting = []
        for some in _batches(self._tasks(), _BATCH):
            self.put([item_of(task) for task in some])
            self.advance(len(some))
            for task in some:
                key = task.owner, Group(task.type, task.state, task.priority)
                groups[key] = groups.get(key, 0) + 1
                if task.owner == OWNER and not task.is_terminal:
                    waiting.append(task.id)
        self._count({group: number for (owner, group), number in groups.items() if owner == OWNER})
        now, core = self.stack.clock.now(), composed(CoreServices)
        read = Cursors.at(horizons(now, composed().settings.look_ahead_ms))
        core.stores.cursors.take(0, "bench", now, now, read)
        return waiting

    def _tasks(self) -> Iterator[Task]:
        succeeded, failed, scheduled = self._examples()
        now, contents = self.stack.clock.now(), self.contents
        first = start_of(minute_of(now))
        open_tasks = contents.tasks // 10
        ended = contents.tasks - open_tasks
        each_failed = max(1, ended // FAILED_TASKS)
        rare = {number * (ended // RARE_TASKS) for number in range(RARE_TASKS)}
        for number in range(ended):
            is_failed = number % each_failed == 0 and number // each_failed < FAILED_TASKS
            task = failed if is_failed else _varied(succeeded, number)
            if number in rare:
                task = replace(task, tags={**task.tags, **dict([RARE])})
            yield self._moved(task, self._at(first - MINUTE, number, -1), number)
        for number in range(open_tasks):
            yield self._moved(_varied(scheduled, number), self._at(first + DAY, number, 1), number)
        for number in range(contents.tasks // 10):
            other = replace(succeeded, owner=f"other-{number % 10}")
            yield self._moved(other, self._at(first - MINUTE, number, -1), number)
        coming = start_of(horizons(now, composed().settings.look_ahead_ms)[0] + 1)
        due = replace(scheduled, priority=Priority.LOW)
        for number in range(contents.a_minute * contents.minutes):
            yield self._moved(_varied(due, number), self._at(coming, number, 1), number)

    def _examples(self) -> tuple[Task, Task, Task]:
        """Let the functions create a succeeded, a failed and a scheduled task, and return the tasks' records."""
        spec = TaskSpec(SUCCEEDING, _PAYLOAD, name="vacuum", tags={"team": TEAMS[0]})
        created = [
            self.stack.create(spec),
            self.stack.create(replace(spec, type=FAILING, retry=RetryPolicy(max_attempts=1))),
            self.stack.create(replace(spec, delay=3 * DAY)),
        ]
        for _ in created[:2]:
            self.stack.work(Priority.NORMAL)
        stored = composed(CoreServices).stores.tasks
        succeeded, failed, scheduled = (task for each in created if (task := stored.read(each.id)) is not None)
        return succeeded, failed, scheduled

    def _at(self, first: Millis, number: int, step: int) -> Millis:
        """Return the due time of a numbered task.

        Due times have a constant rate and run forwards or backwards from a minute.
        """
        minutes, place = divmod(number, self.contents.a_minute)
        return first + step * minutes * MINUTE + place * MINUTE // self.contents.a_minute

    def _moved(self, example: Task, due: Millis, number: int) -> Task:
        """Return a copy of a task with another id and due time; all other times are shifted by the same amount."""
        shards = composed(CoreServices).shards.count()
        by = due - example.due_at
        times: Any = {name: at + by for name in _TIMES if (at := getattr(example, name)) is not None}
        history = tuple(replace(each, started_at=each.started_at + by) for each in example.attempt_history)
        task_id = TaskId.of(due, number % shards, self._tails.getrandbits(64))
        return replace(example, id=task_id, attempt_history=history, **times)

    def _count(self, groups: dict[Group, int]) -> None:
        """Add the owner's tasks to the owner's counts, as the stream's function does."""
        store, spread = composed(SummaryServices).store, composed().settings.summary_spread
        numbers, second = count(), self.stack.clock.now() // SECOND * SECOND
        for part in range(spread):
            steps = (
                Step(next(numbers).to_bytes(8), None, group, second)
                for group, number in groups.items()
                for _ in range(number // spread)
            )
            for place, some in enumerate(_batches(steps, _COUNTED_AT_ONCE)):
                of = StepSet(OWNER, part, second - place * SECOND, SECOND)
                store.count(of, CountedSteps(), some, uuid4().hex)


def register_handlers() -> None:
    """Register handlers for the types of the created tasks."""
    REGISTRY[SUCCEEDING] = Registered({"run": lambda _context, _payload: None})
    REGISTRY[FAILING] = Registered({"run": _fail})


def _varied(task: Task, number: int) -> Task:
    """Vary the type and the team of a task, so that four consecutive tasks all have different combinations."""
    of_type = REPORT if number % 2 else SUCCEEDING
    return replace(task, type=of_type, tags={"team": TEAMS[number // 2 % 2]})


def _batches(values: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def _fail(_context: object, _payload: object) -> None:
    raise ValueError("the row is locked")
