"""From the words of a command line to the fields of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from duetime_client.commands.task_arguments import moment
from duetime_client.commands.times import seconds_of_span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.commands.schedule_options import Dialect, Fold, Gap, OnExcluded, Overlap
    from duetime_client.schedule_models import ScheduleFields, TimingFields

NONE = "none"
"""Takes a bound off."""


def timing_fields(  # noqa: PLR0913 - one parameter for each option that says when
    clock: Clock,
    *,
    cron: str | None = None,
    rate: str | None = None,
    interval: str | None = None,
    dates: Sequence[str] | None = None,
    permanent: str | None = None,
    dialect: Dialect | None = None,
    timezone: str | None = None,
    dst_gap: Gap | None = None,
    dst_fold: Fold | None = None,
    calendars: Sequence[str] | None = None,
    on_excluded: OnExcluded | None = None,
    jitter: str | None = None,
    start: str | None = None,
    end: str | None = None,
    runs: str | None = None,
) -> TimingFields:
    """The fields that the options give; what no option gives is absent."""
    texts = {
        "cron": cron,
        "rate": rate,
        "interval": interval,
        "dates": dates or None,
        "timezone": timezone,
        "dialect": dialect and dialect.value,
        "dst_gap": dst_gap and dst_gap.value,
        "dst_fold": dst_fold and dst_fold.value,
        "calendars": calendars or None,
        "on_excluded": on_excluded and on_excluded.value,
        "permanent": whole_seconds(permanent, "--permanent"),
        "jitter_seconds": whole_seconds(jitter, "--jitter"),
    }
    fields: TimingFields = {name: value for name, value in texts.items() if value is not None}  # type: ignore[assignment] # the names are the fields'
    if start is not None:
        fields["start_at"] = bound(start, clock, "--start")
    if end is not None:
        fields["end_at"] = bound(end, clock, "--end")
    if runs is not None:
        fields["remaining_runs"] = run_count(runs)
    return fields


def rule_fields(overlap: Overlap | None, catch_up: str | None, *, pause_on_failure: bool | None) -> ScheduleFields:
    """The fields that say what becomes of an occurrence that cannot run in time."""
    fields: ScheduleFields = {}
    if overlap is not None:
        fields["overlap"] = overlap.value
    if (seconds := whole_seconds(catch_up, "--catch-up")) is not None:
        fields["catch_up_seconds"] = seconds
    if pause_on_failure is not None:
        fields["pause_on_failure"] = pause_on_failure
    return fields


def whole_seconds(text: str | None, option: str) -> int | None:
    """The seconds of a span, if the option is given."""
    if text is None:
        return None
    try:
        seconds = seconds_of_span(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
    if seconds != int(seconds):
        raise typer.BadParameter("should be whole seconds", param_hint=option)
    return int(seconds)


def bound(text: str, clock: Clock, option: str) -> datetime | None:
    """The moment of a bound, or nothing if it is taken off."""
    return None if text == NONE else moment(text, clock, option)


def run_count(text: str) -> int | None:
    """How many runs `--runs` allows, or nothing if any number."""
    if text == NONE:
        return None
    if not text.isdecimal():
        raise typer.BadParameter("should be a whole number, or none", param_hint="--runs")
    return int(text)
