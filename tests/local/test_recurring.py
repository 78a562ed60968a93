"""Tests the times of the demo's schedules, and the conditions for complete runs."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import pytest

from duetime_local.demo_receiver import Execution, Receiver
from duetime_local.demo_schedules import PLAN, PlannedSchedule, Recurring, count

START = 1_795_228_387_000


def execution(task_id: str, start: int, *, succeeded: bool = True) -> Execution:
    """Return an execution with default values for all other fields."""
    return Execution(task_id, 1, 1, start, start + 5, succeeded)


@pytest.mark.parametrize("planned", PLAN, ids=lambda planned: planned.name)
def test_the_times_of_a_planned_schedule_have_no_gap(planned: PlannedSchedule) -> None:
    """A planned schedule's times cover the whole period without a gap."""
    times = planned.times_ms(START, START + 29_000)
    assert START <= times[0] < START + planned.every_seconds * 1000
    assert {later - earlier for earlier, later in pairwise(times)} == {planned.every_seconds * 1000}
    assert times[-1] + planned.every_seconds * 1000 > START + 29_000
    if "cron" in planned.timing:
        assert times[0] % (planned.every_seconds * 1000) == 0


def test_a_schedule_that_ran_once_at_each_time_passes_the_check() -> None:
    """In a complete run, no time is missed, doubled or unknown; lateness is measured from the scheduled time."""
    tasks = [("t1", "a", START), ("t2", "a", START + 2000)]
    figures = count({"a": [START, START + 2000]}, tasks, [execution("t1", START + 3), execution("t2", START + 2001)])
    assert (figures.expected, figures.ran, figures.promises_kept) == (2, 2, True)
    assert figures.lateness_ms.max == 3


def test_missed_doubled_and_unknown_runs_of_a_schedule_are_counted() -> None:
    """A time without a successful run, two tasks at one time, and a task at an unscheduled time are counted."""
    times = {"a": [START, START + 2000], "b": [START]}
    tasks = [("t1", "a", START), ("t2", "a", START), ("t3", "a", START + 1000), ("t4", "b", START)]
    ran = [*(execution(task_id, START) for task_id, _, _ in tasks[:3]), execution("t4", START, succeeded=False)]
    figures = count(times, tasks, ran)
    assert (figures.missed, figures.doubled, figures.strange, figures.promises_kept) == (2, 1, 1, False)


def test_a_task_of_a_schedule_that_ran_twice_is_counted() -> None:
    """Two successful runs of the task of one time are counted as one doubled run."""
    twice = [execution("t1", START), execution("t1", START + 500)]
    figures = count({"a": [START]}, [("t1", "a", START)], twice)
    assert (figures.ran, figures.doubled, figures.promises_kept) == (1, 1, False)


def test_times_before_a_schedule_was_created_are_not_expected() -> None:
    """If a slow API creates a schedule after its first time, only the times after the creation are expected."""
    made_ms = START + 9_000

    def create_schedule(_name: str, **_fields: object) -> SimpleNamespace:
        return SimpleNamespace(created_at=datetime.fromtimestamp(made_ms / 1000, UTC))

    client = cast("Any", SimpleNamespace(schedules=SimpleNamespace(create=create_schedule)))
    recurring = Recurring.begin(client, Receiver(80), "run", START, 30_000)
    for planned, times in zip(PLAN, recurring.times_ms.values(), strict=True):
        assert times == [at for at in planned.times_ms(START, START + 29_000) if at >= made_ms]
        assert made_ms <= times[0] < made_ms + planned.every_seconds * 1000
