from __future__ import annotations

from dataclasses import replace
from itertools import count, pairwise
from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import FieldInvalid, ScheduleExists, ScheduleNotFound, ScheduleVersionMismatch, Unavailable
from duetime.domain.schedules.definition import ScheduleChange, Written
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.tasks.task import TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from tests.services.schedules import NAME, make, ran, skipped, spec_of, stored, tasks_of
from tests.virtual.world import OWNER, START, World

if TYPE_CHECKING:
    from duetime.domain.schedules.stored_schedule import StoredSchedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

FIRST = (START // MINUTE + 1) * MINUTE
"""The first whole minute after the world's beginning."""


def minutes(first: Millis, last: Millis) -> list[Millis]:
    """The whole minutes from one instant to another."""
    return list(range(-(-first // MINUTE) * MINUTE, last + 1, MINUTE))


def test_a_schedule_runs_at_each_of_its_times() -> None:
    """Every minute for an hour: each once, within half a second, never early, with one look a minute."""
    world = World()
    make(world)
    world.pass_time(HOUR)
    known = stored(world)
    assert known.incarnation == known.generation + 1
    assert known.generation <= HOUR // MINUTE + 2
    assert dict(ran(world)) == dict.fromkeys(minutes(START, START + HOUR), 1)
    late = [effect.at - world.tasks._tasks[effect.task_id].due_at for effect in world.effects]
    assert min(late) >= 0
    assert max(late) <= SECOND // 2


def test_an_occurrence_is_a_task_of_the_template() -> None:
    """Type, payload and limits are the template's, the owner the schedule's, and it says which occurrence it is."""
    world = World()
    template = TaskSpec("report", b'{"big": "' + bytes(range(35, 92)) * 40 + b'"}', timeout_seconds=7, name="nice")
    made = make(world, task=template)
    world.pass_time(3 * MINUTE)
    task = tasks_of(world)[0]
    assert (task.owner, task.type, task.timeout_seconds, task.name) == (OWNER, "report", 7, "nice")
    assert world.contents.fetch(task.id, task.payload) == template.payload
    assert task.schedule_ref is not None
    assert (task.schedule_ref.schedule, task.schedule_ref.nominal, task.schedule_ref.mark) == (NAME, FIRST, made.mark)
    assert task.due_at == task.id.home == FIRST


def test_a_second_after_the_other_keeps_up() -> None:
    """A schedule of one a second runs 600 times in ten minutes, from its first second on."""
    world = World()
    make(world, rate="1 second")
    world.pass_time(10 * MINUTE - 1)
    assert dict(ran(world)) == dict.fromkeys(range(START, START + 10 * MINUTE, SECOND), 1)


def test_an_occurrence_in_two_seconds_needs_no_tick() -> None:
    """What is due before the trigger's next look is placed by whoever makes the schedule."""
    world = World()
    world.ticking = False
    make(world, rate="1 second", start_at=START + 2 * SECOND)
    world.pass_time(3 * SECOND - 1)
    assert list(ran(world)) == [START + 2 * SECOND]


def test_far_ahead_nothing_is_placed() -> None:
    """The occurrence of the day after tomorrow has no task yet, and its wake lies ahead."""
    world = World()
    made = make(world, "0 0 23 11 *")
    world.pass_time(HOUR)
    assert tasks_of(world) == []
    assert world.schedule_preview.next_at(made) == world.schedule_preview.upcoming(made, 1)[0].nominal
    world.pass_time(2 * DAY)
    assert sum(ran(world).values()) == 1


@pytest.mark.parametrize("outage", [5 * MINUTE, 2 * HOUR])
def test_after_an_outage_only_the_latest_missed_one_runs(outage: Millis) -> None:
    """The trigger stands still: afterwards the latest missed occurrence runs late, the others are told of."""
    world = World()
    make(world)
    world.pass_time(10 * MINUTE)
    world.ticking = False
    world.pass_time(outage)
    world.ticking = True
    back = (world.time.now() // MINUTE + 1) * MINUTE
    world.pass_time(10 * MINUTE)
    times = ran(world)
    assert set(times.values()) == {1}
    placed_before = {
        task.schedule_ref.nominal for task in tasks_of(world) if task.schedule_ref and task.created_at < back
    }
    missed = [at for at in minutes(START, back - 10 * SECOND) if at not in placed_before]
    late = [at for at in missed if at in times]
    assert late == missed[-1:]
    assert all(at in times for at in minutes(back, world.time.now()))
    known = stored(world)
    assert "missed" in known.log[-1].note
    assert known.skipped == len(missed) - 1
    assert known.placed == len(tasks_of(world))


def test_what_a_broken_catching_up_has_placed_is_not_told_of_as_missed() -> None:
    """One occurrence cannot be placed after an outage, then comes another one: what ran is not counted as skipped."""
    world = World()
    make(world)
    world.pass_time(10 * MINUTE)
    world.ticking = False
    world.pass_time(10 * MINUTE)
    back = (world.time.now() // MINUTE + 1) * MINUTE
    create = world.tasks.create

    def failing(task: Task) -> bool:
        if task.schedule_ref is not None and task.schedule_ref.nominal == back:
            raise Unavailable("away")
        return create(task)

    world.tasks.create = failing  # type: ignore[method-assign]  # one occurrence cannot be placed
    world.ticking = True
    world.time.run_until(back + 30 * SECOND)
    world.ticking = False
    world.pass_time(10 * MINUTE)
    world.tasks.create = create  # type: ignore[method-assign]  # it can again
    world.ticking = True
    world.pass_time(10 * MINUTE)
    known = stored(world)
    assert set(ran(world).values()) == {1}
    assert known.placed == len(tasks_of(world))
    assert known.placed + known.skipped == len(minutes(START, known.done))


def test_what_is_too_late_is_not_caught_up() -> None:
    """The missed occurrence is forty minutes late, and the window is thirty: nothing runs, and the log says so."""
    world = World()
    make(world, "0 * * * *", catch_up_seconds=1800)
    world.pass_time(MINUTE)
    world.ticking = False
    world.pass_time((START // HOUR + 1) * HOUR + 40 * MINUTE - world.time.now())
    world.ticking = True
    world.pass_time(5 * MINUTE)
    assert tasks_of(world) == []
    assert "none runs" in stored(world).log[-1].note


def test_a_change_takes_effect_on_what_is_queued() -> None:
    """A minute before its time the rhythm is changed: the old occurrence is dropped with a reason, the new ones run."""
    world = World()
    make(world)
    world.pass_time(5 * MINUTE)
    changed_at = world.time.now()
    change = ScheduleChange({"written": Written(cron="*/2 * * * *"), "task": TaskSpec("other", b"[1]")})
    world.schedule_manager.change(OWNER, NAME, change, 1)
    world.pass_time(9 * MINUTE)
    after = [at for at in ran(world) if at > changed_at]
    assert after == [at for at in minutes(changed_at, world.time.now()) if at // MINUTE % 2 == 0]
    assert set(ran(world).values()) == {1}
    assert {task.type for task in tasks_of(world) if task.schedule_ref and task.schedule_ref.revision == 2} == {"other"}
    assert set(skipped(world)) == {f"the schedule {NAME!r} was changed or paused after this was placed"}
    dropped = [task for task in tasks_of(world) if task.error]
    assert all(task.attempt == 0 and not task.attempt_history and task.finished_at for task in dropped)


def test_a_pause_holds_what_is_queued_and_a_resume_catches_nothing_up() -> None:
    """Between the two nothing runs; afterwards each occurrence runs again, and those between never do."""
    world = World()
    make(world)
    world.pass_time(5 * MINUTE)
    paused_at = world.time.now()
    paused = world.schedule_manager.pause(OWNER, NAME, "the printer is broken")
    assert (paused.state, paused.note) == (ScheduleState.PAUSED, "the printer is broken")
    world.pass_time(10 * MINUTE)
    resumed_at = world.time.now()
    world.schedule_manager.resume(OWNER, NAME)
    world.pass_time(5 * MINUTE)
    times = ran(world)
    assert [at for at in times if at > paused_at] == minutes(resumed_at, world.time.now())
    assert set(times.values()) == {1}
    assert stored(world).state is ScheduleState.ACTIVE


def test_a_short_pause_loses_nothing() -> None:
    """Paused and resumed between two occurrences: the next one runs, once."""
    world = World()
    make(world)
    world.pass_time(5 * MINUTE + 10 * SECOND)
    world.schedule_manager.pause(OWNER, NAME)
    world.pass_time(SECOND)
    world.schedule_manager.resume(OWNER, NAME)
    world.pass_time(10 * MINUTE)
    assert dict(ran(world)) == dict.fromkeys(minutes(START, world.time.now()), 1)


def test_what_a_deleted_schedule_placed_is_dropped() -> None:
    """Its occurrences find no schedule; those of a new one of the same name run."""
    world = World()
    make(world)
    world.pass_time(5 * MINUTE)
    gone_at = world.time.now()
    world.schedule_manager.delete(OWNER, NAME, None)
    with pytest.raises(ScheduleNotFound):
        stored(world)
    make(world, "*/5 * * * *")
    world.pass_time(15 * MINUTE)
    after = [at for at in ran(world) if at > gone_at]
    assert after == [at for at in minutes(gone_at, world.time.now()) if at // MINUTE % 5 == 0]
    assert set(ran(world).values()) == {1}
    assert any("deleted" in reason for reason in skipped(world))


def test_only_so_many_runs() -> None:
    """Three runs remain: three run, and the schedule has ended."""
    world = World()
    made = make(world, remaining_runs=3)
    assert len(world.schedule_preview.upcoming(made, 10)) == 3
    world.pass_time(10 * MINUTE)
    assert dict(ran(world)) == dict.fromkeys(minutes(START, START + 3 * MINUTE), 1)
    assert stored(world).state is ScheduleState.ENDED


def test_runs_that_a_change_drops_are_given_back() -> None:
    """Of five runs two have run when the note changes: three more run, though all five were placed."""
    world = World()
    make(world, rate="30 seconds", remaining_runs=5)
    world.pass_time(45 * SECOND)
    assert stored(world).remaining_runs == 0
    world.schedule_manager.change(OWNER, NAME, ScheduleChange({"catch_up_seconds": 60}), None)
    world.pass_time(10 * MINUTE)
    assert list(ran(world)) == [START + number * 30 * SECOND for number in range(5)]
    assert stored(world).state is ScheduleState.ENDED


def test_an_end_is_an_end() -> None:
    """Nothing runs after it, its own instant does, and what was placed before it runs though the schedule has ended."""
    world = World()
    make(world, start_at=FIRST + MINUTE, end_at=FIRST + 3 * MINUTE)
    world.pass_time(10 * MINUTE)
    assert list(ran(world)) == [FIRST + MINUTE, FIRST + 2 * MINUTE, FIRST + 3 * MINUTE]
    assert stored(world).state is ScheduleState.ENDED


def test_a_name_is_taken_once() -> None:
    """A second schedule of a name is refused, another owner's is not, and one without a name gets one."""
    world = World()
    make(world)
    with pytest.raises(ScheduleExists):
        make(world)
    world.schedule_manager.create("other", spec_of())
    unnamed = make(world, name="")
    assert unnamed.name.startswith("schedule-")
    assert [each.name for each in world.schedule_manager.list(OWNER, "", 10)] == sorted([NAME, unnamed.name])


def test_what_cannot_be_is_refused() -> None:
    """Times that never come, unknown calendars, workers that nobody has: the field is named, and nothing is stored."""
    world = World()
    with pytest.raises(FieldInvalid, match="dates"):
        make(world, dates=("2020-01-01T00:00:00Z",))
    with pytest.raises(FieldInvalid, match=r"calendars\[0\]"):
        make(world, calendars=("none",))
    with pytest.raises(FieldInvalid, match="end_at"):
        make(world, start_at=START + DAY, end_at=START + HOUR)
    assert world.schedule_manager.list(OWNER, "", 10) == []


def test_a_change_for_another_version_is_refused() -> None:
    """The trigger's own writes do not count: the version is of what its owner did."""
    world = World()
    make(world)
    world.pass_time(10 * MINUTE)
    assert stored(world).version == 1
    world.schedule_manager.change(OWNER, NAME, ScheduleChange({"jitter_seconds": 5}), 1)
    with pytest.raises(ScheduleVersionMismatch):
        world.schedule_manager.change(OWNER, NAME, ScheduleChange({"jitter_seconds": 6}), 1)
    with pytest.raises(ScheduleVersionMismatch):
        world.schedule_manager.delete(OWNER, NAME, 1)


def test_a_change_of_one_field_leaves_the_others() -> None:
    """Zone and jitter are changed; timing, task and its payload stay."""
    world = World()
    before = make(world)
    change = ScheduleChange({"timezone": zone_named("Europe/Berlin"), "jitter_seconds": 9})
    after = world.schedule_manager.change(OWNER, NAME, change, None)
    assert (after.spec.clock.zone.name, after.spec.jitter_seconds) == ("Europe/Berlin", 9)
    assert (after.spec.written, after.spec.task, after.payload) == (
        before.spec.written,
        before.spec.task,
        before.payload,
    )
    assert (after.revision, after.version) == (2, 2)


def test_triggered_by_hand_it_runs_at_once() -> None:
    """Even of a paused schedule, once, and without touching its rhythm."""
    world = World()
    make(world, "0 0 1 * *")
    world.schedule_manager.pause(OWNER, NAME)
    task = world.schedule_manager.trigger(OWNER, NAME)
    world.pass_time(SECOND)
    assert [effect.task_id for effect in world.effects] == [task.id]
    assert "triggered" in stored(world).log[-1].note


def test_a_changed_number_of_shards_changes_no_id() -> None:
    """Everything restarts with four times as many shards: occurrences stay in the first four, and each runs once."""
    world = World(shards=4)
    make(world)
    world.pass_time(5 * MINUTE + 30 * SECOND)
    world.shards = replace(world.shards, configured=16)
    behave, effects, tasks = world.behave, world.effects, world.tasks
    world._wire()
    world.behave, world.effects, world.tasks = behave, effects, tasks
    world.schedule_manager.change(OWNER, NAME, ScheduleChange({"jitter_seconds": 0}), None)
    world.pass_time(20 * MINUTE)
    assert dict(ran(world)) == dict.fromkeys(minutes(START, world.time.now()), 1)
    assert {task.id.shard for task in tasks_of(world)} == set(range(4))


def test_a_store_that_is_away_for_a_while_loses_nothing() -> None:
    """While schedules cannot be read the trigger does not move on; afterwards the minutes are read again."""
    world = World()
    make(world)
    world.pass_time(5 * MINUTE)
    read = world.schedules.read

    def away(_owner: str, _name: str) -> None:
        raise Unavailable("away")

    world.schedules.read = away  # type: ignore[assignment, method-assign]
    world.pass_time(2 * MINUTE)
    world.schedules.read = read  # type: ignore[method-assign]
    world.pass_time(10 * MINUTE)
    assert dict(ran(world)) == dict.fromkeys(minutes(START, world.time.now()), 1)


def test_a_write_in_between_breaks_no_chain() -> None:
    """At every third save of the trigger somebody else's write comes first, without moving the turn on."""
    world = World()
    make(world)
    save, calls = world.schedules.save, count()

    def contended(stored_schedule: StoredSchedule, nonce: str) -> bool:
        number = next(calls)
        if number % 3 == 0:
            known = stored(world)
            save(known.remarked(number, "", "somebody was here"), f"other {number}")
        return save(stored_schedule, nonce)

    world.schedules.save = contended  # type: ignore[method-assign]
    world.pass_time(20 * MINUTE)
    assert dict(ran(world)) == dict.fromkeys(minutes(START, world.time.now()), 1)
    assert stored(world).placed == len(tasks_of(world))


def test_occurrences_are_shown_with_their_tasks() -> None:
    """Past ones with their outcome, coming ones without a task, in order and within the stretch asked for."""
    world = World()
    make(world)
    world.pass_time(10 * MINUTE)
    now = world.time.now()
    seen = world.schedule_preview.occurrences(OWNER, NAME, START, now + 10 * MINUTE, 100)
    assert [each.occurrence.nominal for each in seen] == minutes(START, now + 10 * MINUTE)
    states = [each.task.state.value if each.task else None for each in seen]
    assert states[:10] == ["succeeded"] * 10
    assert states[-1] is None
    assert all(a.occurrence.nominal < b.occurrence.nominal for a, b in pairwise(seen))


def test_a_cron_goes_by_its_zone() -> None:
    """Half past nine in Kolkata is four in UTC."""
    world = World()
    make(world, "30 9 * * *", zone="Asia/Kolkata")
    world.pass_time(DAY)
    assert [at % DAY for at in ran(world)] == [4 * HOUR]
