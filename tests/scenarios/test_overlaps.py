"""Overlap policies, permanent schedules, failures that pause a schedule, backfills and calendars."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.tasks.task import Cause
from duetime.domain.times import DAY, to_iso
from duetime.environment_variables import Variable
from duetime.handlers import AttemptCancelled, Unretriable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import NAME, PATH, Schedules, is_of_a_schedule
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.handlers import Context
    from duetime_testing.simulation.faults import Call


def slow(seconds: int, **fields: Any) -> Schedules:  # noqa: ANN401 - JSON
    """An account with a schedule that runs every minute, and with targets that take this long."""
    schedules = Schedules()
    schedules.last(seconds)
    schedules.make(**fields)
    return schedules


def test_overlapping_occurrences_are_skipped() -> None:
    """If runs take 90 s, every other occurrence is skipped, with the active run as the reason."""
    with slow(90) as schedules:
        schedules.run(10 * MINUTE)
        times = list(schedules.ran())
        assert times == list(range(times[0], times[0] + len(times) * 2 * MINUTE, 2 * MINUTE))
        assert len(times) >= 4
        assert schedules.most_at_once(90 * SECOND) == 1
        assert len(schedules.skipped()) >= 4
        assert all("is still running" in reason for reason in schedules.skipped())


def test_one_overlapping_run_waits_for_the_end_with_buffer_one() -> None:
    """With `buffer_one`, the waiting run begins when the previous run ends, and other occurrences are skipped."""
    with slow(90, overlap="buffer_one") as schedules:
        schedules.run(20 * MINUTE)
        begun = [effect.at for effect in schedules.effects]
        assert schedules.most_at_once(90 * SECOND) == 1
        assert max(later - earlier for earlier, later in pairwise(begun)) <= 91 * SECOND
        assert len(begun) >= 12
        assert schedules.skipped()
        assert set(schedules.ran().values()) == {1}


@pytest.mark.slow
def test_all_occurrences_run_concurrently_with_allow_all() -> None:
    """With `allow_all`, every occurrence runs on time, concurrently with others."""
    with slow(150, overlap="allow_all") as schedules:
        schedules.run(10 * MINUTE)
        assert list(schedules.ran()) == schedules.minutes(schedules.created_at, schedules.now)
        assert schedules.most_at_once(150 * SECOND) == 3


def test_overlapping_runs_wait_and_run_in_order_with_buffer_all() -> None:
    """With `buffer_all`, no occurrence is skipped, and each run begins when the previous run ends."""
    with slow(90, overlap="buffer_all", remaining_runs=6) as schedules:
        schedules.run(12 * MINUTE)
        begun = [effect.at for effect in schedules.effects]
        assert list(schedules.ran()) == schedules.minutes(schedules.created_at, schedules.created_at + 6 * MINUTE)
        assert schedules.most_at_once(90 * SECOND) == 1
        assert max(later - earlier for earlier, later in pairwise(begun)) <= 91 * SECOND
        assert not schedules.skipped()


@pytest.mark.parametrize(("overlap", "at_once"), [("cancel_other", 1), ("replace_other", 2)])
def test_each_occurrence_cancels_the_previous_run(overlap: str, at_once: int) -> None:
    """Each occurrence cancels the previous run, with or without waiting for that run's end."""
    with Schedules() as schedules:
        running: set[str] = set()
        most = 0

        def behave(_phase: str, context: Context) -> str:
            nonlocal most
            running.add(context.task_id)
            most = max(most, len(running))
            while context.requested_action is None:
                schedules.take(SECOND)
            schedules.take(20 * SECOND)
            running.discard(context.task_id)
            raise AttemptCancelled

        schedules.target = behave
        schedules.make(overlap=overlap)
        schedules.run(6 * MINUTE)
        assert list(schedules.ran())[:5] == schedules.minutes(schedules.created_at, schedules.now)[:5]
        assert schedules.tally()["cancelled"] >= 4  # type: ignore[index]  # a state is a string
        assert most == at_once
        assert not schedules.skipped()


