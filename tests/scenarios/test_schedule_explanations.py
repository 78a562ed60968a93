"""Each test covers one reason why a schedule ran, or did not run, at a given time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from duetime.domain.times import to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import PATH, Schedules

DAY = 24 * HOUR


class Explained(Schedules):
    """An account with a schedule to explain."""

    def why(self, at: int) -> dict[str, Any]:
        """The explanation for an instant."""
        reply = self.ask("GET", f"{PATH}/explain", query=f"at={to_iso(at)}")
        assert reply.status == 200, reply.body
        body: dict[str, Any] = reply.body
        return body

    def next_minute(self) -> int:
        """The next full minute."""
        return self.now - self.now % MINUTE + MINUTE


def millis(text: str) -> int:
    """An instant in milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


def test_an_occurrence_that_ran_names_its_task() -> None:
    """The explanation of an occurrence that ran shows its task and outcome; a time between occurrences has no task."""
    with Explained() as schedules:
        schedules.make()
        schedules.run(2 * MINUTE)
        at = schedules.next_minute() - MINUTE
        body = schedules.why(at)
        assert (body["outcome"], body["state"], millis(body["scheduled_at"])) == ("ran", "succeeded", at)
        assert schedules.record(body["task_id"]).due_at == at
        assert (millis(body["previous_at"]), millis(body["next_at"])) == (at - MINUTE, at + MINUTE)
        assert "succeeded" in body["text"]
        assert schedules.why(at + 5 * SECOND)["outcome"] == "not_scheduled"


def test_the_run_at_exactly_the_given_time_is_explained() -> None:
    """The run at exactly the given time is explained, even if a new timing has another run in the same minute."""
    with Explained() as schedules:
        schedules.make()
        at = schedules.next_minute()
        schedules.run(at + 5 * SECOND - schedules.now)
        assert schedules.amend(cron="20,40 * * * * *").status == 200
        schedules.run(MINUTE)
        began = [each.due_at - at for each in schedules.placed() if each.started_at]
        assert began[:2] == [0, 20 * SECOND]
        body = schedules.why(at)
        assert (body["outcome"], millis(body["scheduled_at"])) == ("ran", at)


class Skipped(Exception):
    """An error of a handler that has the same name as the error of a skipped task."""


@pytest.mark.parametrize(("attempts", "state"), [(1, "failed"), (9, "cancelled")])
def test_an_occurrence_that_fails_with_an_error_named_skipped_has_run(attempts: int, state: str) -> None:
    """A handler's own error named `Skipped` does not look like a skip, even if a user cancels the retry."""
    with Explained() as schedules:
        schedules.fail(error=Skipped)
        retry = {"max_attempts": attempts, "initial_seconds": 600, "max_seconds": 600}
        schedules.make(task={"type": PLAIN, "retry": retry})
        at = schedules.next_minute()
        schedules.run(90 * SECOND)
        body = schedules.why(at)
        if state == "cancelled":
            assert schedules.cancel(body["task_id"]).status == 200
            body = schedules.why(at)
        assert (body["outcome"], body["state"]) == ("ran", state)
        runs = schedules.ask("GET", f"{PATH}/runs").body["runs"]
        assert [each["status"] for each in runs if each["task_id"] == body["task_id"]] == [state]


def test_an_occurrence_whose_task_has_not_ended_is_open() -> None:
    """The explanation of an occurrence that has not ended shows the task's current state."""
    with Explained() as schedules:
        schedules.last(300)
        schedules.make()
        at = schedules.next_minute()
        schedules.run(90 * SECOND)
        body = schedules.why(at)
        assert (body["outcome"], body["state"]) == ("open", "running")


def test_the_explanation_of_a_future_occurrence_says_planned() -> None:
    """The explanation of a future occurrence says that the occurrence is planned, and names its due time."""
    with Explained() as schedules:
        schedules.make(cron="30 1 * * *")
        body = schedules.why(millis("2026-11-22T01:30:00Z"))
        assert (body["outcome"], body["due_at"], body["task_id"]) == ("planned", "2026-11-22T01:30:00.000Z", None)


