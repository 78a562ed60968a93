"""Occurrences that would overlap, chains of permanent schedules, failures that pause, backfills."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.errors import BackfillNotFound, CalendarNotFound, CalendarUsed, FieldInvalid, ScheduleStateConflict
from duetime.domain.incarnations import Incarnation
from duetime.domain.schedules.calendars import Calendar, Kind
from duetime.domain.schedules.definition import OnExcluded, Overlap, ScheduleChange
from duetime.domain.schedules.local_time import day_of
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.time_zones import UTC_ZONE
from duetime.domain.tasks.attempt_outcomes import Succeeded, failure
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import Cause, TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime.services.schedules.calendars import CalendarManager
from tests.services.schedules import NAME, make, ran, skipped, stored, tasks_of
from tests.virtual.pulling import PullingWorld
from tests.virtual.world import OWNER, PULLED, START, World

if TYPE_CHECKING:
    from duetime.domain.schedules.stored_schedule import StoredSchedule

TEMPLATE = TaskSpec("report", timeout_seconds=600)
FIRST = (START // MINUTE + 1) * MINUTE


def slow(seconds: int, **fields: Any) -> World:  # noqa: ANN401 - any field
    """A world whose targets take so long, with a schedule of one a minute."""
    world = World()
    world.behave = lambda _work: world.take(seconds * SECOND)
    make(world, task=TEMPLATE, **fields)
    return world


def most_at_once(world: World, length: int) -> int:
    """How many calls of targets went on at once at the most, each of so many milliseconds."""
    begun = [effect.at for effect in world.effects]
    return max(sum(1 for other in begun if at - length < other <= at) for at in begun)


def test_what_overlaps_is_skipped() -> None:
    """Runs of 90 s every minute: every other occurrence is skipped and says which run was still going."""
    world = slow(90)
    world.pass_time(10 * MINUTE)
    times = list(ran(world))
    assert times == [FIRST + 2 * number * MINUTE for number in range(len(times))]
    assert len(times) >= 4
    assert most_at_once(world, 90 * SECOND) == 1
    assert all("is still going" in reason for reason in skipped(world))
    assert len(skipped(world)) >= 4
    assert "is still going" in stored(world).log[-1].note


def test_one_that_overlaps_waits_for_the_end() -> None:
    """With a place to wait each run begins as the one before ends, never beside it; further ones are skipped."""
    world = slow(90, overlap=Overlap.BUFFER_ONE)
    world.pass_time(20 * MINUTE)
    begun = [effect.at for effect in world.effects]
    assert most_at_once(world, 90 * SECOND) == 1
    assert max(later - earlier for earlier, later in pairwise(begun)) <= 91 * SECOND
    assert len(begun) >= 12
    assert skipped(world)
    assert set(ran(world).values()) == {1}


def test_all_may_overlap() -> None:
    """Where it is allowed all occurrences run, side by side."""
    world = slow(150, overlap=Overlap.ALLOW_ALL)
    world.pass_time(10 * MINUTE)
    assert list(ran(world)) == list(range(FIRST, world.time.now(), MINUTE))
    assert most_at_once(world, 150 * SECOND) == 3


def test_pull_workers_are_held_to_the_schedule_too() -> None:
    """Two workers, runs of 90 s every minute: every other occurrence is skipped; once it is held none is handed out."""
    world = PullingWorld()
    world.behave = lambda _work: world.take(90 * SECOND)
    world.keep_pullers(2)
    make(world, task=TaskSpec(PULLED, timeout_seconds=600))
    world.pass_time(10 * MINUTE)
    assert most_at_once(world, 90 * SECOND) == 1
    assert list(ran(world)) == [FIRST + 2 * number * MINUTE for number in range(len(ran(world)))]
    world.schedule_manager.pause(OWNER, NAME)
    count = len(world.effects)
    world.pass_time(10 * MINUTE)
    assert len(world.effects) == count
    assert f"the schedule {NAME!r} is paused" in skipped(world)


def test_a_run_that_waits_for_its_retry_is_still_going() -> None:
    """The first run fails and waits two and a half minutes for its second try: two occurrences are skipped."""
    world = World()
    failed = failure("Boom", "once", wait_at_least=150 * SECOND)
    world.behave = lambda work: failed if len(world.effects) == 1 and work else Succeeded(b"1")
    make(world)
    world.pass_time(6 * MINUTE)
    assert sorted(set(ran(world))) == [FIRST, FIRST + 3 * MINUTE, FIRST + 4 * MINUTE, FIRST + 5 * MINUTE]


def test_an_end_that_nobody_could_tell_of_holds_nothing_up() -> None:
    """The run that one waits for is cancelled by its user: the waiting one begins within a minute."""
    world = slow(0, overlap=Overlap.BUFFER_ONE)
    world.behave = lambda _work: failure("Boom", "again", wait_at_least=HOUR)
    world.pass_time(FIRST + MINUTE + SECOND - START)
    first = tasks_of(world)[0]
    world.behave = lambda _work: Succeeded(b"1")
    world.task_updater.cancel(OWNER, first.id, None)
    world.pass_time(MINUTE + 5 * SECOND)
    assert tasks_of(world)[1].state is State.SUCCEEDED


def test_a_permanent_schedule_runs_a_pause_after_each_end() -> None:
    """Runs of 7 s with 3 s between: one every ten seconds, from its creation on."""
    world = World()
    world.behave = lambda _work: world.take(7 * SECOND)
    make(world, permanent=3)
    world.pass_time(10 * MINUTE - 1)
    begun = [effect.at for effect in world.effects]
    gaps = [later - earlier for earlier, later in pairwise(begun)]
    assert begun[0] - START <= SECOND // 2
    assert set(gaps) == {10 * SECOND}
    assert len(begun) == 60


def test_a_broken_chain_mends_itself() -> None:
    """The coming run is cancelled, then its record vanishes: within minutes the chain goes on, one run at a time."""
    world = World()
    make(world, permanent=30)
    world.pass_time(45 * SECOND)
    world.task_updater.cancel(OWNER, tasks_of(world)[-1].id, None)
    world.pass_time(10 * MINUTE)
    before = len(world.effects)
    assert world.effects[-1].at > world.time.now() - MINUTE
    gone = tasks_of(world)[-1]
    del world.tasks._tasks[gone.id], world.tasks._partitions[gone.id.partition][gone.id.text]
    world.pass_time(10 * MINUTE)
    assert len(world.effects) > before + 5
    gaps = [later.at - earlier.at for earlier, later in pairwise(world.effects)]
    assert min(gaps) >= 30 * SECOND


def test_a_permanent_schedule_is_paused_changed_and_resumed() -> None:
    """While it is held nothing runs; with another pause the chain goes on at that pace, one run at a time."""
    world = World()
    make(world, permanent=10)
    world.pass_time(MINUTE)
    world.schedule_manager.pause(OWNER, NAME)
    count = len(world.effects)
    world.pass_time(10 * MINUTE)
    assert len(world.effects) == count
    world.schedule_manager.resume(OWNER, NAME)
    world.pass_time(MINUTE)
    assert count + 5 <= len(world.effects) <= count + 7
    before = stored(world)
    assert before.spec.written.permanent == 10
    changed = ScheduleChange({"end_at": world.time.now() + 25 * SECOND})
    world.schedule_manager.change(OWNER, NAME, changed, None)
    world.pass_time(10 * MINUTE)
    assert stored(world).state is ScheduleState.ENDED


def test_a_permanent_schedule_with_so_many_runs_left_ends() -> None:
    """Three runs remain: three run."""
    world = World()
    make(world, permanent=1, remaining_runs=3)
    world.pass_time(10 * MINUTE)
    assert len(world.effects) == 3
    assert stored(world).state is ScheduleState.ENDED


def test_a_failure_pauses_where_that_is_wished() -> None:
    """The second run fails for good: the schedule is paused, its note names the task, and nothing runs any more."""
    world = World()
    world.behave = lambda _work: failure("Boom", "no", retriable=False) if len(world.effects) == 2 else Succeeded(b"1")
    make(world, pause_on_failure=True)
    world.pass_time(10 * MINUTE)
    known = stored(world)
    failed = next(task for task in tasks_of(world) if task.state is State.FAILED)
    assert known.state is ScheduleState.PAUSED
    assert failed.id.text in known.note
    assert len(world.effects) == 2
    world.schedule_manager.resume(OWNER, NAME)
    world.pass_time(5 * MINUTE)
    assert len(world.effects) == 7


def test_a_retry_does_not_pause() -> None:
    """What fails once and then succeeds has not failed for good."""
    world = World()
    world.behave = lambda work: world.fail(work, 1)
    make(world, pause_on_failure=True)
    world.pass_time(5 * MINUTE)
    assert stored(world).state is ScheduleState.ACTIVE


def test_a_backfill_goes_at_its_pace() -> None:
    """An hour of one a minute, at ten a minute: sixty runs in six minutes, each once, beside the rhythm."""
    world = World()
    make(world)
    world.pass_time(2 * MINUTE)
    asked_at = world.time.now()
    start = (START // HOUR - 5) * HOUR
    made = world.schedule_manager.backfill(OWNER, NAME, start, start + HOUR - 1, 10)
    assert (made.backfills[-1].size, made.version) == (60, 2)
    world.pass_time(8 * MINUTE)
    tasks = [task for task in tasks_of(world) if task.schedule_ref and task.schedule_ref.cause is Cause.BACKFILL]
    assert sorted(task.schedule_ref.nominal for task in tasks if task.schedule_ref) == list(
        range(start, start + HOUR, MINUTE)
    )
    begun = sorted(effect.at for effect in world.effects if effect.task_id in {task.id for task in tasks})
    assert [at - asked_at for at in begun] == pytest.approx([6 * SECOND * number for number in range(60)], abs=500)
    assert stored(world).backfills[-1].ended_at is not None
    recurrence = [at for at in ran(world) if at > START]
    assert recurrence == list(range(FIRST, world.time.now(), MINUTE))


def test_a_backfill_is_cancelled() -> None:
    """What was placed, a few minutes' worth, still runs; nothing more does."""
    world = World()
    make(world)
    start = (START // DAY - 2) * DAY
    made = world.schedule_manager.backfill(OWNER, NAME, start, start + DAY, 6)
    world.pass_time(2 * MINUTE)
    world.schedule_manager.cancel_backfill(OWNER, NAME, made.backfills[-1].id)
    world.pass_time(30 * MINUTE)
    tasks = [task for task in tasks_of(world) if task.schedule_ref and task.schedule_ref.cause is Cause.BACKFILL]
    assert 2 * 6 <= len(tasks) <= 7 * 6
    with pytest.raises(BackfillNotFound):
        world.schedule_manager.cancel_backfill(OWNER, NAME, "none")


def test_nobody_waits_for_the_whole_of_a_long_backfill() -> None:
    """Where a save takes four seconds the caller is answered after the first thousand; the others come, once each."""
    world = World()
    make(world, "* * * * * *", overlap=Overlap.ALLOW_ALL)
    world.schedule_manager.pause(OWNER, NAME)
    save = world.schedules.save

    def slowly(stored_schedule: StoredSchedule, nonce: str) -> bool:
        world.time._now += 4 * SECOND
        return save(stored_schedule, nonce)

    world.schedules.save = slowly  # type: ignore[method-assign]
    world.schedule_manager.backfill(OWNER, NAME, START - 1_200 * SECOND, START - 1, 6_000)
    world.schedules.save = save  # type: ignore[method-assign]
    assert (
        sum(task.schedule_ref is not None and task.schedule_ref.cause is Cause.BACKFILL for task in tasks_of(world))
        == 1_000
    )
    world.pass_time(5 * MINUTE)
    backfilled = [task for task in tasks_of(world) if task.schedule_ref and task.schedule_ref.cause is Cause.BACKFILL]
    assert len(backfilled) == 1_200
    assert all(task.state is State.SUCCEEDED and task.attempt == 1 for task in backfilled)


def test_a_backfill_goes_on_while_the_schedule_is_held() -> None:
    """It was asked for apart from the rhythm: a pause and a change do not concern it."""
    world = World()
    make(world, "0 0 1 * *")
    start = (START // DAY - 365) * DAY
    world.schedule_manager.backfill(OWNER, NAME, start, START, 1)
    world.schedule_manager.pause(OWNER, NAME)
    world.schedule_manager.change(OWNER, NAME, ScheduleChange({"catch_up_seconds": 1}), None)
    world.pass_time(20 * MINUTE)
    assert len(world.effects) == 12


def test_only_so_many_backfills_at_once() -> None:
    """The sixth is refused, and one of no occurrence too."""
    world = World()
    make(world, "0 0 * * *")
    for _ in range(5):
        world.schedule_manager.backfill(OWNER, NAME, START - 100 * DAY, START, 1)
    with pytest.raises(ScheduleStateConflict):
        world.schedule_manager.backfill(OWNER, NAME, START - 100 * DAY, START, 1)
    make(world, "0 0 1 1 *", name="yearly")
    with pytest.raises(FieldInvalid, match="from"):
        world.schedule_manager.backfill(OWNER, "yearly", START - DAY, START, 1)


def keeping(world: World) -> CalendarManager:
    """What keeps calendars in a world."""

    def unread(*_arguments: object, **_named: object) -> Calendar:
        raise AssertionError("no file is read here")

    return CalendarManager(world.stores, world.runtime, unread)


def test_a_calendar_keeps_occurrences_from_running() -> None:
    """On an excluded day nothing runs, and the log says why, once; on the next day it goes on."""
    world = World()
    today = day_of(UTC_ZONE.wall_at(START))
    keeping(world).put(OWNER, Calendar("off", dates={today: "a day off"}))
    make(world, "*/30 * * * *", calendars=("off",))
    world.pass_time(DAY)
    tomorrow = (START // DAY + 1) * DAY
    assert list(ran(world)) == list(range(tomorrow, world.time.now(), 30 * MINUTE))
    assert "a day off" in stored(world).log[-1].note
    assert stored(world).skipped > 0


def test_what_a_calendar_excludes_is_moved() -> None:
    """To the next working moment, once, however many fall out."""
    world = World()
    today = day_of(UTC_ZONE.wall_at(START))
    keeping(world).put(OWNER, Calendar("off", kind=Kind.EXCLUDES, dates={today: ""}))
    make(world, "50 23 * * *", calendars=("off",), on_excluded=OnExcluded.MOVE)
    world.pass_time((START // DAY + 1) * DAY + HOUR - START)
    (effect,) = world.effects
    assert effect.at - (START // DAY + 1) * DAY <= SECOND


def test_a_calendar_that_is_used_is_kept() -> None:
    """It cannot be removed while a schedule names it; without it the schedule would be paused and say why."""
    world = World()
    calendars = keeping(world)
    calendars.put(OWNER, Calendar("off"))
    make(world, calendars=("off",))
    with pytest.raises(CalendarUsed):
        calendars.delete(OWNER, "off")
    world.calendars.remove(OWNER, Calendar("off"), Incarnation(1, 1), "n", 0)
    world.pass_time(5 * MINUTE)
    known = stored(world)
    assert known.state is ScheduleState.PAUSED
    assert "there is no calendar 'off'" in known.note
    world.schedule_manager.delete(OWNER, NAME)
    with pytest.raises(CalendarNotFound):
        calendars.delete(OWNER, "off")
