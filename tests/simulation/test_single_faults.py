"""Every call of a task's life goes wrong once, in every way: the task still comes to its end, in time and once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from duetime.domain.limits import LOCK_CHECK_INTERVAL
from duetime.domain.tasks.attempt_results import Ending, Succeeded, failure
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import LockScope, LockSpec, TaskSpec
from duetime.domain.times import MINUTE, SECOND
from tests.simulation.interruption import Fault, Interrupted
from tests.virtual.world import LEASE, START

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.ports.targets import Work

pytestmark = pytest.mark.slow

RECOVERY = 3 * MINUTE + LEASE
"""The promise: after a fault a task is late by no more than three minutes plus the lease."""
WORK = 2 * SECOND
BIG = b'"' + b"".join(b"%08x" % (index * 2654435761 % 2**32) for index in range(400)) + b'"'


@dataclass(frozen=True)
class Life:
    """A kind of task, from its acceptance to its end."""

    spec: TaskSpec
    offered: frozenset[Phase] = frozenset({Phase.RUN})
    failures: int = 0

    def behave(self, world: Interrupted) -> Callable[[Work], Ending]:
        """Targets take their time, and fail as often as this life has it."""

        def behaving(work: Work) -> Ending:
            world.take(WORK)
            failed = work.phase is Phase.RUN and work.task.attempt <= self.failures
            return failure("Boom", "as planned") if failed else Succeeded(b'"done"')

        return behaving


LIVES = {
    "sent directly": Life(TaskSpec("report", delay=10 * SECOND)),
    "found by the trigger": Life(TaskSpec("report", delay=9 * MINUTE)),
    "retried": Life(TaskSpec("report", delay=10 * SECOND, retry=RetryPolicy(initial_seconds=5)), failures=1),
    "with a payload outside": Life(TaskSpec("report", delay=10 * SECOND, payload=BIG)),
    "with every phase": Life(TaskSpec("report", delay=10 * SECOND), offered=frozenset(Phase)),
    "locked": Life(TaskSpec("report", delay=10 * SECOND, lock=LockSpec("db-17"))),
    "locked for its run": Life(
        TaskSpec("report", delay=10 * SECOND, lock=LockSpec("db-17", scope=LockScope.RUN)), offered=frozenset(Phase)
    ),
    "rolled back": Life(
        TaskSpec("report", delay=10 * SECOND, retry=RetryPolicy(max_attempts=2, initial_seconds=1), rollback=True),
        offered=frozenset({Phase.RUN, Phase.ROLLBACK}),
        failures=2,
    ),
}


def live(life: Life, fault: Fault | None = None, at_call: int = 0) -> Interrupted:
    """Let one task live, with one fault, until long after it should have ended."""
    world = Interrupted(fault, at_call)
    world.offered = life.offered
    world.behave = life.behave(world)
    world.create(life.spec)
    world.pass_time((life.spec.delay or 0) + 2 * RECOVERY)
    return world


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("life", list(LIVES.values()), ids=list(LIVES))
def test_one_fault_anywhere_loses_nothing_and_doubles_nothing(life: Life, fault: Fault) -> None:
    """Whichever call it strikes: an outcome within the promised time, and no two calls of the target at once."""
    calls = len(live(life).calls)
    for at_call in range(1, calls + 1):
        world = live(life, fault, at_call)
        struck = world.calls[at_call - 1] if len(world.calls) >= at_call else "nothing"
        where = f"call {at_call} ({struck})"
        (task,) = world.tasks._tasks.values()
        assert task.state in {State.SUCCEEDED, State.ROLLED_BACK}, where
        assert task.finished_at is not None, where
        planned = (len(world.effects) + 1) * (WORK + 5 * SECOND)
        assert task.finished_at <= task.due_at + RECOVERY + planned, f"{where}: {task.finished_at - task.due_at} ms"
        _check_apart(world, where)


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name.lower())
def test_one_fault_anywhere_leaves_a_lock_to_one_at_a_time(fault: Fault) -> None:
    """Two tasks of one lock: whichever call goes wrong, they run one after the other, and each to its end."""
    calls = len(_crowd().calls)
    for at_call in range(1, calls + 1):
        world = _crowd(fault, at_call)
        where = f"call {at_call} ({world.calls[at_call - 1] if len(world.calls) >= at_call else 'nothing'})"
        assert {task.state for task in world.tasks._tasks.values()} == {State.SUCCEEDED}, where
        latest = max(task.finished_at or 0 for task in world.tasks._tasks.values())
        assert latest <= START + 10 * SECOND + RECOVERY + LOCK_CHECK_INTERVAL, f"{where}: {latest - START} ms"
        _check_apart(world, where)


def _crowd(fault: Fault | None = None, at_call: int = 0) -> Interrupted:
    """Let two tasks of one lock live, with one fault."""
    world = Interrupted(fault, at_call)
    world.behave = LIVES["locked"].behave(world)
    for number in range(2):
        world.create(TaskSpec("report", due_at=START + 10 * SECOND + number, lock=LockSpec("db-17")))
    end = START + 4 * RECOVERY + LOCK_CHECK_INTERVAL
    while world.time.now() < end and any(task.finished_at is None for task in world.tasks._tasks.values()):
        world.pass_time(MINUTE)
    return world


def _check_apart(world: Interrupted, where: str) -> None:
    """No two calls of targets at once: the second begins after the first, or after the lease of a dead one."""
    for first, second in pairwise(world.effects):
        assert second.at >= first.at + WORK or second.at >= first.at + LEASE, where
