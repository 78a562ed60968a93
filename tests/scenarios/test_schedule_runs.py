"""A schedule's occurrences are listed for its complete life and across all changes."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import to_iso
from duetime.environment_variables import Variable
from duetime.handlers import Unretriable
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.schedules import PATH, Schedules
from tests.scenarios.tasks import ONCE

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = f"{PATH}/runs"


def page(schedules: Schedules, query: str = "") -> dict[str, Any]:
    """One page of runs."""
    answer = schedules.ask("GET", RUNS, query=query)
    assert answer.status == 200, answer.body
    body: dict[str, Any] = answer.body
    return body


def every_page(schedules: Schedules, limit: int, query: str = "") -> Iterator[dict[str, Any]]:
    """The runs of all pages, in order."""
    token = ""
    while True:
        found = page(schedules, f"limit={limit}{query}{token}")
        yield from found["runs"]
        if found["next_token"] is None:
            return
        token = f"&next_token={found['next_token']}"


def happened(schedules: Schedules) -> list[dict[str, Any]]:
    """The runs up to now, newest first."""
    return [each for each in page(schedules)["runs"] if each["status"] != "planned"]


def test_every_run_is_listed_newest_first_with_task_start_and_end() -> None:
    """Runs are listed newest first, planned runs before past runs, each with its task, start and end."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(10 * MINUTE)
        answer = page(schedules)
        found = answer["runs"]
        times = [datetime.fromisoformat(each["scheduled_at"]) for each in found]
        assert all((later - earlier).total_seconds() == 60 for later, earlier in pairwise(times))
        counts = Counter(each["status"] for each in found)
        assert counts["succeeded"] == 10
        assert counts["planned"] >= 5
        assert set(counts) == {"succeeded", "planned"}
        ran = [each for each in found if each["status"] == "succeeded"]
        assert all(each["started_at"] and each["finished_at"] and each["task_id"] for each in ran)
        assert {each["cause"] for each in found} == {"schedule"}
        listed = schedules.ask("GET", "/v1/schedules").body["schedules"]
        assert listed[0]["last_run"] == schedules.schedule()["last_run"]
        assert (answer["next_token"], answer["applied"]["scheduled_before"]) == (None, None)


def test_runs_stay_listed_after_changes_pauses_and_manual_runs() -> None:
    """Regular, manual and backfilled runs from all revisions are listed, and skipped runs have a reason."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(3 * MINUTE)
        schedules.amend(task={"type": "simulation-plain", "payload": 2})
        schedules.run(3 * MINUTE)
        schedules.amend(cron="*/2 * * * *")
        schedules.run(4 * MINUTE)
        schedules.control("run")
        schedules.run(30 * SECOND)
        schedules.control("pause", {"reason": "paper is out"})
        schedules.run(5 * MINUTE)
        paused = [each for each in happened(schedules) if "paused" in (each["reason"] or "")]
        assert len(paused) >= 2
        assert {each["status"] for each in paused} == {"skipped"}
        schedules.control("resume")
        schedules.run(3 * MINUTE)
        ran = [each for each in happened(schedules) if each["status"] == "succeeded"]
        assert len({each["revision"] for each in ran}) >= 3
        assert Counter(each["cause"] for each in ran)["manual"] == 1
        made = [task for task in schedules.placed() if task.state == "succeeded"]
        assert sorted(each["task_id"] for each in ran) == [task.id.text for task in made]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_the_pages_of_a_list_of_runs_are_complete_without_repetition(limit: int) -> None:
    """With any page size, no run is repeated or left out, and no run of another schedule is listed."""
    with Schedules() as schedules:
        schedules.make()
        schedules.ask(
            "POST", "/v1/schedules", {"name": "other", "rate": "1 minute", "task": {"type": "simulation-plain"}}
        )
        for _ in range(12):
            schedules.create()
            schedules.run(MINUTE)
        found = [each for each in every_page(schedules, limit) if each["status"] != "planned"]
        mine = [
            task.id.text for task in schedules.placed() if task.schedule_ref and task.schedule_ref.schedule == "nightly"
        ]
        done = [each["task_id"] for each in found]
        assert len(done) == len(set(done)) == 12
        assert set(done) <= set(mine)
        times = [each["scheduled_at"] for each in found]
        assert times == sorted(times, reverse=True)


def test_only_runs_in_the_requested_window_are_listed() -> None:
    """Only times in the requested window are listed, including planned times; a reversed window is refused."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(10 * MINUTE)
        first, last = to_iso(schedules.now - 6 * MINUTE), to_iso(schedules.now - 2 * MINUTE)
        window = f"scheduled_after={first}&scheduled_before={last}"
        found = page(schedules, window)
        assert found["applied"]["scheduled_after"] == first
        assert found["applied"]["scheduled_before"] == last
        assert len(found["runs"]) == 4
        assert all(first <= each["scheduled_at"] < last for each in found["runs"])
        assert len(list(every_page(schedules, 1, f"&{window}"))) == 4
        assert page(schedules, f"scheduled_after={to_iso(schedules.now + HOUR)}")["runs"] == []
        backwards = schedules.ask("GET", RUNS, query=f"scheduled_after={last}&scheduled_before={first}")
        assert (backwards.status, backwards.body["errors"][0]["field"]) == (400, "scheduled_before")
        other = page(schedules, "limit=1")["next_token"]
        assert schedules.ask("GET", RUNS, query=f"{window}&next_token={other}").status == 400


