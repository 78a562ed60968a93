"""A day of 929 real periodic jobs in virtual time: each runs at each of its times, as another library computes them."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cronsim import CronSim, CronSimError

from duetime.domain.errors import FieldInvalid
from duetime.domain.schedules.definition import Overlap, ScheduleSpec, Written
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task import TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, from_datetime, to_datetime
from tests.virtual.world import OWNER, START, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis

JOBS = Path(__file__).parents[3] / "shared" / "data" / "schedules" / "prow-periodics.jsonl"
_UNITS = {"h": HOUR, "m": MINUTE, "s": SECOND}
_NEVER = 10
"""Of the real jobs at most so many name a day that does not exist."""
_LATEST: Millis = 1_000
"""Milliseconds that an occurrence may be late without faults: the promise's p99."""


def _jobs() -> list[dict[str, Any]]:
    if not JOBS.exists():
        pytest.skip("the shared data is not beside this checkout: the day of real jobs is NOT tested")
    return [json.loads(line) for line in JOBS.read_text().splitlines()]


def _length(text: str) -> Millis:
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([hms])", text))


def _spec(job: dict[str, Any]) -> ScheduleSpec:
    """A job as a schedule: a minimum interval is one from the end of a run to the start of the next."""
    if "cron" in job:
        written = Written(cron=job["cron"])
    elif "interval" in job:
        written = Written(rate=job["interval"])
    else:
        written = Written(permanent=_length(job["minimum_interval"]) // SECOND)
    may_overlap = written.permanent is None and job.get("max_concurrency") != 1
    overlap = Overlap.ALLOW_ALL if may_overlap else Overlap.SKIP
    return ScheduleSpec(written, TaskSpec("ci.job", json.dumps(job).encode()), job["name"], overlap=overlap)


def _expected(job: dict[str, Any], until: Millis) -> list[Millis]:
    """The job's times from the world's beginning on, computed without anything of ours; none for what never comes."""
    if "cron" not in job:
        # Runs take no time in this world, so that both kinds of interval are the same.
        return list(range(START, until + 1, _length(job.get("interval") or job["minimum_interval"])))
    just_before = to_datetime(START) - timedelta(milliseconds=1)
    try:
        return list(takewhile(lambda at: at <= until, map(from_datetime, CronSim(job["cron"], just_before))))
    except CronSimError:
        return []


@pytest.mark.slow
def test_every_real_job_runs_at_each_of_its_times_for_a_day(record_property: Callable[[str, object], None]) -> None:
    """All 929 jobs for 24 hours: none missed, none doubled, none early, none late by more than a second."""
    jobs = _jobs()
    world = World(shards=16)
    refused = []
    for job in jobs:
        try:
            world.schedule_manager.create(OWNER, _spec(job))
        except FieldInvalid:
            refused.append(job)
    world.pass_time(DAY - 1)
    name_of = {task.id: task.schedule_ref.schedule for task in world.tasks._tasks.values() if task.schedule_ref}
    nominal = {task.id: task.schedule_ref.nominal for task in world.tasks._tasks.values() if task.schedule_ref}
    ran: dict[str, Counter[Millis]] = defaultdict(Counter)
    for effect in world.effects:
        ran[name_of[effect.task_id]][nominal[effect.task_id]] += 1
        assert 0 <= effect.at - nominal[effect.task_id] <= _LATEST
    expected = {job["name"]: dict.fromkeys(_expected(job, world.time.now()), 1) for job in jobs}
    assert {name: dict(ran[name]) for name in expected if ran[name] != expected[name]} == {}
    assert world.states()[State.CANCELLED] == 0
    # A 31st of February: such a job is refused, and the other library finds no time for it either.
    assert all(not expected[job["name"]] for job in refused)
    assert len(refused) <= _NEVER
    record_property("jobs, refused, runs, tasks", (len(jobs), len(refused), len(world.effects), len(name_of)))
