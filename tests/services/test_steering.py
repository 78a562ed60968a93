"""Pause, resume, run now, retry, roll back, notify, heartbeat: what may be asked of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.conditional_writes import ConditionFailed
from duetime.domain.errors import FenceMismatch, NotifiedOtherwise, StateConflict, TaskNotFound, Unavailable
from duetime.domain.limits import MAX_CHECKPOINT_BYTES
from duetime.domain.tasks.attempt_outcomes import Deferred, Ending, Succeeded, Yielded, failure
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import AttemptOutcome, ContentPlace, HttpTarget, Phase, Progress, StopRequest, TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.virtual.world import LEASE, OWNER, START, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.conditional_writes import Write
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work


def yielding(world: World, checkpoint: bytes | None) -> None:
    """Targets work a minute, in steps, and leave off when asked for a pause; resumed, they end at once."""

    def behave(work: Work) -> Ending:
        for _ in range(60 if work.checkpoint is None else 0):
            if work.stop_request() is StopRequest.PAUSE:
                return Yielded(checkpoint)
            world.take(SECOND)
        return Succeeded(work.checkpoint or b"1")

    world.behave = behave


def test_a_paused_task_does_not_run_until_it_is_resumed() -> None:
    """Held beyond its due time, nothing runs and nothing is lost; resumed, it runs at once."""
    world = World()
    task = world.create(TaskSpec("report", delay=5 * MINUTE))
    assert world.task_control.pause(OWNER, task.id).state is State.PAUSED
    world.pass_time(2 * DAY)
    assert not world.effects
    world.task_control.resume(OWNER, task.id)
    world.pass_time(SECOND)
    assert world.get(task).state is State.SUCCEEDED


def test_a_task_resumed_in_time_keeps_its_due_time() -> None:
    """Paused and resumed before it is due: it runs when it was to run."""
    world = World()
    task = world.create(TaskSpec("report", delay=30 * MINUTE))
    world.task_control.pause(OWNER, task.id)
    world.pass_time(10 * MINUTE)
    world.task_control.resume(OWNER, task.id)
    world.pass_time(HOUR)
    assert [effect.at for effect in world.effects] == pytest.approx([START + 30 * MINUTE], abs=20)


def test_a_pause_wins_over_a_message_under_way() -> None:
    """Until the claim, a pause counts."""
    world = World()
    task = world.create(TaskSpec("report", delay=2 * SECOND))
    world.pass_time(1_900)
    world.task_control.pause(OWNER, task.id)
    world.pass_time(5 * MINUTE)
    assert (world.get(task).state, world.effects) == (State.PAUSED, [])
    assert world.queues.next_visible_at() is None


def test_a_running_task_pauses_when_it_can_and_goes_on_from_its_checkpoint() -> None:
    """Asked at a heartbeat, it leaves a checkpoint; the attempt that goes on is given it, and none is counted."""
    world = World()
    yielding(world, b'{"row":17}')
    task = world.create(TaskSpec("report", timeout_seconds=600, retry=RetryPolicy(max_attempts=1)))
    world.pass_time(5 * SECOND)
    assert world.task_control.pause(OWNER, task.id).stop_request is StopRequest.PAUSE
    world.pass_time(LEASE)
    paused = world.get(task)
    assert (paused.state, paused.attempt, paused.stop_request) == (State.PAUSED, 0, None)
    assert paused.checkpoint is not None
    assert paused.checkpoint.place is ContentPlace.RECORD
    world.task_control.resume(OWNER, task.id)
    world.pass_time(MINUTE)
    done = world.get(task)
    assert (done.state, done.attempt, done.fence) == (State.SUCCEEDED, 1, 2)
    assert done.result is not None
    assert done.result.data == b'{"row":17}'
    assert [line.outcome for line in done.attempt_history] == [AttemptOutcome.PAUSED, AttemptOutcome.SUCCEEDED]


def test_a_checkpoint_that_is_too_large_fails_the_attempt() -> None:
    """The limit is told, and nothing of it is kept."""
    world = World()
    yielding(world, b'"' + b"x" * MAX_CHECKPOINT_BYTES + b'"')
    task = world.create(TaskSpec("report", timeout_seconds=600))
    world.pass_time(5 * SECOND)
    world.task_control.pause(OWNER, task.id)
    world.pass_time(LEASE)
    failed = world.get(task)
    assert failed.state is State.FAILED
    assert failed.error is not None
    assert failed.error.kind == "CheckpointTooLarge"


def test_a_pause_that_is_taken_back_is_not_heeded() -> None:
    """Resumed before the attempt heard of it: it runs on."""
    world = World()
    yielding(world, None)
    task = world.create(TaskSpec("report", timeout_seconds=600))
    world.pass_time(SECOND)
    world.task_control.pause(OWNER, task.id)
    world.task_control.resume(OWNER, task.id)
    world.pass_time(2 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 1)


def test_a_request_outlives_the_worker_that_was_asked() -> None:
    """The worker vanishes before it heeds the pause: whoever takes the task over heeds it before it runs anything."""
    world = World()
    world.behave = lambda work: world.hang(work, attempts=9)
    task = world.create(TaskSpec("report", timeout_seconds=600))
    world.pass_time(SECOND)
    world.task_control.pause(OWNER, task.id)
    world.kill_workers()
    world.pass_time(LEASE + MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.PAUSED, 1)


@pytest.mark.parametrize(("asked", "state"), [("pause", State.PAUSED), ("cancel", State.CANCELLED)])
def test_a_request_outlives_the_attempt_that_failed_under_it(asked: str, state: State) -> None:
    """The target fails instead of heeding the request: there is a retry, and it heeds the request first."""
    world = World()
    world.behave = lambda work: world.take(5 * SECOND) and world.fail(work, 9)
    task = world.create(TaskSpec("report", retry=RetryPolicy(initial_seconds=5)))
    world.pass_time(SECOND)
    (world.task_control.pause if asked == "pause" else world.task_control.stop)(OWNER, task.id)
    world.pass_time(MINUTE)
    assert (world.get(task).state, len(world.effects)) == (state, 1)


def failed_while_asked_to_pause() -> tuple[World, Task]:
    """A task whose attempt was asked to pause and has failed instead; its retry waits."""
    world = World()
    world.behave = lambda work: world.take(5 * SECOND) and world.fail(work, 1)
    task = world.create(TaskSpec("report", retry=RetryPolicy(initial_seconds=60)))
    world.pass_time(SECOND)
    world.task_control.pause(OWNER, task.id)
    world.pass_time(5 * SECOND)
    return world, task


def test_a_request_is_taken_back_while_the_retry_waits() -> None:
    """The attempt that was asked to pause has failed: resumed before its retry heeds the request, it runs on."""
    world, task = failed_while_asked_to_pause()
    waiting = world.get(task)
    assert (waiting.state, waiting.stop_request) == (State.POSTPONED, StopRequest.PAUSE)
    resumed = world.task_control.resume(OWNER, task.id)
    assert (resumed.state, resumed.stop_request, resumed.next_at) == (State.POSTPONED, None, waiting.next_at)
    world.pass_time(2 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 2)


def test_a_task_that_is_paused_while_it_is_asked_to_is_paused_once() -> None:
    """Its retry waited with the request: held meanwhile and resumed, it runs on, and is not paused again."""
    world, task = failed_while_asked_to_pause()
    paused = world.task_control.pause(OWNER, task.id)
    assert (paused.state, paused.stop_request) == (State.PAUSED, None)
    world.task_control.resume(OWNER, task.id)
    world.pass_time(2 * MINUTE)
    assert (world.get(task).state, len(world.effects)) == (State.SUCCEEDED, 2)


def test_a_task_can_be_run_now() -> None:
    """Due tomorrow or paused: it runs at once, once."""
    world = World()
    tomorrow = world.create(TaskSpec("report", delay=DAY))
    paused = world.create(TaskSpec("report", delay=DAY))
    world.task_control.pause(OWNER, paused.id)
    for task in (tomorrow, paused):
        world.task_control.run_now(OWNER, task.id)
    world.pass_time(2 * DAY)
    assert sorted(effect.task_id for effect in world.effects) == sorted([tomorrow.id, paused.id])
    assert max(effect.at for effect in world.effects) < START + SECOND


def test_a_failed_task_can_be_tried_again() -> None:
    """From its first attempt on, with its payload, even if that lies outside the record; the ledger goes on."""
    world = World()
    world.behave = lambda _work: failure("Boom", "no", retriable=False)
    payload = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(400)) + b'"'
    task = world.create(TaskSpec("report", payload=payload))
    world.pass_time(SECOND)
    assert (world.get(task).state, len(world.contents.expiries)) == (State.FAILED, 1)
    seen: list[bytes] = []

    def succeed(work: Work) -> Ending:
        seen.append(work.payload)
        return Succeeded(b"1")

    world.behave = succeed
    reopened = world.task_control.retry(OWNER, task.id)
    assert (reopened.expires_at, reopened.finished_at, reopened.attempt) == (None, None, 0)
    assert not world.contents.expiries
    world.pass_time(SECOND)
    done = world.get(task)
    assert (done.state, done.attempt, done.fence, done.error) == (State.SUCCEEDED, 1, 2, None)
    assert seen == [payload]
    assert [line.outcome for line in done.attempt_history] == [AttemptOutcome.FAILED, AttemptOutcome.SUCCEEDED]


def test_an_ended_task_can_be_rolled_back() -> None:
    """A success of yesterday is undone by its target."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    task = world.create()
    world.pass_time(DAY)
    assert world.task_control.roll_back(OWNER, task.id).state is State.ROLLING_BACK
    world.pass_time(SECOND)
    done = world.get(task)
    assert (done.state, done.finished_at is not None, done.expires_at is not None) == (State.ROLLED_BACK, True, True)


