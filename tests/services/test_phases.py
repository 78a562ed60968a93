"""Prepare, run, clean, rollback: one contract for every kind of target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import Unavailable
from duetime.domain.limits import LEASE_RETURN_MARGIN, MAX_CLOCK_DIFFERENCE
from duetime.domain.tasks.attempt_outcomes import Deferred, Ending, Stopped, Succeeded, TargetEnding, failure
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import AttemptOutcome, Phase, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from tests.virtual.world import LEASE, OWNER, START, World

if TYPE_CHECKING:
    from duetime.domain.dispatch.timers import Timer
    from duetime.ports.targets import Work

ALL = frozenset(Phase)


def phases_of(world: World) -> list[Phase]:
    """The phases that targets were asked for, in order."""
    return [effect.phase for effect in world.effects]


def failing(phase: Phase, *, attempts: int = 99, world: World) -> None:
    """Have one phase fail in so many first attempts."""

    def behave(work: Work) -> Ending:
        if work.phase is phase and work.task.attempt <= attempts:
            return failure("Boom", f"{phase} failed")
        return Succeeded(b'"done"')

    world.behave = behave


def test_phases_run_in_their_order() -> None:
    """Prepare, run, clean, all under one attempt; the task is finished only after the last."""
    world = World()
    world.offered = ALL
    world.behave = lambda _work: world.take(SECOND)
    task = world.create()
    world.pass_time(2_500)
    assert world.get(task).state is State.SUCCEEDED
    assert world.get(task).finished_at is None
    world.pass_time(SECOND)
    done = world.get(task)
    assert phases_of(world) == [Phase.PREPARE, Phase.RUN, Phase.CLEAN]
    assert (done.attempt, done.fence, done.finished_at) == (1, 1, START + 3 * SECOND)


def test_the_record_tells_which_phase_runs() -> None:
    """`preparing`, then `running`."""
    world = World()
    world.offered = ALL
    world.behave = lambda _work: world.take(SECOND)
    task = world.create()
    world.pass_time(500)
    assert world.get(task).state is State.PREPARING
    world.pass_time(SECOND)
    assert world.get(task).state is State.RUNNING


def test_a_target_without_prepare_costs_no_extra_write() -> None:
    """Created, claimed, finished: three versions."""
    world = World()
    task = world.create()
    world.pass_time(SECOND)
    assert world.get(task).version == 3


def test_a_failed_prepare_fails_the_attempt() -> None:
    """`run` is not called; the next attempt prepares again."""
    world = World()
    world.offered = frozenset({Phase.PREPARE, Phase.RUN})
    failing(Phase.PREPARE, attempts=1, world=world)
    task = world.create()
    world.pass_time(MINUTE)
    assert phases_of(world) == [Phase.PREPARE, Phase.PREPARE, Phase.RUN]
    assert (world.get(task).state, world.get(task).attempt) == (State.SUCCEEDED, 2)


def test_a_worker_lost_while_preparing_is_replaced() -> None:
    """A lease that is over is taken over in `preparing` as in `running`."""
    world = World()
    world.offered = frozenset({Phase.PREPARE, Phase.RUN})
    world.behave = lambda work: world.hang(work, attempts=1)
    task = world.create()
    world.pass_time(SECOND)
    world.kill_workers()
    world.pass_time(LEASE + MINUTE)
    assert world.get(task).state is State.SUCCEEDED
    assert phases_of(world) == [Phase.PREPARE, Phase.PREPARE, Phase.RUN]


def test_a_target_cleans_up_after_a_failure_too() -> None:
    """Whatever the outcome was, `clean` follows it; its own failure changes nothing but is told."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.CLEAN})
    world.behave = lambda _work: failure("Boom", "everything fails", retriable=False)
    task = world.create()
    world.pass_time(SECOND)
    done = world.get(task)
    assert phases_of(world) == [Phase.RUN, Phase.CLEAN]
    assert (done.state, done.finished_at is not None) == (State.FAILED, True)
    assert world.facts.counts["cleans_failed"] == 1