def test_the_runs_of_a_frequent_schedule_that_have_ended_are_found_at_once() -> None:
    """With a filter by status, ended runs are on the first page even if a schedule runs every second."""
    with Schedules() as schedules:
        schedules.fail(error=Unretriable)
        schedules.make(rate="1 second", overlap="allow_all")
        schedules.run(MINUTE)
        schedules.target = lambda _phase, _context: "done"
        schedules.run(MINUTE)
        assert {each["status"] for each in page(schedules, "limit=100")["runs"]} == {"planned"}
        assert {each["status"] for each in page(schedules, "limit=100&status=failed")["runs"]} == {"failed"}
        both = list(every_page(schedules, 100, "&status=failed&status=succeeded"))
        assert {each["status"] for each in both} == {"failed", "succeeded"}
        assert len(both) == len(schedules.ran())
        assert not any(each["status"] == "planned" for each in page(schedules, "status=succeeded")["runs"])
        assert schedules.ask("GET", RUNS, query="status=odd").status == 400


def test_failed_runs_are_listed_with_error_and_skipped_runs_with_reason() -> None:
    """In the list, a failed run has its error, and a skipped run its reason."""
    with Schedules() as schedules:

        def work(_phase: str, _context: Any) -> str:  # noqa: ANN401 - a handler gets it
            if schedules.now < schedules.created_at + 2 * MINUTE:
                raise ValueError("no paper")
            schedules.take(150 * SECOND)
            return "done"

        schedules.target = work
        schedules.make(task={"type": "simulation-plain", "timeout_seconds": 600, "retry": ONCE})
        schedules.run(10 * MINUTE)
        found = happened(schedules)
        failed = [each for each in found if each["status"] == "failed"]
        assert failed
        assert all("no paper" in each["reason"] for each in failed)
        skipped = [each for each in found if each["status"] == "skipped"]
        assert skipped
        assert all("still running" in each["reason"] for each in skipped)
        assert found[-1]["status"] == "failed"


def test_excluded_occurrences_do_not_hide_earlier_runs() -> None:
    """More excluded occurrences than a page holds do not hide earlier runs."""
    with Schedules() as schedules:
        start, end = schedules.now + 3 * MINUTE, schedules.now + 4 * HOUR
        spans = [{"start": to_iso(start), "end": to_iso(end), "reason": "works"}]
        schedules.ask("PUT", "/v1/calendars/closed", {"mode": "excludes", "timezone": "UTC", "spans": spans})
        schedules.make(calendars=["closed"])
        schedules.run(4 * HOUR + 5 * MINUTE)
        found = [each for each in every_page(schedules, 50) if each["status"] != "planned"]
        counts = Counter(each["status"] for each in found)
        assert counts["skipped"] == pytest.approx(237, abs=2)
        assert counts["succeeded"] == len(found) - counts["skipped"]
        assert counts["succeeded"] == len([task for task in schedules.placed() if task.state == "succeeded"])
        assert all("works" in each["reason"] for each in found if each["status"] == "skipped")
        times = [each["scheduled_at"] for each in found]
        assert times == sorted(times, reverse=True)
        assert len(set(times)) == len(times)


def test_occurrences_missed_in_an_outage_are_listed_without_a_task() -> None:
    """Occurrences missed in an outage longer than `catch_up_seconds` are listed as missed."""
    with Schedules() as schedules:
        schedules.make(catch_up_seconds=60)
        schedules.run(3 * MINUTE)
        stopped, schedules.ticking = schedules.now, False
        schedules.run(30 * MINUTE)
        schedules.ticking = True
        schedules.run(5 * MINUTE)
        missed = [each for each in happened(schedules) if each["status"] == "missed"]
        assert 20 < len(missed) <= 30
        assert all(each["scheduled_at"] > to_iso(stopped) for each in missed)