def test_a_target_that_offers_no_rollback_is_not_asked() -> None:
    """Known from the task: refused. Known only to the worker: the task fails with the reason."""
    world = World()
    http = world.create(TaskSpec("report", target=HttpTarget("https://example.org/")))
    handler = world.create()
    world.pass_time(SECOND)
    with pytest.raises(StateConflict, match="offers no rollback"):
        world.task_control.roll_back(OWNER, http.id)
    world.task_control.roll_back(OWNER, handler.id)
    world.pass_time(SECOND)
    failed = world.get(handler)
    assert failed.error is not None
    assert (failed.state, failed.error.kind) == (State.FAILED, "RollbackUnknown")


def deferred(world: World, **fields: object) -> Task:
    """A task whose target has accepted it."""
    world.behave = lambda _work: Deferred()
    task = world.create(TaskSpec("report", **fields))  # type: ignore[arg-type]  # fields of TaskSpec
    world.pass_time(SECOND)
    return world.get(task)


def test_an_equal_notification_is_answered_the_same() -> None:
    """Told twice, it ends once."""
    world = World()
    task = deferred(world)
    first = world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"7"))
    again = world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"7"))
    assert (first.state, again.state, again.fence) == (State.SUCCEEDED, State.SUCCEEDED, first.fence)
    world.pass_time(SECOND)
    assert world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"7")).state is State.SUCCEEDED


