"""The timing fields of requests, and their validation."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from duetime.contract.http.request_model import Body
from duetime.contract.http.timestamps import instant_of
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, TIME_SCHEMA, each_once
from duetime.domain.limits import (
    MAX_CALENDARS,
    MAX_DATES,
    MAX_EXPRESSION_LENGTH,
    MAX_JITTER_SECONDS,
    MAX_PERIOD_DAYS,
    MAX_TIMINGS,
    MAX_ZONE_LENGTH,
)
from duetime.domain.operating_parameters import MAX_ROLL_DAYS
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import OnExcluded
from duetime.domain.schedules.time_zones import Fold, Gap
from duetime.domain.times import DAY, SECOND, Millis

TIMINGS = ("cron", "rate", "interval", "dates", "permanent", "timings")
"""A schedule has exactly one of these."""
MAX_RUNS = 1_000_000_000


def _instant_or_none(value: object) -> Millis | None:
    return None if value is None else instant_of(value)


Expression = Annotated[str, Field(min_length=1, max_length=MAX_EXPRESSION_LENGTH)]
Timezone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_ZONE_LENGTH,
        description="IANA time zone of the timing.",
        examples=["Europe/London"],
    ),
]
Bound = Annotated[
    Millis | None,
    BeforeValidator(_instant_or_none),
    WithJsonSchema({"anyOf": [TIME_SCHEMA, {"type": "null"}]}),
]
_Name = Annotated[str, Field(pattern=SCHEDULE_NAME_PATTERN)]
_Date = Annotated[str, Field(max_length=MAX_EXPRESSION_LENGTH)]
_Dates = Annotated[list[_Date], Field(min_length=1, max_length=MAX_DATES)]


class PermanentTiming(Body):
    """Runs again and again: each run starts some time after the previous one has ended."""

    gap_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_PERIOD_DAYS * DAY // SECOND,
            description="Seconds from the end of one run to the start of the next.",
            examples=[60],
        ),
    ] = 0


class SingleTiming(Body):
    """One of several timings; it has exactly one of `cron`, `rate`, `interval` and `dates`."""

    cron: Annotated[Expression | None, Field(description="A cron expression.", examples=["0 9 * * mon-fri"])] = None
    rate: Annotated[Expression | None, Field(description="A fixed rate.", examples=["5 minutes"])] = None
    interval: Annotated[
        Expression | None, Field(description="An ISO 8601 interval or duration.", examples=["PT1H"])
    ] = None
    dates: Annotated[_Dates | None, Field(description="A list of date-times.")] = None
    dialect: Annotated[Dialect, Field(strict=False, description="The program that `cron` is written for.")] = (
        Dialect.CRON
    )


class TimingFields(Body):
    """When work is due; exactly one of the first six says so. Null is the same as leaving a field out."""

    cron: Annotated[
        Expression | None,
        Field(
            description="A cron expression: five fields (minute, hour, day, month, weekday), or six with seconds "
            "first; with names, ranges, steps, `L`, `W`, `#`, `?`, or a macro such as `@daily`.",
            examples=["30 1 * * *"],
        ),
    ] = None
    rate: Annotated[
        Expression | None,
        Field(
            description="A fixed rate, counted from `start_at` or from the creation of the schedule.",
            examples=["5 minutes", "4h30m"],
        ),
    ] = None
    interval: Annotated[
        Expression | None,
        Field(
            description="An ISO 8601 repeating interval or duration.", examples=["PT1H", "R/2026-01-31T09:00:00Z/P1M"]
        ),
    ] = None
    dates: Annotated[
        _Dates | None,
        Field(
            description="A list of date-times, each with an offset or in `timezone`.",
            examples=[["2026-12-24T09:00:00"]],
        ),
    ] = None
    permanent: Annotated[
        PermanentTiming | None,
        Field(description="Runs again and again, with a gap between runs.", examples=[{"gap_seconds": 60}]),
    ] = None
    timings: Annotated[
        list[SingleTiming] | None,
        Field(
            min_length=1,
            max_length=MAX_TIMINGS,
            description="Several timings; a time that more than one of them means is one occurrence.",
            examples=[[{"cron": "0 9 * * mon-fri"}, {"cron": "0 12 * * sat"}]],
        ),
    ] = None
    extra_dates: Annotated[
        list[_Date],
        Field(
            max_length=MAX_DATES,
            description="Date-times besides the timing, each with an offset or in `timezone`.",
            examples=[["2026-12-27T12:00:00"]],
        ),
    ] = Field(default_factory=list)
    excluded_dates: Annotated[
        list[_Date],
        Field(
            max_length=MAX_DATES,
            description="Days, and date-times with an offset or in `timezone`, at which no occurrence runs.",
            examples=[["2026-12-25", "2026-12-31T18:00:00"]],
        ),
    ] = Field(default_factory=list)
    dialect: Annotated[
        Dialect,
        Field(
            strict=False,
            description="The program whose cron expressions `cron` is written for; `cron` rejects what they read "
            "differently. `eventbridge` takes `cron(…)` with a year last, `rate(…)` and `at(…)`.",
        ),
    ] = Dialect.CRON
    timezone: Timezone = "UTC"
    dst_gap: Annotated[
        Gap,
        Field(strict=False, description="What happens to a local time that the clock skips when it is set forward."),
    ] = Gap.SKIP
    dst_fold: Annotated[
        Fold,
        Field(
            strict=False,
            description="Whether a local time that occurs twice, when the clock is set back, counts twice.",
        ),
    ] = Fold.FIRST
    calendars: Annotated[
        list[_Name],
        Field(
            max_length=MAX_CALENDARS,
            description="Names of the calendars that decide when it does not run.",
            examples=[["uk-holidays"]],
            json_schema_extra={"uniqueItems": True},
        ),
        AfterValidator(each_once),
    ] = Field(default_factory=list)
    on_excluded: Annotated[
        OnExcluded,
        Field(
            strict=False,
            description="What happens to an occurrence that a calendar excludes: it is skipped, moved to the next time "
            "that is not excluded, or runs at the same time of day on the nearest earlier (`previous_day`) or later "
            f"(`next_day`) day on which that time is not excluded, at most {MAX_ROLL_DAYS} days away.",
        ),
    ] = OnExcluded.SKIP
    spread_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_JITTER_SECONDS,
            description="Delays all occurrences by the same part of this, in seconds: it follows from the schedule's "
            "name, so that schedules of the same time are spread; less in proportion where the next occurrence "
            "comes sooner.",
        ),
    ] = 0
    jitter_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_JITTER_SECONDS,
            description="Maximum random delay of each occurrence in seconds; the same occurrence always has the "
            "same delay, never beyond the next occurrence.",
        ),
    ] = 0
    start_at: Annotated[Bound, Field(description="No occurrence is before this time.")] = None
    end_at: Annotated[Bound, Field(description="No occurrence is after this time.")] = None
    remaining_runs: Annotated[
        int | None, Field(ge=1, le=MAX_RUNS, description="How many more runs there may be; null for no limit.")
    ] = None