def test_a_run_that_waits_for_a_retry_is_cancelled_by_the_next() -> None:
    """A run that waits for a retry is cancelled, and the next occurrence runs on time."""
    with Schedules() as schedules:
        schedules.fail(1)
        schedules.make(
            overlap="cancel_other",
            task={"type": PLAIN, "retry": {"initial_seconds": 3600, "max_seconds": 3600, "max_attempts": 2}},
        )
        schedules.run(3 * MINUTE)
        first, second, third = schedules.placed()[:3]
        assert [each.state for each in (first, second, third)] == ["cancelled", "cancelled", "waiting"]
        assert all(schedules.effect_times(each.id.text)[0] - each.due_at <= SECOND for each in (second, third))


def test_pull_workers_get_no_overlapping_occurrences() -> None:
    """Pull workers get no overlapping occurrences, and no occurrences after the schedule is paused."""
    with Schedules() as schedules:
        schedules.make(task={"type": PULLED, "timeout_seconds": 600})
        leased: list[int] = []

        def pull() -> None:
            wanted = {"types": [PULLED], "wait_seconds": 5, "lease_seconds": 120, "worker": "w"}
            while True:
                answer = schedules.users.ask("POST", "/v1/leases", wanted)
                for lease in answer.body["leases"] if answer is not None else []:
                    leased.append(schedules.now)
                    schedules.take(90 * SECOND)
                    schedules.users.ask("POST", f"/v1/leases/{lease['id']}/complete", {"result": 1})
                schedules.take(SECOND)

        for _ in range(2):
            schedules.time.start_process(pull)
        schedules.run(10 * MINUTE)
        gaps = [later - earlier for earlier, later in pairwise(leased)]
        assert gaps == pytest.approx([2 * MINUTE] * len(gaps), abs=7 * SECOND)
        assert len(leased) >= 4
        schedules.control("pause")
        before = len(leased)
        schedules.run(10 * MINUTE)
        assert len(leased) == before
        assert any("is paused" in reason for reason in schedules.skipped())


def test_later_occurrences_are_skipped_while_a_run_waits_for_its_retry() -> None:
    """While a run waits for its retry, later occurrences are skipped."""
    with Schedules() as schedules:
        schedules.fail(1)
        schedules.make(
            task={"type": "simulation-plain", "retry": {"initial_seconds": 600, "max_attempts": 2}}, remaining_runs=None
        )
        schedules.run(MINUTE)
        first = schedules.placed()[0]
        retry_at = schedules.record(first.id.text).next_at
        schedules.target = lambda _phase, _context: "done"
        schedules.time.run_until(retry_at - SECOND)
        assert list(schedules.ran()) == [first.due_at]
        schedules.run(2 * MINUTE)
        assert schedules.ran()[first.due_at] == 2
        assert len(schedules.ran()) >= 2


def test_the_waiting_run_begins_soon_after_the_active_run_is_cancelled() -> None:
    """If a user cancels the active run, the waiting run begins within a minute."""
    with Schedules() as schedules:
        schedules.fail()
        schedules.make(
            overlap="buffer_one",
            task={"type": "simulation-plain", "retry": {"initial_seconds": 3600, "max_seconds": 3600}},
        )
        schedules.run(2 * MINUTE)
        first, second = schedules.placed()[:2]
        schedules.target = lambda _phase, _context: "done"
        assert schedules.cancel(first.id.text).status == 200
        schedules.run(MINUTE + 5 * SECOND)
        assert schedules.state(second.id.text) == "succeeded"


# Permanent schedules.


def test_a_permanent_schedules_runs_start_gap_seconds_after_each_end() -> None:
    """Each run starts `gap_seconds` after the previous run's end, until the number of runs is used up."""
    with slow(7, permanent={"gap_seconds": 3}, remaining_runs=20) as schedules:
        schedules.run(10 * MINUTE)
        begun = [effect.at for effect in schedules.effects]
        gaps = [later - earlier for earlier, later in pairwise(begun)]
        assert begun[0] - schedules.created_at <= SECOND
        assert gaps == pytest.approx([10 * SECOND] * 19, abs=500)
        assert min(gaps) >= 10 * SECOND
        assert schedules.schedule()["state"] == "ended"