def test_a_different_notification_is_refused() -> None:
    """An outcome is not changed by a second word."""
    world = World()
    task = deferred(world)
    world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"7"))
    for ending in (Succeeded(b"8"), failure("Boom", "no")):
        with pytest.raises(NotifiedOtherwise):
            world.task_control.notify(OWNER, task.id, task.fence, ending)
    assert world.get(task).state is State.SUCCEEDED


def test_a_failure_that_is_notified_is_retried_by_the_policy() -> None:
    """As if the target had failed here."""
    world = World()
    task = deferred(world, retry=RetryPolicy(max_attempts=2, initial_seconds=1))
    assert world.task_control.notify(OWNER, task.id, task.fence, failure("Boom", "no")).state is State.POSTPONED
    assert world.task_control.notify(OWNER, task.id, task.fence, failure("Boom", "no")).state is State.POSTPONED
    world.pass_time(5 * SECOND)
    assert (world.get(task).state, world.get(task).fence) == (State.RUNNING, 2)


def test_a_failure_that_was_notified_is_known_again_while_the_next_attempt_runs() -> None:
    """The answer was lost, the retry is quick: told again, it is answered; told otherwise, it is refused as such."""
    world = World()
    task = deferred(world, retry=RetryPolicy(max_attempts=2, initial_seconds=1))
    world.task_control.notify(OWNER, task.id, task.fence, failure("Boom", "no"))
    world.pass_time(5 * SECOND)
    running = world.get(task)
    assert (running.state, running.fence) == (State.RUNNING, 2)
    assert world.task_control.notify(OWNER, task.id, 1, failure("Boom", "no")) == running
    with pytest.raises(NotifiedOtherwise):
        world.task_control.notify(OWNER, task.id, 1, Succeeded(b"7"))


