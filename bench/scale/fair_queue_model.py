"""A model of SQS fair queues, which simulates how long each message group waits while other groups have a backlog.

A group is noisy while it has more than a tenth of the messages in flight, and at least 30. Messages of other groups are
delivered first, from oldest to newest, and then messages of the noisy group that has the fewest messages in flight
(Source: SQS Developer Guide, "How Amazon SQS fair queues work"). Real queues follow these rules only approximately. In
a real queue, a group's share of the processing time also counts, and a group stays noisy until its backlog is gone.
Both differences favor the other groups.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from bench.scale.cohort_model import BATCH
from duetime.domain.ids import TaskId
from duetime.domain.tasks.task_options import fair_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_NOISY_SHARE, _NOISY_LEAST = 0.1, 30
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Key:
    """Tasks with the same fair key.

    Attributes:
        key: the fair key; `None` for tasks without a key.
        tasks: number of tasks.
        over: seconds over which the tasks become due; 0 if all tasks are due at once.
        weight: weight of the fair key.
        kind: label under which the waits are reported.
    """

    key: str | None
    tasks: int
    over: float
    kind: str
    weight: int = 1

    def messages(self, first: int) -> Iterator[_Message]:
        """Yield the messages for the key's tasks, which are numbered from `first`."""
        for number in range(self.tasks):
            place = _evenly(first + number)
            task_id = TaskId.of(0, 0, int(place * 2**53))
            yield _Message(self.over * place, fair_share(task_id, self.key, self.weight), self.kind)


def _evenly(number: int) -> float:
    """Map a number to a value between 0 and 1, so that the values for consecutive numbers are spread evenly."""
    return number * _GOLDEN % 1.0


@dataclass(frozen=True, slots=True)
class _Message:
    at: float
    group: str
    kind: str


@dataclass(slots=True)
class _Queue:
    """The messages of a fair queue.

    Attributes:
        waiting: waiting messages with their arrival numbers, by group.
        oldest: a heap with each group and the arrival number of its first message.
        in_flight: number of messages that were received but not deleted, by group.
    """

    waiting: dict[str, deque[tuple[int, _Message]]] = field(default_factory=dict)
    oldest: list[tuple[int, str]] = field(default_factory=list)
    in_flight: Counter[str] = field(default_factory=Counter)
    total: int = 0

    def put(self, number: int, message: _Message) -> None:
        """Add a message."""
        of_group = self.waiting.setdefault(message.group, deque())
        if not of_group:
            heappush(self.oldest, (number, message.group))
        of_group.append((number, message))

    def receive(self) -> list[_Message]:
        """Receive a batch."""
        batch = list[_Message]()
        while self.oldest and len(batch) < BATCH:
            batch.append(self._next())
        return batch

    def _next(self) -> _Message:
        noisy = []
        while self.oldest and self._is_noisy(self.oldest[0][1]):
            noisy.append(heappop(self.oldest))
        if not self.oldest:
            noisy.sort(key=lambda each: self.in_flight[each[1]])
            heappush(self.oldest, noisy.pop(0))
        group = heappop(self.oldest)[1]
        for each in noisy:
            heappush(self.oldest, each)
        of_group = self.waiting[group]
        message = of_group.popleft()[1]
        if of_group:
            heappush(self.oldest, (of_group[0][0], group))
        self.in_flight[group] += 1
        self.total += 1
        return message

    def delete(self, messages: Sequence[_Message]) -> None:
        """Delete received messages."""
        self.in_flight.subtract(each.group for each in messages)
        self.total -= len(messages)

    def _is_noisy(self, group: str) -> bool:
        return self.in_flight[group] >= _NOISY_LEAST and self.in_flight[group] > _NOISY_SHARE * self.total


def waits(keys: Sequence[Key], *, workers: int, seconds: float) -> dict[str, NDArray[np.float64]]:
    """Return how many seconds the tasks of each kind waited, in the order in which the tasks started.

    Args:
        keys: the tasks.
        workers: number of batches that run at once.
        seconds: average duration of a batch.
    """
    arriving = _arrivals(keys)
    queue, ends, found = _Queue(), list[tuple[float, int, list[_Message]]](), dict[str, list[float]]()
    number = 0
    while arriving or queue.oldest:
        # The next event is either the arrival of a message or the end of a batch.
        now = min(arriving[0].at if arriving else inf, ends[0][0] if ends else inf)
        while ends and ends[0][0] <= now:
            queue.delete(heappop(ends)[2])
        while arriving and arriving[0].at <= now:
            queue.put(number, arriving.popleft())
            number += 1
        while queue.oldest and len(ends) < workers:
            batch = queue.receive()
            # Batch durations vary, so that the batches do not all end at the same moment.
            heappush(ends, (now + seconds * (0.5 + _evenly(number)), number, batch))
            number += 1
            for each in batch:
                found.setdefault(each.kind, []).append(now - each.at)
    return {kind: np.array(each) for kind, each in found.items()}


def _arrivals(keys: Sequence[Key]) -> deque[_Message]:
    """Return the messages for all keys in the order of their arrival."""
    first, found = 0, list[_Message]()
    for key in keys:
        found += key.messages(first)
        first += key.tasks
    return deque(sorted(found, key=lambda each: each.at))
