"""Tests the commands' confirmation messages, and the wording of counts, times and errors."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client.commands.times import distance, span
from duetime_client.plurals import counted
from tests.client.deployment import NOW, Answer, served
from tests.client.scheduled import ScheduledDeployment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typer.testing import Result

    Run = Callable[..., Result]

SWITCH: dict[str, Any] = {
    "scope": "type",
    "name": "report",
    "stopped": True,
    "max_concurrent": 5,
    "reason": "a bad release",
    "updated_at": "2026-11-21T11:00:00Z",
    "updated_by": "ops",
}
LOCK: dict[str, Any] = {
    "key": "db-17",
    "holders": [{"task_id": "01A", "fence": 3, "expires_at": "2026-11-21T12:05:00Z"}],
    "waiters": [{"task_id": "01B", "due_at": "2026-11-21T11:59:00Z"}],
}


@pytest.fixture
def deployment() -> Iterator[ScheduledDeployment]:
    """Return a separate deployment with schedules for each test."""
    with served(ScheduledDeployment()) as made:
        yield made


@pytest.fixture
def nightly(duetime: Run) -> None:
    """Create a schedule."""
    created = duetime("schedules", "create", "nightly", "report", "--cron", "30 1 * * *", "--catch-up", "2h")
    assert created.exit_code == 0


def test_deleting_a_switch_prints_one_line(duetime: Run, deployment: ScheduledDeployment) -> None:
    """Deleting a switch prints one line, because a table that lists the switch as stopped would be misleading."""
    deployment.scripted += [Answer(200, SWITCH), Answer(200, {**SWITCH, "scope": "all", "name": "all"})]
    deleted = duetime("switches", "delete", "type", "report").stdout
    assert deleted == (
        "deleted the switch for type report (was: stopped, at most 5 running); stopped tasks start within 90 seconds\n"
    )
    assert duetime("switches", "delete", "all").stdout.startswith("deleted the switch for all (was: ")


@pytest.mark.usefixtures("nightly")
def test_deleting_a_schedule_prints_one_line(duetime: Run) -> None:
    """Deleting a schedule prints one line, because a view with a state and next runs would be misleading."""
    assert duetime("schedules", "delete", "nightly", "--yes").stdout == (
        "deleted the schedule nightly; its queued tasks will not run\n"
    )


@pytest.mark.usefixtures("nightly")
def test_deleting_a_schedule_requires_confirmation(duetime: Run, deployment: ScheduledDeployment) -> None:
    """Nothing is deleted without a typed confirmation or the option, because queued tasks would be lost."""
    before = len(deployment.received)
    for typed in ("n\n", None):
        refused = duetime("schedules", "delete", "nightly", typed=typed)
        assert (refused.exit_code, "deleted" in refused.stdout) == (1, False)
        assert "Its queued tasks will not run" in refused.stderr
    assert len(deployment.received) == before
    assert duetime("schedules", "delete", "nightly", typed="y\n").exit_code == 0
    assert "nightly" not in deployment.schedules


def test_deleting_a_calendar_prints_one_line(duetime: Run, deployment: ScheduledDeployment) -> None:
    """Deleting a calendar prints one line instead of the calendar's view."""
    deployment.calendars["uk"] = {"name": "uk", "mode": "excludes"}
    assert duetime("calendars", "delete", "uk").stdout == "deleted the calendar uk\n"


def test_running_a_task_now_shows_that_it_runs_now(duetime: Run) -> None:
    """The output says that the task runs now, although its due time is still an hour ahead."""
    duetime("tasks", "create", "report", "--in", "1h")
    shown = duetime("tasks", "run", "01TASK00000000000000000000").stdout
    assert "starts    now, before its due time" in shown


@pytest.mark.usefixtures("nightly")
def test_a_skipped_occurrence_is_listed_as_an_event(duetime: Run) -> None:
    """A skipped occurrence is listed under `events` with its reason, and not as "not run"."""
    shown = duetime("schedules", "show", "nightly").stdout
    assert "not run" not in shown
    assert "events    2026-11-21 20:30:00 JST (30 min ago)  the run of 01TASK is still running" in shown


@pytest.mark.usefixtures("nightly")
def test_all_times_of_a_schedule_have_one_format(duetime: Run) -> None:
    """Times are in the user's time zone and not in raw RFC 3339, and durations have units."""
    duetime("schedules", "update", "nightly", "--start", "2026-11-01T09:00", "--end", "2026-12-24T09:00")
    shown = duetime("schedules", "show", "nightly").stdout
    for line in (
        "from      2026-11-01 09:00:00 JST (20 d 12 h ago)",
        "until     2026-12-24 09:00:00 JST (in 32 d 12 h)",
        "backfill  1a2b running: 3 of 19 runs started, 2026-11-01 09:00:00 JST to 2026-11-20 09:00:00 JST",
        "catch up  2 h",
    ):
        assert line in shown


