"""A task whose call was never sent waits before its next try."""

from __future__ import annotations

import pytest

from duetime.domain.operating_parameters import LONGEST_NOT_SENT_WAIT, SHORTEST_NOT_SENT_WAIT
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord
from duetime.domain.tasks.attempt_results import NotSent
from duetime.domain.times import HOUR, SECOND, Millis
from tests.domain.factories import NOW, task

REFUSED = NotSent("the egress function: TooManyRequestsException")


@pytest.mark.parametrize(
    ("waited", "bound"),
    [(0, SHORTEST_NOT_SENT_WAIT), (10 * SECOND, 10 * SECOND), (HOUR, LONGEST_NOT_SENT_WAIT)],
)
def test_the_wait_after_an_unsent_call_is_bounded_with_jitter(waited: Millis, bound: Millis) -> None:
    """The wait is as long as the task is overdue, from a second to a minute, and half of the wait is jitter."""
    due = task(due_at=NOW - waited)
    assert REFUSED.postponed(due, NOW, 0.0).until == NOW + bound
    assert NOW + bound // 2 <= REFUSED.postponed(due, NOW, 0.999).until < NOW + bound * 0.51


def test_the_first_wait_after_a_recent_attempt_is_the_shortest() -> None:
    """If an attempt has recently ended, the first wait is the shortest, however long the task has been due."""
    line = AttemptRecord(1, 1, "w", NOW - 5_000, 0, 5_000, AttemptOutcome.RETRIED)
    retried = task(due_at=NOW - HOUR, attempt_history=(line,))
    assert REFUSED.postponed(retried, NOW, 0.0).until == NOW + SHORTEST_NOT_SENT_WAIT