def test_cleaning_up_is_never_done_by_two_at_once() -> None:
    """A duplicate message that comes while the target cleans up waits until that attempt's lease is over."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.CLEAN})
    world.behave = lambda work: world.take(20 * SECOND if work.phase is Phase.CLEAN else 0)
    task = world.create()
    world.pass_time(SECOND)
    world.send_again(task)
    world.pass_time(5 * MINUTE)
    assert phases_of(world) == [Phase.RUN, Phase.CLEAN]


def test_a_worker_lost_while_cleaning_up_is_replaced() -> None:
    """The outcome stands; another worker cleans up after the lease, under a new fence and as no attempt."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.CLEAN})
    world.behave = lambda work: world.take(HOUR if work.phase is Phase.CLEAN and work.task.fence == 1 else 0)
    task = world.create(TaskSpec("report", timeout_seconds=800))
    world.pass_time(SECOND)
    world.kill_workers()
    world.pass_time(LEASE + MINUTE)
    done = world.get(task)
    assert phases_of(world) == [Phase.RUN, Phase.CLEAN, Phase.CLEAN]
    assert (done.state, done.attempt, done.fence) == (State.SUCCEEDED, 1, 2)
    assert done.finished_at is not None
    assert world.effects[2].at >= world.effects[1].at + LEASE + MAX_CLOCK_DIFFERENCE


def test_a_target_that_hangs_in_cleaning_up_is_finished_without() -> None:
    """Its process is ended, once, and the outcome stands."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.CLEAN})
    world.behave = lambda work: world.take(HOUR if work.phase is Phase.CLEAN else 0)
    task = world.create(TaskSpec("report", timeout_seconds=5))
    world.pass_time(10 * MINUTE)
    done = world.get(task)
    assert (done.state, done.finished_at is not None, world.crashes) == (State.SUCCEEDED, True, 1)
    assert phases_of(world) == [Phase.RUN, Phase.CLEAN]


def test_a_final_failure_is_undone_if_that_was_asked_for() -> None:
    """After the last attempt the target rolls back, under a lease of its own, and the error stays readable."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    failing(Phase.RUN, world=world)
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=2), rollback=True))
    world.pass_time(MINUTE)
    done = world.get(task)
    assert phases_of(world) == [Phase.RUN, Phase.RUN, Phase.ROLLBACK]
    assert (done.state, done.attempt, done.fence) == (State.ROLLED_BACK, 1, 3)
    assert done.error is not None
    assert done.error.kind == "Boom"
    assert [line.outcome for line in done.attempt_history] == [
        AttemptOutcome.RETRIED,
        AttemptOutcome.FAILED,
        AttemptOutcome.ROLLED_BACK,
    ]


def test_a_final_failure_is_not_undone_unasked() -> None:
    """A target that could roll back is left alone, and one that cannot is not asked to."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    failing(Phase.RUN, world=world)
    unasked = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=1)))
    world.pass_time(SECOND)
    world.offered = frozenset({Phase.RUN})
    unable = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=1), rollback=True))
    world.pass_time(SECOND)
    assert [world.get(task).state for task in (unasked, unable)] == [State.FAILED, State.FAILED]
    assert Phase.ROLLBACK not in phases_of(world)


def test_a_rollback_is_retried_and_may_fail_for_good() -> None:
    """Its own attempts, by the same policy; then `failed`, with the rollback's error."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    world.behave = lambda work: failure("Boom", f"{work.phase} failed")
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=2), rollback=True))
    world.pass_time(MINUTE)
    done = world.get(task)
    assert phases_of(world) == [Phase.RUN] * 2 + [Phase.ROLLBACK] * 2
    assert done.state is State.FAILED
    assert done.error is not None
    assert done.error.message == "rollback failed"


