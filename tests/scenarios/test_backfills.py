"""A backfill that is combined with other changes to its schedule runs each scheduled time of its period once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.tasks.task import Cause
from duetime.domain.times import to_iso
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import PATH, Schedules
from tests.scenarios.test_moved_occurrences import is_a_save

if TYPE_CHECKING:
    from duetime.domain.times import Millis

NUMBER = 20
EVENTS: dict[str, list[tuple[str, str, Any]]] = {
    "pause": [("POST", "/pause", None)],
    "pause and resume": [("POST", "/pause", None), ("POST", "/resume", None)],
    "payload": [("PATCH", "", {"task": {"type": PLAIN, "payload": 1}})],
    "overlap": [("PATCH", "", {"overlap": "buffer_one"})],
    "end": [("PATCH", "", {"end_at": "2099-01-01T00:00:00Z"})],
    "jitter": [("PATCH", "", {"jitter_seconds": 30})],
    "remaining": [("PATCH", "", {"remaining_runs": 1})],
    "run": [("POST", "/run", None)],
}


def backfilled(schedules: Schedules) -> Counter[Millis]:
    """How often each scheduled time was started by a backfill."""
    times = {
        task.id.text: task.schedule_ref.nominal
        for task in schedules.placed()
        if task.schedule_ref and task.schedule_ref.cause is Cause.BACKFILL
    }
    return Counter(times[effect.task_id] for effect in schedules.effects if effect.task_id in times)


def fill_back(schedules: Schedules, start: Millis, number: int = NUMBER, **more: Any) -> list[Millis]:  # noqa: ANN401 - JSON
    """Request a backfill of `number` minutes with four runs per minute; return the scheduled times."""
    end = start + number * MINUTE
    body = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(end), "per_minute": 4, **more}
    assert schedules.control("backfills", body).status == 201
    return list(range(start, end, MINUTE))


@pytest.mark.parametrize("overlap", others_slow(["skip", "buffer_one"]))
@pytest.mark.parametrize("event", EVENTS)
def test_a_backfill_continues_after_a_change_of_its_schedule(event: str, overlap: str) -> None:
    """After any change, the rest of the backfill runs, each time once, and regular runs follow the change."""
    with Schedules() as schedules:
        schedules.make(overlap=overlap)
        schedules.run(MINUTE)
        wanted = fill_back(schedules, schedules.now // HOUR * HOUR - 5 * HOUR)
        schedules.run(90 * SECOND)
        for method, path, body in EVENTS[event]:
            assert schedules.ask(method, f"{PATH}{path}", body).status in {200, 201}
        schedules.run(9 * MINUTE)
        assert backfilled(schedules) == dict.fromkeys(wanted, 1)
        shown = schedules.schedule()
        assert shown["backfills"][-1]["finished_at"] is not None
        assert max(schedules.ran().values()) == 1
        regular = [at for at in schedules.ran() if at > schedules.created_at]
        assert len(regular) >= {"pause": 2, "remaining": 3}.get(event, 11), regular
        if event == "remaining":
            assert shown["state"] == "ended"


def test_a_backfill_survives_an_outage_of_the_trigger_and_a_catch_up() -> None:
    """After ten minutes without the trigger, the backfill completes, and all six regular runs start."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all", remaining_runs=6)
        wanted = fill_back(schedules, schedules.now // HOUR * HOUR - 5 * HOUR)
        schedules.run(MINUTE)
        schedules.ticking = False
        schedules.run(10 * MINUTE)
        schedules.ticking = True
        schedules.run(15 * MINUTE)
        assert backfilled(schedules) == dict.fromkeys(wanted, 1)
        regular = sum(schedules.ran().values()) - len(wanted)
        assert (regular, schedules.schedule()["state"]) == (6, "ended")


def test_no_run_of_a_backfill_starts_after_its_schedule_is_deleted() -> None:
    """After a schedule is deleted, neither the backfill's placed occurrences nor its remaining times start."""
    with Schedules() as schedules:
        schedules.make(cron="0 0 1 * *")
        assert schedules.amend(cron="* * * * *").status == 200
        fill_back(schedules, schedules.now // HOUR * HOUR - 5 * HOUR)
        schedules.run(30 * SECOND)
        assert schedules.ask("DELETE", PATH).status == 200
        begun = len(schedules.effects)
        assert begun
        schedules.run(10 * MINUTE)
        assert len(schedules.effects) == begun


@pytest.mark.parametrize("how", ["cancel", "run"])
def test_a_backfill_runs_scheduled_times_whose_occurrences_were_stopped(how: str) -> None:
    """A backfill runs a scheduled time whose occurrence was cancelled or run early before a change to the schedule."""
    with Schedules() as schedules:
        schedules.run(MINUTE - schedules.now % MINUTE + 15 * SECOND)
        schedules.make(overlap="allow_all")
        second = schedules.placed()[1]
        assert schedules.ask("POST", f"/v1/tasks/{second.id}/{how}").status in {200, 202}
        assert schedules.amend(catch_up_seconds=70).status == 200
        schedules.run(10 * MINUTE)
        assert second.schedule_ref is not None
        wanted = fill_back(schedules, second.schedule_ref.nominal, 2, only_missing=False)
        schedules.run(MINUTE)
        assert backfilled(schedules) == dict.fromkeys(wanted, 1)


@pytest.mark.parametrize(
    "changes",
    [(), ({"jitter_seconds": 0, "catch_up_seconds": 60},), ({"cron": "*/2 * * * *"}, {"cron": "* * * * *"})],
    ids=["unchanged", "edited", "with other timings"],
)
def test_a_backfill_of_missing_runs_skips_times_with_a_run(changes: tuple[dict[str, Any], ...]) -> None:
    """A backfill runs each minute of a pause once, but no minute that has a run, even if that run failed."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all", task={"type": PLAIN, "retry": {"max_attempts": 1}})
        schedules.fail(1)
        start = schedules.created_at // MINUTE * MINUTE
        schedules.run(4 * MINUTE)
        schedules.control("pause")
        schedules.run(5 * MINUTE)
        schedules.control("resume")
        schedules.run(3 * MINUTE)
        for change in changes:
            assert schedules.amend(**change).status == 200
        ran = schedules.ran()
        period = fill_back(schedules, start, 12, per_minute=60)
        schedules.run(MINUTE)
        missing = [at for at in period if at not in ran]
        assert len(missing) == pytest.approx(5, abs=1)
        assert backfilled(schedules) == dict.fromkeys(missing, 1)
        shown = schedules.schedule()["backfills"][-1]
        assert (shown["runs_started"], shown["runs_known"]) == (len(missing), len(period) - len(missing))
        fill_back(schedules, start, 12, per_minute=60)
        schedules.run(MINUTE)
        assert backfilled(schedules) == dict.fromkeys(missing, 1)


def test_times_with_a_run_do_not_slow_a_backfill_down() -> None:
    """Times that already have a run do not slow a backfill down."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all")
        schedules.control("pause")
        start = schedules.now // HOUR * HOUR - 5 * HOUR
        fill_back(schedules, start, 200, per_minute=6_000)
        schedules.run(MINUTE)
        fill_back(schedules, start, 203, per_minute=1)
        schedules.run(MINUTE)
        assert schedules.schedule()["backfills"][-1]["runs_known"] == 200
        assert len(backfilled(schedules)) == 202
        schedules.run(2 * MINUTE)
        assert set(backfilled(schedules).values()) == {1}
        assert len(backfilled(schedules)) == 203


def test_a_backfill_of_missing_runs_includes_skipped_occurrences() -> None:
    """A backfill of missing runs includes the runs that the schedule's `overlap` policy skipped."""
    with Schedules() as schedules:
        schedules.last(90)
        schedules.make(overlap="skip")
        start = schedules.now // MINUTE * MINUTE + MINUTE
        schedules.run(6 * MINUTE)
        schedules.control("pause")
        ran = schedules.ran()
        period = fill_back(schedules, start, 4)
        schedules.run(2 * MINUTE)
        missing = [at for at in period if at not in ran]
        assert missing
        assert backfilled(schedules) == dict.fromkeys(missing, 1)


@pytest.mark.parametrize("is_paused", [False, True])
def test_overlapping_runs_of_a_backfill_run_one_at_a_time(is_paused: bool) -> None:  # noqa: FBT001 - a test parameter
    """Twelve overlapping runs of a backfill run one at a time, whether or not the schedule is paused."""
    with Schedules() as schedules:
        schedules.last(30)
        schedules.make(cron="*/5 * * * *", overlap="skip")
        if is_paused:
            schedules.control("pause")
        start = schedules.now // HOUR * HOUR - 10 * HOUR
        fill_back(schedules, start, 5 * 12, per_minute=60, overlap="buffer_all")
        schedules.run(12 * MINUTE)
        assert dict(backfilled(schedules)) == dict.fromkeys(range(start, start + HOUR, 5 * MINUTE), 1)
        assert schedules.most_at_once(30 * SECOND) == 1


def test_a_buffered_backfill_does_not_change_the_last_run() -> None:
    """The `last_run` is a run by the timing, although later runs of a buffered backfill waited in line with it."""
    with Schedules() as schedules:
        schedules.make(cron="0 * * * *", overlap="skip")
        assert schedules.run_until(lambda: schedules.schedule()["last_run"], within=2 * HOUR, step=MINUTE)
        last_run = schedules.schedule()["last_run"]
        start = schedules.now // HOUR * HOUR - 5 * HOUR
        fill_back(schedules, start, 120, per_minute=60, overlap="buffer_all")
        schedules.run(5 * MINUTE)
        assert dict(backfilled(schedules)) == {start: 1, start + HOUR: 1}
        assert schedules.schedule()["last_run"] == last_run


@pytest.mark.parametrize("change", [{"cron": "*/2 * * * *"}, {"timezone": "Asia/Kathmandu"}])
def test_an_interrupted_backfill_repeats_no_run_after_a_timing_change(change: dict[str, Any]) -> None:
    """If the API dies during a backfill and the timing changes, no scheduled time runs twice."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all")
        died = schedules.once(
            lambda call: is_a_save(call) and len(schedules.placed()) > 8, lambda call: call.machine.die()
        )
        start = schedules.now // HOUR * HOUR - 5 * HOUR
        bounds = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + 10 * MINUTE), "per_minute": 10}
        schedules.send("POST", f"{PATH}/backfills", bounds)
        assert schedules.run_until(lambda: died)
        schedules.run(SECOND)
        assert schedules.amend(**change).status == 200
        schedules.run(15 * MINUTE)
        assert max(backfilled(schedules).values()) == 1
