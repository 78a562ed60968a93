"""The options of the commands on schedules, each described once."""

from enum import StrEnum
from typing import Annotated

import typer

WHEN = "When"
RULES = "Rules"


class Dialect(StrEnum):
    """How a cron expression is written."""

    CRON = "cron"
    EVENTBRIDGE = "eventbridge"


class Gap(StrEnum):
    """What becomes of a time that the clock jumps over."""

    SKIP = "skip"
    SHIFT_FORWARD = "shift_forward"


class Fold(StrEnum):
    """What becomes of a time that the clock shows twice."""

    FIRST = "first"
    BOTH = "both"


class OnExcluded(StrEnum):
    """What becomes of an occurrence that a calendar excludes."""

    SKIP = "skip"
    MOVE = "move"


class Overlap(StrEnum):
    """What becomes of an occurrence while the one before still runs."""

    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    ALLOW_ALL = "allow_all"


class ScheduleState(StrEnum):
    """Where a schedule stands."""

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


ScheduleName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the schedule.")]
Cron = Annotated[
    str | None, typer.Option(metavar="EXPR", help="Cron of 5 fields, or 6 with seconds first.", rich_help_panel=WHEN)
]
Rate = Annotated[str | None, typer.Option(metavar="SPAN", help="Evenly: '5 minutes', 4h30m.", rich_help_panel=WHEN)]
Interval = Annotated[
    str | None,
    typer.Option(metavar="ISO", help="ISO 8601: PT1H, R5/2026-01-31T09:00:00/P1M.", rich_help_panel=WHEN),
]
Date = Annotated[
    list[str] | None,
    typer.Option("--date", metavar="TIME", help="A date-time; may be repeated.", rich_help_panel=WHEN),
]
Permanent = Annotated[
    str | None,
    typer.Option(metavar="SPAN", help="Again and again, such a pause after each end.", rich_help_panel=WHEN),
]
DialectOption = Annotated[
    Dialect | None, typer.Option("--dialect", help="How --cron is written.", rich_help_panel=WHEN)
]
Timezone = Annotated[
    str | None, typer.Option(metavar="ZONE", help="IANA name, such as Europe/London; else UTC.", rich_help_panel=WHEN)
]
DstGap = Annotated[
    Gap | None, typer.Option("--dst-gap", help="A time that the clock jumps over.", rich_help_panel=WHEN)
]
DstFold = Annotated[
    Fold | None, typer.Option("--dst-fold", help="A time that the clock shows twice.", rich_help_panel=WHEN)
]
CalendarNames = Annotated[
    list[str] | None,
    typer.Option("--calendar", metavar="NAME", help="A calendar to heed; may be repeated.", rich_help_panel=WHEN),
]
OnExcludedOption = Annotated[
    OnExcluded | None,
    typer.Option("--on-excluded", help="What a calendar excludes is skipped or moved.", rich_help_panel=WHEN),
]
Jitter = Annotated[
    str | None, typer.Option(metavar="SPAN", help="Delay each by up to this much.", rich_help_panel=WHEN)
]
Start = Annotated[
    str | None, typer.Option(metavar="TIME", help="Nothing comes before; none takes it off.", rich_help_panel=WHEN)
]
End = Annotated[
    str | None, typer.Option(metavar="TIME", help="Nothing comes after; none takes it off.", rich_help_panel=WHEN)
]
Runs = Annotated[
    str | None, typer.Option(metavar="N", help="How many may still run; none takes it off.", rich_help_panel=WHEN)
]
OverlapOption = Annotated[
    Overlap | None,
    typer.Option("--overlap", help="While the one before still runs.", rich_help_panel=RULES),
]
CatchUp = Annotated[
    str | None,
    typer.Option(metavar="SPAN", help="How late the latest missed one may still run.", rich_help_panel=RULES),
]
PauseOnFailure = Annotated[
    bool | None,
    typer.Option(
        "--pause-on-failure/--no-pause-on-failure", help="Whether a failed task pauses it.", rich_help_panel=RULES
    ),
]
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="From when on; else from now.")]
Count = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many.")]
