from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.summary import DynamoSummaryRecounts, DynamoSummaryStore
from duetime.domain.change_events import Change, ChangeBatch, TaskSnapshot
from duetime.domain.errors import Unavailable
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import SUMMARY_TYPES_AT_ONCE
from duetime.domain.summary import Group, steps_of
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE, SECOND
from duetime.ports.runtime import Runtime
from duetime.services.summary import Generations, SummaryCounter, SummaryReader
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom, VirtualTime
from tests.clocks import NOW, StandingClock
from tests.metering import item_size, write_units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from duetime.domain.change_events import TaskChange
    from duetime.domain.summary import CountedSteps, Step, StepSet

MORNING = NOW // SECOND * SECOND


def store() -> DynamoSummaryStore:
    """An empty store that uses a fake table."""
    fake: Any = FakeDynamoDB()
    return DynamoSummaryStore(fake, new_table(fake))


def runtime() -> Runtime:
    """The dependencies of a counter."""
    return Runtime(StandingClock(), SeededRandom(), VirtualTime(NOW), FakeTelemetry())


def counter(over: Any, spread: int = 2) -> SummaryCounter:  # noqa: ANN401 - any store
    """A counter over a store."""
    return counter_of(over, recounts(), spread)


def counter_of(over: Any, generations: Any, spread: int = 2) -> SummaryCounter:  # noqa: ANN401 - any store
    """A counter that uses a store, with generations in another store."""
    on = runtime()
    return SummaryCounter(over, on, spread, Generations(generations, on, is_recounting=True), generations)


def recounts() -> DynamoSummaryRecounts:
    """An empty store of generations that uses a fake table."""
    fake: Any = FakeDynamoDB()
    return DynamoSummaryRecounts(fake, new_table(fake), StandingClock())


def totals(over: DynamoSummaryStore, owner: str, spread: int = 2) -> dict[Group, int]:
    """An owner's counts."""
    return dict(SummaryReader(over, recounts(), runtime(), spread).read(owner).counts)


def snapshot(number: int, **changes: Any) -> TaskSnapshot:  # noqa: ANN401 - any field
    """A task."""
    fields: dict[str, Any] = {
        "id": TaskId.of(NOW, number % 5, number),
        "owner": "ann",
        "type": "report",
        "state": State.SCHEDULED,
        "version": 1,
        "due_at": NOW,
        "created_at": NOW,
        "priority": Priority.NORMAL,
    }
    return TaskSnapshot(**(fields | changes))


def life(number: int, rng: random.Random) -> tuple[list[TaskChange], TaskSnapshot | None]:
    """The changes of a random task, and the task's state after these changes."""
    task = snapshot(number, owner=rng.choice(["ann", "bob#1"]), type=rng.choice(["a", "b", "c#d"]))
    states = [State.SCHEDULED, State.RUNNING, rng.choice([State.WAITING, State.RUNNING]), State.SUCCEEDED]
    images: list[TaskSnapshot | None] = [None]
    images += [replace(task, state=state, version=n) for n, state in enumerate(states[: rng.randrange(1, 5)])]
    match rng.randrange(4):
        case 0 if images[-1]:
            images.append(replace(images[-1], erased=True))
        case 1:
            images.append(None)
    at = MORNING + rng.randrange(3) * SECOND
    changes = [
        Change(f"{number}-{n}", at + n * SECOND, before, after) for n, (before, after) in enumerate(pairwise(images))
    ]
    return changes, images[-1]


def deliveries(changes: Sequence[TaskChange], rng: random.Random) -> Iterable[ChangeBatch]:
    """Batches in any order, many of them delivered twice, as a whole or in part."""
    batches = []
    for _ in range(3):
        rest = list(changes)
        rng.shuffle(rest)
        while rest:
            size = rng.randrange(1, 12)
            batches.append(ChangeBatch(tuple(rest[:size])))
            rest = rest[size:]
    rng.shuffle(batches)
    return batches


