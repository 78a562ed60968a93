"""Converts periodic jobs of Prow (Kubernetes' CI) to schedules.

Source: Prow's `Periodic` job configuration: `cron` has the syntax of robfig/cron 3 and is in UTC; `interval` is the
time from the start of one run to the start of the next run; `minimum_interval` is the time from the end of one run to
the start of the next run; `max_concurrency` is the number of concurrent runs, where 0 means no limit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_PART = re.compile(r"([0-9]+)(h|m|s)")
_DURATION = re.compile(r"(?:[0-9]+[hms])+")
_ZONED = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.*)")
_EVERY = re.compile(r"@every\s+(\S+)")
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_READ = frozenset({"interval", "minimum_interval", "max_concurrency", "timeout"})
LONGEST_TIMEOUT = 840
"""The longest timeout of an attempt, in seconds; longer work reports its outcome later, before a deadline."""


def schedule_of_prow(job: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a job to the fields of a schedule; fields that the job does not set keep their defaults.

    Raises:
        ValueError: A duration is not valid; the message names the field.
    """
    fields = {key: value for key, value in job.items() if key not in _READ}
    if isinstance(job.get("cron"), str):
        fields |= _timing_of(fields.pop("cron").strip())
    if "interval" in job:
        fields["rate"] = job["interval"]
    if "minimum_interval" in job:
        fields["permanent"] = {"gap_seconds": seconds_of(job["minimum_interval"], "minimum_interval")}
    else:
        # Prow starts the next run even while the previous run is active, unless `max_concurrency` is 1.
        fields["overlap"] = "skip" if job.get("max_concurrency") == 1 else "allow_all"
    if "timeout" in job:
        seconds = seconds_of(job["timeout"], "timeout")
        fields["task"] = {"timeout_seconds": min(seconds, LONGEST_TIMEOUT), "notify_within_seconds": seconds}
    return fields


def _timing_of(cron: str) -> dict[str, Any]:
    """Convert a robfig/cron expression, which can begin with a time zone or be like `@every 4h`, to a timing."""
    zoned = _ZONED.fullmatch(cron)
    expression = zoned[2] if zoned else cron
    if every := _EVERY.fullmatch(expression):
        return {"rate": every[1]}
    timing = {"cron": expression, "dialect": "kubernetes"}
    # If a clock change repeats or skips a run's local time, robfig/cron runs twice or not at all.
    return {**timing, "timezone": zoned[1], "dst_gap": "skip", "dst_fold": "both"} if zoned else timing


def seconds_of(text: object, field: str) -> int:
    """Convert a duration such as `4h30m` to seconds.

    Raises:
        ValueError: The text is not a duration.
    """
    if not isinstance(text, str) or _DURATION.fullmatch(text) is None:
        raise ValueError(f"{field}: should be a duration such as 4h30m")
    return sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
