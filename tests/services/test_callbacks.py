from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.limits import CALLBACK_TRIES
from duetime.domain.tasks.attempt_outcomes import Deferred, Ending, Failed, Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Phase, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from tests.virtual.world import FOREVER, OWNER, World

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.ports.targets import Work

URL = "https://example.org/ended"
SPEC = TaskSpec("report", callback_url=URL)


def test_an_outcome_is_told_once_and_then_the_task_is_finished() -> None:
    """The callback is made while the task has an outcome but is not finished."""
    world = World()
    task = world.create(SPEC)
    world.pass_time(MINUTE)
    ((told, url),) = world.told
    assert (told.state, told.finished_at, url) == (State.SUCCEEDED, None, URL)
    assert world.get(task).finished_at is not None


def test_a_task_without_a_callback_tells_nobody() -> None:
    """And its outcome and `finished_at` are one write, as ever."""
    world = World()
    task = world.create()
    world.pass_time(MINUTE)
    assert world.told == []
    assert world.get(task).version == 3


def test_a_worker_that_dies_in_between_has_the_callback_repeated() -> None:
    """At least once: whoever follows the outcome up tells it again, with the same attempt's fence as before."""
    world = World()

    def die_at_first(_task: Task) -> Failed | None:
        if len(world.told) == 1:
            world.kill_workers()
            world.time.sleep_until(world.time.now() + FOREVER)
        return None

    world.hear = die_at_first
    task = world.create(SPEC)
    world.pass_time(HOUR)
    first, second = (told for told, _ in world.told)
    assert (first.state, first.attempt_history) == (second.state, second.attempt_history)
    assert second.fence > first.fence
    assert world.get(task).finished_at is not None
    assert len(world.effects) == 1


def test_a_callback_is_tried_a_few_times_within_the_lease() -> None:
    """With pauses that double; the lease is renewed meanwhile, so that nobody else begins, and the outcome stands."""
    world = World()
    world.hear = lambda _task: failure("Http503", "sorry")
    task = world.create(TaskSpec("report", callback_url=URL, timeout_seconds=1))
    world.pass_time(MINUTE)
    assert len(world.told) == CALLBACK_TRIES
    done = world.get(task)
    assert (done.state, done.fence, done.finished_at is not None) == (State.SUCCEEDED, 1, True)
    assert world.facts.counts["callbacks_failed"] == 1
    assert world.crashes == 0
    assert [text for text, _ in world.facts.notes] == ["a callback was given up"]


def test_a_callback_that_comes_through_late_is_no_failure() -> None:
    """The second try is heard: nothing is counted, and there is no third."""
    world = World()
    world.hear = lambda _task: failure("Timeout", "slow") if len(world.told) == 1 else None
    world.create(SPEC)
    world.pass_time(MINUTE)
    assert len(world.told) == 2
    assert world.facts.counts["callbacks_failed"] == 0


def test_slow_tries_do_not_end_the_process() -> None:
    """Even a task with a second of time gets all its tries of five seconds each."""
    world = World()

    def slow(_task: Task) -> Failed | None:
        world.take(5 * SECOND)
        return failure("Timeout", "slow")

    world.hear = slow
    task = world.create(TaskSpec("report", callback_url=URL, timeout_seconds=1))
    world.pass_time(MINUTE)
    assert (len(world.told), world.crashes) == (CALLBACK_TRIES, 0)
    assert world.get(task).finished_at is not None


def test_cleaning_up_that_never_ends_takes_the_callback_with_it() -> None:
    """The process is ended then; that nobody was told is counted and noted."""
    world = World()
    world.offered = frozenset({Phase.RUN, Phase.CLEAN})

    def hang(work: Work) -> Ending:
        return Succeeded(b"1") if work.phase is Phase.RUN else world.take(FOREVER)

    world.behave = hang
    task = world.create(SPEC)
    world.pass_time(HOUR)
    assert world.told == []
    assert world.facts.counts["callbacks_failed"] == 1
    assert world.get(task).finished_at is not None


def test_an_outcome_that_a_target_notifies_is_told_by_a_worker() -> None:
    """The API writes the outcome, and has no way to call anybody: a message sees to the rest."""
    world = World()
    world.behave = lambda _work: Deferred()
    task = world.create(SPEC)
    world.pass_time(MINUTE)
    world.task_control.notify(OWNER, task.id, world.get(task).fence, Succeeded(b"1"))
    world.pass_time(5 * MINUTE)
    assert [told.state for told, _ in world.told] == [State.SUCCEEDED]
    assert world.get(task).finished_at is not None


def test_a_task_that_is_cancelled_before_it_ran_tells_nobody() -> None:
    """Who cancels is answered; that is one write and no worker."""
    world = World()
    task = world.create(TaskSpec("report", callback_url=URL, delay=HOUR))
    world.task_updater.cancel(OWNER, task.id, None)
    world.pass_time(2 * HOUR)
    assert world.told == []


def test_a_retried_task_tells_each_outcome() -> None:
    """Failed, opened again and then well: two outcomes, each told under its own attempt."""
    world = World()
    world.behave = lambda work: world.fail(work, 0 if work.task.fence > 1 else 1, retriable=False)
    task = world.create(SPEC)
    world.pass_time(MINUTE)
    world.task_control.retry(OWNER, task.id)
    world.pass_time(MINUTE)
    assert [(told.state, told.attempt_history[-1].fence) for told, _ in world.told] == [
        (State.FAILED, 1),
        (State.SUCCEEDED, 2),
    ]