def test_a_success_that_was_notified_is_known_again_while_it_is_undone() -> None:
    """Its user had it rolled back before the target heard that its word had come: it said the same all the same."""
    world = World()
    task = deferred(world)
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    world.behave = lambda _work: world.take(10 * SECOND)
    world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"7"))
    world.pass_time(SECOND)
    world.task_control.roll_back(OWNER, task.id)
    assert world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"7")).state is State.ROLLING_BACK
    with pytest.raises(NotifiedOtherwise):
        world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"8"))


def test_a_failure_that_a_handlers_task_is_notified_of_is_undone() -> None:
    """Only a worker knows that the handler can: it is asked to, if that was wanted, and the error stays readable."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    task = deferred(world, rollback=True, retry=RetryPolicy(max_attempts=1))
    world.behave = lambda _work: Succeeded(b"null")
    assert world.task_control.notify(OWNER, task.id, 1, failure("Boom", "no")).state is State.ROLLING_BACK
    world.pass_time(SECOND)
    done = world.get(task)
    assert [effect.phase for effect in world.effects] == [Phase.RUN, Phase.ROLLBACK]
    assert (done.state, done.error and done.error.kind) == (State.ROLLED_BACK, "Boom")


def test_a_failure_stays_as_it_is_where_the_handler_turns_out_to_offer_no_rollback() -> None:
    """It fails with its own error and its one attempt; asked for in so many words, the rollback fails by itself."""
    world = World()
    task = deferred(world, rollback=True, retry=RetryPolicy(max_attempts=2, initial_seconds=0))
    for fence in (1, 2):
        world.task_control.notify(OWNER, task.id, fence, failure("Boom", "no"))
        world.pass_time(5 * SECOND)
    failed = world.get(task)
    assert (failed.state, failed.attempt, failed.finished_at is not None) == (State.FAILED, 2, True)
    assert failed.error is not None
    assert failed.error.kind == "Boom"
    assert [line.outcome for line in failed.attempt_history] == [AttemptOutcome.RETRIED, AttemptOutcome.FAILED]
    world.task_control.roll_back(OWNER, task.id)
    world.pass_time(SECOND)
    asked = world.get(task)
    assert (asked.state, asked.error and asked.error.kind) == (State.FAILED, "RollbackUnknown")
    assert [line.error and line.error.kind for line in asked.attempt_history] == ["Boom", "Boom", None]


def test_a_notified_attempt_is_entered_with_its_own_times() -> None:
    """The second attempt's start is its own, not the first one's."""
    world = World()
    task = deferred(world, deadline_seconds=300, retry=RetryPolicy(max_attempts=2))
    world.pass_time(310 * SECOND)
    second = world.get(task)
    world.pass_time(20 * SECOND)
    world.task_control.notify(OWNER, task.id, second.fence, Succeeded(b"7"))
    world.pass_time(SECOND)
    line = world.get(task).attempt_history[-1]
    assert line.started_at >= START + 300 * SECOND
    assert line.took == pytest.approx(25 * SECOND, abs=6 * SECOND)
    assert [line.outcome for line in world.get(task).attempt_history] == [AttemptOutcome.LOST, AttemptOutcome.SUCCEEDED]


def test_a_cancel_is_not_softened_to_a_pause() -> None:
    """Asked to stop, then to pause: it stops."""
    world = World()
    world.behave = lambda _work: world.take(MINUTE)
    task = world.create(TaskSpec("report", timeout_seconds=100))
    world.pass_time(SECOND)
    world.task_control.stop(OWNER, task.id)
    assert world.task_control.pause(OWNER, task.id).stop_request is StopRequest.CANCEL


def test_a_cancel_by_force_takes_a_task_as_it_finds_it() -> None:
    """Waiting: cancelled. Running: asked to stop. Ended: refused."""
    world = World()
    waiting = world.create(TaskSpec("report", delay=HOUR))
    assert world.task_control.cancel_by_force(OWNER, waiting.id, None).state is State.CANCELLED
    world.behave = lambda _work: world.take(MINUTE)
    running = world.create(TaskSpec("report", timeout_seconds=100))
    world.pass_time(SECOND)
    assert world.task_control.cancel_by_force(OWNER, running.id, None).stop_request is StopRequest.CANCEL
    world.pass_time(2 * MINUTE)
    with pytest.raises(StateConflict, match="succeeded"):
        world.task_control.cancel_by_force(OWNER, running.id, None)


@pytest.mark.parametrize("fence", [0, 2])
def test_a_notification_under_another_fence_is_refused(fence: int) -> None:
    """A zombie's word, or a guess, changes nothing."""
    world = World()
    task = deferred(world)
    with pytest.raises(FenceMismatch):
        world.task_control.notify(OWNER, task.id, fence, Succeeded(b"7"))
    assert world.get(task) == task