def test_a_permanent_schedule_continues_after_its_next_run_is_cancelled() -> None:
    """If a permanent schedule's next run is cancelled, runs continue within minutes, one at a time."""
    with Schedules() as schedules:
        schedules.make(permanent={"gap_seconds": 30})
        schedules.run(45 * SECOND)
        coming = schedules.placed()[-1]
        assert schedules.cancel(coming.id.text).status == 200
        before = len(schedules.effects)
        schedules.run(10 * MINUTE)
        assert len(schedules.effects) > before + 5
        assert schedules.effects[-1].at > schedules.now - MINUTE
        assert min(later.at - earlier.at for earlier, later in pairwise(schedules.effects)) >= 30 * SECOND


@pytest.mark.slow
def test_a_permanent_schedule_continues_after_its_last_runs_record_expires() -> None:
    """If a cancelled run's record expires during an outage of the trigger, the permanent schedule still continues."""
    with Schedules() as schedules:
        schedules.environ[Variable.RETENTION_DAYS] = "1"
        schedules.make(permanent={"gap_seconds": 30})
        schedules.run(45 * SECOND)
        coming = schedules.placed()[-1]
        assert schedules.cancel(coming.id.text).status == 200
        schedules.ticking = schedules.receiving = False
        schedules.run(DAY + HOUR)
        assert (coming.id.partition, coming.id.text) in schedules.expire()
        schedules.ticking = True
        schedules.receive_again()
        before = len(schedules.effects)
        schedules.run(10 * MINUTE)
        assert len(schedules.effects) > before + 5
        assert schedules.effects[-1].at > schedules.now - MINUTE
        assert min(later.at - earlier.at for earlier, later in pairwise(schedules.effects)) >= 30 * SECOND


def test_a_permanent_schedule_is_paused_resumed_and_ended() -> None:
    """A permanent schedule does not run while paused; after a resume, it continues at its pace until `end_at`."""
    with Schedules() as schedules:
        schedules.make(permanent={"gap_seconds": 10})
        schedules.run(MINUTE)
        schedules.control("pause")
        count = len(schedules.effects)
        schedules.run(10 * MINUTE)
        assert len(schedules.effects) == count
        schedules.control("resume")
        schedules.run(MINUTE)
        assert count + 5 <= len(schedules.effects) <= count + 7
        end = schedules.now + 25 * SECOND
        assert schedules.amend(end_at=to_iso(end)).status == 200
        schedules.run(10 * MINUTE)
        assert end - 12 * SECOND < schedules.effects[-1].at <= end
        assert schedules.schedule()["state"] == "ended"


# Failures that pause.


def test_a_final_failure_pauses_a_schedule_with_pause_on_failure() -> None:
    """With `pause_on_failure`, a final failure pauses the schedule, and the reason names the task."""
    with Schedules() as schedules:

        def behave(_phase: str, _context: Context) -> str:
            if len(schedules.effects) == 2:
                raise Unretriable
            return "done"

        schedules.target = behave
        schedules.make(pause_on_failure=True)
        schedules.run(10 * MINUTE)
        known = schedules.schedule()
        failed = next(task for task in schedules.placed() if task.state == "failed")
        assert known["state"] == "paused"
        assert failed.id.text in known["paused_reason"]
        assert len(schedules.effects) == 2
        schedules.control("resume")
        schedules.run(5 * MINUTE)
        assert len(schedules.effects) == 7


def test_a_run_that_succeeds_in_a_retry_does_not_pause_the_schedule() -> None:
    """A run that succeeds in a retry does not pause the schedule."""
    with Schedules() as schedules:
        schedules.fail(1)
        schedules.make(pause_on_failure=True)
        schedules.run(5 * MINUTE)
        assert schedules.schedule()["state"] == "active"
        assert schedules.tally()["succeeded"] >= 4  # type: ignore[index]  # a state is a string


