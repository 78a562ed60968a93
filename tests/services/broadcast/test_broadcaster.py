from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from duetime.domain.change_events import Change, ChangeBatch
from duetime.domain.errors import Unavailable
from duetime.services.broadcaster import BatchNotCounted, Broadcaster
from duetime_testing.fakes.telemetry import FakeTelemetry

if TYPE_CHECKING:
    from duetime.domain.change_events import TaskSnapshot

ONE: Change[TaskSnapshot] = Change("1", 0, None, None)
BATCH = ChangeBatch((ONE,))


@dataclass
class Consumer:
    """A consumer that records its batches, or fails."""

    name: str
    error: Exception | None = None
    told: list[ChangeBatch] = field(default_factory=list)

    def consume(self, changes: ChangeBatch) -> None:
        """Take a batch."""
        if self.error is not None:
            raise self.error
        self.told.append(changes)


@pytest.mark.parametrize("error", [ValueError("a defect"), Unavailable("throttled"), RecursionError()])
def test_a_failing_consumer_does_not_block_other_consumers(error: Exception) -> None:
    """If a consumer fails, all other consumers still get the batch, and the failure is counted."""
    before, broken, after, exact = Consumer("before"), Consumer("push", error), Consumer("after"), Consumer("summary")
    telemetry = FakeTelemetry()
    Broadcaster([exact], [before, broken, after], telemetry).broadcast(BATCH)
    assert [each.told for each in (before, after, exact)] == [[BATCH]] * 3
    assert telemetry.counts == {"broadcast_failures": 1}


def test_a_batch_is_delivered_again_if_an_exact_consumer_fails() -> None:
    """If an exact consumer fails, the batch is delivered again, after all other consumers have received it."""
    push, broken, exact = Consumer("push"), Consumer("summary", Unavailable("throttled")), Consumer("archive")
    with pytest.raises(BatchNotCounted, match="summary"):
        Broadcaster([broken, exact], [push], FakeTelemetry()).broadcast(BATCH)
    assert push.told == exact.told == [BATCH]


def test_no_consumer_gets_a_batch_without_readable_changes() -> None:
    """No consumer gets a batch without readable changes."""
    exact, push = Consumer("summary"), Consumer("push")
    Broadcaster([exact], [push], FakeTelemetry()).broadcast(ChangeBatch())
    assert exact.told == push.told == []
