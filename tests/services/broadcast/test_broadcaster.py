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
def test_a_consumer_that_fails_keeps_nobody_waiting(error: Exception) -> None:
    """If a consumer fails, other consumers get the batch, and the failure is counted by the consumer's name."""
    before, broken, after, exact = Consumer("before"), Consumer("push", error), Consumer("after"), Consumer("summary")
    telemetry = FakeTelemetry()
    Broadcaster([exact], [before, broken, after], telemetry).broadcast(BATCH)
    assert [each.told for each in (before, after, exact)] == [[BATCH]] * 3
    assert telemetry.counts == {"broadcast_failures": 1}


def test_a_figure_that_must_be_right_has_the_batch_delivered_again() -> None:
    """If an exact consumer fails, maybe for hours, the batch is delivered again, but other consumers get it first."""
    push, broken, exact = Consumer("push"), Consumer("summary", Unavailable("throttled")), Consumer("archive")
    with pytest.raises(BatchNotCounted, match="summary"):
        Broadcaster([broken, exact], [push], FakeTelemetry()).broadcast(BATCH)
    assert push.told == exact.told == [BATCH]


def test_an_empty_batch_bothers_nobody() -> None:
    """No consumer gets a batch without readable changes."""
    broken = Consumer("summary", ValueError("a defect"))
    Broadcaster([broken], [], FakeTelemetry()).broadcast(ChangeBatch())
