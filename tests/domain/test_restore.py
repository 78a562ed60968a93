"""When the table is restored to an earlier time, each of its records is changed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.restore import HELD_TAG, AfterRestore, Divergence, divergence_of, take_over, take_over_occurrence
from duetime.domain.tasks.action_history import BY_SYSTEM, Action, ActionRecord
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord, Wait
from duetime.domain.tasks.dependencies import Dependencies, Dependency
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import AwsService, AwsTarget
from duetime.domain.tasks.task import Progress, RequestedAction, Task, fence_of_epoch
from duetime.domain.tasks.task_events import EventType, events_of
from duetime.domain.times import HOUR, MINUTE
from tests.domain.factories import NOW, task

if TYPE_CHECKING:
    from duetime.domain.restore import Takeover

EPOCH = 2
FIRST = EPOCH * FENCES_PER_EPOCH
LATER = NOW + HOUR
WAITING = task(version=4)
RUNNING = task(
    version=5, state=State.RUNNING, fence=1, attempt=1, lease_expires_at=NOW + MINUTE, lease_worker="old", generation=3
)
LINE = AttemptRecord(1, 1, "old", NOW, 0, 10, AttemptOutcome.SUCCEEDED)
ENDED = replace(
    RUNNING, version=6, state=State.SUCCEEDED, attempt_history=(LINE,), finished_at=NOW + 10, expires_at=NOW + HOUR
)


def taken(restored: Task, replaced: Task | None = None, after: AfterRestore = AfterRestore.RERUN) -> Takeover:
    """The changes that a takeover makes to a record; there must be at least one change."""
    divergence = divergence_of(restored, replaced, is_known=True)
    done = take_over(restored, replaced, divergence, after, EPOCH, LATER)
    assert done is not None
    return done


@pytest.mark.parametrize("fence", [0, 1, 7, FENCES_PER_EPOCH + 7])
def test_a_fence_is_raised_above_every_fence_of_earlier_epochs(fence: int) -> None:
    """A fence is raised above those of earlier epochs, keeps its count of claims, and is raised only once."""
    raised = fence_of_epoch(fence, EPOCH)
    assert raised >= FIRST
    assert raised % FENCES_PER_EPOCH == fence % FENCES_PER_EPOCH
    assert fence_of_epoch(raised, EPOCH) == raised
    assert fence_of_epoch(fence, 0) == fence


def test_a_waiting_task_changes_only_its_fence() -> None:
    """A waiting task gets only a new fence; it needs no timer, because the restored cursors still reach its check."""
    done = taken(WAITING, WAITING)
    assert (done.divergence, done.timer) == (Divergence.NONE, None)
    assert done.task == replace(WAITING, fence=FIRST, version=5)


def test_a_cut_off_attempt_is_not_counted_and_is_repeated() -> None:
    """A cut-off attempt is not counted, its late reports have an old fence, and a timer checks the task now."""
    done = taken(RUNNING, replace(RUNNING, version=6))
    assert done.divergence is Divergence.BEGUN
    assert (done.task.state, done.task.attempt, done.task.lease_expires_at) == (State.WAITING, 0, None)
    assert done.task.fence == FIRST + 1
    assert done.timer is not None
    assert (done.timer.at, done.timer.generation) == (LATER, done.task.generation) == (LATER, 4)


def test_a_timer_of_a_restored_task_has_its_fair_share() -> None:
    """A timer from a restore has the task's fair share, so that the task still counts for its fair key."""
    keyed = replace(RUNNING, fair_key="customer-1")
    timer = taken(keyed, keyed).timer
    assert timer is not None
    assert timer.fair_share == keyed.fair_share != ""


@pytest.mark.parametrize("after", AfterRestore)
def test_a_task_that_waits_for_others_is_checked_after_a_restore(after: AfterRestore) -> None:
    """A restored task that waits for other tasks is checked at once, because the note about its wait may be lost."""
    waiting = replace(WAITING, state=State.BLOCKED, after=Dependencies((Dependency(RUNNING.id),)))
    timer = taken(waiting, waiting, after).timer
    assert timer is not None
    assert timer.at == LATER
    held = replace(waiting, state=State.PAUSED, fence=FIRST, tags={HELD_TAG: State.BLOCKED.value})
    timer = taken(held, held).timer
    assert timer is not None
    assert timer.at == LATER
    assert taken(replace(waiting, after=None), waiting, after).timer is None


def test_a_stop_request_survives_the_end_of_the_lease() -> None:
    """If a running task was asked to stop, its lease ends, and its state and the request are kept."""
    done = taken(replace(RUNNING, requested_action=RequestedAction.CANCEL))
    assert (done.task.state, done.task.requested_action) == (State.RUNNING, RequestedAction.CANCEL)
    assert done.task.lease_expires_at == LATER


def test_a_cut_off_rollback_is_repeated() -> None:
    """A rollback that was cut off is repeated, as after the loss of its worker."""
    done = taken(replace(RUNNING, state=State.ROLLING_BACK))
    assert (done.task.state, done.task.attempt, done.task.lease_expires_at) == (State.ROLLING_BACK, 1, LATER)


def test_a_job_in_aws_continues_with_the_new_fence() -> None:
    """A job that runs in AWS does not depend on the table, so its attempt is not repeated."""
    arn = "arn:aws:states:eu-west-1:123456789012:stateMachine:report"
    running = replace(
        RUNNING, target=AwsTarget(AwsService.STEP_FUNCTIONS, arn, is_job=True), deferred_fence=1, job=f"{arn}:1"
    )
    done = taken(running)
    assert (done.task.fence, done.task.awaiting_notification) == (FIRST + 1, True)
    assert (done.task.state, done.task.lease_expires_at) == (State.RUNNING, RUNNING.lease_expires_at)