def test_a_worker_lost_in_a_rollback_is_replaced() -> None:
    """After the lease, and never two at once."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    failing(Phase.RUN, world=world)
    behave = world.behave

    def hang_once(work: Work) -> TargetEnding:
        return world.hang(work, attempts=1) if work.phase is Phase.ROLLBACK else behave(work)

    world.behave = hang_once
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=2), rollback=True))
    world.pass_time(10 * SECOND)
    assert world.get(task).state is State.ROLLING_BACK
    world.kill_workers()
    world.pass_time(LEASE + MINUTE)
    assert world.get(task).state is State.ROLLED_BACK
    first, second = (effect for effect in world.effects if effect.phase is Phase.ROLLBACK)
    assert second.at >= first.at + LEASE + MAX_CLOCK_DIFFERENCE


def test_a_rollback_message_that_is_lost_is_made_good_by_a_patrol() -> None:
    """A task that waits for its rollback is waited for by the patrols too."""
    world = World()
    task = world.create()
    world.pass_time(SECOND)
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    world.task_control.roll_back(OWNER, task.id)
    world.lose_messages()
    world.pass_time(4 * MINUTE)
    assert world.get(task).state is State.ROLLED_BACK


def test_a_deferred_task_waits_for_its_notification() -> None:
    """It stays running, holds no message, and ends as it is told."""
    world = World()
    world.behave = lambda _work: Deferred()
    task = world.create(TaskSpec("report", deadline_seconds=1800))
    world.pass_time(10 * MINUTE)
    running = world.get(task)
    assert (running.state, running.deferred, running.lease_ends_at) == (
        State.RUNNING,
        True,
        world.effects[0].at + 1800 * SECOND,
    )
    assert world.queues.next_visible_at() is None
    world.task_control.notify(OWNER, task.id, running.fence, Succeeded(b"7"))
    world.pass_time(SECOND)
    done = world.get(task)
    assert (done.state, done.result and done.result.data) == (State.SUCCEEDED, b"7")
    assert done.finished_at is not None
    world.pass_time(HOUR)
    assert len(world.effects) == 1


def test_a_deferred_task_is_tried_again_after_its_deadline() -> None:
    """Nobody notified: the wake at its deadline brings the next attempt, or the failure of the last."""
    world = World()
    world.behave = lambda _work: Deferred()
    task = world.create(TaskSpec("report", deadline_seconds=600, retry=RetryPolicy(max_attempts=2)))
    world.pass_time(HOUR)
    done = world.get(task)
    first, second = world.effects
    late = second.at - first.at - 600 * SECOND
    assert MAX_CLOCK_DIFFERENCE <= late <= LEASE_RETURN_MARGIN + SECOND
    assert (done.state, done.attempt) == (State.FAILED, 2)
    assert done.error is not None
    assert done.error.kind == "DeadlineExceeded"


def test_a_deferral_that_cannot_be_reminded_of_is_not_written() -> None:
    """The reminder comes before the long lease: else a worker that dies between the two leaves the task to nobody."""
    world = World()
    world.behave = lambda work: Deferred() if work.task.attempt == 1 else Succeeded(b"1")
    add_timer = world.tasks.add_timer

    def away(timer: Timer) -> None:
        raise Unavailable(f"away at {timer.at}")

    world.tasks.add_timer = away  # type: ignore[method-assign]  # no reminder can be written
    task = world.create(TaskSpec("report", deadline_seconds=1800))
    world.pass_time(10 * SECOND)
    assert not world.get(task).deferred
    world.kill_workers()
    world.tasks.add_timer = add_timer  # type: ignore[method-assign]  # it can again
    world.pass_time(LEASE + 3 * MINUTE)
    assert (world.get(task).state, world.get(task).attempt) == (State.SUCCEEDED, 2)


def test_a_short_deadline_needs_no_tick() -> None:
    """A deadline within the look-ahead is sent directly."""
    world = World()
    world.behave = lambda work: Deferred() if work.task.attempt == 1 else Succeeded(b"1")
    task = world.create(TaskSpec("report", deadline_seconds=20))
    world.pass_time(40 * SECOND)
    assert (world.get(task).state, world.get(task).attempt) == (State.SUCCEEDED, 2)


def test_a_notification_that_comes_before_the_deferral_wins() -> None:
    """The target tells its end while its answer is still under way: that end counts, and is not run again."""
    world = World()

    def notify_first(work: Work) -> Ending:
        world.task_control.notify(OWNER, work.task.id, work.task.fence, Succeeded(b'"early"'))
        return Deferred()

    world.behave = notify_first
    task = world.create()
    world.pass_time(2 * HOUR)
    done = world.get(task)
    assert (done.state, done.result and done.result.data) == (State.SUCCEEDED, b'"early"')
    assert len(world.effects) == 1


def test_what_follows_an_early_notification_waits_for_the_call_to_end() -> None:
    """The target notifies while its call goes on: cleaning up begins only when nobody works on it any more."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.CLEAN})

    def notify_and_go_on(work: Work) -> Ending:
        if work.phase is Phase.RUN:
            world.task_control.notify(OWNER, work.task.id, work.task.fence, Succeeded(b"1"))
            return world.take(20 * SECOND)
        return Succeeded(b"null")

    world.behave = notify_and_go_on
    task = world.create()
    world.pass_time(5 * MINUTE)
    run, clean = world.effects
    assert clean.at >= run.at + 20 * SECOND
    assert world.get(task).finished_at is not None


def test_a_target_that_stopped_on_request_ends_as_cancelled() -> None:
    """The attempt's own word, and what was asked is no longer open."""
    world = World()

    def stop_when_asked(work: Work) -> Ending:
        while work.stop_request() is None:
            world.take(SECOND)
            work.report(None)
        return Stopped()

    world.behave = stop_when_asked
    task = world.create(TaskSpec("report", timeout_seconds=600))
    world.pass_time(5 * SECOND)
    world.task_control.stop(OWNER, task.id)
    world.pass_time(5 * SECOND)
    done = world.get(task)
    assert (done.state, done.stop_request, done.finished_at is not None) == (State.CANCELLED, None, True)
    assert [line.outcome for line in done.attempt_history] == [AttemptOutcome.CANCELLED]