def test_a_notification_after_the_deadline_is_refused() -> None:
    """The attempt's time is over, whether or not the next has begun, and the refusal says so."""
    world = World()
    task = deferred(world, deadline_seconds=60)
    world.pass_time(61 * SECOND)
    with pytest.raises(FenceMismatch, match="deadline is over"):
        world.task_control.notify(OWNER, task.id, task.fence, Succeeded(b"7"))
    with pytest.raises(FenceMismatch, match="deadline is over"):
        world.task_control.heartbeat(OWNER, task.id, task.fence, None)


def test_a_heartbeat_gives_a_deferred_attempt_its_whole_deadline_again() -> None:
    """Told every forty seconds, a deadline of sixty never passes; untold, it does."""
    world = World()
    task = deferred(world, deadline_seconds=60)
    for percent in range(10, 60, 10):
        world.pass_time(40 * SECOND)
        beaten = world.task_control.heartbeat(OWNER, task.id, task.fence, Progress(percent, "on its way"))
        assert beaten.progress == Progress(percent, "on its way")
    assert len(world.effects) == 1
    world.pass_time(70 * SECOND)
    assert len(world.effects) == 2


def test_a_heartbeat_of_a_deferred_attempt_that_arrives_late_does_not_shorten_its_deadline() -> None:
    """It was under way while a later one gave the whole deadline again; it is answered, and takes nothing back."""
    world = World()
    task = deferred(world, deadline_seconds=60)
    late: list[Write] = []

    def hold_up_the_first(write: Write) -> None:
        if write.move is Move.HEARTBEAT and not late:
            late.append(write)
            raise Unavailable("under way")

    world.tasks.before_write = hold_up_the_first
    with pytest.raises(Unavailable):
        world.task_control.heartbeat(OWNER, task.id, task.fence, None)
    world.pass_time(40 * SECOND)
    leased_until = world.task_control.heartbeat(OWNER, task.id, task.fence, None).lease_ends_at
    assert isinstance(world.tasks.apply(late[0]), ConditionFailed)
    assert world.get(task).lease_ends_at == leased_until


def test_another_owners_task_cannot_be_steered() -> None:
    """For others it does not exist."""
    world = World()
    task = deferred(world)
    steering = world.task_control
    calls: list[Callable[[], Task]] = [
        lambda: steering.pause("you", task.id),
        lambda: steering.stop("you", task.id),
        lambda: steering.resume("you", task.id),
        lambda: steering.run_now("you", task.id),
        lambda: steering.retry("you", task.id),
        lambda: steering.roll_back("you", task.id),
        lambda: steering.notify("you", task.id, 1, Succeeded(b"1")),
        lambda: steering.heartbeat("you", task.id, 1, None),
    ]
    for call in calls:
        with pytest.raises(TaskNotFound):
            call()
    assert world.get(task) == task


def test_a_finished_task_can_be_neither_paused_resumed_nor_run() -> None:
    """The answer says which state it is in; nothing changes."""
    world = World()
    task = world.create()
    world.pass_time(SECOND)
    done = world.get(task)
    for call in (
        world.task_control.pause,
        world.task_control.resume,
        world.task_control.run_now,
        world.task_control.retry,
    ):
        with pytest.raises(StateConflict, match="succeeded"):
            call(OWNER, task.id)
    assert world.get(task) == done
