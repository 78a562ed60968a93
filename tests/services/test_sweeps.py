"""Cancelling and changing by a filter: bounded, paced, counted, and good to repeat."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.bulk.filter_action import FilterAction
from duetime.domain.errors import FieldInvalid, StateConflict, Unavailable
from duetime.domain.limits import MAX_DUE_AHEAD, MAX_EXAMINED
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import StopRequest, TaskSpec
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.services.bulk.filtered_tasks import FilteredTasks
from duetime.services.tasks.create import Order
from tests.clocks import StandingClock
from tests.virtual.world import OWNER, START, World

if TYPE_CHECKING:
    from duetime.domain.bulk.filter_action import FilterResult
    from duetime.domain.conditional_writes import Write
    from duetime.domain.tasks.task import Task

BUDGET = 20 * SECOND
REPORTS = TaskFilter(type="report")
EVERYTHING = FilterAction(TaskFilter())


class SweptWorld(World):
    """A world with a clock of its own for sweeps: virtual time passes only in strands."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = StandingClock(START)
        self.filtered_tasks = FilteredTasks(
            self.tasks, self.task_reader, self.task_updater, self.task_control, replace(self.runtime, clock=self.clock)
        )

    def fill(self, count: int, kind: str = "report", owner: str = OWNER, delay: int = HOUR) -> list[Task]:
        """Accept so many tasks, a second apart."""
        specs = (TaskSpec(kind, delay=delay + number * SECOND) for number in range(count))
        return [self.task_creator.create(owner, Order(spec)) for spec in specs]

    def cancel(self, action: FilterAction = EVERYTHING, *, force: bool = False) -> FilterResult:
        """One piece of a cancel."""
        return self.filtered_tasks.cancel(OWNER, action, force=force)

    def cancel_all(self, action: FilterAction) -> list[FilterResult]:
        """Piece by piece, to the end."""
        pieces = [self.cancel(action)]
        while (after := pieces[-1].after) is not None:
            pieces.append(self.cancel(replace(action, after=after)))
        return pieces


def test_what_the_filter_means_is_cancelled_and_nothing_else() -> None:
    """Not another type's tasks, and not another owner's, whatever they are."""
    world = SweptWorld()
    mine = world.fill(5)
    spared = [*world.fill(3, "mail"), *world.fill(4, owner="you")]
    swept = world.cancel(FilterAction(REPORTS))
    assert (swept.examined, swept.matched, swept.changed, swept.refused, swept.after) == (8, 5, 5, {}, None)
    assert {world.get(task).state for task in mine} == {State.CANCELLED}
    assert {world.get(task).version for task in spared if task.owner == OWNER} == {1}
    assert {world.task_reader.get("you", task.id).version for task in spared if task.owner == "you"} == {1}


def test_a_sweep_goes_on_where_it_stopped_and_is_complete() -> None:
    """250 tasks in pieces of at most 40: each is cancelled once, in the order asked for."""
    for descending in (True, False):
        world = SweptWorld()
        tasks = world.fill(250)
        first = world.cancel(FilterAction(REPORTS, limit=40, descending=descending))
        expected = sorted((task.id for task in tasks), reverse=descending)[:40]
        assert {task.id for task in world.tasks._tasks.values() if task.state is State.CANCELLED} == set(expected)
        rest = world.cancel_all(FilterAction(REPORTS, limit=40, descending=descending, after=first.after))
        assert [piece.changed for piece in (first, *rest)] == [40] * 6 + [10]
        assert {task.version for task in world.tasks._tasks.values()} == {2}


def test_doing_a_piece_again_changes_nothing() -> None:
    """Whoever lost an answer asks again: what is cancelled is passed over, without a write."""
    world = SweptWorld()
    world.fill(10)
    world.cancel()
    before = dict(world.tasks._tasks)
    again = world.cancel()
    assert (again.examined, again.matched, again.changed, again.refused) == (10, 0, 0, {})
    assert world.tasks._tasks == before


def test_a_piece_examines_no_more_than_it_may() -> None:
    """A filter that means nobody among very many hands out a token instead of timing out."""
    world = SweptWorld()
    world.fill(MAX_EXAMINED + 50)
    swept = world.cancel(FilterAction(TaskFilter(type="mail")))
    assert (swept.examined, swept.matched) == (MAX_EXAMINED, 0)
    assert swept.after is not None
    assert world.cancel(FilterAction(TaskFilter(type="mail"), after=swept.after)).after is None


