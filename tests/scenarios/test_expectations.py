"""Schedules with expectations report every missing success, and report nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.contract.http.timestamps import instant_of
from duetime.domain.operating_parameters import EXPECTATION_READS
from duetime.domain.times import DAY, to_iso
from duetime.handlers import Unretriable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import Schedules
from tests.simulation.endpoints import NOTICE_URL


def expected(schedules: Schedules) -> dict[str, Any]:
    """The schedule's expectation as the API shows it, or an empty state."""
    found: dict[str, Any] | None = schedules.schedule()["expectation"]
    return found or {"missed_at": None, "met_at": None, "misses": 0}


def by(instant: int) -> str:
    """The time of day of an instant, in UTC."""
    return to_iso(instant)[11:16]


def until(schedules: Schedules, deadline: int) -> None:
    """Let time pass until a deadline has been checked."""
    schedules.run(deadline - schedules.now + 3 * MINUTE)


def test_a_run_that_succeeds_in_time_meets_the_expectation() -> None:
    """If a run succeeds in time, no miss is counted, and the schedule shows when the expectation was met."""
    with Schedules() as schedules:
        deadline = (schedules.now // MINUTE + 20) * MINUTE
        schedules.make(rate="10 minutes", expect_success_by=by(deadline))
        until(schedules, deadline)
        found = expected(schedules)
        assert (found["missed_at"], found["misses"]) == (None, 0)
        assert instant_of(found["met_at"]) <= deadline
        assert schedules.counts()["expectations_missed"] == 0


@pytest.mark.parametrize("delay", [0, 7 * MINUTE + 11 * SECOND])
def test_runs_that_fail_miss_the_expectation_once_a_day(delay: int) -> None:
    """If all of a day's runs fail, one miss is counted and logged at the day's deadline."""
    with Schedules() as schedules:
        schedules.run(delay)
        schedules.fail(error=Unretriable)
        deadline = (schedules.now // MINUTE + 20) * MINUTE
        schedules.make(rate="10 minutes", expect_success_by=by(deadline))
        schedules.run(deadline - schedules.now - SECOND)
        assert schedules.counts()["expectations_missed"] == 0
        until(schedules, deadline)
        found = expected(schedules)
        assert (instant_of(found["missed_at"]), found["met_at"], found["misses"]) == (deadline, None, 1)
        assert schedules.counts()["expectations_missed"] == 1
        assert schedules.notes().count("a schedule missed what is expected of it") == 1
        told = [each["reason"] for each in schedules.schedule()["skipped_runs"]]
        assert any("by the deadline" in reason for reason in told)


def test_each_period_without_a_success_counts_as_a_miss() -> None:
    """Every ten minutes without a success count as one miss if a success is expected every ten minutes."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="2 minutes", expect_every_seconds=600)
        schedules.run(35 * MINUTE)
        assert expected(schedules)["misses"] == schedules.counts()["expectations_missed"] == 3


def test_periods_without_a_due_run_also_count_as_misses() -> None:
    """An hourly expectation is missed even if no run is due within the hour."""
    with Schedules() as schedules:
        schedules.make(rate="1 day", start_at=to_iso(schedules.now + DAY), expect_every_seconds=3600)
        schedules.run(HOUR + 10 * MINUTE)
        assert expected(schedules)["misses"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("days", [1.9, 2.1, 7])
def test_an_expectation_over_days_is_missed_at_its_periods_end(days: float) -> None:
    """If every run fails, an expectation with a period of days is missed once, at the end of the period."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="6 hours", expect_every_seconds=int(days * DAY) // SECOND)
        deadline = schedules.now + int(days * DAY)
        schedules.time.run_until(deadline - HOUR)
        assert expected(schedules)["misses"] == 0
        schedules.time.run_until(deadline + HOUR)
        found = expected(schedules)
        assert found["misses"] == schedules.counts()["expectations_missed"] == 1
        assert abs(instant_of(found["missed_at"]) - deadline) < SECOND


@pytest.mark.slow
def test_a_success_counts_however_many_runs_fail_after_it() -> None:
    """A success counts even if more later runs have failed than a deadline's check reads."""
    with Schedules() as schedules:
        deadline = (schedules.now // MINUTE + 3 * 60 + 25) * MINUTE
        schedules.make(
            rate="10 seconds",
            expect_success_by=by(deadline),
            task={"type": PLAIN, "timeout_seconds": 60, "retry": {"max_attempts": 1}},
        )
        schedules.run(20 * MINUTE)
        schedules.fail(error=Unretriable)
        until(schedules, deadline)
        assert schedules.tally()["failed"] > EXPECTATION_READS  # type: ignore[index]  # a state is a string
        assert expected(schedules)["misses"] == 0


@pytest.mark.slow
def test_the_success_of_a_long_run_counts_despite_skipped_occurrences() -> None:
    """The success of a long run counts, even if many occurrences were skipped during the run."""
    with Schedules() as schedules:
        schedules.last(800)
        schedules.make(rate="1 second", expect_every_seconds=1200, task={"type": PLAIN, "timeout_seconds": 840})
        schedules.run(25 * MINUTE)
        assert len(schedules.effects) == 2
        assert expected(schedules)["misses"] == 0
        assert expected(schedules)["met_at"] is not None


def test_a_success_starts_the_next_period() -> None:
    """If runs succeed every eight minutes, an expectation of a success every ten minutes is never missed."""
    with Schedules() as schedules:
        schedules.make(rate="8 minutes", expect_every_seconds=600)
        schedules.run(HOUR)
        found = expected(schedules)
        assert found["misses"] == 0
        assert instant_of(found["met_at"]) > schedules.now - 25 * MINUTE


def test_a_success_after_a_miss_is_shown_beside_the_counted_miss() -> None:
    """After a miss, a later success is shown, but the miss stays counted."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="5 minutes", expect_every_seconds=600)
        schedules.run(15 * MINUTE)
        assert expected(schedules)["misses"] == 1
        schedules.target = lambda _phase, _context: "done"
        schedules.run(30 * MINUTE)
        found = expected(schedules)
        assert found["misses"] in {1, 2}
        assert instant_of(found["met_at"]) > instant_of(found["missed_at"])


def test_a_failed_run_counts_as_a_success_once_its_retry_succeeds() -> None:
    """A run that failed at the deadline counts as a success for the next period once its retry succeeds."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="4 hours", expect_every_seconds=3600)
        schedules.run(HOUR + 4 * MINUTE)
        assert expected(schedules)["misses"] == 1
        schedules.target = lambda _phase, _context: "done"
        (run,) = [task for task in schedules.placed() if task.state == "failed"]
        assert schedules.ask("POST", f"/v1/tasks/{run.id}/retry").status == 200
        schedules.run(HOUR)
        assert expected(schedules)["misses"] == 1
        assert expected(schedules)["met_at"] is not None


def test_a_paused_schedule_has_no_misses_until_a_full_period_later() -> None:
    """A paused schedule has no misses; after a resume, a complete period passes before the next miss."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="5 minutes", expect_every_seconds=1200)
        schedules.run(10 * MINUTE)
        assert schedules.control("pause").status == 200
        schedules.run(2 * HOUR)
        assert schedules.counts()["expectations_missed"] == 0
        assert schedules.control("resume").status == 200
        schedules.run(15 * MINUTE)
        assert schedules.counts()["expectations_missed"] == 0
        schedules.run(15 * MINUTE)
        assert schedules.counts()["expectations_missed"] == 1


def test_misses_are_counted_only_while_there_is_an_expectation() -> None:
    """Misses are counted only while the schedule has an expectation."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="5 minutes")
        schedules.run(30 * MINUTE)
        assert schedules.schedule()["expectation"] is None
        assert schedules.amend(expect_every_seconds=600).status == 200
        schedules.run(15 * MINUTE)
        assert expected(schedules)["misses"] == 1
        assert schedules.amend(expect_every_seconds=None).status == 200
        schedules.run(30 * MINUTE)
        assert schedules.schedule()["expectation"] is None
        assert schedules.counts()["expectations_missed"] == 1


def test_deadlines_missed_in_an_outage_are_checked_afterwards() -> None:
    """After a three-hour outage, the trigger checks the deadlines that were missed in the meantime."""
    with Schedules() as schedules:
        schedules.make(rate="5 minutes", expect_every_seconds=1800)
        schedules.run(20 * MINUTE)
        schedules.ticking = False
        schedules.run(3 * HOUR)
        schedules.ticking = True
        schedules.run(20 * MINUTE)
        assert 4 <= expected(schedules)["misses"] <= 6


def test_a_miss_is_counted_later_if_records_cannot_be_read() -> None:
    """If records cannot be read at a deadline, the miss is counted once reading works again."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="5 minutes", expect_every_seconds=900)
        schedules.run(14 * MINUTE)
        back_at = schedules.now + 10 * MINUTE
        refused = schedules.refuse(
            lambda call: (
                call.operation == "batch_get_item" and call.machine.function == "trigger" and schedules.now < back_at
            )
        )
        schedules.time.run_until(back_at - SECOND)
        assert refused
        assert schedules.counts()["expectations_missed"] == 0
        schedules.run(10 * MINUTE)
        assert expected(schedules)["misses"] == schedules.counts()["expectations_missed"] >= 1


def test_the_trigger_reads_no_records_for_a_schedule_without_expectations() -> None:
    """For a schedule without an expectation, the trigger reads no task records."""
    with Schedules() as schedules:
        schedules.make(rate="5 minutes")
        schedules.run(30 * MINUTE)
        by_trigger = [line for line in schedules.lines if str(line[1]).startswith("trigger")]
        assert by_trigger
        assert not [line for line in by_trigger if line[2] == "batch_get_item"]


NOTIFIED: dict[str, Any] = {"type": PLAIN, "timeout_seconds": 600, "notify_on": {"to": NOTICE_URL, "failed": True}}


def test_a_run_that_takes_a_multiple_of_the_usual_time_is_notified() -> None:
    """After three runs of ten seconds, a run that does not end causes a notice after about 30 seconds."""
    with Schedules() as schedules:
        schedules.last(10)
        schedules.make(task=NOTIFIED, expect_duration_factor=3)
        assert schedules.run_until(lambda: len(schedules.effects) == 6, within=10 * MINUTE)
        assert schedules.notices == []
        schedules.run(30 * SECOND)
        schedules.last(500)
        assert schedules.run_until(lambda: schedules.notices, within=10 * MINUTE)
        limits = [task.notify_on.running_seconds for task in schedules.placed() if task.notify_on]
        assert limits[0] is None, "no run is known yet"
        assert {limit for limit in limits if limit is not None} == {31}, "ten seconds, and what a start and an end take"
        (notice, _), started = schedules.notices[0], schedules.effects[-1].at
        assert notice.endswith("-running")
        assert 0 <= schedules.now - (started + 31 * SECOND) <= 2 * SECOND


@pytest.mark.parametrize(("own", "limits"), [(5, {5}), (900, {900, 31})])
def test_the_shorter_of_two_limits_applies(own: int, limits: set[int]) -> None:
    """A run's limit is the lower of its task's limit and the schedule's limit, which needs three successful runs."""
    with Schedules() as schedules:
        schedules.last(10)
        notify_on = {**NOTIFIED["notify_on"], "running_seconds": own}
        schedules.make(task={**NOTIFIED, "notify_on": notify_on}, expect_duration_factor=3)
        schedules.run(12 * MINUTE)
        schedules.control("run")
        assert {task.notify_on.running_seconds for task in schedules.placed() if task.notify_on} == limits
        last = schedules.placed()[-1].notify_on
        assert last is not None
        assert last.running_seconds == min(own, 31)


def test_the_usual_duration_of_a_deferred_run_ends_with_its_report() -> None:
    """A deferred run's duration is the time until its end was reported, not the time that its follow-ups took."""
    with Schedules() as schedules:
        schedules.target = lambda _phase, context: context.defer()
        schedules.make(task={**NOTIFIED, "notify_within_seconds": 600}, cron="*/10 * * * *", expect_duration_factor=2)
        for _ in range(4):
            assert schedules.run_until(lambda: any(each.awaiting_notification for each in schedules.placed()))
            schedules.run(5 * MINUTE)
            (task,) = (each for each in schedules.placed() if each.awaiting_notification)
            reply = schedules.do(task.id.text, "notify", {"fence": task.fence, "outcome": "succeeded", "result": 1})
            assert reply.status == 200
        last = schedules.placed()[-1].notify_on
        assert last is not None
        assert last.running_seconds in {600, 601}


def test_failed_runs_do_not_affect_the_usual_duration() -> None:
    """Failed runs do not count toward the usual duration."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(
            task={**NOTIFIED, "notify_on": {"to": NOTICE_URL, "late_seconds": 600}}, expect_duration_factor=2
        )
        schedules.run(12 * MINUTE)
        assert {task.notify_on.running_seconds for task in schedules.placed() if task.notify_on} == {None}


@pytest.mark.parametrize(
    "fields",
    [
        {"expect_success_by": "6:00"},
        {"expect_success_by": "24:00"},
        {"expect_every_seconds": 59},
        {"expect_every_seconds": 604_801},
        {"expect_every_seconds": 600, "permanent": {"gap_seconds": 1}},
        {"expect_duration_factor": 1},
        {"expect_duration_factor": 1_001},
        {"expect_duration_factor": 3},
    ],
)
def test_an_invalid_expectation_is_rejected(fields: dict[str, Any]) -> None:
    """An invalid expectation is refused, and no schedule is created."""
    with Schedules() as schedules:
        body = {
            "name": "odd",
            "task": {"type": "plain"},
            **({} if "permanent" in fields else {"rate": "1 hour"}),
            **fields,
        }
        reply = schedules.ask("POST", "/v1/schedules", body)
        assert reply.status == 422, reply.body
        assert [each["field"] for each in reply.body["errors"]] == [next(iter(fields))]
        assert schedules.ask("GET", "/v1/schedules/odd").status == 404
