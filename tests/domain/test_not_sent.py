"""The wait of a task whose call was never sent."""

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
def test_the_wait_of_a_call_that_was_never_sent_is_bounded_and_spread(waited: Millis, bound: Millis) -> None:
    """The wait is as long as the task is overdue, between a second and a minute, with jitter for half of it."""
    due = task(due_at=NOW - waited)
    assert REFUSED.postponed(due, NOW, 0.0).until == NOW + bound
    assert REFUSED.postponed(due, NOW, 0.999).until >= NOW + bound // 2


def test_the_wait_of_a_retry_counts_from_the_attempt_before() -> None:
    """If an attempt has recently ended, the first wait is the shortest, even if the task has been due for hours."""
    line = AttemptRecord(1, 1, "w", NOW - 5_000, 0, 5_000, AttemptOutcome.RETRIED)
    retried = task(due_at=NOW - HOUR, attempt_history=(line,))
    assert REFUSED.postponed(retried, NOW, 0.0).until == NOW + SHORTEST_NOT_SENT_WAIT