def test_the_explanation_of_an_unscheduled_time_names_the_neighboring_times() -> None:
    """For a time that is not in the timing, the neighboring times are named in UTC and in the schedule's zone."""
    with Explained() as schedules:
        schedules.make(cron="30 1 * * *", timezone="Asia/Tokyo")
        body = schedules.why(millis("2026-11-25T01:30:00Z"))
        assert (body["outcome"], body["scheduled_at"]) == ("not_scheduled", None)
        assert (body["previous_at"], body["next_at"]) == ("2026-11-24T16:30:00.000Z", "2026-11-25T16:30:00.000Z")
        assert "2026-11-26T01:30:00+09:00" in body["text"]


@pytest.mark.parametrize("is_past", [False, True], ids=["to come", "past"])
def test_an_occurrence_that_a_calendar_excludes_names_the_reason(*, is_past: bool) -> None:
    """The explanation of an excluded occurrence shows the calendar's name for the day."""
    with Explained() as schedules:
        day = to_iso(schedules.now)[:10]
        schedules.ask("PUT", "/v1/calendars/holidays", {"dates": {day: "Founders' Day"}})
        schedules.make(cron="0 3 * * *", calendars=["holidays"])
        schedules.run(HOUR if is_past else 0)
        body = schedules.why(millis(f"{day}T03:00:00Z"))
        assert (body["outcome"], body["due_at"]) == ("excluded", None)
        assert "Founders' Day" in body["text"]


def test_a_local_time_that_the_clock_jumped_over_is_named() -> None:
    """The explanation for 01:30 on the night when clocks go forward says that this local time does not exist."""
    with Explained() as schedules:
        schedules.make(cron="30 1 * * *", timezone="Europe/London")
        body = schedules.why(millis("2027-03-28T01:30:00+00:00"))
        assert body["outcome"] == "clock_change"
        assert "does not exist on 2027-03-28" in body["text"]


def test_an_occurrence_during_an_earlier_run_was_skipped() -> None:
    """The explanation of a skipped occurrence names the run that was active."""
    with Explained() as schedules:
        schedules.last(150)
        schedules.make()
        first = schedules.next_minute()
        schedules.run(4 * MINUTE)
        body = schedules.why(first + MINUTE)
        assert (body["outcome"], body["state"]) == ("skipped", "cancelled")
        assert "is still running" in body["text"]


def test_an_occurrence_during_an_outage_was_missed() -> None:
    """An occurrence during an outage of the trigger is explained as late and, after the outage, as missed."""
    with Explained() as schedules:
        schedules.make(cron="*/5 * * * *")
        schedules.run(6 * MINUTE)
        schedules.ticking = False
        lost = schedules.now - schedules.now % (5 * MINUTE) + 10 * MINUTE
        schedules.run(HOUR)
        late = schedules.why(lost)
        assert late["outcome"] == "late"
        schedules.ticking = True
        schedules.run(10 * MINUTE)
        body = schedules.why(lost)
        assert body["outcome"] == "missed"
        assert "missed" in body["text"]


def test_the_explanation_of_an_occurrence_during_a_pause_has_the_reason() -> None:
    """The explanation of an occurrence during a pause shows the pause's reason, even after the pause."""
    with Explained() as schedules:
        schedules.make()
        schedules.run(90 * SECOND)
        schedules.control("pause", {"reason": "a release"})
        at = schedules.next_minute() + 5 * MINUTE
        coming = schedules.why(at)
        assert (coming["outcome"], "a release" in coming["text"]) == ("paused", True)
        schedules.run(10 * MINUTE)
        past = schedules.why(at)
        assert (past["outcome"], "a release" in past["text"]) == ("paused", True)
        schedules.control("resume")
        schedules.run(2 * MINUTE)
        after = schedules.why(at)
        assert (after["outcome"], "a release" in after["text"]) == ("paused", True)
        assert schedules.why(schedules.next_minute() - MINUTE)["outcome"] == "ran"


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_placed_occurrence_of_a_paused_schedule_runs_only_after_a_resume(*, is_resumed: bool) -> None:
    """A placed occurrence of a paused schedule runs only after a resume, as its explanation says."""
    with Explained() as schedules:
        schedules.make()
        schedules.run(90 * SECOND)
        at = schedules.next_minute() + MINUTE
        planned = schedules.why(at)
        assert (planned["outcome"], planned["state"]) == ("open", "scheduled")
        schedules.control("pause", {"reason": "a release"})
        coming = schedules.why(at)
        assert (coming["outcome"], coming["task_id"]) == ("paused", planned["task_id"])
        assert coming["text"].startswith("It will not run: the schedule has been paused since ")
        assert coming["text"].endswith(f": a release. If the schedule is resumed before {to_iso(at)}, it runs.")
        if is_resumed:
            schedules.control("resume")
            again = schedules.why(at)
            assert again["outcome"] == "open"
            assert again["task_id"] != planned["task_id"]
        schedules.run(3 * MINUTE)
        assert schedules.ran()[at] == is_resumed
        assert schedules.why(at)["outcome"] == ("ran" if is_resumed else "skipped")


