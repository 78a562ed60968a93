from __future__ import annotations

from duetime_local.demo_jobs import plan

SPREAD_MS = 30_000


def test_the_plan_is_the_same_on_every_run() -> None:
    """Two plans with the same number of jobs and the same period are equal."""
    assert plan(300, SPREAD_MS) == plan(300, SPREAD_MS)


def test_three_hundred_real_jobs_are_spread_over_the_whole_time() -> None:
    """Every tenth of the demo's time has tasks, no task is due before or after this time, and tasks are in order."""
    offsets = [task.offset_ms for task in plan(300, SPREAD_MS)]

    assert len(offsets) == 300
    assert offsets == sorted(offsets)
    assert {offset * 10 // SPREAD_MS for offset in offsets} == set(range(10))


def test_a_third_of_the_jobs_use_http_and_some_are_retried() -> None:
    """Handler and HTTP tasks exist, and some of each kind are retried."""
    tasks = plan(300, SPREAD_MS)
    over_http = [task for task in tasks if task.over_http]
    python = [task for task in tasks if not task.over_http]

    assert 70 <= len(over_http) <= 130
    assert any(task.fail_times for task in over_http)
    assert any(task.fail_times for task in python)
    assert sum(task.fail_times > 0 for task in tasks) < 40
