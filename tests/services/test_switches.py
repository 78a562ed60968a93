"""Switches: what is stopped does not begin, comes back by itself, and is stopped by whoever may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import OperatorRequired, SwitchesFull, SwitchNotFound, Unavailable
from duetime.domain.limits import LOCK_CHECK_INTERVAL, LONGEST_STOP, MAX_SWITCHES, SHORTEST_STOP, SWITCHES_LIFE
from duetime.domain.switches import Switch, SwitchKey, SwitchScope
from duetime.domain.tasks.attempt_outcomes import Deferred, Succeeded, failure
from duetime.domain.tasks.retry import RetryPolicy
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Phase, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from tests.virtual.switched import OPERATOR, SwitchedWorld
from tests.virtual.world import OWNER, START

if TYPE_CHECKING:
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work

ALL = SwitchKey(SwitchScope.EVERYTHING)
REPORTS = SwitchKey(SwitchScope.TYPE, "report")
MINE = SwitchKey(SwitchScope.OWNER, OWNER)


@pytest.mark.parametrize("key", [ALL, REPORTS, MINE])
def test_what_is_stopped_is_postponed_and_comes_back_within_ninety_seconds(key: SwitchKey) -> None:
    """Nothing of it runs for an hour, no attempt is counted, and the record says why; lifted, all of it runs."""
    world = SwitchedWorld()
    world.stop(key)
    tasks = [world.create() for _ in range(20)]
    world.pass_time(HOUR)
    assert not world.effects
    held = world.get(tasks[0])
    assert (held.state, held.attempt, held.started_at) == (State.POSTPONED, 0, None)
    assert held.waits_for == f"{key} is stopped: an incident"
    world.lift(key)
    world.pass_time(90 * SECOND)
    assert world.states() == {State.SUCCEEDED: 20}
    done = world.get(tasks[0])
    assert (done.attempt, done.waits_for, [line.attempt for line in done.attempt_history]) == (1, None, [1])


def test_what_is_not_stopped_runs() -> None:
    """A stop of another type, and of another owner, holds nothing of this one."""
    world = SwitchedWorld()
    world.stop(SwitchKey(SwitchScope.TYPE, "mail"))
    world.stop(SwitchKey(SwitchScope.OWNER, "you"))
    task = world.create()
    world.pass_time(SECOND)
    assert world.get(task).state is State.SUCCEEDED


def test_a_stop_takes_effect_within_seconds_and_what_runs_goes_on() -> None:
    """A worker that has read the switches goes by them no longer than their life; an attempt is not broken off."""
    world = SwitchedWorld()
    world.behave = lambda _work: world.take(MINUTE)
    running = world.create(TaskSpec("report", timeout_seconds=100))
    world.pass_time(SECOND)
    world.stop(REPORTS)
    later = world.create(TaskSpec("report", delay=SWITCHES_LIFE))
    world.pass_time(2 * MINUTE)
    assert world.get(running).state is State.SUCCEEDED
    assert world.get(later).state is State.POSTPONED


def test_a_rollback_is_stopped_too() -> None:
    """Undoing calls the target as well: it waits, and is done when the stop is lifted."""
    world = SwitchedWorld()
    world.offered = frozenset({Phase.RUN, Phase.ROLLBACK})
    task = world.create(TaskSpec("report", rollback=True, delay=SECOND, retry=RetryPolicy(max_attempts=1)))
    world.pass_time(900)

    def stop_and_fail(_work: Work) -> Ending:
        world.stop(REPORTS)
        world.take(SWITCHES_LIFE)
        return failure("Boom", "")

    world.behave = stop_and_fail
    world.pass_time(10 * MINUTE)
    assert [effect.phase for effect in world.effects] == [Phase.RUN]
    assert world.get(task).state is State.ROLLING_BACK
    world.behave = lambda work: world.fail(work, attempts=0)
    world.lift(REPORTS)
    world.pass_time(90 * SECOND)
    assert world.get(task).state is State.ROLLED_BACK


def test_a_held_task_can_be_cancelled() -> None:
    """It is a postponed task like any other."""
    world = SwitchedWorld()
    world.stop(REPORTS)
    task = world.create()
    world.pass_time(10 * SECOND)
    assert world.task_updater.cancel(OWNER, task.id, None).state is State.CANCELLED
    world.lift(REPORTS)
    world.pass_time(5 * MINUTE)
    assert not world.effects


def test_a_held_task_is_looked_at_about_once_a_minute() -> None:
    """So many claims an hour and no more: a stop must not cost more than what it stops."""
    world = SwitchedWorld()
    world.stop(REPORTS)
    task = world.create()
    world.pass_time(HOUR)
    looks = world.get(task).fence
    assert HOUR // (LONGEST_STOP + 5 * SECOND) <= looks <= HOUR // SHORTEST_STOP


def test_switches_are_read_once_in_a_while() -> None:
    """A hundred tasks in two seconds cost one reading; a minute with a task each second costs one each five."""
    world = SwitchedWorld()
    for number in range(100):
        world.create(TaskSpec("report", delay=number * 20))
    world.pass_time(4 * SECOND)
    assert world.switches.readings == 1
    for number in range(60):
        world.create(TaskSpec("report", delay=number * SECOND))
    world.pass_time(MINUTE)
    assert world.switches.readings <= 1 + 60 // 5


def test_while_switches_cannot_be_read_the_last_ones_hold() -> None:
    """An outage of the store neither lets loose what is stopped nor stops what is not."""
    world = SwitchedWorld()
    world.stop(REPORTS)
    world.create(TaskSpec("report"))
    world.pass_time(SECOND)
    world.switches.readable = False
    world.pass_time(SWITCHES_LIFE)
    other = world.create(TaskSpec("mail"))
    world.create(TaskSpec("report"))
    world.pass_time(5 * MINUTE)
    assert [effect.task_id for effect in world.effects] == [other.id]
    assert (world.get(other).attempt, world.get(other).lateness) == (1, 0)


def test_a_cap_holds_a_type_to_so_many_at_once() -> None:
    """Of twelve tasks of a second each at most three run together; a task of another type is not held up."""
    world = SwitchedWorld()
    world.switch_admin.put(OPERATOR, Switch(REPORTS, max_concurrent=3))
    running: list[int] = [0, 0]

    def work(work: Work) -> Ending:
        if work.task.type == "report":
            running[0] += 1
            running[1] = max(running)
            world.time.sleep_until(world.time.now() + SECOND)
            running[0] -= 1
        return Succeeded(b"1")

    world.behave = work
    for _ in range(12):
        world.create()
    mail = world.create(TaskSpec("mail"))
    world.pass_time(500)
    assert world.get(mail).state is State.SUCCEEDED
    world.pass_time(10 * MINUTE)
    assert world.states() == {State.SUCCEEDED: 13}
    assert running == [0, 3]


def test_a_cap_that_is_set_stops_nothing_that_runs() -> None:
    """A task that began without the cap's lock lives on: its heartbeats are heard, and it ends as it would."""
    world = SwitchedWorld()
    world.behave = lambda _work: Deferred()
    task = world.create()
    world.pass_time(SECOND)
    world.switch_admin.put(OPERATOR, Switch(REPORTS, max_concurrent=1))
    world.pass_time(SWITCHES_LIFE)
    assert world.task_control.heartbeat(OWNER, task.id, 1, None).state is State.RUNNING
    assert world.task_control.notify(OWNER, task.id, 1, Succeeded(b"1")).state is State.SUCCEEDED


