"""The bodies of requests about schedules. What they say here of each field is what the OpenAPI document says."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from duetime.contract.http.timestamps import instant_of
from duetime.contract.tasks.bodies import Body, TaskCreate
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, TIME_SCHEMA, each_once, printable
from duetime.domain.limits import (
    MAX_BACKFILL_PER_MINUTE,
    MAX_CALENDARS,
    MAX_CATCH_UP_SECONDS,
    MAX_DATES,
    MAX_EXPRESSION_LENGTH,
    MAX_JITTER_SECONDS,
    MAX_NOTE_LENGTH,
    MAX_OCCURRENCES,
    MAX_PERIOD_DAYS,
    MAX_ZONE_LENGTH,
)
from duetime.domain.schedules.definition import DEFAULT_CATCH_UP_SECONDS, OnExcluded, Overlap
from duetime.domain.schedules.time_zones import Fold, Gap
from duetime.domain.schedules.timings import Dialect
from duetime.domain.times import DAY, SECOND, Millis

TIMINGS = ("cron", "rate", "interval", "dates", "permanent")
"""A schedule has exactly one of these."""
MAX_RUNS = 1_000_000_000
PREVIEWED = 10
"""Occurrences in a preview that does not say how many."""
BACKFILLED_PER_MINUTE = 60
_ONE_TIMING: dict[str, Any] = {"oneOf": [{"required": [name]} for name in TIMINGS]}
_AT_MOST_ONE: dict[str, Any] = {
    "not": {
        "anyOf": [{"required": [one, other]} for index, one in enumerate(TIMINGS) for other in TIMINGS[index + 1 :]]
    }
}
_TASK_EXAMPLE = {"type": "report"}


def _without_timing_defaults(schema: dict[str, Any]) -> None:
    """No timing is written as one that is left out."""
    for name in TIMINGS:
        schema["properties"][name].pop("default", None)


def _as_creation(schema: dict[str, Any]) -> None:
    _without_timing_defaults(schema)
    schema["properties"]["name"].pop("default")
    schema |= {
        **_ONE_TIMING,
        "examples": [
            {
                "name": "nightly",
                "cron": "30 1 * * *",
                "timezone": "Europe/London",
                "dst_gap": "skip",
                "dst_fold": "first",
                "overlap": "skip",
                "catch_up_seconds": 3600,
                "task": _TASK_EXAMPLE,
            },
            {"name": "heartbeat", "rate": "30 seconds", "task": _TASK_EXAMPLE},
            {"name": "monthly", "interval": "R/2026-12-31T18:00:00/P1M", "task": _TASK_EXAMPLE},
        ],
    }


def _as_change(schema: dict[str, Any]) -> None:
    """What a change leaves out stays as it is: no default applies, and something must be there."""
    for field in schema["properties"].values():
        field.pop("default", None)
    schema |= {"minProperties": 1, **_AT_MOST_ONE}


def _as_preview(schema: dict[str, Any]) -> None:
    _without_timing_defaults(schema)
    schema["properties"]["from"].pop("default")
    schema |= {**_ONE_TIMING, "examples": [{"cron": "30 1 * * *", "timezone": "Europe/London", "count": 5}]}


def _as_template(schema: dict[str, Any]) -> None:
    """The schedule says when."""
    for name in ("due_at", "delay_seconds"):
        schema["properties"].pop(name)
    schema["properties"]["target"].pop("default")


def _instant_or_none(value: object) -> Millis | None:
    return None if value is None else instant_of(value)


ScheduleName = Annotated[
    str,
    Field(
        pattern=SCHEDULE_NAME_PATTERN,
        description="Its id among the owner's schedules; one is made up where it is left out.",
        examples=["nightly"],
    ),
]
Expression = Annotated[str, Field(min_length=1, max_length=MAX_EXPRESSION_LENGTH)]
Timezone = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_ZONE_LENGTH,
        description="IANA name of the zone whose clock the timing goes by.",
        examples=["Europe/London"],
    ),
]
Bound = Annotated[
    Millis | None,
    BeforeValidator(_instant_or_none),
    WithJsonSchema({"anyOf": [TIME_SCHEMA, {"type": "null"}]}),
]
Name = Annotated[str, Field(pattern=SCHEDULE_NAME_PATTERN)]
Note = Annotated[str, Field(max_length=MAX_NOTE_LENGTH), AfterValidator(printable)]


class TaskTemplate(TaskCreate):
    """What each occurrence runs: a task without its due time."""

    model_config = ConfigDict(json_schema_extra=_as_template)


class TimingFields(Body):
    """When work is due; exactly one of the first five says so."""

    cron: Annotated[
        Expression,
        Field(
            description="Five fields (minute, hour, day, month, weekday), or six with seconds first; names, ranges, "
            "steps, `L`, `W`, `#`, `?`, and `@daily` and its like.",
            examples=["30 1 * * *"],
        ),
    ] = ""
    rate: Annotated[
        Expression,
        Field(description="Evenly from `start_at`, or from its creation, on.", examples=["5 minutes", "4h30m"]),
    ] = ""
    interval: Annotated[
        Expression,
        Field(
            description="An ISO 8601 repeating interval or duration.", examples=["PT1H", "R5/2026-01-31T09:00:00Z/P1M"]
        ),
    ] = ""
    dates: Annotated[
        list[Annotated[str, Field(max_length=MAX_EXPRESSION_LENGTH)]],
        Field(
            min_length=1,
            max_length=MAX_DATES,
            description="Date-times, each with an offset, or in the time zone.",
            examples=[["2026-12-24T09:00:00"]],
        ),
    ] = Field(default_factory=list)
    permanent: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_PERIOD_DAYS * DAY // SECOND,
            description="Again and again: seconds from the end of one run to the start of the next.",
            examples=[60],
        ),
    ] = 0
    dialect: Annotated[
        Dialect,
        Field(
            strict=False,
            description="How `cron` is written; `eventbridge` takes `cron(…)` with a year last, `rate(…)` and `at(…)`.",
        ),
    ] = Dialect.CRON
    timezone: Timezone = "UTC"
    dst_gap: Annotated[
        Gap, Field(strict=False, description="What becomes of a local time that the clock jumps over.")
    ] = Gap.SKIP
    dst_fold: Annotated[
        Fold, Field(strict=False, description="Whether a fixed local time that the clock shows twice counts twice.")
    ] = Fold.FIRST
    calendars: Annotated[
        list[Name],
        Field(
            max_length=MAX_CALENDARS,
            description="Names of calendars at whose times it does not run.",
            examples=[["uk-holidays"]],
            json_schema_extra={"uniqueItems": True},
        ),
        AfterValidator(each_once),
    ] = Field(default_factory=list)
    on_excluded: Annotated[
        OnExcluded,
        Field(strict=False, description="What a calendar excludes is skipped, or moved to the next working moment."),
    ] = OnExcluded.SKIP
    jitter_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_JITTER_SECONDS,
            description="Each occurrence is delayed by up to so much, always by the same, never past the next one.",
        ),
    ] = 0
    start_at: Annotated[Bound, Field(description="Nothing comes before it.")] = None
    end_at: Annotated[Bound, Field(description="Nothing comes after it.")] = None
    remaining_runs: Annotated[
        int | None, Field(ge=1, le=MAX_RUNS, description="How many may still run; null for any number.")
    ] = None


class ScheduleFields(TimingFields):
    """All that a client may say of a schedule, its name and its task apart."""

    overlap: Annotated[
        Overlap, Field(strict=False, description="What becomes of an occurrence while the one before still runs.")
    ] = Overlap.SKIP
    catch_up_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_CATCH_UP_SECONDS,
            description="How late the latest missed occurrence may still run, after an outage of the scheduler.",
        ),
    ] = DEFAULT_CATCH_UP_SECONDS
    pause_on_failure: Annotated[bool, Field(description="Whether a task that has failed for good pauses it.")] = False


class ScheduleCreate(ScheduleFields):
    """A schedule to be created."""

    model_config = ConfigDict(json_schema_extra=_as_creation)

    task: TaskTemplate
    name: ScheduleName = ""


class SchedulePatch(ScheduleFields):
    """What to change of a schedule; each field given replaces the one before as a whole, the task too."""

    model_config = ConfigDict(json_schema_extra=_as_change)

    # What is left out is never looked at: the fields that are given are known by name.
    task: TaskTemplate = TaskTemplate(type="_")


class PreviewRequest(TimingFields):
    """A timing whose occurrences are asked for; nothing is created."""

    model_config = ConfigDict(json_schema_extra=_as_preview, validate_by_alias=True)

    start: Annotated[
        Millis | None,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(alias="from", description="The first moment; now where it is left out."),
    ] = None
    count: Annotated[int, Field(ge=1, le=MAX_OCCURRENCES, description="How many occurrences.")] = PREVIEWED


class PauseRequest(Body):
    """Why a schedule is held."""

    note: Annotated[Note, Field(description="Why; shown with the schedule.", examples=["the printer is broken"])] = ""


class BackfillRequest(Body):
    """A stretch of the past whose occurrences are to run."""

    model_config = ConfigDict(validate_by_alias=True)

    start: Annotated[
        Millis,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(alias="from", description="The first moment."),
    ]
    until: Annotated[
        Millis,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(description="The last moment; it must not lie ahead."),
    ]
    per_minute: Annotated[int, Field(ge=1, le=MAX_BACKFILL_PER_MINUTE, description="How many run in a minute.")] = (
        BACKFILLED_PER_MINUTE
    )
