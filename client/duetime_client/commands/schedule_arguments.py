"""Converts command-line options to the fields of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import typer

from duetime_client.commands.task_arguments import given, moment
from duetime_client.commands.times import seconds_of_span

if TYPE_CHECKING:
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.commands.schedule_options import RuleOptions, TimingOptions
    from duetime_client.schedule_models import PermanentTiming, ScheduleFields, SingleTiming, TimingFields

NONE = "none"
"""The value that removes a bound."""


def timing_fields(options: TimingOptions, clock: Clock) -> TimingFields:
    """The timing fields set by options; other fields are absent."""
    values = {
        "cron": options.cron,
        "rate": options.rate,
        "interval": options.interval,
        "dates": options.date or None,
        "timezone": options.timezone,
        "dialect": options.dialect and options.dialect.value,
        "dst_gap": options.dst_gap and options.dst_gap.value,
        "dst_fold": options.dst_fold and options.dst_fold.value,
        "calendars": options.calendar or None,
        "on_excluded": options.on_excluded and options.on_excluded.value,
        "permanent": permanent_timing(options.permanent),
        "timings": [single_timing(text) for text in options.timing] if options.timing else None,
        "extra_dates": options.extra_date and without_none(options.extra_date),
        "excluded_dates": options.exclude_date and without_none(options.exclude_date),
        "spread_seconds": whole_seconds(options.spread, "--spread"),
        "jitter_seconds": whole_seconds(options.jitter, "--jitter"),
    }
    fields: TimingFields = {name: value for name, value in values.items() if value is not None}  # type: ignore[assignment] # the names are those of the fields
    if options.start is not None:
        fields["start_at"] = bound(options.start, clock, "--start")
    if options.end is not None:
        fields["end_at"] = bound(options.end, clock, "--end")
    if options.runs is not None:
        fields["remaining_runs"] = run_count(options.runs)
    return fields


def rule_fields(options: RuleOptions) -> ScheduleFields:
    """The rule fields set by options."""
    fields = given(
        overlap=options.overlap and options.overlap.value,
        catch_up_seconds=whole_seconds(options.catch_up, "--catch-up"),
        catch_up_mode=options.catch_up_mode and options.catch_up_mode.value,
        pause_on_failure=options.pause_on_failure,
        expect_success_by=options.expect_success_by,
    )
    if options.expect_success_by == NONE:
        fields["expect_success_by"] = None
    if options.expect_every is not None:
        is_none = options.expect_every == NONE
        fields["expect_every_seconds"] = None if is_none else whole_seconds(options.expect_every, "--expect-every")
    if options.expect_duration_factor is not None:
        fields["expect_duration_factor"] = _factor(options.expect_duration_factor)
    return cast("ScheduleFields", fields)


def _factor(text: str) -> float | None:
    if text == NONE:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise typer.BadParameter("should be a number, or none", param_hint="--expect-duration-factor") from error


def single_timing(text: str) -> SingleTiming:
    """Parse one `--timing` value."""
    kind, _, written = text.strip().partition(" ")
    match kind:
        case "cron":
            return {"cron": written}
        case "vixie" | "kubernetes" | "quartz" | "spring" | "eventbridge" as dialect:
            return {"cron": written, "dialect": dialect}
        case "rate":
            return {"rate": written}
        case "interval":
            return {"interval": written}
        case _:
            raise typer.BadParameter(
                "should begin with cron or another dialect, rate or interval", param_hint="--timing"
            )


def without_none(texts: list[str]) -> list[str]:
    """The values of a list option; a single `none` means an empty list."""
    return [] if texts == [NONE] else texts


def permanent_timing(text: str | None) -> PermanentTiming | None:
    """The timing for `--permanent`, if given."""
    seconds = whole_seconds(text, "--permanent")
    return None if seconds is None else {"gap_seconds": seconds}


def whole_seconds(text: str | None, option: str) -> int | None:
    """The value of a duration option in whole seconds, if given."""
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
    """The time of a bound; `None` removes it."""
    return None if text == NONE else moment(text, clock, option)


def run_count(text: str) -> int | None:
    """The limit of `--runs`; `None` for no limit."""
    if text == NONE:
        return None
    if not text.isdecimal():
        raise typer.BadParameter("should be a whole number, or none", param_hint="--runs")
    return int(text)
