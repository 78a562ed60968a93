"""If a minute has more tasks than a tick can send, all of these tasks are sent, and no other task waits for them."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore, DynamoShardStore
from duetime.domain.dispatch.cursors import QueueDepth
from duetime.domain.dispatch.enqueue_plan import Entry, Precision
from duetime.domain.operating_parameters import MINUTE_PAGE
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import MINUTE, SECOND, Millis, minute_of, start_of
from duetime.ports.runtime import Runtime
from duetime.ports.tasks import MinutePage
from duetime.services.enqueue import Shards
from duetime.services.trigger.dispatcher import Dispatcher, DueMessages, EarlyScan
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.clocks import NOW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duetime.ports.queues import Outgoing

SHARDS = 16
LOOK_AHEAD = 180 * SECOND
LARGE = minute_of(NOW) + 10
"""The minute with many tasks."""
SMALL = 10
"""The number of tasks in each shard for each minute after the large minute."""


class Unmonitored:
    """`duetime.ports.runtime.Heartbeat` without a receiver."""

    def send(self, beat_id: str) -> None:
        """Send nothing."""


class Deployment:
    """The trigger over a table whose pages are created when they are read, and over slow queues.

    Attributes:
        per_shard: the number of tasks in each shard of the large minute; all tasks but the last have normal priority.
        pace: the time for sending a batch of ten messages, in milliseconds.
        sent: the sending time of each message, by minute.
        seen: how often each task was sent, by minute, shard and place.
        refused: the sends that fail.
    """

    def __init__(self, number: int, pace: Millis) -> None:
        self.per_shard, self.pace = number // SHARDS, pace
        self.time = NOW
        self.sends = 0
        self.refused: frozenset[int] = frozenset()
        self.sent: dict[tuple[int, Priority], list[Millis]] = defaultdict(list)
        self.seen: dict[tuple[int, int], bytearray] = {}
        self.facts = FakeTelemetry()
        self.dispatcher = self._dispatching(self)

    def _dispatching(self, ports: Any) -> Dispatcher:  # noqa: ANN401 - it stands in for every port
        fake: Any = FakeDynamoDB(self.now)
        table = new_table(fake)
        cursors, shards = (
            DynamoCursorStore(fake, table, self.facts),
            Shards(DynamoShardStore(fake, table), ports, SHARDS),
        )
        stores: Any = SimpleNamespace(tasks=ports, cursors=cursors)
        runtime = Runtime(ports, ports, ports, self.facts)
        due_messages = DueMessages(ports, ports, ports, ports, runtime, LOOK_AHEAD, Precision.NORMAL, None)
        early = EarlyScan(ports, ports, due_messages, runtime)
        return Dispatcher(stores, ports, ports, runtime, shards, LOOK_AHEAD, due_messages, early, Unmonitored())

    def now(self) -> Millis:
        """The virtual time, which passes while messages are sent."""
        return self.time

    def sleep_until(self, at: Millis) -> None:
        """Let time pass."""
        self.time = max(self.time, at)

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Do the work for the items one after another."""
        return [work(item) for item in items]

    def depth(self, _priority: Priority, _lane: str = "") -> QueueDepth:
        """No message waits in the queue."""
        return QueueDepth(0, 0, 0)

    def read_page(self, minute: int, shard: int, after: str, *, consistent: bool) -> MinutePage:
        """Make the next page; sent tasks are claimed at once, so that scans find no tasks."""
        count = 0
        if consistent and minute >= LARGE:
            count = self.per_shard if minute == LARGE else SMALL
        first = int(after) + 1 if after else 0
        places = range(first, min(first + MINUTE_PAGE, count))
        items = [(f"{place:09}", self._entry(minute, shard, place, count)) for place in places]
        return MinutePage(items, items[-1][0] if places and places[-1] < count - 1 else None)

    def _entry(self, minute: int, shard: int, place: int, count: int) -> Entry:
        priority = Priority.HIGH if place == count - 1 else Priority.NORMAL
        key: Any = (minute, shard, place)
        return Entry(key, "me", State.SCHEDULED, priority, 0, start_of(minute), False, None, False)  # noqa: FBT003

    def send(self, outgoing: Sequence[Outgoing]) -> list[Outgoing]:
        """Acknowledge every message, and let the time for sending pass."""
        self.time += self.pace * -(-len(outgoing) // 10)
        self.sends += 1
        if self.sends in self.refused:
            return list(outgoing)
        for each in outgoing:
            key: Any = each.message.task_id
            minute, shard, place = key
            counts = self.seen.setdefault((minute, shard), bytearray(self.per_shard if minute == LARGE else SMALL))
            counts[place] += 1
            self.sent[minute, each.message.priority].append(self.time)
        return []

    def run(self, is_over: Callable[[], bool]) -> None:
        """Tick every minute, or as soon as the previous tick has ended."""
        tick = 0
        while not is_over():
            tick += 1
            before = self.time
            self.dispatcher.tick(f"tick-{tick}")
            self.time = max(self.time, (before // MINUTE + 1) * MINUTE)

    def dispatched(self) -> int:
        """The number of sent messages for the large minute."""
        return sum(len(self.sent[LARGE, priority]) for priority in Priority)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "pace"),
    [
        (48_000, 20),
        (16_000, 400),
        (8_000, 2_000),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in [(200_000, 5), (50_000, 400), (20_000, 2_000)]),
    ],
)
def test_a_large_minute_is_dispatched_at_any_pace(number: int, pace: Millis) -> None:
    """Each task is sent once, and only tasks in the same queue wait for the large minute."""
    deployment = Deployment(number, pace)
    deployment.run(lambda: deployment.dispatched() >= number)
    assert [counts.count(1) for (minute, _), counts in sorted(deployment.seen.items()) if minute == LARGE] == [
        number // SHARDS
    ] * SHARDS
    assert not any(count > 1 for counts in deployment.seen.values() for count in set(counts))
    ended = max(deployment.sent[LARGE, Priority.NORMAL])
    # An urgent task waits for a few slices at most, in this minute and in later minutes.
    slices = 25 * 50 * pace + 2 * MINUTE
    assert max(deployment.sent[LARGE, Priority.HIGH]) < start_of(LARGE) - LOOK_AHEAD + slices
    later = [minute for minute in range(LARGE + 1, minute_of(ended) - 1) if (minute, Priority.HIGH) in deployment.sent]
    for minute in later:
        assert max(deployment.sent[minute, Priority.HIGH]) < start_of(minute) - LOOK_AHEAD + slices


def test_messages_that_a_queue_refused_are_sent_once() -> None:
    """If a queue refuses some batches, each task of the minute is still sent exactly once."""
    deployment = Deployment(20_000, 5)
    deployment.refused = frozenset(range(3, 60, 7))
    deployment.run(lambda: deployment.dispatched() >= 20_000)
    for (minute, _), counts in deployment.seen.items():
        assert minute > LARGE or counts.count(1) == len(counts)
