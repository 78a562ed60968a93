"""The options of the commands on schedules, each described once; bundles have the options of several commands."""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

WHEN = "Timing"
FINER = "Finer timing"
RULES = "Rules"
_when = partial(typer.Option, rich_help_panel=WHEN)
_finer = partial(typer.Option, rich_help_panel=FINER)
_rules = partial(typer.Option, rich_help_panel=RULES)


class Dialect(StrEnum):
    """The cron dialect of an expression."""

    CRON = "cron"
    VIXIE = "vixie"
    KUBERNETES = "kubernetes"
    QUARTZ = "quartz"
    SPRING = "spring"
    EVENTBRIDGE = "eventbridge"


class Gap(StrEnum):
    """Handling of a local time that a clock change skips."""

    SKIP = "skip"
    SHIFT_FORWARD = "shift_forward"


class Fold(StrEnum):
    """Handling of a local time that occurs twice when clocks are set back."""

    FIRST = "first"
    BOTH = "both"


class OnExcluded(StrEnum):
    """What happens to an occurrence that a calendar excludes."""

    SKIP = "skip"
    MOVE = "move"
    PREVIOUS_DAY = "previous_day"
    NEXT_DAY = "next_day"


class Overlap(StrEnum):
    """What happens to an occurrence while the previous occurrence is still running."""

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    CANCEL_OTHER = "cancel_other"
    REPLACE_OTHER = "replace_other"
    ALLOW_ALL = "allow_all"


class CatchUpMode(StrEnum):
    """Which missed occurrences are caught up."""

    LATEST = "latest"
    ALL = "all"


class ScheduleState(StrEnum):
    """The state of a schedule."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="Start of the list; default: now.")]
After = Annotated[str | None, typer.Option("--after", metavar="TIME", help="Start of the list; default: now.")]
Count = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Maximum number of entries to show.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingOptions:
    """When a schedule runs: exactly one kind of timing, and how to interpret it."""

    cron: Annotated[str | None, _when(metavar="EXPR", help="Cron expression: 5 fields, or 6 with seconds first.")] = (
        None
    )
    rate: Annotated[str | None, _when(metavar="DURATION", help="At a fixed rate: '5 minutes', 4h30m.")] = None
    interval: Annotated[
        str | None, _when(metavar="ISO", help="ISO 8601 interval: PT1H, R5/2026-01-31T09:00:00/P1M.")
    ] = None
    date: Annotated[list[str] | None, _when("--date", metavar="TIME", help="A single time; may be repeated.")] = None
    permanent: Annotated[
        str | None, _when(metavar="DURATION", help="Run continuously, with this gap after each run.")
    ] = None
    timing: Annotated[
        list[str] | None,
        _when(
            "--timing",
            metavar="TEXT",
            help="A timing: 'cron 0 9 * * mon-fri', 'rate 2h'; may be repeated.",
        ),
    ] = None
    extra_date: Annotated[
        list[str] | None,
        _finer(
            "--extra-date",
            metavar="TIME",
            help="An additional time; may be repeated. 'none' removes all additional times.",
        ),
    ] = None
    exclude_date: Annotated[
        list[str] | None,
        _finer(
            "--exclude-date",
            metavar="DAY|TIME",
            help="A day or time at which nothing runs; may be repeated. 'none' removes all exclusions.",
        ),
    ] = None
    dialect: Annotated[Dialect | None, _finer("--dialect", help="The cron dialect of --cron.")] = None
    timezone: Annotated[str | None, _when(metavar="ZONE", help="IANA name, such as Europe/London; default: UTC.")] = (
        None
    )
    dst_gap: Annotated[
        Gap | None, _finer("--dst-gap", help="For a time that does not exist because clocks are set forward.")
    ] = None
    dst_fold: Annotated[
        Fold | None, _finer("--dst-fold", help="For a time that exists twice because clocks are set back.")
    ] = None
    calendar: Annotated[
        list[str] | None, _when("--calendar", metavar="NAME", help="A calendar to apply; may be repeated.")
    ] = None
    on_excluded: Annotated[
        OnExcluded | None,
        _finer(
            "--on-excluded",
            help="Handling of an occurrence that a calendar excludes: skipped, moved to the next time that is not "
            "excluded, or run at the same time of day on an earlier or later day.",
        ),
    ] = None
    spread: Annotated[
        str | None,
        _finer(
            metavar="DURATION", help="Delay all occurrences by the same fraction of this time, derived from the name."
        ),
    ] = None
    jitter: Annotated[
        str | None, _finer(metavar="DURATION", help="Random delay of each occurrence, up to this time.")
    ] = None
    start: Annotated[
        str | None, _finer(metavar="TIME", help="No occurrence before this. 'none' removes the start.")
    ] = None
    end: Annotated[str | None, _finer(metavar="TIME", help="No occurrence after this. 'none' removes the end.")] = None
    runs: Annotated[str | None, _finer(metavar="N", help="Number of runs left. 'none' removes the limit.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions:
    """What happens to occurrences that cannot run at their time, and after a failure."""

    overlap: Annotated[
        Overlap | None, _rules("--overlap", help="What happens while the previous occurrence is still running.")
    ] = None
    catch_up: Annotated[str | None, _rules(metavar="DURATION", help="How late a missed occurrence may still run.")] = (
        None
    )
    catch_up_mode: Annotated[CatchUpMode | None, _rules("--catch-up-mode", help="Which missed occurrences run.")] = None
    pause_on_failure: Annotated[
        bool | None,
        _rules("--pause-on-failure/--no-pause-on-failure", help="Whether a failed task pauses the schedule."),
    ] = None
    expect_success_by: Annotated[
        str | None,
        _rules(
            metavar="HH:MM",
            help="Local time by which a run must succeed to avoid an alarm. 'none' removes the deadline.",
        ),
    ] = None
    expect_every: Annotated[
        str | None,
        _rules(
            metavar="DURATION", help="Longest time without a successful run before an alarm. 'none' removes the limit."
        ),
    ] = None
    expect_duration_factor: Annotated[
        str | None,
        _rules(metavar="N", help="Notify of runs that take N times the usual duration. 'none' ends these notices."),
    ] = None
