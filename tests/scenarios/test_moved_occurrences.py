"""If calendars and jitter move occurrences, each scheduled time runs at most once, even if calendars change."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import PATH, Schedules, is_of_a_schedule
from tests.scenarios.test_changed_occurrences import change
from tests.scenarios.test_stopped_occurrences import STOPS, stop

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call

TENTH = 10 * MINUTE


def tenth_after(now: Millis) -> Millis:
    """The first instant of a schedule that `Moved.begin` creates."""
    return (now // TENTH + (1 if now % TENTH < 5 * MINUTE else 2)) * TENTH


OPEN: dict[str, Any] = {"windows": [{"start": "00:00", "end": "00:01"}]}
"""This calendar excludes only the first minute of a day, which no test uses."""
NIGHT = 1_824_940_800_000
"""Midnight UTC on 31 October 2027; London's clocks go back at 01:00 UTC."""
NEW_TASK = {"type": PLAIN, "payload": {"new": 1}, "timeout_seconds": 600}


def closed(start: Millis, length: Millis) -> dict[str, Any]:
    """A calendar that excludes a time of day."""
    return {"windows": [{"start": to_iso(start)[11:16], "end": to_iso(start + length)[11:16]}]}


class Moved(Schedules):
    """A schedule that runs every ten minutes and has a calendar; `next` is its first instant."""

    def begin(self, calendar: dict[str, Any], **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Create the schedule, shortly before its next instant is placed."""
        self.next = tenth_after(self.now)
        self.run(self.next - 5 * MINUTE - self.now)
        self.put(calendar)
        body = {"cron": "*/10 * * * *", "calendars": ["days"], "on_excluded": "move", "overlap": "allow_all"}
        self.make(**{**body, **fields})

    def put(self, calendar: dict[str, Any]) -> None:
        """Replace the calendar."""
        assert self.ask("PUT", "/v1/calendars/days", calendar).status in {200, 201}

    def place(self) -> Task:
        """Let time pass until the next instant is placed."""
        before = {task.id for task in self.placed()}
        assert self.run_until(lambda: len(self.placed()) > len(before), TENTH)
        self.run(2 * SECOND)
        (task,) = [each for each in self.placed() if each.id not in before]
        return task

    def go_on(self, times: int = 3) -> None:
        """Let time pass until six minutes after the last of this many instants."""
        self.run(self.next + (times - 1) * TENTH + 6 * MINUTE - self.now)


def is_a_save(call: Call) -> bool:
    """Whether a call writes a schedule."""
    return call.operation == "put_item" and is_of_a_schedule(call)


def is_save(call: Call) -> bool:
    """Whether the trigger saves a schedule."""
    return call.machine.function == "trigger" and is_a_save(call)


@pytest.mark.parametrize("moves", ["later", "back"])
def test_a_calendar_replaced_before_the_triggers_save_repeats_no_occurrence(moves: str) -> None:
    """If a trigger dies after placing an occurrence, the occurrence is not placed again with another calendar."""
    with Moved() as schedules:
        schedules.run(TENTH)
        moved = closed(tenth_after(schedules.now), 4 * MINUTE)
        schedules.begin(moved if moves == "back" else OPEN)
        died = schedules.once(is_save, lambda call: call.machine.die())
        assert schedules.run_until(lambda: died, TENTH)
        schedules.put(OPEN if moves == "back" else closed(schedules.next, 4 * MINUTE))
        schedules.go_on()
        assert schedules.ran() == {schedules.next + each * TENTH: 1 for each in range(3)}


@pytest.mark.parametrize("how", STOPS)
@pytest.mark.parametrize("before", ["open", "closed"])
def test_a_stopped_occurrence_stays_stopped_after_calendar_and_payload_changes(how: str, before: str) -> None:
    """A stopped occurrence does not run after its calendar is replaced and its payload changed."""
    with Moved() as schedules:
        at = tenth_after(schedules.now)
        calendars = {"open": OPEN, "closed": closed(at, 4 * MINUTE)}
        schedules.begin(calendars.pop(before))
        assert schedules.next == at
        task = schedules.place()
        stop(schedules, task, how)
        (other,) = calendars.values()
        schedules.put(other)
        assert schedules.amend(task=NEW_TASK).status == 200
        schedules.go_on()
        assert schedules.ran() == {at + TENTH: 1, at + 2 * TENTH: 1}


def test_a_stopped_occurrence_stays_stopped_after_two_calendar_replacements() -> None:
    """A stopped occurrence does not run after two replacements of its calendar, each followed by a change."""
    with Moved() as schedules:
        schedules.begin(OPEN, on_excluded="skip")
        stop(schedules, schedules.place(), "cancel")
        schedules.put(closed(schedules.next, 4 * MINUTE))
        assert schedules.amend(task=NEW_TASK).status == 200
        schedules.put(OPEN)
        assert schedules.amend(catch_up_seconds=100).status == 200
        schedules.go_on()
        assert schedules.ran() == {schedules.next + TENTH: 1, schedules.next + 2 * TENTH: 1}


@pytest.mark.parametrize("on_excluded", ["skip", "move"])
def test_a_new_calendar_and_a_change_keep_the_number_of_runs(on_excluded: str) -> None:
    """Exactly three runs start, although a new calendar excludes a placed run before the schedule changes."""
    with Moved() as schedules:
        schedules.begin(OPEN, on_excluded=on_excluded, remaining_runs=3)
        schedules.place()
        schedules.put(closed(schedules.next, 4 * MINUTE))
        assert schedules.amend(task=NEW_TASK).status == 200
        schedules.go_on(6)
        first = schedules.next + (TENTH if on_excluded == "skip" else 0)
        assert schedules.ran() == {first + each * TENTH: 1 for each in range(3)}
        shown = schedules.schedule()
        assert (shown["runs_started"], shown["remaining_runs"]) == (3, 0)


TIMINGS: dict[str, dict[str, Any]] = {
    "jitter": {"jitter_seconds": 1},
    "calendars": {"calendars": []},
    "cron": {"cron": "*/5 * * * *"},
    "zone": {"timezone": "Asia/Kathmandu", "cron": "5,15,25,35,45,55 * * * *"},
    "excluded": {"on_excluded": "skip"},
    "end": {"end_at": "2099-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("name", TIMINGS)
def test_a_moved_occurrence_is_not_lost_when_the_timing_changes_before_it_is_due(name: str) -> None:
    """An occurrence moved to a later time is not lost if the new timing also includes its original instant."""
    with Moved() as schedules:
        at = tenth_after(schedules.now)
        schedules.begin(closed(at, 4 * MINUTE))
        task = schedules.place()
        assert task.due_at == at + 4 * MINUTE
        schedules.run(at + 2 * MINUTE - schedules.now)
        assert schedules.amend(**TIMINGS[name]).status == 200
        schedules.go_on(1)
        assert schedules.ran()[at] == 1
        assert schedules.effect_times(task.id.text)[0] >= task.due_at
        assert schedules.schedule()["runs_skipped"] == 0


@pytest.mark.parametrize("is_paused", [False, True], ids=["not paused", "paused"])
def test_an_occurrence_that_was_moved_past_a_skipped_occurrence_runs(*, is_paused: bool) -> None:
    """If its user skipped the later occurrence of an excluded time, the earlier one runs, even after a pause."""
    with Moved() as schedules:
        at = tenth_after(schedules.now)
        schedules.begin(closed(at, 14 * MINUTE))
        assert change(schedules, at + TENTH, "skip").status == 200
        task = schedules.place()
        assert task.due_at == at + 14 * MINUTE
        schedules.run(at + 11 * MINUTE - schedules.now)
        if is_paused:
            schedules.control("pause")
            schedules.run(MINUTE)
            schedules.control("resume")
        else:
            assert schedules.schedule()["next_at"] == to_iso(task.due_at)
            explained = schedules.ask("GET", f"{PATH}/explain", query=f"at={to_iso(task.due_at)}").body
            assert (explained["outcome"], explained["task_id"]) == ("open", task.id.text)
        schedules.go_on(2)
        assert schedules.ran() == {at: 1}


@pytest.mark.parametrize("name", TIMINGS)
def test_a_queued_occurrence_that_the_new_timing_has_is_not_lost(name: str) -> None:
    """A due occurrence that no worker has received runs once if the new timing also includes its instant."""
    with Moved() as schedules:
        schedules.begin(OPEN)
        schedules.place()
        schedules.run(schedules.next - 5 * SECOND - schedules.now)
        schedules.receiving = False
        schedules.run(10 * SECOND)
        assert schedules.amend(**TIMINGS[name]).status == 200
        schedules.receive_again()
        schedules.run(MINUTE)
        assert schedules.ran()[schedules.next] == 1
        assert schedules.schedule()["runs_skipped"] == 0


def test_an_occurrence_that_jitter_delays_is_not_lost_when_the_jitter_changes() -> None:
    """An occurrence that is still delayed by jitter is not lost when the jitter changes."""
    with Moved() as schedules:
        schedules.begin(OPEN, jitter_seconds=500)
        task = schedules.place()
        assert task.due_at > schedules.next + 30 * SECOND
        schedules.run(schedules.next + 20 * SECOND - schedules.now)
        assert schedules.amend(jitter_seconds=400).status == 200
        schedules.go_on(1)
        schedules.run(5 * MINUTE)
        assert schedules.ran()[schedules.next] == 1


@pytest.mark.parametrize("before", ["open", "closed"])
def test_an_occurrence_that_ran_is_not_shown_as_missed_after_calendar_changes(before: str) -> None:
    """An occurrence that ran is not shown as missed after another calendar moves its instant."""
    with Moved() as schedules:
        at = tenth_after(schedules.now)
        calendars = {"open": OPEN, "closed": closed(at, 4 * MINUTE)}
        schedules.begin(calendars.pop(before))
        schedules.go_on(1)
        (other,) = calendars.values()
        schedules.put(other)
        query = f"scheduled_after={to_iso(at - SECOND)}&scheduled_before={to_iso(at + SECOND)}"
        seen = schedules.ask("GET", f"{PATH}/occurrences", query=query).body["occurrences"]
        assert [each["task_id"] for each in seen] == [schedules.placed()[0].id.text]


def test_a_calendar_replaced_during_a_backfill_repeats_no_run() -> None:
    """A backfill whose process died continues with another calendar, and each time runs once."""
    with Moved() as schedules:
        schedules.begin(OPEN, on_excluded="skip")
        past = [schedules.next - each * TENTH for each in range(6, 0, -1)]
        bounds = {"scheduled_after": to_iso(past[0]), "scheduled_before": to_iso(past[-1] + SECOND), "per_minute": 20}
        placed = schedules.once(
            lambda call: is_a_save(call) and len(schedules.placed()) >= len(past), lambda call: call.machine.die()
        )
        schedules.send("POST", f"{PATH}/backfills", bounds)
        assert schedules.run_until(lambda: placed)
        schedules.put(closed(past[0], MINUTE))
        schedules.run(20 * MINUTE)
        causes = [task.schedule_ref for task in schedules.placed() if task.schedule_ref]
        assert Counter(each.nominal for each in causes if each.cause == "backfill") == dict.fromkeys(past, 1)


def test_a_missed_occurrence_that_the_new_timing_has_still_runs() -> None:
    """An occurrence missed in an outage of the trigger still runs if the new timing also includes its instant."""
    with Moved() as schedules:
        schedules.begin(OPEN)
        schedules.ticking = False
        schedules.run(schedules.next + MINUTE - schedules.now)
        assert schedules.placed() == []
        assert schedules.amend(cron="*/5 * * * *").status == 200
        schedules.ticking = True
        schedules.run(10 * MINUTE)
        assert schedules.ran() == dict.fromkeys(
            (schedules.next, schedules.next + 5 * MINUTE, schedules.next + TENTH), 1
        )


def test_the_last_occurrence_of_a_schedule_runs_although_more_runs_are_allowed() -> None:
    """If the last run still waits for a worker when `remaining_runs` is raised, that run and one more run start."""
    with Moved() as schedules:
        schedules.begin(OPEN, remaining_runs=1)
        schedules.place()
        schedules.receiving = False
        schedules.run(20 * MINUTE)
        assert schedules.amend(remaining_runs=2).status == 200
        schedules.receive_again()
        schedules.run(15 * MINUTE)
        assert sum(schedules.ran().values()) == 2
        assert schedules.ran()[schedules.next] == 1


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"dst_fold": "both"}, {"timezone": "Europe/Dublin"}, {"dst_gap": "shift_forward"}])
@pytest.mark.parametrize("fold", ["first", "both"])
def test_a_change_in_the_night_of_the_fold_repeats_no_run(fold: str, change: dict[str, Any]) -> None:
    """If a schedule changes while its 01:30 occurrence is queued on the night of the fold, each time runs once."""
    with Schedules(start=NIGHT) as schedules:
        schedules.make(cron="30 1 * * *", timezone="Europe/London", dst_fold=fold)
        first = NIGHT + HOUR // 2
        schedules.run(first - 5 * SECOND - schedules.now)
        schedules.receiving = False
        schedules.run(10 * SECOND)
        assert schedules.amend(**change).status == 200
        schedules.receive_again()
        schedules.run(3 * HOUR)
        both = "both" in {fold, change.get("dst_fold")}
        assert schedules.ran() == dict.fromkeys((first, first + HOUR) if both else (first,), 1)
