from __future__ import annotations

from duetime.domain.limits import MAX_ERROR_MESSAGE_LENGTH
from duetime.domain.operating_parameters import LATE_EVENT_AFTER, MAX_CLOCK_DIFFERENCE
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord
from duetime.domain.tasks.attempt_results import failure
from duetime.domain.tasks.attempt_run import Claimant, Run, late_start
from duetime.domain.tasks.states import State
from duetime.domain.times import SECOND
from tests.domain.factories import NOW, message, task
from tests.domain.write_semantics import applied, permits

LINE = AttemptRecord(1, 1, "a", NOW, 0, 5, AttemptOutcome.RETRIED)


def test_a_claim_sets_the_lease_and_the_next_fence() -> None:
    """A claim is one write, which makes the task running, leased and fenced, and counts the attempt."""
    write = Claimant("w", NOW - 10, 30 * SECOND).claim(message(), "n")
    assert permits(write, task())
    after = applied(write, task())
    assert (after.state, after.fence, after.attempt, after.lease_worker) == (State.RUNNING, 1, 1, "w")
    assert after.lease_expires_at == NOW + 30 * SECOND


def test_a_claim_before_the_due_time_is_rejected() -> None:
    """A claim that would start the task before the due time is refused."""
    write = Claimant("w", NOW - 1, SECOND).claim(message(due=NOW - 1), "n")
    assert not permits(write, task())


def test_a_claim_with_an_outdated_message_is_rejected() -> None:
    """A message that was sent before the due time changed cannot claim the task, even once the task is due again."""
    claimant = Claimant("w", NOW, SECOND)
    assert permits(claimant.claim(message(generation=1), "n"), task(generation=1))
    assert not permits(claimant.claim(message(generation=0), "n"), task(generation=1))
    assert not permits(claimant.claim(message(generation=1), "n"), task(generation=0))


def test_a_lost_task_is_taken_over_only_after_the_margin() -> None:
    """Because clocks may differ by five seconds, another worker waits five more seconds after the lease."""
    lost = task(state=State.RUNNING, lease_expires_at=NOW)
    early = Claimant("w", NOW + MAX_CLOCK_DIFFERENCE - 1, SECOND).claim(message(), "n")
    late = Claimant("w", NOW + MAX_CLOCK_DIFFERENCE, SECOND).claim(message(), "n")
    assert not permits(early, lost)
    assert permits(late, lost)


def test_a_lost_attempt_is_recorded_when_a_later_attempt_ends() -> None:
    """An earlier attempt whose worker vanished is recorded when a later attempt ends."""
    run = Run(task(attempt=3, fence=3, attempt_history=(LINE,), lease_worker="c"), NOW + 7, NOW + 9)
    assert [(line.attempt, line.outcome.value) for line in run.attempt_history(AttemptOutcome.SUCCEEDED)] == [
        (1, "retried"),
        (2, "lost"),
        (3, "succeeded"),
    ]
    assert (run.line(AttemptOutcome.SUCCEEDED).late, run.line(AttemptOutcome.SUCCEEDED).took) == (7, 2)


def test_a_task_retried_after_a_failure_shows_no_lost_attempts() -> None:
    """A task that is retried after a failure shows no lost attempts."""
    failed = AttemptRecord(3, 3, "a", NOW, 0, 5, AttemptOutcome.FAILED)
    again = Run(task(attempt=1, fence=5, attempt_history=(failed,)), NOW, NOW)
    assert again.history_before == (failed,)
    paused = AttemptRecord(1, 1, "a", NOW, 0, 5, AttemptOutcome.PAUSED)
    resumed = Run(task(attempt=1, fence=2, attempt_history=(paused,)), NOW, NOW)
    assert resumed.history_before == (paused,)


def test_a_long_error_message_is_truncated_with_a_mark() -> None:
    """A record keeps the beginning of a long error message, within the limit, and says that it was cut."""
    error = failure("Boom", "x" * 10_000).error
    assert len(error.message) == MAX_ERROR_MESSAGE_LENGTH
    assert error.message.endswith("[cut]")


def test_the_heartbeat_of_a_rollback_reports_no_late_start() -> None:
    """The heartbeat of a first attempt can report a late start; the heartbeat of a rollback cannot."""
    late = NOW + LATE_EVENT_AFTER
    assert late_start(task(state=State.ROLLING_BACK, started_at=late), late) == {}
    assert late_start(task(state=State.RUNNING, started_at=late), late) == {"started_late": True}
    assert late_start(task(state=State.RUNNING, started_at=late - 1), late - 1) == {}