def test_the_explanation_says_that_no_runs_are_left() -> None:
    """After the last run, the explanation says that no runs are left or the schedule has ended."""
    with Explained() as schedules:
        schedules.make(remaining_runs=2)
        first = schedules.next_minute()
        schedules.run(10 * MINUTE)
        assert schedules.why(first + MINUTE)["outcome"] == "ran"
        assert schedules.why(first + 5 * MINUTE)["outcome"] in {"no_runs_left", "ended"}
        assert schedules.why(schedules.next_minute() + HOUR)["outcome"] in {"no_runs_left", "ended"}


def test_the_explanation_covers_times_outside_of_a_schedules_life() -> None:
    """For times before `start_at`, after `end_at` and before the creation, the explanations give this reason."""
    with Explained() as schedules:
        start, end = schedules.now + HOUR, schedules.now + 2 * HOUR
        schedules.make(start_at=to_iso(start), end_at=to_iso(end))
        assert schedules.why(start - 30 * MINUTE)["outcome"] == "before_start"
        assert schedules.why(end + 30 * MINUTE)["outcome"] == "after_end"
        assert schedules.ask("DELETE", PATH).status == 200
        schedules.make()
        assert schedules.why(schedules.next_minute() - HOUR)["outcome"] == "before_creation"


def test_an_occurrence_moved_by_jitter_is_found_by_its_due_time() -> None:
    """An occurrence that jitter has moved is found by the minute of its due time."""
    with Explained() as schedules:
        schedules.make(cron="0 * * * *", jitter_seconds=3000)
        nominal = schedules.now - schedules.now % HOUR + HOUR
        due = millis(schedules.why(nominal)["due_at"])
        assert due > nominal
        assert millis(schedules.why(due - due % MINUTE)["scheduled_at"]) == nominal


def test_the_explanation_of_a_permanent_schedule_covers_unknown_future_times() -> None:
    """A permanent schedule's future times are unknown, so the explanation says when its next run comes."""
    with Explained() as schedules:
        schedules.make(permanent={"gap_seconds": 600})
        schedules.run(MINUTE)
        body = schedules.why(schedules.now + DAY)
        assert body["outcome"] == "not_recorded"
        assert "after its last run has ended" in body["text"]


@pytest.mark.parametrize("timing", [{"cron": "30 1 * * *"}, {"rate": "1 second"}, {"dates": ["2027-01-01T00:00:00Z"]}])
@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_any_possible_time_can_be_explained(timing: dict[str, Any], zone: str) -> None:
    """Even the earliest and latest possible times are explained or refused, in any time zone."""
    with Explained() as schedules:
        schedules.make(**timing, timezone=zone, jitter_seconds=60)
        for at in ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:00Z"):
            reply = schedules.ask("GET", f"{PATH}/explain", query=f"at={at}")
            assert reply.status in {200, 400}, reply.body
            if reply.status == 200:
                assert reply.body["text"]


@pytest.mark.parametrize("query", ["at=", "at=yesterday", "at=2026-11-21T10:00", "at=1&at=2"])
def test_an_error_for_an_invalid_time_names_the_at_field(query: str) -> None:
    """An invalid time is refused, and the error names `at`."""
    with Explained() as schedules:
        schedules.make()
        reply = schedules.ask("GET", f"{PATH}/explain", query=query)
        assert (reply.status, reply.body["code"]) == (400, "parameters_invalid")
        assert [error["field"] for error in reply.body["errors"]] == ["at"]


def test_explaining_an_unknown_schedule_returns_404() -> None:
    """Explaining an unknown schedule returns 404."""
    with Explained() as schedules:
        reply = schedules.ask("GET", f"{PATH}/explain", query="at=2026-11-21T10:00:00Z")
        assert (reply.status, reply.body["code"]) == (404, "schedule_not_found")