@pytest.mark.parametrize("seed", range(25))
def test_the_counts_equal_the_tasks_however_batches_are_delivered(seed: int) -> None:
    """However batches are ordered, repeated or split, the counts equal the tasks."""
    rng, kept = random.Random(seed), store()  # noqa: S311 - repeatable on purpose
    lives = [life(number, rng) for number in range(30)]
    counting = counter(kept)
    for batch in deliveries([change for changes, _ in lives for change in changes], rng):
        counting.consume(batch)
    for owner in ("ann", "bob#1"):
        left = [task for _, task in lives if task and task.owner == owner and not task.erased]
        assert totals(kept, owner) == Counter(Group(task.type, task.state, task.priority) for task in left)


def test_a_change_within_a_state_causes_no_reads_or_writes() -> None:
    """A change that keeps a task's state, such as a heartbeat, causes no reads or writes."""

    class Untouchable:
        """A store that fails whenever it is used."""

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - never returns
            raise AssertionError(name)

    running = snapshot(1, state=State.RUNNING)
    change = Change("1", NOW, running, replace(running, version=2, attempt=1))
    counter_of(Untouchable(), Untouchable()).consume(ChangeBatch((change,)))


@dataclass
class Contended:
    """A store in which another counter counts one of the steps in `others` after each read."""

    inner: DynamoSummaryStore
    others: list[TaskChange]

    def counted(self, of: StepSet) -> CountedSteps:
        """Read, and then let another counter write first."""
        found = self.inner.counted(of)
        if self.others:
            counter(self.inner).consume(ChangeBatch((self.others.pop(),)))
        return found

    def count(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step], nonce: str) -> bool:
        """Write."""
        return self.inner.count(of, counted, steps, nonce)


def test_repeated_steps_beyond_a_full_minute_item_count_once() -> None:
    """If a minute's item is full, steps are recorded by ten seconds, then by one second, and each counts once."""
    kept = store()
    made = [Change(f"{n}", MORNING + n % 7 * SECOND, None, snapshot(5 * n)) for n in range(1200)]
    batches = [made[start : start + 200] for start in range(0, 1200, 200)]
    for number, batch in enumerate(batches):
        counter(kept).consume(ChangeBatch(tuple(batch)))
        # These are some of the earlier changes together with some new ones.
        again = [*batches[0][::3], *(each for some in batches[: number + 2] for each in some[::7])]
        counter(kept).consume(ChangeBatch(tuple(again)))
    for batch in reversed(batches):
        counter(kept).consume(ChangeBatch(tuple(batch)))
    assert totals(kept, "ann") == {Group("report", State.SCHEDULED, Priority.NORMAL): 1200}
    minute = steps_of(made, 1)
    ((of, steps),) = minute.items()
    assert kept.counted(of).is_full
    tens = of.narrowed(steps)
    assert {each.span for each in tens} == {10 * SECOND}
    assert all(kept.counted(each).is_full for each in tens)
    assert {each.span for each in next(iter(tens)).narrowed(steps)} == {SECOND}


def test_two_counters_that_fill_a_minute_count_each_step_once() -> None:
    """If another counter fills a minute's item, steps are recorded elsewhere, and none of them counts twice."""
    kept = store()
    made = [Change(f"{n}", MORNING, None, snapshot(5 * n)) for n in range(300)]
    counter(kept).consume(ChangeBatch(tuple(made[:240])))
    rival = Contended(kept, [*made[240:255]])
    counter(rival).consume(ChangeBatch(tuple(made[235:])))
    assert totals(kept, "ann") == {Group("report", State.SCHEDULED, Priority.NORMAL): 300}


def test_two_concurrent_counters_count_each_step_once() -> None:
    """If another counter writes first, the counter reads again, and a step delivered to both counts once."""
    kept = store()
    created = [Change(f"{n}", MORNING, None, snapshot(5 * n)) for n in range(8)]
    counter(Contended(kept, [*created[:6]])).consume(ChangeBatch(tuple(created)))
    assert totals(kept, "ann") == {Group("report", State.SCHEDULED, Priority.NORMAL): 8}


def test_a_counter_fails_if_other_counters_always_write_first() -> None:
    """If other counters always write first, the counter fails, so that the batch is delivered again."""

    class Refusing:
        """A store in which other counters always write in between."""

        def counted(self, of: StepSet) -> CountedSteps:
            """Read."""
            return store().counted(of)

        def count(self, *_: object) -> bool:
            """Do not write."""
            return False

    with pytest.raises(Unavailable):
        counter(Refusing()).consume(ChangeBatch((Change("1", MORNING, None, snapshot(1)),)))


