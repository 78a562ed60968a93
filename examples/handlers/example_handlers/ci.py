"""A handler that simulates CI jobs: it works for a while, fails as often as requested, and reports each attempt."""

from __future__ import annotations

import json
import time
from typing import NotRequired, TypedDict
from urllib.request import Request, urlopen

from duetime.handlers import Context, handler

REPORT_TIMEOUT_SECONDS = 10
PROGRESS_STEPS = 4
WORTH_REPORTING_MS = 1000
"""The minimum duration of a job that reports progress, in milliseconds; each progress report costs a write."""


class Job(TypedDict):
    """The payload for tasks of the type `ci.job`."""

    job: str
    """The name of the job."""
    fail_times: NotRequired[int]
    """The number of attempts that fail before an attempt succeeds."""
    work_ms: NotRequired[int]
    """How long an attempt works, in milliseconds."""
    report_url: NotRequired[str]
    """The URL to which each attempt reports, so that executions can be counted independently of the scheduler."""


class JobFailed(RuntimeError):
    """The simulated job failed; the next attempt can succeed."""

    def __init__(self, job: str, attempt: int) -> None:
        super().__init__(f"job {job!r} failed at attempt {attempt}")


@handler("ci.job")
def run_job(context: Context, payload: Job) -> dict[str, object]:
    """Run one attempt of a job."""
    started_at_ms = _now_ms()
    _work(context, payload.get("work_ms", 0))
    succeeded = context.attempt > payload.get("fail_times", 0)
    if url := payload.get("report_url"):
        report = {"task_id": context.task_id, "attempt": context.attempt, "fence": context.fence}
        times = {"started_at_ms": started_at_ms, "ended_at_ms": _now_ms()}
        _post(url, {**report, **times, "succeeded": succeeded})
    if not succeeded:
        raise JobFailed(payload["job"], context.attempt)
    return {"job": payload["job"], "attempt": context.attempt}


def _work(context: Context, work_ms: int) -> None:
    if work_ms < WORTH_REPORTING_MS:
        time.sleep(work_ms / 1000)
        return
    for step in range(1, PROGRESS_STEPS + 1):
        time.sleep(work_ms / 1000 / PROGRESS_STEPS)
        context.progress(100 * step // PROGRESS_STEPS, f"step {step} of {PROGRESS_STEPS}")


def _post(url: str, body: dict[str, object]) -> None:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"cannot report to {url!r}: not a web address")
    headers = {"Content-Type": "application/json"}
    request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 (the scheme was checked above)
    with urlopen(request, timeout=REPORT_TIMEOUT_SECONDS) as response:  # noqa: S310 (the same request)
        response.read()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
