"""Schedules run once at each of their times, whatever pause, change or outage comes in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.times import to_iso
from duetime.environment_variables import Variable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import PATH, Schedules, is_of_a_schedule
from tests.scenarios.test_schedule_catch_up import puts_occurrence
from tests.simulation import works

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call


def test_a_schedule_runs_at_each_of_its_times() -> None:
    """In half an hour, a schedule runs once in each minute, within half a second of its time and never early."""
    with Schedules() as schedules:
        schedules.faulty = False
        schedules.make()
        schedules.run(HOUR // 2)
        wanted = schedules.minutes(schedules.created_at, schedules.now)
        assert dict(schedules.ran()) == dict.fromkeys(wanted, 1)
        late = [effect.at - schedules.record(effect.task_id).due_at for effect in schedules.effects]
        assert min(late) >= 0
        assert max(late) <= SECOND // 2


def test_an_occurrences_task_has_the_fields_of_the_template() -> None:
    """An occurrence's task has the template's type, payload and limits, and the schedule's owner."""
    with Schedules() as schedules:
        schedules.make(task={"type": PLAIN, "payload": works.LARGE, "timeout_seconds": 7, "name": "nice"})
        schedules.run(2 * MINUTE)
        task = schedules.placed()[0]
        assert (task.owner, task.type, task.timeout_seconds, task.name) == ("local", PLAIN, 7, "nice")
        assert schedules.ask("GET", f"/v1/tasks/{task.id}").body["payload"] == works.LARGE
        assert task.schedule_ref is not None
        first = schedules.minutes(schedules.created_at, schedules.now)[0]
        assert (task.schedule_ref.nominal, task.due_at, task.id.home) == (first, first, first)


def test_a_schedule_for_every_second_runs_in_each_second() -> None:
    """A schedule for every second runs in each second, from the first second on."""
    with Schedules() as schedules:
        schedules.make(rate="1 second")
        schedules.run(2 * MINUTE - SECOND)
        ran = schedules.ran()
        assert set(ran.values()) == {1}
        first = min(ran)
        assert sorted(ran) == list(range(first, first + len(ran) * SECOND, SECOND))
        assert len(ran) >= 118