def test_more_types_than_fit_into_a_transaction_are_counted() -> None:
    """Each type's counts are a separate item, so that an owner can have any number of types."""
    kept, number = store(), 3 * SUMMARY_TYPES_AT_ONCE + 7
    created = [Change(f"{n}", MORNING, None, snapshot(5 * n, type=f"type-{n}")) for n in range(number)]
    counter(kept).consume(ChangeBatch(tuple(created)))
    assert len(totals(kept, "ann")) == number


def test_a_counted_step_is_kept_for_longer_than_the_stream() -> None:
    """Counted steps are kept for longer than the day in which the stream may deliver a write again."""
    fake: Any = FakeDynamoDB()
    table = new_table(fake)
    counter(DynamoSummaryStore(fake, table)).consume(ChangeBatch((Change("1", MORNING, None, snapshot(1)),)))
    expiries = [int(item["x"]["N"]) * SECOND for item in fake.tables[table].every() if "x" in item]
    assert len(expiries) == 1
    assert expiries[0] >= MORNING + 2 * 24 * 3600 * SECOND


@dataclass
class Metered:
    """A store that counts write units; a write in a transaction costs twice its units."""

    inner: DynamoSummaryStore
    units: int = 0

    def counted(self, of: StepSet) -> CountedSteps:
        """Read."""
        return self.inner.counted(of)

    def count(self, of: StepSet, counted: CountedSteps, steps: Sequence[Step], nonce: str) -> bool:
        """Write, and count the units of the item with the steps and of the item with the counts."""
        is_written = self.inner.count(of, counted, steps, nonce)
        fake: Any = self.inner._client
        key = {"p": {"S": f"n#{of.owner}#{of.part}"}, "s": {"S": f"s#{of.span}#{of.begins_at}"}}
        item = fake.get_item(TableName=self.inner._table, Key=key)["Item"]
        self.units += 2 * (write_units(item_size(item)) + 1)
        return is_written


RATES = (
    # Each row has the tasks per second and the seconds; for each window, deliveries and write units per thousand tasks.
    (1 / 2.6, 300, {1: (2000, 8000), 5: (548, 2365), 30: (96, 557)}),
    (10, 120, {1: (126, 637), 5: (26, 197), 30: (7, 98)}),
    (100, 20, {1: (21, 117), 5: (6, 90), 30: (6, 87)}),
)


@pytest.mark.parametrize(("rate", "seconds", "expected"), RATES)
def test_the_summary_has_the_stated_deliveries_and_writes_at_each_rate(
    rate: float, seconds: int, expected: dict[int, tuple[int, int]]
) -> None:
    """The number of deliveries, with at most 500 changes each, and of write units is as stated for each rate."""
    assert {window: spent_at(rate, seconds, window) for window in expected} == expected


def spent_at(rate: float, seconds: int, window: int) -> tuple[int, int]:
    """The deliveries and write units per thousand tasks, created at a steady rate and run half a minute later."""
    count = round(rate * seconds)
    changes: list[TaskChange] = []
    for number in range(count):
        at = MORNING + round(number / rate) * SECOND
        created = snapshot(5 * number)
        running = replace(created, state=State.RUNNING)
        ended, later = replace(created, state=State.SUCCEEDED), at + MINUTE // 2
        lives = ((None, created, at), (created, running, later), (running, ended, later))
        changes += [
            Change(f"{number}-{place}", when, left, entered) for place, (left, entered, when) in enumerate(lives)
        ]
    metered = Metered(store())
    one = counter(metered, spread=1)
    deliveries, waiting = 0, sorted(changes, key=lambda change: change.at)
    while waiting:
        taken = [each for each in waiting[:500] if each.at < waiting[0].at + window * SECOND]
        one.consume(ChangeBatch(tuple(taken)))
        deliveries, waiting = deliveries + 1, waiting[len(taken) :]
    return round(1_000 * deliveries / count), round(1_000 * metered.units / count)
