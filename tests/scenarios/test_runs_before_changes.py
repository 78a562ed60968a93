"""After any change to a schedule, an earlier run is still found in explanations, in lists and as a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import to_iso
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN
from tests.scenarios.schedules import PATH, Schedules
from tests.scenarios.tasks import ONCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis

TASK = {"type": PLAIN, "retry": ONCE}


class Failing(Schedules):
    """An hourly schedule whose first run has failed.

    Attributes:
        first: the time of the first run.
        failed: the id of the first run's task.
    """

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401 - JSON
        super().__init__()
        self.fields = fields
        self.first: Millis = 0
        self.failed = ""

    def begin(self) -> None:
        """Let the first run fail and all later runs succeed."""
        self.fail()
        self.make(**{"cron": "0 * * * *", "task": TASK, **self.fields})
        self.first = (self.now // HOUR + 1) * HOUR
        assert self.run_until(lambda: any(task.finished_at for task in self.placed()), within=2 * HOUR)
        (task,) = [each for each in self.placed() if each.finished_at]
        self.failed = task.id.text
        self.target = lambda _phase, _context: "done"

    def why(self, at: Millis | None) -> dict[str, Any]:
        """The explanation of a time, or of the latest occurrence."""
        reply = self.ask("GET", f"{PATH}/explain", query="" if at is None else f"at={to_iso(at)}")
        assert reply.status == 200, reply.body
        return dict(reply.body)

    def listed(self, what: str) -> list[dict[str, Any]]:
        """The runs or occurrences in the hour that begins with the first run."""
        first, last = to_iso(self.first), to_iso(self.first + HOUR)
        reply = self.ask("GET", f"{PATH}/{what}", query=f"scheduled_after={first}&scheduled_before={last}")
        assert reply.status == 200, reply.body
        return list(reply.body[what])

    def change_next(self, action: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Change the next occurrence."""
        at = to_iso((self.now // HOUR + 1) * HOUR)
        body = {"scheduled_at": at, "action": action, **fields}
        assert self.control("occurrences/update", body).status == 200


def pause_and_resume(schedules: Failing, times: int = 1) -> None:
    """Pause the schedule for three minutes, as often as `times` says."""
    for _ in range(times):
        schedules.control("pause", {"reason": "a release"})
        schedules.run(3 * MINUTE)
        schedules.control("resume")


def pause_and_retime(schedules: Failing) -> None:
    """Pause the schedule for some minutes, then change its timing."""
    pause_and_resume(schedules)
    assert schedules.amend(cron="7 3 * * *").status == 200


def spend(schedules: Failing) -> None:
    """Let the schedule use up its last run."""
    assert schedules.amend(remaining_runs=1).status == 200
    schedules.run(HOUR)


def exclude_the_day(schedules: Failing) -> None:
    """Have a calendar exclude the complete day of the run."""
    schedules.ask("PUT", "/v1/calendars/holidays", {"dates": {to_iso(schedules.first)[:10]: "Founders' Day"}})
    assert schedules.amend(calendars=["holidays"]).status == 200


def backfill(schedules: Failing, *, again: bool) -> None:
    """Backfill the past hour."""
    schedules.run(2 * MINUTE)
    start, end = to_iso(schedules.first - HOUR), to_iso(schedules.first + MINUTE)
    body = {"scheduled_after": start, "scheduled_before": end, "only_missing": not again, "overlap": "buffer_all"}
    assert schedules.control("backfills", body).status == 201


def amended(**fields: Any) -> Callable[[Failing], None]:  # noqa: ANN401 - JSON
    """Return a change that sets these fields."""

    def change(schedules: Failing) -> None:
        assert schedules.amend(**fields).status == 200

    return change


CHANGES: dict[str, Callable[[Failing], object]] = {
    "nothing": lambda _: None,
    "paused": lambda schedules: schedules.control("pause"),
    "paused and resumed": pause_and_resume,
    "paused, resumed and retimed": pause_and_retime,
    "retimed": amended(cron="30 */2 * * *"),
    "another kind of timing": amended(rate="7 minutes"),
    "retimed twice": lambda schedules: (amended(rate="7 minutes")(schedules), amended(cron="0 * * * *")(schedules)),
    "another time zone": amended(timezone="Asia/Kathmandu"),
    "another clock change": amended(timezone="Europe/London", dst_gap="shift_forward"),
    "another type": amended(task={"type": "simulation-other", "allow_unknown_type": True}),
    "another payload": amended(task={"payload": {"month": 11}}),
    "another overlap": amended(overlap="allow_all"),
    "another jitter": amended(jitter_seconds=600),
    "a spread": amended(spread_seconds=1_200),
    "a later start": lambda schedules: amended(start_at=to_iso(schedules.now + 24 * HOUR))(schedules),
    "an end": lambda schedules: amended(end_at=to_iso(schedules.now + 2 * HOUR))(schedules),
    "no runs left": spend,
    "the day left out": lambda schedules: amended(excluded_dates=[to_iso(schedules.first)[:10]])(schedules),
    "a calendar": exclude_the_day,
    "the next one skipped": lambda schedules: schedules.change_next("skip"),
    "the next one moved": lambda schedules: schedules.change_next("move", due_at=to_iso(schedules.now + 10 * MINUTE)),
    "the next one run early": lambda schedules: schedules.change_next("run_now"),
    "run now": lambda schedules: schedules.control("run"),
    "a backfill": lambda schedules: backfill(schedules, again=False),
    "a backfill of all": lambda schedules: backfill(schedules, again=True),
    "eleven changes": lambda schedules: [amended(task={"payload": each})(schedules) for each in range(11)],
    "twelve pauses": lambda schedules: pause_and_resume(schedules, 12),
}


DELAYS = {"at its time": {}, "with jitter": {"jitter_seconds": 900}, "spread": {"spread_seconds": 900}}
FAST = {
    "nothing",
    "paused and resumed",
    "retimed",
    "another kind of timing",
    "another time zone",
    "another payload",
    "a spread",
    "an end",
    "no runs left",
    "a calendar",
    "the next one moved",
    "run now",
    "a backfill of all",
    "eleven changes",
}
"""One change of each kind; `make test-slow` runs all changes with each delay."""
TABLE = [
    pytest.param(change, delay, id=f"{change}, {delay}", marks=[] if is_fast else pytest.mark.slow)
    for change in CHANGES
    for delay in DELAYS
    for is_fast in [change == "retimed" or (change in FAST and delay == "at its time")]
]


@pytest.mark.parametrize(("change", "delay"), TABLE)
def test_a_run_before_a_change_is_explained_and_listed_afterwards(change: str, delay: str) -> None:
    """After any change, the failed run is explained with its error and listed among runs and occurrences."""
    with Failing(**DELAYS[delay]) as schedules:
        schedules.begin()
        CHANGES[change](schedules)
        schedules.run(3 * MINUTE)
        said = schedules.why(schedules.first)
        assert (said["outcome"], said["state"], said["task_id"]) == ("ran", "failed", schedules.failed), said
        assert said["scheduled_at"] == to_iso(schedules.first)
        assert said["error"] == {"type": "ValueError", "message": "run 1"}
        assert "failed" in said["text"]
        assert "ValueError: run 1" in said["text"]
        (run,) = [each for each in schedules.listed("runs") if each["task_id"] == schedules.failed]
        assert (run["status"], run["reason"]) == ("failed", "ValueError: run 1")
        (listed,) = [each for each in schedules.listed("occurrences") if each["task_id"] == schedules.failed]
        assert (listed["scheduled_at"], listed["state"]) == (to_iso(schedules.first), "failed")
        assert schedules.ask("GET", f"/v1/tasks/{schedules.failed}").body["error"]["message"] == "run 1"


def test_a_run_is_found_although_a_new_calendar_excludes_its_day() -> None:
    """A run is still found after its schedule's calendar excludes the run's day."""
    with Failing(calendars=["holidays"]) as schedules:
        schedules.ask("PUT", "/v1/calendars/holidays", {"dates": {"2030-01-01": "New Year"}})
        schedules.begin()
        schedules.ask("PUT", "/v1/calendars/holidays", {"dates": {to_iso(schedules.first)[:10]: "Founders' Day"}})
        said = schedules.why(schedules.first)
        assert (said["outcome"], said["task_id"]) == ("ran", schedules.failed)
        assert schedules.failed in [each["task_id"] for each in schedules.listed("runs")]
        assert schedules.failed in [each["task_id"] for each in schedules.listed("occurrences")]


def test_a_new_schedules_explanation_names_runs_of_the_deleted_schedule() -> None:
    """A new schedule with a deleted schedule's name lists no earlier runs, but its explanation names an earlier run."""
    with Failing() as schedules:
        schedules.begin()
        schedules.run(2 * MINUTE)
        assert schedules.ask("DELETE", PATH).status == 200
        assert schedules.ask("GET", f"{PATH}/explain").body["code"] == "schedule_not_found"
        schedules.make(cron="0 * * * *", task=TASK)
        said = schedules.why(schedules.first)
        assert (said["outcome"], said["task_id"]) == ("before_creation", None)
        assert f"An earlier schedule of this name had a task then: {schedules.failed} (failed)." in said["text"]
        assert schedules.listed("runs") == schedules.listed("occurrences") == []
        assert schedules.ask("GET", f"/v1/tasks/{schedules.failed}").status == 200


@pytest.mark.parametrize("change", ["nothing", "paused and resumed", "retimed", "run now"])
def test_without_a_time_the_latest_occurrence_is_explained(change: str) -> None:
    """If no time is given, the latest occurrence is explained, after any change, even if a manual run was later."""
    with Failing() as schedules:
        schedules.begin()
        CHANGES[change](schedules)
        said = schedules.why(None)
        assert (said["outcome"], said["task_id"]) == ("ran", schedules.failed)
        assert said["at"] == to_iso(schedules.first)


def test_the_explanation_before_the_first_occurrence_names_the_next_occurrence() -> None:
    """Before the first occurrence, the explanation says so, and names the time of the next occurrence."""
    with Failing() as schedules:
        schedules.make(cron="0 * * * *")
        said = schedules.why(None)
        assert (said["outcome"], said["task_id"]) == ("not_scheduled", None)
        assert said["text"].startswith("No occurrence has been due since it was created")
        assert said["next_at"] in said["text"]


@pytest.mark.parametrize("change", ["nothing", "retimed", "paused and resumed"])
@pytest.mark.parametrize("action", others_slow(["move", "skip", "run_now"]))
def test_the_explanation_shows_a_changed_occurrence_after_a_new_timing(action: str, change: str) -> None:
    """After a new timing, the explanation still says that a user skipped, moved or ran an occurrence early."""
    with Failing() as schedules:
        schedules.begin()
        schedules.time.run_until(schedules.first + 65 * MINUTE)
        changed, moved = schedules.first + 2 * HOUR, schedules.first + 2 * HOUR - 20 * MINUTE
        schedules.change_next(action, **({"due_at": to_iso(moved)} if action == "move" else {}))
        moved = moved if action == "move" else schedules.now
        schedules.time.run_until(changed + 5 * MINUTE)
        CHANGES[change](schedules)
        said = schedules.why(changed)
        assert (said["outcome"], said["task_id"], "by a user" in said["text"]) == ("skipped", None, True), said
        if action != "skip":
            there = [each for each in schedules.placed() if abs(each.due_at - moved) < 2_000]
            assert [each.state for each in there] == ["succeeded"]
            assert schedules.why(there[0].due_at)["task_id"] == there[0].id.text


def test_the_explanation_names_a_backfills_run() -> None:
    """The explanation names a backfill's run, alone or together with a failed regular run."""
    with Failing() as schedules:
        schedules.begin()
        backfill(schedules, again=True)
        schedules.run(5 * MINUTE)
        only, again = schedules.why(schedules.first - HOUR), schedules.why(schedules.first)
        assert (only["outcome"], only["state"]) == ("ran", "succeeded")
        assert only["text"].startswith("A backfill ran it: the task ")
        assert (again["outcome"], again["state"], again["task_id"]) == ("ran", "failed", schedules.failed)
        assert "A backfill ran it: the task " in again["text"]
        assert again["text"].endswith(" succeeded.")


def test_a_pause_explains_only_occurrences_during_the_pause() -> None:
    """A pause explains only the occurrences during the pause, and no later times."""
    with Failing() as schedules:
        schedules.begin()
        schedules.control("pause", {"reason": "a release"})
        schedules.run(HOUR)
        schedules.control("resume")
        schedules.run(70 * MINUTE)
        assert schedules.amend(cron="30 5 * * *").status == 200
        within = schedules.why(schedules.first + HOUR)
        assert (within["outcome"], "a release" in within["text"]) == ("paused", True)
        (ran,) = [each for each in schedules.placed() if each.due_at == schedules.first + 2 * HOUR and each.attempt]
        after = schedules.why(ran.due_at)
        assert (after["outcome"], after["task_id"]) == ("ran", ran.id.text)
        nothing = schedules.why(schedules.first + 90 * MINUTE)
        assert nothing["outcome"] == "not_recorded"
        assert "no run of that time is stored" in nothing["text"]


def test_the_explanation_of_a_permanent_schedule_names_each_earlier_run() -> None:
    """The explanation for each start time of a permanent schedule names its run, even after a change."""
    with Failing() as schedules:
        schedules.make(permanent={"gap_seconds": 600})
        schedules.run(45 * MINUTE)
        assert schedules.amend(permanent={"gap_seconds": 60}).status == 200
        schedules.run(5 * MINUTE)
        ran = [each for each in schedules.placed() if each.attempt]
        assert len(ran) > 4
        assert [schedules.why(each.due_at)["task_id"] for each in ran] == [each.id.text for each in ran]
        assert schedules.why(None)["task_id"] in [each.id.text for each in schedules.placed()][-2:]
