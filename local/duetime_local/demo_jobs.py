"""Converts a real CI system's periodic jobs to the demo's tasks, which are due within seconds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from duetime_local.project import example

JOBS = "data/prow-periodics.jsonl"
SHORTEST_WORK_MS = 5
LONGEST_WORK_MS = 60
ONE_FAILS_OF = 16
ONE_IS_HTTP_OF = 3


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A job and the demo's task for this job, which is the same in every run."""

    job: str
    offset_ms: int
    """Milliseconds from the first possible due time to the task's due time."""
    over_http: bool
    """Whether the task calls an HTTP endpoint instead of a Python handler."""
    work_ms: int
    fail_times: int
    """The number of attempts that fail before an attempt succeeds."""


def plan(count: int, spread_ms: int) -> list[PlannedTask]:
    """Read `count` jobs, spread their due times over `spread_ms`, and return them in order of due time."""
    names = [json.loads(line)["name"] for line in example(JOBS).read_text().splitlines()[:count]]
    return sorted((_planned(name, spread_ms) for name in names), key=lambda planned: planned.offset_ms)


def _planned(job: str, spread_ms: int) -> PlannedTask:
    # A hash of the name gives evenly distributed values that are the same in every run.
    digest = hashlib.sha256(job.encode()).digest()
    return PlannedTask(
        job=job,
        offset_ms=int.from_bytes(digest[:4]) * spread_ms >> 32,
        over_http=digest[4] % ONE_IS_HTTP_OF == 0,
        work_ms=SHORTEST_WORK_MS + digest[5] % (LONGEST_WORK_MS - SHORTEST_WORK_MS),
        fail_times=1 if digest[6] % ONE_FAILS_OF == 0 else 0,
    )