def test_a_cap_that_is_lifted_lets_all_go_on() -> None:
    """Those that wait for a place look again by themselves, within the interval of locks."""
    world = SwitchedWorld()
    world.switch_admin.put(OPERATOR, Switch(REPORTS, max_concurrent=1))
    world.behave = lambda work: world.take(HOUR // 4 if work.task.attempt == 1 and not world.effects[1:] else 0)
    for _ in range(5):
        world.create(TaskSpec("report", timeout_seconds=840))
    world.pass_time(SECOND)
    world.lift(REPORTS)
    world.pass_time(LOCK_CHECK_INTERVAL + SECOND)
    assert world.states()[State.SUCCEEDED] == 4


def test_an_owner_may_stop_what_is_its_own_and_nothing_else() -> None:
    """Its own switch it may set and lift; types, everything and other owners are the operators'."""
    switching = SwitchedWorld().switch_admin
    mine = switching.put(OWNER, Switch(MINE, stopped=True))
    assert (mine.changed_by, mine.changed_at) == (OWNER, START)
    assert switching.remove(OWNER, MINE) == mine
    for key in (ALL, REPORTS, SwitchKey(SwitchScope.OWNER, "you")):
        with pytest.raises(OperatorRequired):
            switching.put(OWNER, Switch(key, stopped=True))
        with pytest.raises(OperatorRequired):
            switching.remove(OWNER, key)
    assert switching.list(OPERATOR) == ([], [])


def test_what_an_operator_has_stopped_its_owner_cannot_let_go() -> None:
    """Neither by lifting the switch nor by setting it anew."""
    switching = SwitchedWorld().switch_admin
    switching.put(OPERATOR, Switch(MINE, stopped=True))
    with pytest.raises(OperatorRequired):
        switching.put(OWNER, Switch(MINE))
    with pytest.raises(OperatorRequired):
        switching.remove(OWNER, MINE)
    assert len(switching.list(OWNER)[0]) == 1


def test_others_see_what_concerns_them() -> None:
    """Operators see all; others everything's, the types' and their own, and no circuits."""
    world = SwitchedWorld()
    for key in (MINE, SwitchKey(SwitchScope.OWNER, "you"), REPORTS, ALL):
        world.stop(key)
    down = world.circuits.read("you", "example.org", consistent=True).opened("Http503", START)
    world.circuits.save(down, "o", START)
    mine, circuits = world.switch_admin.list(OWNER)
    assert ([switch.key for switch in mine], circuits) == ([ALL, MINE, REPORTS], [])
    every, circuits = world.switch_admin.list(OPERATOR)
    assert (len(every), [(circuit.host, str(state)) for circuit, state in circuits]) == (4, [("example.org", "open")])


def test_lifting_what_is_not_there_says_so() -> None:
    """A mistyped name is told, and an idle switch is never stored."""
    world = SwitchedWorld()
    with pytest.raises(SwitchNotFound, match="type report"):
        world.switch_admin.remove(OPERATOR, REPORTS)
    world.switch_admin.put(OPERATOR, Switch(REPORTS, reason="nothing"))
    assert world.switch_admin.list(OPERATOR)[0] == []
    assert world.switches.read(consistent=True).version == 0


def test_there_may_be_so_many_switches() -> None:
    """One more is refused; those that are there can still be changed and lifted."""
    switching = SwitchedWorld().switch_admin
    for number in range(MAX_SWITCHES):
        switching.put(OPERATOR, Switch(SwitchKey(SwitchScope.TYPE, f"type-{number}"), stopped=True))
    with pytest.raises(SwitchesFull):
        switching.put(OPERATOR, Switch(ALL, stopped=True))
    first = SwitchKey(SwitchScope.TYPE, "type-0")
    switching.put(OPERATOR, Switch(first, max_concurrent=1))
    switching.remove(OPERATOR, first)
    switching.put(OPERATOR, Switch(ALL, stopped=True))


def test_two_operators_at_once_both_have_their_way() -> None:
    """A change that comes between reading and writing is read, not overwritten; an endless quarrel is given up."""
    world = SwitchedWorld()
    world.switches.quarrels = 1
    world.switch_admin.put(OPERATOR, Switch(REPORTS, stopped=True))
    assert [switch.key for switch in world.switch_admin.list(OPERATOR)[0]] == [ALL, REPORTS]
    world.switches.quarrels = 1_000
    with pytest.raises(Unavailable):
        world.switch_admin.put(OPERATOR, Switch(MINE, stopped=True))