@pytest.mark.parametrize(("per_second", "changed"), [(0.1, 2), (1, 20), (4, 80), (1_000, 100)])
def test_a_sweep_keeps_its_pace_and_its_time(per_second: float, changed: int) -> None:
    """So many a second, even for whoever goes on at once, and never longer than a request may take."""
    world = SweptWorld()
    world.fill(150)
    swept = world.cancel(FilterAction(REPORTS, per_second=per_second, budget=BUDGET))
    took = world.clock.at - START
    assert swept.changed == changed
    assert swept.changed * SECOND / per_second <= took <= BUDGET


def test_a_dry_run_counts_and_changes_nothing() -> None:
    """Beyond the limit of what may be changed, too."""
    world = SweptWorld()
    world.fill(150)
    before = dict(world.tasks._tasks)
    swept = world.cancel(FilterAction(REPORTS, limit=1, per_second=0.1, is_dry=True))
    assert (swept.examined, swept.matched, swept.changed, swept.after) == (150, 150, 0, None)
    assert world.tasks._tasks == before


def test_running_tasks_refuse_unless_forced() -> None:
    """They are counted by what refused them; by force they are asked to stop; those that have ended are passed over."""
    world = SweptWorld()
    ended = world.create()
    world.pass_time(SECOND)
    world.behave = lambda _work: world.take(MINUTE)
    running = world.create(TaskSpec("report", timeout_seconds=100))
    world.fill(2)
    world.pass_time(SECOND)
    swept = world.cancel()
    assert (swept.examined, swept.matched, swept.changed, swept.refused) == (4, 3, 2, {StateConflict: 1})
    forced = world.cancel(force=True)
    assert (forced.matched, forced.changed) == (1, 1)
    assert world.get(running).stop_request is StopRequest.CANCEL
    assert world.get(ended).state is State.SUCCEEDED


def test_tasks_are_changed_as_one_would_be() -> None:
    """The due time moves with all that this needs: they run at the new one."""
    world = SweptWorld()
    world.fill(3)
    swept = world.filtered_tasks.change(OWNER, FilterAction(REPORTS), TaskChange({"name": "later"}, delay=2 * HOUR))
    assert (swept.matched, swept.changed) == (3, 3)
    world.pass_time(HOUR + MINUTE)
    assert not world.effects
    world.pass_time(HOUR)
    assert {task.name for task in world.tasks._tasks.values()} == {"later"}
    assert world.states() == {State.SUCCEEDED: 3}


def test_a_change_that_no_task_allows_changes_none() -> None:
    """It is refused by the first, by the field's name."""
    world = SweptWorld()
    tasks = world.fill(3)
    with pytest.raises(FieldInvalid, match="delay_seconds"):
        world.filtered_tasks.change(OWNER, EVERYTHING, TaskChange({}, delay=MAX_DUE_AHEAD + SECOND))
    assert {world.get(task).version for task in tasks} == {1}


def test_an_outage_in_the_middle_loses_neither_count_nor_place() -> None:
    """What was done is answered, with where to go on; if nothing was done the request fails."""
    world = SweptWorld()
    tasks = world.fill(10)
    writes: list[Write] = []

    def fail_later(write: Write) -> None:
        writes.append(write)
        if len(writes) > 4:
            raise Unavailable("away")

    world.tasks.before_write = fail_later
    # At a pace, one after the other.
    wanted = FilterAction(REPORTS, per_second=1_000)
    swept = world.cancel(wanted)
    assert (swept.changed, swept.examined, swept.after) == (4, 4, tasks[6].id)
    with pytest.raises(Unavailable):
        world.cancel(replace(wanted, after=swept.after))
    world.tasks.before_write = lambda _write: None
    assert world.cancel(replace(wanted, after=swept.after)).changed == 6
    assert {write.move for write in writes} == {Move.CANCEL}


def test_records_that_are_gone_do_not_hold_up_a_sweep() -> None:
    """The list may still name what has expired: a whole page of it is gone past."""
    world = SweptWorld()
    tasks = sorted(world.fill(150), key=lambda task: task.id, reverse=True)
    gone = {task.id for task in tasks[:120]}
    read_many = world.tasks.read_many
    world.tasks.read_many = lambda task_ids: read_many([each for each in task_ids if each not in gone])  # type: ignore[method-assign, assignment, misc] # expired
    swept = world.cancel(FilterAction(REPORTS))
    assert (swept.changed, swept.after) == (30, None)