# Backfills.


def _backfilled(schedules: Schedules) -> list[Task]:
    tasks = schedules.placed()
    return [task for task in tasks if task.schedule_ref and task.schedule_ref.cause is Cause.BACKFILL]


def test_the_due_times_of_a_backfill_follow_its_pace() -> None:
    """At ten per minute, a backfill's thirty runs take three minutes; each runs once, alongside regular runs."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all")
        schedules.run(2 * MINUTE)
        start = (schedules.now // HOUR - 5) * HOUR
        asked_at = schedules.now
        body = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + HOUR // 2), "per_minute": 10}
        assert schedules.control("backfills", body).body["occurrences"] == 30
        schedules.run(5 * MINUTE)
        tasks = _backfilled(schedules)
        assert sorted(task.schedule_ref.nominal for task in tasks if task.schedule_ref) == list(
            range(start, start + HOUR // 2, MINUTE)
        )
        ids = {task.id.text for task in tasks}
        begun = sorted(effect.at - asked_at for effect in schedules.effects if effect.task_id in ids)
        assert begun == pytest.approx([6 * SECOND * number for number in range(30)], abs=500)
        assert schedules.schedule()["backfills"][-1]["finished_at"] is not None
        others = [at for at in schedules.ran() if at > schedules.created_at]
        assert others == schedules.minutes(schedules.created_at, schedules.now)


def test_a_cancelled_backfill_places_no_more_occurrences() -> None:
    """After a backfill is cancelled, only its already placed occurrences, for a few minutes, still run."""
    with Schedules() as schedules:
        schedules.make()
        start = (schedules.now // DAY - 2) * DAY
        body = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + DAY), "per_minute": 6}
        backfill = schedules.control("backfills", body).body["id"]
        schedules.run(2 * MINUTE)
        assert schedules.ask("DELETE", f"{PATH}/backfills/{backfill}").status == 200
        schedules.run(30 * MINUTE)
        assert 2 * 6 <= len(_backfilled(schedules)) <= 7 * 6


@pytest.mark.slow
def test_the_response_to_a_long_backfill_comes_after_its_first_runs() -> None:
    """If saves take four seconds, a backfill is answered after five hundred runs are placed; the others run later.

    The first thousand occurrences are looked up, because each could have a run from before the pause.
    """
    with Schedules() as schedules:
        schedules.make(cron="* * * * * *", overlap="allow_all")
        schedules.control("pause")
        start = schedules.now // SECOND * SECOND - 1_200 * SECOND
        schedules.before_call = lambda call: (
            schedules.take(4 * SECOND)
            if call.operation in {"put_item", "update_item"} and is_of_a_schedule(call)
            else None
        )
        body = {
            "scheduled_after": to_iso(start),
            "scheduled_before": to_iso(start + 1_200 * SECOND),
            "per_minute": 6_000,
        }
        assert schedules.control("backfills", body).status == 201
        schedules.before_call = None
        assert len(_backfilled(schedules)) == 500
        schedules.run(5 * MINUTE)
        tasks = _backfilled(schedules)
        assert len(tasks) == 1_200
        assert {(task.state, task.attempt) for task in tasks} == {("succeeded", 1)}


def test_a_backfill_continues_while_its_schedule_is_paused() -> None:
    """Neither a pause nor a change affects a backfill; a schedule can have at most five backfills at once."""
    with Schedules() as schedules:
        schedules.make(cron="0 0 1 * *")
        body = {
            "scheduled_after": to_iso(schedules.now - 365 * DAY),
            "scheduled_before": to_iso(schedules.now),
            "per_minute": 1,
        }
        schedules.control("backfills", body)
        schedules.control("pause")
        schedules.amend(catch_up_seconds=1)
        schedules.run(20 * MINUTE)
        assert len(schedules.effects) == 12
        again = body | {"only_missing": False}
        statuses = [schedules.control("backfills", again).status for _ in range(6)]
        assert statuses == [201] * 5 + [409]


# Calendars.


@pytest.mark.parametrize("on_excluded", ["skip", "move"])
def test_occurrences_that_a_calendar_excludes_are_skipped_or_moved(on_excluded: str) -> None:
    """On an excluded day, occurrences are skipped with a reason or moved to the next moment that is not excluded."""
    with Schedules() as schedules:
        midnight = (schedules.now // DAY + 1) * DAY
        # Some hours pass without work.
        schedules.ticking = False
        schedules.time.run_until(midnight - 70 * MINUTE)
        schedules.ticking = True
        today = to_iso(schedules.now)[:10]
        assert schedules.ask("PUT", "/v1/calendars/off", {"dates": {today: "a day off"}}).status in {200, 201}
        cron = "*/30 * * * *" if on_excluded == "skip" else "50 23 * * *"
        schedules.make(cron=cron, calendars=["off"], on_excluded=on_excluded)
        schedules.time.run_until(midnight + 65 * MINUTE)
        if on_excluded == "skip":
            assert list(schedules.ran()) == [midnight, midnight + 30 * MINUTE, midnight + HOUR]
            assert "a day off" in str(schedules.schedule())
            assert schedules.schedule()["runs_skipped"] > 0
        else:
            (effect,) = schedules.effects
            assert 0 <= effect.at - midnight <= SECOND


@pytest.mark.parametrize(
    "timing", [{"cron": "* * * * *"}, {"permanent": {"gap_seconds": 30}}], ids=["cron", "permanent"]
)
def test_a_schedule_whose_calendar_was_removed_is_paused(timing: dict[str, Any]) -> None:
    """A schedule whose calendar is deleted during its creation is paused; a calendar in use cannot be deleted."""
    with Schedules() as schedules:
        path = "/v1/calendars/off"
        assert schedules.ask("PUT", path, {"dates": ["2030-12-25"]}).status in {200, 201}

        def make_first(_call: Call) -> None:
            body = {"name": NAME, "task": {"type": PLAIN}, "calendars": ["off"], **timing}
            reply = schedules.users.ask("POST", "/v1/schedules", body)
            assert reply is not None
            assert reply.status == 201, reply.body

        # The deletion has found no schedule that uses the calendar.
        schedules.once(lambda call: call.operation == "put_item" and "off" in str(call.request["Item"]), make_first)
        assert schedules.ask("DELETE", path).status in {200, 204}
        schedules.run(5 * MINUTE)
        shown = schedules.schedule()
        assert (shown["state"], shown["paused_reason"]) == ("paused", "calendars[0]: there is no calendar 'off'")
        count = len(schedules.effects)
        schedules.run(5 * MINUTE)
        assert len(schedules.effects) == count
        assert schedules.ask("PUT", path, {"dates": ["2030-12-25"]}).status in {200, 201}
        assert schedules.control("resume").status == 200
        schedules.run(5 * MINUTE)
        assert len(schedules.effects) >= count + 4
        assert schedules.ask("DELETE", path).body["code"] == "calendar_in_use"


def test_an_occurrence_is_counted_as_skipped_once_although_its_worker_dies() -> None:
    """If a worker dies before it writes a skipped task, the next worker does not count the occurrence again."""
    with Schedules() as schedules:
        schedules.target = lambda _phase, _context: schedules.take(100 * SECOND)
        schedules.make(cron="* * * * *", overlap="skip")

        def is_skip(call: Call) -> bool:
            return call.operation == "update_item" and "is still running" in str(call.request)

        died = schedules.once(is_skip, lambda call: call.machine.die())
        assert schedules.run_until(lambda: died, 5 * MINUTE)
        schedules.run(20 * MINUTE)
        assert schedules.schedule()["runs_skipped"] == len(schedules.skipped())
