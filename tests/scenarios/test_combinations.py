"""Combinations of features that the reference page describes and no other test covers."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.domain.times import to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import PATH, Schedules
from tests.scenarios.tasks import Tasks
from tests.simulation.endpoints import CALLBACK_URL

STOP = "/v1/switches/all/all"


@pytest.mark.parametrize("first", ["low", "high"])
def test_waiting_tasks_get_a_lock_by_due_time_whatever_the_priority(first: str) -> None:
    """Of two waiting tasks, the task with the earlier due time gets the lock first, whatever their priorities."""
    other = "high" if first == "low" else "low"
    with Tasks() as tasks:
        tasks.target = lambda _phase, _context: tasks.take(20 * SECOND)
        lock = {"key": "db"}
        tasks.create(lock=lock)
        tasks.run(2 * SECOND)
        ids = [tasks.create(number * SECOND, lock=lock, priority=one) for number, one in ((3, first), (6, other))]
        tasks.run(2 * MINUTE)
        earlier, later = (tasks.effect_times(each)[0] for each in ids)
        assert earlier < later


def test_expired_tasks_free_their_unique_keys_but_paused_tasks_keep_them() -> None:
    """A task that expires while a switch holds it frees its unique key, but a paused task keeps its key."""
    with Tasks() as tasks:
        assert tasks.ask("PUT", STOP, {"stopped": True}).status == 200
        unique = {"key": "report"}
        expiring = tasks.create(unique=unique, expires_seconds=30)
        tasks.run(2 * MINUTE)
        assert tasks.state(expiring) == "failed"
        held = tasks.create(HOUR, unique=unique)
        assert tasks.do(held, "pause").status == 200
        again = tasks.ask("POST", "/v1/tasks", {"type": PLAIN, "unique": unique})
        assert (again.status, again.body["id"]) == (200, held)


def test_later_occurrences_are_skipped_while_a_run_waits_for_its_lock() -> None:
    """While a run waits for its lock, the following occurrences are skipped."""
    with Schedules() as schedules:
        schedules.target = lambda _phase, context: schedules.take(
            4 * MINUTE if schedules.record(context.task_id).schedule_ref is None else SECOND
        )
        schedules.create(lock={"key": "db"}, timeout_seconds=600)
        schedules.run(2 * SECOND)
        schedules.make(task={"type": PLAIN, "lock": {"key": "db"}, "timeout_seconds": 60})
        schedules.run(3 * MINUTE)
        assert not schedules.ran()
        assert len(schedules.skipped()) >= 2
        assert all("is still running" in reason for reason in schedules.skipped())
        schedules.run(3 * MINUTE)
        assert schedules.ran()


def test_a_run_that_expires_while_waiting_frees_its_place() -> None:
    """A run that waits for an earlier run expires after 50 s, so that the next run can wait instead."""
    with Schedules() as schedules:
        schedules.last(150)
        task = {"type": PLAIN, "timeout_seconds": 600, "expires_seconds": 50}
        schedules.make(overlap="buffer_one", task=task)
        schedules.run(10 * MINUTE)
        ended = [each for each in schedules.placed() if each.is_terminal]
        expired = [each for each in ended if each.error is not None and each.error.type == "Expired"]
        assert expired
        assert len(schedules.ran()) >= 3
        assert not {each.id.text for each in expired} & {each.task_id for each in schedules.effects}
        assert all(
            schedules.effect_times(each.id.text)[0] <= each.due_at + 50 * SECOND
            for each in ended
            if each.state == "succeeded"
        )


@pytest.mark.parametrize(("overlap", "number"), [("skip", 1), ("buffer_all", 4)])
def test_occurrences_held_by_a_switch_follow_the_overlap_policy(overlap: str, number: int) -> None:
    """Of four occurrences that a stop held, one runs with `skip`, and all run with `buffer_all`, one at a time."""
    with Schedules() as schedules:
        schedules.last(150)
        schedules.run(MINUTE - schedules.now % MINUTE + SECOND)
        assert schedules.ask("PUT", STOP, {"stopped": True}).status == 200
        schedules.make(overlap=overlap, remaining_runs=4)
        schedules.run(4 * MINUTE + 10 * SECOND)
        assert not schedules.effects
        lifted_at = schedules.now
        assert schedules.ask("DELETE", STOP).status == 200
        schedules.run(15 * MINUTE)
        assert sum(count for at, count in schedules.ran().items() if at <= lifted_at) == number
        assert sum(schedules.ran().values()) == 4
        assert schedules.most_at_once(150 * SECOND) == 1


def test_a_pause_of_its_schedule_drops_the_runs_that_wait() -> None:
    """Once a schedule is paused, its waiting runs do not start."""
    with Schedules() as schedules:
        schedules.last(180)
        schedules.make(overlap="buffer_all")
        schedules.run(4 * MINUTE)
        begun = len(schedules.effects)
        assert schedules.control("pause").status == 200
        schedules.run(15 * MINUTE)
        assert len(schedules.effects) == begun
        assert any("is paused" in reason for reason in schedules.skipped())


def test_a_stop_of_all_tasks_also_holds_callbacks() -> None:
    """A stop of all tasks also holds callbacks, which are posted once the stop is lifted."""
    with Tasks() as tasks:
        task_id = tasks.create(callback_url=CALLBACK_URL)

        def stop(_phase: str, _context: Any) -> str:  # noqa: ANN401 - a handler gets it
            assert tasks.users.ask("PUT", STOP, {"stopped": True}) is not None
            tasks.take(20 * SECOND)
            return "done"

        tasks.target = stop
        tasks.run(5 * MINUTE)
        assert tasks.state(task_id) == "succeeded"
        assert not tasks.callbacks
        assert tasks.ask("DELETE", STOP).status == 200
        tasks.run(3 * MINUTE)
        assert tasks.callbacks == [(task_id, "succeeded")]


def test_a_buffered_backfill_waits_for_regular_runs() -> None:
    """A buffered backfill waits for regular runs, one run at a time, while other regular runs are skipped."""
    with Schedules() as schedules:
        schedules.last(100)
        schedules.make(overlap="skip")
        schedules.run(MINUTE)
        start = schedules.now // HOUR * HOUR - 3 * HOUR
        end = start + 2 * MINUTE
        body = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(end), "overlap": "buffer_all"}
        assert schedules.ask("POST", f"{PATH}/backfills", body).status == 201
        schedules.run(12 * MINUTE)
        assert {start, start + MINUTE} <= set(schedules.ran())
        assert schedules.most_at_once(100 * SECOND) == 1
        assert schedules.skipped()


def test_later_occurrences_are_skipped_while_a_run_is_paused() -> None:
    """While a run is paused between attempts, later occurrences are skipped until that run is resumed and has ended."""
    with Schedules() as schedules:
        schedules.fail(1)
        retry = {"initial_seconds": 90, "max_seconds": 90, "max_attempts": 2}
        schedules.make(task={"type": PLAIN, "retry": retry})
        assert schedules.run_until(lambda: bool(schedules.effects), 2 * MINUTE)
        schedules.run(200)
        first = schedules.effects[0].task_id
        assert schedules.do(first, "pause").status == 200
        schedules.run(4 * MINUTE)
        assert set(schedules.phases()) == {"run"}
        assert {each.task_id for each in schedules.effects} == {first}
        assert schedules.do(first, "resume").status == 200
        schedules.run(3 * MINUTE)
        assert len({each.task_id for each in schedules.effects}) >= 2
