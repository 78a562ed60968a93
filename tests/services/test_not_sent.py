"""What was never sent is no attempt: a task whose call never left waits, and is tried again."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from duetime.domain.limits import LONGEST_NOT_SENT_WAIT, SHORTEST_NOT_SENT_WAIT
from duetime.domain.tasks.attempt_outcomes import NotSent, Succeeded
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import AttemptOutcome, AttemptRecord, Phase, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND, Millis
from tests.domain.factories import NOW
from tests.domain.factories import task as made
from tests.virtual.world import World

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_outcomes import TargetEnding
    from duetime.ports.targets import Work

REFUSED = NotSent("the egress function: TooManyRequestsException")


class Throttled:
    """A target whose calls of one phase are throttled until an instant."""

    def __init__(self, world: World, until: Millis, phase: Phase = Phase.RUN) -> None:
        self.world = world
        self.until = until
        self.phase = phase
        self.refused_at: list[Millis] = []
        world.behave = self

    def __call__(self, work: Work) -> TargetEnding:
        """Refuse the call, or do the phase."""
        if work.phase is self.phase and self.world.time.now() < self.until:
            self.refused_at.append(self.world.time.now())
            return REFUSED
        return Succeeded(b'"done"')


def test_a_call_that_never_left_costs_no_attempt() -> None:
    """However long its target's way is throttled, a task of one attempt is run when it no longer is, as the first."""
    world = World()
    target = Throttled(world, world.time.now() + HOUR)
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=1)))
    world.pass_time(10 * MINUTE)
    held = world.get(task)
    assert (held.state, held.attempt, held.attempt_history, held.waits_for) == (State.POSTPONED, 0, (), REFUSED.reason)
    world.pass_time(HOUR)
    done = world.get(task)
    assert (done.state, done.attempt, [line.outcome.value for line in done.attempt_history]) == (
        State.SUCCEEDED,
        1,
        ["succeeded"],
    )
    assert world.facts.counts["calls_not_sent"] == len(target.refused_at)


def test_the_tries_of_a_call_that_never_left_become_rarer() -> None:
    """From a second apart to a minute apart: an hour of throttling costs some hundred tries, and not thousands."""
    world = World()
    target = Throttled(world, world.time.now() + HOUR)
    world.create()
    world.pass_time(HOUR)
    waits = [later - earlier for earlier, later in pairwise(target.refused_at)]
    assert waits[0] <= 2 * SECOND
    assert max(waits) <= LONGEST_NOT_SENT_WAIT + 2 * SECOND
    assert len(waits) < 150


@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.ROLLBACK])
def test_no_phase_is_counted_whose_call_never_left(phase: Phase) -> None:
    """What is to be prepared or undone waits as well, and costs no attempt of its own."""
    world = World()
    world.offered = frozenset(Phase)
    Throttled(world, world.time.now() + 10 * MINUTE, phase)
    task = world.create(TaskSpec("report", retry=RetryPolicy(max_attempts=1)))
    if phase is Phase.ROLLBACK:
        world.pass_time(SECOND)
        world.task_control.roll_back(task.owner, task.id)
    world.pass_time(20 * MINUTE)
    done = world.get(task)
    assert done.state is (State.ROLLED_BACK if phase is Phase.ROLLBACK else State.SUCCEEDED)
    assert done.attempt == 1


def test_cleaning_up_is_tried_again_when_its_call_never_left() -> None:
    """A few times, for some seconds: then the outcome stands without it, and is finished."""
    for throttled, cleans_failed in ((3 * SECOND, 0), (MINUTE, 1)):
        world = World()
        world.offered = frozenset({Phase.RUN, Phase.CLEAN})
        Throttled(world, world.time.now() + throttled, Phase.CLEAN)
        task = world.create()
        world.pass_time(MINUTE)
        assert world.get(task).finished_at is not None
        assert world.facts.counts.get("cleans_failed", 0) == cleans_failed


@pytest.mark.parametrize(
    ("waited", "bound"),
    [(0, SHORTEST_NOT_SENT_WAIT), (10 * SECOND, 10 * SECOND), (HOUR, LONGEST_NOT_SENT_WAIT)],
)
def test_the_wait_of_a_call_that_never_left_is_bounded_and_spread(waited: Millis, bound: Millis) -> None:
    """As long again as the task has been due, between a second and a minute, spread over its second half."""
    task = made(due_at=NOW - waited)
    assert REFUSED.postponed(task, NOW, 0.0).until == NOW + bound
    assert REFUSED.postponed(task, NOW, 0.999).until >= NOW + bound // 2


def test_the_wait_of_a_retry_counts_from_the_attempt_before() -> None:
    """A task that was due for hours, and whose last attempt has just ended, begins with the shortest wait."""
    line = AttemptRecord(1, 1, "w", NOW - 5_000, 0, 5_000, AttemptOutcome.RETRIED)
    task = made(due_at=NOW - HOUR, attempt_history=(line,))
    assert REFUSED.postponed(task, NOW, 0.0).until == NOW + SHORTEST_NOT_SENT_WAIT