def test_occurrences_print_each_time_once(duetime: Run) -> None:
    """Times, including moved occurrences' times, are in the schedule's time zone with an unambiguous offset."""
    header, first, _, moved = duetime("schedules", "preview", "--cron", "30 1 * * *").stdout.splitlines()
    assert header.split() == ["time", "decision"]
    assert first.split() == ["2026-11-22", "01:30:00+00:00", "runs"]
    assert "runs: uk: 22:00 to 08:00: moved to 2026-11-24T08:00:00+00:00" in moved
    duetime("schedules", "create", "nightly", "report", "--cron", "30 1 * * *")
    header, first, _ = duetime("schedules", "occurrences", "nightly", "--after", "2026-11-21").stdout.splitlines()
    assert header.split() == ["time", "task", "state", "note"]
    assert first.split() == ["2026-11-22", "01:30:00+00:00", "(11", "h", "ago)", "01TASK", "succeeded"]


def test_a_lock_lists_its_holders_and_waiting_tasks(duetime: Run, deployment: ScheduledDeployment) -> None:
    """Each task listed for a lock has a state, waiting tasks also have a position, and a release is confirmed."""
    deployment.scripted += [Answer(200, LOCK), Answer(200, {**LOCK, "holders": []})]
    _, holder, waiter = duetime("locks", "show", "db-17").stdout.splitlines()
    assert "held until 21:05:00 (in 5 min)" in holder
    assert "waiting, position 1, due 20:59:00 (60 s ago)" in waiter
    assert duetime("locks", "release", "db-17").stdout.splitlines()[0] == "released the lock db-17"


@pytest.mark.parametrize(("number", "shown"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (1200, "1200 tasks")])
def test_a_count_uses_the_correct_singular_or_plural(number: int, shown: str) -> None:
    """A count says "1 task" but "2 tasks"."""
    assert counted(number, "task") == shown
    assert counted(number, "entry", "entries").endswith("entry" if number == 1 else "entries")


def test_counts_of_a_bulk_operation_use_the_correct_singular_or_plural(
    duetime: Run, deployment: ScheduledDeployment
) -> None:
    """Counts of matched, changed and scanned tasks use the correct singular or plural."""
    one = {"examined": 399, "matched": 1, "affected": 0, "refused": {}, "next_token": None}
    deployment.scripted += [Answer(200, one), Answer(200, {"tasks": [], "next_token": None})]
    assert duetime("tasks", "cancel", "--type", "report", "--dry-run").stdout == "1 matched, 399 scanned\n"
    deployment.scripted += [Answer(200, one), Answer(200, {"tasks": [], "next_token": None})]
    assert "1 task will be cancelled. Continue?" in duetime("tasks", "cancel", "--type", "report", typed="n\n").stderr
    deployment.scripted.append(Answer(200, {**one, "affected": 1, "refused": {"state_conflict": 1}}))
    done = duetime("tasks", "cancel", "--type", "report", "--yes")
    assert done.stdout == "1 cancelled, 399 scanned\n1 rejected: state_conflict\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (1.2, "1 s"),
        (59.6, "60 s"),
        (90, "90 s"),
        (119, "119 s"),
        (150, "3 min"),
        (5 * 60 + 29, "5 min"),
        (5 * 60 + 31, "6 min"),
        (90 * 60, "90 min"),
        (2.6 * 3600, "3 h"),
        (47 * 3600, "47 h"),
        (48 * 3600, "2 d"),
        (60 * 86_400, "60 d"),
    ],
)
def test_a_short_duration_is_rounded_to_the_nearest(seconds: float, shown: str) -> None:
    """A unit is used only for durations of at least two units, so that the rounding error is below a quarter."""
    assert span(seconds, 1) == shown


def test_a_duration_in_two_units_is_rounded_to_the_nearest() -> None:
    """A task that is due in slightly less than ten minutes is shown as due in ten minutes."""
    assert distance(NOW + timedelta(minutes=9, seconds=59.95), NOW) == "in 10 min"
    assert distance(NOW + timedelta(days=1, hours=23, minutes=40), NOW) == "in 2 d"
    assert distance(NOW - timedelta(hours=3, minutes=59, seconds=40), NOW) == "4 h ago"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tasks", "create", "x", "--priority", "urgent"), "'urgent' is not one of 'high', 'normal', 'low'"),
        (("tasks", "create", "x", "--timeout", "soon"), "should be a whole number"),
        (("tasks", "list", "--limit", "0"), "should be greater than or equal to 1"),
        (("verify", "--seconds", "x"), "should be a number"),
    ],
)
def test_the_error_for_a_bad_option_does_not_mention_the_parser(
    duetime: Run, arguments: tuple[str, ...], said: str
) -> None:
    """The error for a bad option does not expose the library that parses options."""
    shown = " ".join(duetime(*arguments).stderr.replace("\u2502", " ").split())
    assert said in shown
    for words in ("Value error", "Input should", "parse string"):
        assert words not in shown
