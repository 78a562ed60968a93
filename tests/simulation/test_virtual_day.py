"""A test of 929 real periodic jobs in virtual time, compared with the times that another library computes."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import timedelta
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cronsim import CronSim, CronSimError

from duetime.domain.times import HOUR, MINUTE, SECOND, from_datetime, to_datetime, to_iso
from tests.scenarios.scenario import PLAIN
from tests.scenarios.schedules import Schedules

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis

JOBS = Path(__file__).parents[3] / "shared" / "data" / "schedules" / "prow-periodics.jsonl"
_UNITS = {"h": HOUR, "m": MINUTE, "s": SECOND}
_UNPROCESSABLE = 422
LENGTH = 3 * HOUR
"""How long the jobs run in virtual time; a day would take a quarter of an hour of real time."""
_NEVER = 10
"""The maximum number of jobs whose date never exists."""
_LATEST: Millis = 1_000
"""The time in milliseconds by which an occurrence may be late without faults, which is the promised p99."""


def _jobs() -> list[dict[str, Any]]:
    if not JOBS.exists():
        pytest.skip("the shared data is not beside this checkout: the day of real jobs is NOT tested")
    return [json.loads(line) for line in JOBS.read_text().splitlines()]


def _length(text: str) -> Millis:
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([hms])", text))


def _body(job: dict[str, Any], start: Millis) -> dict[str, Any]:
    """Convert a job to a schedule; a minimum interval becomes the gap of a permanent schedule."""
    timing: dict[str, Any] = {"start_at": to_iso(start)}
    if "cron" in job:
        timing["cron"] = job["cron"]
    elif "interval" in job:
        timing["rate"] = job["interval"]
    else:
        timing["permanent"] = {"gap_seconds": _length(job["minimum_interval"]) // SECOND}
    may_overlap = "permanent" not in timing and job.get("max_concurrency") != 1
    overlap = {"overlap": "allow_all"} if may_overlap else {}
    return {"name": job["name"], "task": {"type": PLAIN, "payload": job}, **timing, **overlap}


def _expected(job: dict[str, Any], start: Millis, until: Millis) -> list[Millis]:
    """A job's times from a start time on, computed by another library.

    The list is empty if the job has no more times.
    """
    if "cron" not in job:
        return list(range(start, until + 1, _length(job["interval"])))
    just_before = to_datetime(start) - timedelta(milliseconds=1)
    try:
        return list(takewhile(lambda at: at <= until, map(from_datetime, CronSim(job["cron"], just_before))))
    except CronSimError:
        return []


@pytest.mark.slow
def test_every_real_job_runs_at_each_of_its_times(record_property: Callable[[str, object], None]) -> None:
    """In three hours, each of the 929 jobs runs exactly once at each of its times, at most a second late."""
    jobs = _jobs()
    with Schedules() as schedules:
        start = (schedules.now // MINUTE + 10) * MINUTE
        refused = [
            job for job in jobs if schedules.ask("POST", "/v1/schedules", _body(job, start)).status == _UNPROCESSABLE
        ]
        assert schedules.now < start
        schedules.time.run_until(start + LENGTH - 1)
        placed = {task.id.text: task.schedule_ref for task in schedules.placed() if task.schedule_ref}
        ran: dict[str, Counter[Millis]] = defaultdict(Counter)
        for effect in schedules.effects:
            schedule_ref = placed[effect.task_id]
            ran[schedule_ref.schedule][schedule_ref.nominal] += 1
            assert 0 <= effect.at - schedule_ref.nominal <= _LATEST
        by_clock = [job for job in jobs if "minimum_interval" not in job]
        expected = {job["name"]: dict.fromkeys(_expected(job, start, schedules.now), 1) for job in by_clock}
        assert {name: dict(ran[name]) for name in expected if ran[name] != expected[name]} == {}
        for job in jobs:
            if "minimum_interval" in job:
                interval = _length(job["minimum_interval"])
                times = sorted(ran[job["name"]])
                assert times
                assert all(interval <= later - earlier <= interval + _LATEST for earlier, later in pairwise(times))
                assert schedules.now - times[-1] <= interval + _LATEST
        assert "cancelled" not in schedules.tally()
        # These jobs have a date such as February 31, for which the other library does not find a time, either.
        assert all(not expected[job["name"]] for job in refused)
        assert len(refused) <= _NEVER
        record_property("jobs, refused, runs", (len(jobs), len(refused), len(schedules.effects)))
