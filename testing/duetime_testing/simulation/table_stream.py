"""Simulates Lambda's delivery of the table's stream, in order and with retries of failed batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import schema
from duetime.domain.times import DAY, SECOND, Millis
from duetime_testing.fakes.stream import FakeStream

if TYPE_CHECKING:
    from duetime_testing.simulation.account import Account
    from duetime_testing.simulation.virtual_time import Strand

BATCH = 25
_SHARDS = 2
"""Number of shards, which are read independently of each other; all writes to a record go to the same shard."""
_GATHERED = SECOND
_AFTER_FAILURE = SECOND


@dataclass
class StreamShard:
    """One shard of the stream.

    Attributes:
        records: the shard's records, in order.
        position: number of records that have been delivered.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    position: int = 0


class SimulatedTableStream:
    """Invokes a function, by default `broadcast`, with all future writes to the table.

    Attributes:
        repeats: the probability that a successfully processed batch is redelivered, completely or in part.
        dead_until: time until which every invocation fails before the function starts.
    """

    def __init__(self, account: Account, *, repeats: float = 0.0, function: str = "broadcast") -> None:
        self._account = account
        self._function = function
        self.repeats = repeats
        self.dead_until: Millis = 0
        self.deliveries = 0
        self.shards = [StreamShard() for _ in range(_SHARDS)]
        self._stream = FakeStream(account.time.now)
        if function == "archive":
            self._stream.filters, self._stream.by_ttl = [schema.REMOVED_TASKS_FILTER], True
        self._stream.told = self._sort
        self._stream.watch(account.dynamodb.tables["tasks"])
        self._pollers: list[Strand] = [
            account.time.start_process(partial(self._poll, number)) for number in range(_SHARDS)
        ]

    @property
    def is_read(self) -> bool:
        """Whether all writes have been delivered."""
        return all(shard.position == len(shard.records) for shard in self.shards)

    @property
    def records(self) -> list[dict[str, Any]]:
        """All records that have been written to the stream."""
        return list(self._stream.records)

    def _sort(self) -> None:
        record = self._stream.records[-1]
        number = sum(record["dynamodb"]["Keys"]["p"]["S"].encode()) % _SHARDS
        self.shards[number].records.append(record)
        self._account.time.nudge(self._pollers[number])

    def _poll(self, number: int) -> None:
        shard, account = self.shards[number], self._account
        while True:
            if shard.position == len(shard.records):
                account.time.sleep_until(account.time.now() + DAY)
                continue
            account.take(_GATHERED)
            begin = shard.position
            batch = shard.records[begin : begin + BATCH]
            self._deliver(batch)
            # A test can have discarded the remaining records by moving the position forward in the meantime.
            shard.position = max(shard.position, begin + len(batch))

    def _deliver(self, batch: list[dict[str, Any]]) -> None:
        """Deliver a batch repeatedly until it is processed; after a failure, the batch is sometimes split in halves."""
        while True:
            # A write to the table ends the wait early, so the time is checked again.
            while self._account.time.now() < self.dead_until:
                self._account.time.sleep_until(self.dead_until)
            self.deliveries += 1
            failed = self._account.wait_for(self._account.invoke(self._function, {"Records": batch})).failed
            # The acknowledgement of a processed batch can be lost, too.
            if not failed and self._account.random.random() >= self.repeats:
                return
            self._account.take(_AFTER_FAILURE)
            middle = len(batch) // 2
            if middle and self._account.random.random() < 0.5:
                self._deliver(batch[:middle])
                batch = batch[middle:]