def test_creating_a_schedule_places_occurrences_due_before_the_next_tick() -> None:
    """Creating a schedule also places occurrences that are due before the trigger's next read."""
    with Schedules() as schedules:
        schedules.ticking = False
        start = (schedules.now // SECOND + 2) * SECOND
        schedules.make(rate="1 second", start_at=to_iso(start), end_at=to_iso(start + 100))
        schedules.run(4 * SECOND)
        assert list(schedules.ran()) == [start]


def test_a_distant_occurrence_has_a_timer_but_no_task() -> None:
    """An occurrence that is three hours ahead has a timer but no task yet, and runs on time."""
    with Schedules() as schedules:
        at = (schedules.now // HOUR + 3) * HOUR
        schedules.make(dates=[to_iso(at).replace(".000Z", "Z")])
        schedules.run(HOUR)
        assert schedules.placed() == []
        schedules.time.run_until(at + SECOND)
        assert schedules.ran() == {at: 1}


@pytest.mark.parametrize("outage", [5 * MINUTE, 2 * HOUR])
def test_only_the_latest_missed_occurrence_runs_after_an_outage(outage: Millis) -> None:
    """After an outage of the trigger, the latest missed occurrence runs late, and the others are reported."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all")
        schedules.run(10 * MINUTE)
        schedules.ticking = False
        schedules.run(outage)
        schedules.ticking = True
        back = (schedules.now // MINUTE + 1) * MINUTE
        schedules.run(10 * MINUTE)
        times, tasks = schedules.ran(), schedules.placed()
        assert set(times.values()) == {1}
        before = {task.schedule_ref.nominal for task in tasks if task.schedule_ref and task.created_at < back}
        missed = [at for at in schedules.minutes(schedules.created_at, back - 10 * SECOND) if at not in before]
        assert [at for at in missed if at in times] == missed[-1:]
        assert all(at in times for at in schedules.minutes(back, schedules.now))
        known = schedules.schedule()
        assert (known["runs_skipped"], known["runs_started"]) == (len(missed) - 1, len(times))
        assert "missed" in str(known)


def test_an_occurrence_later_than_catch_up_seconds_does_not_run() -> None:
    """An occurrence that is late by more than `catch_up_seconds` does not run, and the schedule says so."""
    with Schedules() as schedules:
        schedules.make(cron="0 * * * *", catch_up_seconds=1800)
        schedules.run(MINUTE)
        schedules.ticking = False
        schedules.time.run_until((schedules.now // HOUR + 1) * HOUR + 40 * MINUTE)
        schedules.ticking = True
        schedules.run(5 * MINUTE)
        assert schedules.placed() == []
        assert "none runs" in str(schedules.schedule())


@pytest.mark.parametrize("pause", [SECOND, 10 * MINUTE])
def test_occurrences_due_during_a_pause_never_run(pause: Millis) -> None:
    """No occurrence runs during a pause, and occurrences that were due during the pause never run."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(5 * MINUTE)
        schedules.time.run_until((schedules.now // MINUTE) * MINUTE + MINUTE + 10 * SECOND)
        paused_at = schedules.now
        paused = schedules.control("pause", {"reason": "the printer is broken"})
        assert (paused.body["state"], paused.body["paused_reason"]) == ("paused", "the printer is broken")
        schedules.run(pause)
        schedules.control("resume")
        resumed_at = schedules.now
        schedules.run(5 * MINUTE)
        times = schedules.ran()
        assert [at for at in times if at > paused_at] == schedules.minutes(resumed_at, schedules.now)
        assert [at for at in times if at < paused_at] == schedules.minutes(schedules.created_at, paused_at)
        assert set(times.values()) == {1}
        assert schedules.schedule()["state"] == "active"


def test_a_deleted_schedules_placed_occurrences_are_skipped() -> None:
    """A deleted schedule's placed occurrences are skipped; those of a new schedule with the same name run."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(5 * MINUTE)
        gone_at = schedules.now
        assert schedules.ask("DELETE", PATH).status == 200
        assert schedules.ask("GET", PATH).status == 404
        schedules.make(cron="*/5 * * * *")
        schedules.run(15 * MINUTE)
        after = [at for at in schedules.ran() if at > gone_at]
        assert after == [at for at in schedules.minutes(gone_at, schedules.now) if at // MINUTE % 5 == 0]
        assert set(schedules.ran().values()) == {1}
        assert any("deleted" in reason for reason in schedules.skipped())


def test_a_schedule_with_three_remaining_runs_runs_three_times() -> None:
    """With three `remaining_runs`, three occurrences run and the schedule ends."""
    with Schedules() as schedules:
        schedules.make(remaining_runs=3)
        schedules.run(10 * MINUTE)
        wanted = schedules.minutes(schedules.created_at, schedules.created_at + 3 * MINUTE)[:3]
        assert dict(schedules.ran()) == dict.fromkeys(wanted, 1)
        assert schedules.schedule()["state"] == "ended"


def test_no_missed_occurrences_are_reported_after_the_last_run() -> None:
    """In an outage, times after a schedule's last run are not reported as missed."""
    with Schedules() as schedules:
        schedules.make(remaining_runs=3)
        assert schedules.run_until(lambda: len(schedules.ran()) == 3)
        schedules.ticking = False
        schedules.run(HOUR // 2)
        schedules.ticking = True
        schedules.run(10 * MINUTE)
        shown = schedules.schedule()
        assert (shown["state"], shown["runs_started"], len(schedules.ran())) == ("ended", 3, 3)
        assert (shown["runs_skipped"], shown["skipped_runs"]) == (0, [])


def test_placed_runs_that_a_change_drops_use_up_no_run() -> None:
    """If a schedule changes after two of five runs, three more runs start, although all five were placed."""
    with Schedules() as schedules:
        schedules.make(rate="30 seconds", remaining_runs=5)
        schedules.run(45 * SECOND)
        assert schedules.schedule()["remaining_runs"] == 3
        assert schedules.amend(catch_up_seconds=60).status == 200
        schedules.run(10 * MINUTE)
        times = list(schedules.ran())
        assert times == list(range(times[0], times[0] + 5 * 30 * SECOND, 30 * SECOND))
        assert schedules.schedule()["state"] == "ended"


def test_the_last_run_of_a_schedule_is_at_end_at() -> None:
    """The last run is at `end_at`, and runs that were placed before then still run."""
    with Schedules() as schedules:
        first = (schedules.now // MINUTE + 2) * MINUTE
        schedules.make(start_at=to_iso(first), end_at=to_iso(first + 2 * MINUTE))
        schedules.run(10 * MINUTE)
        assert list(schedules.ran()) == [first, first + MINUTE, first + 2 * MINUTE]
        assert schedules.schedule()["state"] == "ended"


def test_a_manual_run_starts_at_once() -> None:
    """A manual run starts at once, even if its schedule is paused, and does not affect the timing."""
    with Schedules() as schedules:
        schedules.make(cron="0 0 1 * *")
        upcoming = schedules.schedule()["upcoming"]
        schedules.control("pause")
        task_id = schedules.control("run").body["id"]
        schedules.run(SECOND)
        assert [effect.task_id for effect in schedules.effects] == [task_id]
        schedules.control("resume")
        shown = schedules.schedule()
        assert ("run by hand" in str(shown), shown["upcoming"]) == (True, upcoming)


def test_a_changed_number_of_shards_changes_no_id() -> None:
    """If the number of shards is quadrupled, each occurrence still runs once, in the original shards."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(5 * MINUTE + 30 * SECOND)
        schedules.generation += 1
        schedules.shards *= 4
        schedules.environ[Variable.SHARDS] = str(schedules.shards)
        assert schedules.amend(jitter_seconds=0).status == 200
        schedules.run(20 * MINUTE)
        assert dict(schedules.ran()) == dict.fromkeys(schedules.minutes(schedules.created_at, schedules.now), 1)
        assert {task.id.shard for task in schedules.placed()} == set(range(2))


def test_no_occurrence_is_lost_while_schedules_cannot_be_read() -> None:
    """If schedules cannot be read, the trigger does not advance, and reads the minutes again later."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(5 * MINUTE)
        refused = schedules.refuse(lambda call: call.machine.function == "trigger" and is_of_a_schedule(call))
        schedules.run(2 * MINUTE)
        assert refused
        schedules.before_call = None
        schedules.run(10 * MINUTE)
        assert dict(schedules.ran()) == dict.fromkeys(schedules.minutes(schedules.created_at, schedules.now), 1)


def test_no_occurrence_is_lost_to_concurrent_writes_of_the_schedule() -> None:
    """If the schedule changes before every third save by the trigger, no occurrence is lost."""
    with Schedules() as schedules:
        schedules.make()
        saves: list[Call] = []

        def change_first(call: Call) -> None:
            is_save = call.operation in {"put_item", "update_item"} and is_of_a_schedule(call)
            if call.machine.function != "trigger" or not is_save or puts_occurrence(call, "trigger"):
                return
            saves.append(call)
            if len(saves) % 3 == 1:
                schedules.users.ask("PATCH", PATH, {"catch_up_seconds": 60 + len(saves)})

        schedules.before_call = change_first
        schedules.run(20 * MINUTE)
        assert len(saves) > 10
        assert dict(schedules.ran()) == dict.fromkeys(schedules.minutes(schedules.created_at, schedules.now), 1)