def test_a_record_is_taken_over_only_once() -> None:
    """A record is taken over only once, so that an interrupted command can be repeated."""
    done = taken(WAITING)
    assert take_over(done.task, None, Divergence.NONE, AfterRestore.ASK, EPOCH, LATER) is None


@pytest.mark.parametrize(
    ("restored", "replaced", "divergence"),
    [
        (WAITING, WAITING, Divergence.NONE),
        (WAITING, replace(WAITING, version=5), Divergence.CHANGED),
        (WAITING, replace(WAITING, version=6, fence=1), Divergence.BEGUN),
        (WAITING, ENDED, Divergence.ENDED),
        (RUNNING, RUNNING, Divergence.BEGUN),
        (WAITING, None, Divergence.REMOVED),
        (replace(ENDED, finished_at=None, version=5), ENDED, Divergence.CHANGED),
    ],
)
def test_an_attempt_running_at_the_restore_point_counts_as_started_later(
    restored: Task, replaced: Task | None, divergence: Divergence
) -> None:
    """Versions of a record show what happened after the restore point; a running attempt counts as started later."""
    assert divergence_of(restored, replaced, is_known=True) is divergence
    without = divergence_of(restored, None, is_known=False)
    assert without is (Divergence.BEGUN if restored is RUNNING else Divergence.UNKNOWN)


def test_skip_repeats_the_end_of_a_task_that_had_ended() -> None:
    """For a task that had ended, `skip` repeats the end, and a timer starts its follow-ups in the restored table."""
    done = taken(WAITING, ENDED, AfterRestore.SKIP)
    assert (done.task.state, done.task.attempt_history) == (State.SUCCEEDED, (LINE,))
    assert (done.task.fence, done.task.finished_at, done.task.version) == (FIRST + 1, None, 7)
    assert done.task.expires_at is not None
    assert done.task.expires_at > LATER
    assert done.timer is not None
    assert done.copies_contents


@pytest.mark.parametrize("after", [AfterRestore.SKIP, AfterRestore.ASK])
def test_a_task_that_had_only_begun_is_paused_until_rerun(after: AfterRestore) -> None:
    """A task that had only begun is paused and says why, until a second decision, `rerun`, lets it continue."""
    done = taken(RUNNING, RUNNING, after)
    assert (done.task.state, done.timer, done.effect) == (State.PAUSED, None, "paused")
    assert "had run after" in done.task.actions.records[-1].by.reason
    again = take_over(done.task, RUNNING, Divergence.BEGUN, AfterRestore.RERUN, EPOCH, LATER)
    assert again is not None
    assert (again.task.state, again.task.tags) == (State.WAITING, RUNNING.tags)
    assert again.timer is not None
    assert taken(RUNNING, RUNNING).task.state is State.WAITING


def test_a_second_decision_skip_ends_a_paused_task_that_had_ended() -> None:
    """`skip` ends a task that `ask` has paused if the task had ended before the restore; otherwise, it stays paused."""
    held = taken(WAITING, ENDED, AfterRestore.ASK).task
    assert held.tags == {HELD_TAG: "scheduled"}
    done = take_over(held, ENDED, Divergence.ENDED, AfterRestore.SKIP, EPOCH, LATER)
    assert done is not None
    assert (done.task.state, done.task.tags) == (State.SUCCEEDED, {})
    assert take_over(held, RUNNING, Divergence.BEGUN, AfterRestore.SKIP, EPOCH, LATER) is None


def test_the_restore_decision_applies_to_an_occurrence_that_had_run() -> None:
    """For an occurrence that had run, `skip` keeps its end, `ask` pauses it, and `rerun` leaves it to its schedule."""
    ended = take_over_occurrence(ENDED, AfterRestore.SKIP, EPOCH, LATER)
    assert ended is not None
    assert (ended.task.state, ended.task.finished_at, ended.task.fence) == (
        State.SUCCEEDED,
        ENDED.finished_at,
        FIRST + 1,
    )
    held = take_over_occurrence(ENDED, AfterRestore.ASK, EPOCH, LATER)
    assert held is not None
    assert (held.task.state, held.task.attempt, held.task.result, held.task.expires_at) == (State.PAUSED, 0, None, None)
    assert take_over_occurrence(ENDED, AfterRestore.RERUN, EPOCH, LATER) is None
    assert take_over_occurrence(WAITING, AfterRestore.SKIP, EPOCH, LATER) is None


def test_a_paused_occurrence_shows_nothing_of_its_cancelled_run() -> None:
    """An occurrence that is paused after a restore has no cancellation, progress, wait or job of its earlier run."""
    ran = replace(
        ENDED,
        state=State.CANCELLED,
        cancellation=ActionRecord(Action.CANCELLED, NOW, BY_SYSTEM, 6),
        progress=Progress(50),
        waits=(Wait(NOW, "paused"),),
        waiting_for="a worker",
        job="arn:job",
        started_at=NOW,
        started_late=True,
        run_at=NOW,
        unacknowledged=1,
        rate_places={"crm": 1},
    )
    held = take_over_occurrence(ran, AfterRestore.ASK, EPOCH, LATER)
    assert held is not None
    of_run = {each.name for each in fields(Task) if getattr(held.task, each.name) != getattr(WAITING, each.name)}
    assert of_run == {"state", "fence", "version", "generation", "tags", "actions"}
    assert [event.type for event in events_of(held.task, [])][-1] is EventType.PAUSED