def test_a_new_schedule_does_not_list_a_deleted_schedules_runs() -> None:
    """The list of a new schedule does not have the runs of a deleted schedule with the same name."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(5 * MINUTE)
        schedules.ask("DELETE", PATH)
        assert schedules.ask("GET", RUNS).status == 404
        schedules.make(cron="*/5 * * * *")
        assert happened(schedules) == []
        schedules.run(11 * MINUTE)
        assert [each["status"] for each in happened(schedules)] == ["succeeded"] * 2


@pytest.mark.parametrize("limit", [{"remaining_runs": 3}, {"end_at": 3}])
def test_a_schedule_that_has_ended_lists_nothing_after_its_end(limit: dict[str, int]) -> None:
    """After a schedule has ended, the newest entry is the last run, even if it was long ago."""
    with Schedules() as schedules:
        ends = {name: to_iso(schedules.now + number * MINUTE) for name, number in limit.items() if name == "end_at"}
        schedules.make(**(ends or limit))
        schedules.run(30 * MINUTE)
        assert [each["status"] for each in page(schedules)["runs"]] == ["succeeded"] * 3


def test_a_run_whose_task_was_deleted_is_listed_as_expired() -> None:
    """A run whose task was deleted stays in the list as `expired`, and the reason mentions the deletion."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(5 * MINUTE)
        newest = happened(schedules)[1]
        assert schedules.ask("DELETE", f"/v1/tasks/{newest['task_id']}").status == 204
        deleted = happened(schedules)[1]
        assert (deleted["status"], deleted["task_id"]) == ("expired", None)
        assert "deleted" in deleted["reason"]
        assert deleted["scheduled_at"] == newest["scheduled_at"]


@pytest.mark.parametrize("bucket", ["", "archive"], ids=["no archive", "archive"])
def test_runs_whose_tasks_ttl_removed_are_expired_with_the_reason(bucket: str) -> None:
    """Runs whose tasks have been removed are `expired`, and the reason says whether the archive has them."""
    with Schedules() as schedules:
        schedules.environ[Variable.ARCHIVE_BUCKET] = bucket
        schedules.make(end_at=to_iso(schedules.now + 5 * MINUTE))
        schedules.run(6 * MINUTE)
        before = page(schedules)
        schedules.stand_still()
        schedules.run(31 * 24 * HOUR)
        assert schedules.expire()
        after = page(schedules)
        assert [each["scheduled_at"] for each in after["runs"]] == [each["scheduled_at"] for each in before["runs"]]
        assert {each["status"] for each in before["runs"]} == {"succeeded"}
        assert {(each["status"], each["task_id"]) for each in after["runs"]} == {("expired", None)}
        kept_since = datetime.fromisoformat(after["applied"]["tasks_kept_since"]).timestamp() * SECOND
        assert kept_since == pytest.approx(schedules.now - 30 * 24 * HOUR, abs=SECOND)
        assert after["applied"]["is_archived"] is bool(bucket)
        assert all(("the archive has it" in each["reason"]) is bool(bucket) for each in after["runs"])
        assert after["applied"]["complete_since"] == before["applied"]["complete_since"]


def test_complete_since_excludes_unknown_runs_of_a_permanent_schedule() -> None:
    """A permanent schedule's runs without tasks are unknown, so `complete_since` excludes them."""
    with Schedules() as schedules:
        schedules.make(permanent={"gap_seconds": 60})
        schedules.run(5 * MINUTE)
        schedules.control("pause")
        schedules.run(2 * MINUTE)
        before = page(schedules)["applied"]
        assert before["complete_since"] > before["tasks_kept_since"]
        schedules.stand_still()
        schedules.run(31 * 24 * HOUR)
        assert schedules.expire()
        after = page(schedules)
        assert [each for each in after["runs"] if each["task_id"]] == []
        assert after["applied"]["complete_since"] == after["applied"]["tasks_kept_since"]


def test_a_permanent_schedules_runs_are_listed_from_their_tasks() -> None:
    """A permanent schedule's runs are listed from their tasks, because their times cannot be computed."""
    with Schedules() as schedules:
        schedules.make(permanent={"gap_seconds": 60})
        schedules.run(10 * MINUTE)
        assert [each["status"] for each in happened(schedules)].count("succeeded") >= 8
