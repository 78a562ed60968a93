"""Request bodies for schedules, and their timing fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from duetime.contract.http import request_json
from duetime.contract.http.request_model import Body
from duetime.contract.http.timestamps import instant_of
from duetime.contract.http.validation_errors import read_body
from duetime.contract.schedules.responses import ScheduleResponse
from duetime.contract.tasks.bodies import ONE_DUE_TIME, OrderKey, TaskCreate, TaskPatch, without_uniqueness
from duetime.contract.tasks.fields import (
    SCHEDULE_NAME_PATTERN,
    TIME_SCHEMA,
    AllowUnknownType,
    At,
    DelaySeconds,
    TagKey,
    TagValue,
    TaskType,
    each_once,
    printable,
)
from duetime.domain.bulk import BulkRequest, FilterAction
from duetime.domain.limits import (
    MAX_BACKFILL_PER_MINUTE,
    MAX_CALENDARS,
    MAX_CATCH_UP_SECONDS,
    MAX_DATES,
    MAX_EXPECT_DURATION_FACTOR,
    MAX_EXPECT_EVERY_SECONDS,
    MAX_EXPRESSION_LENGTH,
    MAX_JITTER_SECONDS,
    MAX_JSON_DEPTH,
    MAX_NOTE_LENGTH,
    MAX_OCCURRENCES,
    MAX_PAYLOAD_BYTES,
    MAX_PERIOD_DAYS,
    MAX_TAGS,
    MAX_TIMINGS,
    MAX_ZONE_LENGTH,
    MIN_EXPECT_DURATION_FACTOR,
    MIN_EXPECT_EVERY_SECONDS,
)
from duetime.domain.operating_parameters import MAX_ROLL_DAYS
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import DEFAULT_CATCH_UP_SECONDS, CatchUpMode, OnExcluded, Overlap
from duetime.domain.schedules.occurrence_actions import OccurrenceAction
from duetime.domain.schedules.time_zones import Fold, Gap
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.times import DAY, SECOND, Millis

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.bulk import BulkKind


TIMINGS = ("cron", "rate", "interval", "dates", "permanent", "timings")
"""The timing fields, of which a schedule has exactly one."""
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
    """Runs repeatedly; each run starts some time after the previous run has ended."""

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
    """One of several timings, with exactly one of `cron`, `rate`, `interval` and `dates`."""

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
    """When a schedule runs; exactly one of the first six fields is given. Null is the same as leaving a field out."""

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
        Field(description="Runs repeatedly, with a gap between runs.", examples=[{"gap_seconds": 60}]),
    ] = None
    timings: Annotated[
        list[SingleTiming] | None,
        Field(
            min_length=1,
            max_length=MAX_TIMINGS,
            description="Several timings; a time that several timings share is one occurrence.",
            examples=[[{"cron": "0 9 * * mon-fri"}, {"cron": "0 12 * * sat"}]],
        ),
    ] = None
    extra_dates: Annotated[
        list[_Date],
        Field(
            max_length=MAX_DATES,
            description="Additional date-times, each with an offset or in `timezone`.",
            examples=[["2026-12-27T12:00:00"]],
        ),
    ] = Field(default_factory=list)
    excluded_dates: Annotated[
        list[_Date],
        Field(
            max_length=MAX_DATES,
            description="Days, and date-times with an offset or in `timezone`, on which no occurrence runs.",
            examples=[["2026-12-25", "2026-12-31T18:00:00"]],
        ),
    ] = Field(default_factory=list)
    dialect: Annotated[
        Dialect,
        Field(strict=False, description="The program whose cron syntax is used."),
    ] = Dialect.CRON
    timezone: Timezone = "UTC"
    dst_gap: Annotated[
        Gap,
        Field(strict=False, description="What happens to a local time that is skipped when clocks go forward."),
    ] = Gap.SKIP
    dst_fold: Annotated[
        Fold,
        Field(
            strict=False,
            description="Whether a local time that occurs twice because clocks go back counts twice.",
        ),
    ] = Fold.FIRST
    calendars: Annotated[
        list[_Name],
        Field(
            max_length=MAX_CALENDARS,
            description="Names of the calendars that restrict when the schedule runs.",
            examples=[["uk-holidays"]],
            json_schema_extra={"uniqueItems": True},
        ),
        AfterValidator(each_once),
    ] = Field(default_factory=list)
    on_excluded: Annotated[
        OnExcluded,
        Field(
            strict=False,
            description="What happens to an occurrence that a calendar excludes: it is skipped, moves to the next "
            "allowed time, or moves to the same time of day on the nearest earlier (`previous_day`) or later "
            f"(`next_day`) allowed day, at most {MAX_ROLL_DAYS} days away.",
        ),
    ] = OnExcluded.SKIP
    spread_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_JITTER_SECONDS,
            description="Spreads schedules that run at the same times: all occurrences of a schedule are delayed by "
            "the same time, up to this many seconds, which is derived from the schedule's name. The delay is "
            "proportionally shorter if the next occurrence is sooner.",
        ),
    ] = 0
    jitter_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_JITTER_SECONDS,
            description=(
                "Maximum random delay of each occurrence, in seconds. The delay is fixed for each occurrence and "
                "never extends beyond the next occurrence."
            ),
        ),
    ] = 0
    start_at: Annotated[Bound, Field(description="Time before which there are no occurrences; null for no limit.")] = (
        None
    )
    end_at: Annotated[Bound, Field(description="Time after which there are no occurrences; null for no limit.")] = None
    remaining_runs: Annotated[
        int | None, Field(ge=1, le=MAX_RUNS, description="Maximum number of runs that are left; null for no limit.")
    ] = None


PREVIEWED = 10
"""Default number of occurrences in a preview."""
TIME_OF_DAY = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
_TASK_EXAMPLE = {"type": "report"}


def _without_timing_defaults(schema: dict[str, Any]) -> None:
    """Makes timings optional, without defaults."""
    for name in TIMINGS:
        schema["properties"][name].pop("default", None)


def _as_creation(schema: dict[str, Any]) -> None:
    _without_timing_defaults(schema)
    schema["properties"]["name"].pop("default")
    schema["examples"] = [
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
        {"name": "poller", "permanent": {"gap_seconds": 60}, "task": _TASK_EXAMPLE},
    ]


def _as_update(schema: dict[str, Any]) -> None:
    """Adapts a schema for updates, where omitted fields stay unchanged and at least one field is required."""
    for field in schema["properties"].values():
        field.pop("default", None)
    schema |= {"minProperties": 1, "examples": [{"cron": "0 2 * * *", "task": {"timeout_seconds": 120}}]}


def _as_preview(schema: dict[str, Any]) -> None:
    _without_timing_defaults(schema)
    for name in ("from", "name"):
        schema["properties"][name].pop("default")
    schema["examples"] = [{"cron": "30 1 * * *", "timezone": "Europe/London", "count": 5}]


def _as_template(schema: dict[str, Any]) -> None:
    """Removes the due time from the schema, because the schedule determines it."""
    for name in ("due_at", "delay_seconds"):
        schema["properties"].pop(name)
    if "unique" in schema["properties"]:
        without_uniqueness(schema, may_be_ordered=True)
    schema["properties"]["target"].pop("default", None)


def _as_template_update(schema: dict[str, Any]) -> None:
    _as_template(schema)
    _as_update(schema)
    schema["examples"] = [{"payload": {"any": "json"}, "retry": {"max_attempts": 3}}]


RESERVED_NAMES = ("pause", "preview", "resume")
"""Names that schedules cannot have, because these names have another meaning in paths."""


def _not_reserved(name: str) -> str:
    if name in RESERVED_NAMES:
        raise ValueError(f"should not be {name}, which is a path of the API")
    return name


ScheduleName = Annotated[
    str,
    Field(
        pattern=SCHEDULE_NAME_PATTERN,
        description="Name of the schedule, unique per owner; generated if left out. "
        f"{', '.join(RESERVED_NAMES)} are reserved.",
        examples=["nightly"],
    ),
    AfterValidator(_not_reserved),
]


class TaskTemplate(TaskCreate):
    """The task that each occurrence of a schedule runs, without a due time."""

    model_config = ConfigDict(json_schema_extra=_as_template)


class TaskTemplateUpdate(TaskPatch):
    """The fields of a schedule's task to change, as a merge patch (RFC 7396); `payload` is replaced completely."""

    model_config = ConfigDict(json_schema_extra=_as_template_update)

    type: TaskType = "_"
    allow_unknown_type: AllowUnknownType | None = None
    order: Annotated[
        OrderKey | None,
        Field(description="The ordered key of the runs, which completely replaces the old key; null for no key."),
    ] = None


class ScheduleFields(TimingFields):
    """All fields of a schedule except name and task."""

    READ_ONLY: ClassVar[frozenset[str]] = frozenset(ScheduleResponse.__annotations__) - {"name"}

    overlap: Annotated[
        Overlap,
        Field(
            strict=False,
            description="What happens to an occurrence that becomes due while the previous run is in progress.",
        ),
    ] = Overlap.SKIP
    catch_up_seconds: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_CATCH_UP_SECONDS,
            description="How late a missed occurrence may run after a scheduler outage, in seconds.",
        ),
    ] = DEFAULT_CATCH_UP_SECONDS
    catch_up_mode: Annotated[
        CatchUpMode,
        Field(
            strict=False,
            description=(
                "Whether to run only the latest missed occurrence within `catch_up_seconds`, or all missed "
                "occurrences within this time."
            ),
        ),
    ] = CatchUpMode.LATEST
    pause_on_failure: Annotated[
        bool, Field(description="Whether the schedule is paused when one of its tasks fails for good.")
    ] = False
    expect_success_by: Annotated[
        str | None,
        Field(
            pattern=TIME_OF_DAY,
            description="Daily deadline, as a time of day in `timezone`. If any run was due since the previous day's "
            "deadline, a run must have succeeded. A missed deadline is logged, counted and raises an alarm; null for "
            "no deadline.",
            examples=["06:00"],
        ),
    ] = None
    expect_every_seconds: Annotated[
        int | None,
        Field(
            ge=MIN_EXPECT_EVERY_SECONDS,
            le=MAX_EXPECT_EVERY_SECONDS,
            description="Maximum time without a successful run, in seconds. Longer gaps are logged, counted and raise "
            "an alarm; null for no limit.",
            examples=[7200],
        ),
    ] = None
    expect_duration_factor: Annotated[
        float | None,
        Field(
            ge=MIN_EXPECT_DURATION_FACTOR,
            le=MAX_EXPECT_DURATION_FACTOR,
            description="Maximum duration of a run, as a multiple of the median of the latest successful runs. For a "
            "longer run, a notice is sent as for the task's `notify_on.running_seconds`; null for no limit.",
            examples=[3],
        ),
    ] = None


class ScheduleCreate(ScheduleFields):
    """A schedule to be created, with exactly one of the six timings `cron` to `timings`."""

    model_config = ConfigDict(json_schema_extra=_as_creation)

    task: TaskTemplate
    name: ScheduleName = ""


class SchedulePatch(ScheduleFields):
    """The fields of a schedule to change, as a merge patch (RFC 7396). A new timing replaces the previous timing."""

    model_config = ConfigDict(json_schema_extra=_as_update)
    FIXED: ClassVar[frozenset[str]] = frozenset(ScheduleCreate.model_fields) - {*ScheduleFields.model_fields, "task"}

    # The default is never used, because only fields that the request sets are read.
    task: TaskTemplateUpdate = TaskTemplateUpdate()


class PreviewRequest(TimingFields):
    """A timing to preview, without creating a schedule."""

    model_config = ConfigDict(json_schema_extra=_as_preview, validate_by_alias=True)

    start: Annotated[
        Millis | None,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(alias="from", description="Start of the preview; the default is now."),
    ] = None
    count: Annotated[int, Field(ge=1, le=MAX_OCCURRENCES, description="Number of occurrences.")] = PREVIEWED
    name: Annotated[
        ScheduleName,
        Field(description="Name that the schedule would have, which determines the delay of `spread_seconds`."),
    ] = ""


BACKFILLED_PER_MINUTE = 60
Reason = Annotated[str, Field(max_length=MAX_NOTE_LENGTH), AfterValidator(printable)]
PastMoment = Annotated[
    Millis, BeforeValidator(instant_of), WithJsonSchema({**TIME_SCHEMA, "examples": ["2026-11-20T00:00:00Z"]})
]


class SchedulePause(Body):
    """Pauses a schedule, with an optional reason."""

    reason: Annotated[
        Reason, Field(description="Reason for the pause, shown as `paused_reason`.", examples=["the printer is broken"])
    ] = ""


class ScheduleActionRequest(Body):
    """An action on a schedule; the body can be left out."""

    reason: Annotated[Reason, Field(description="Reason for the change, shown in the schedule's events.")] = ""


def _as_run(schema: dict[str, Any]) -> None:
    schema["properties"]["due_at"].pop("default")
    schema |= ONE_DUE_TIME


class ScheduleRunRequest(ScheduleActionRequest):
    """A run of a schedule's task; the body can be left out."""

    model_config = ConfigDict(json_schema_extra=_as_run)

    payload: Annotated[
        Any,
        Field(
            description=f"Payload of this run: any JSON of at most {MAX_PAYLOAD_BYTES} bytes; by default, the "
            "schedule's payload. Not accepted for topologies, whose payload is the graph.",
            examples=[{"since": "2026-11-20"}],
        ),
    ] = None
    due_at: Annotated[
        At,
        Field(description="When the run is due; now if left out or in the past. Cannot be given with `delay_seconds`."),
    ] = None
    delay_seconds: DelaySeconds = 0


class OccurrenceUpdate(Body):
    """Updates one future occurrence."""

    scheduled_at: Annotated[
        Millis,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(description="Scheduled time of the occurrence, as in `upcoming`."),
    ]
    action: Annotated[
        OccurrenceAction,
        Field(
            strict=False,
            description="Whether to skip the occurrence, move it to `due_at`, run it now, or restore its scheduled "
            "time.",
        ),
    ]
    due_at: Annotated[
        Millis | None,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(description="New time, for `move` only; calendars and jitter do not apply to this time."),
    ] = None
    reason: Annotated[Reason, Field(description="Reason for the change, shown in the schedule's events.")] = ""


class BackfillCreate(Body):
    """Backfills a past period."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"scheduled_after": "2026-11-20T00:00:00Z", "scheduled_before": "2026-11-21T00:00:00Z"}]
        }
    )

    scheduled_after: Annotated[PastMoment, Field(description="Start of the period, inclusive.")]
    scheduled_before: Annotated[PastMoment, Field(description="End of the period, exclusive; not in the future.")]
    per_minute: Annotated[
        int, Field(ge=1, le=MAX_BACKFILL_PER_MINUTE, description="Number of runs started per minute.")
    ] = BACKFILLED_PER_MINUTE
    only_missing: Annotated[
        bool,
        Field(
            description="Whether to skip occurrences that already have a run. A run is recognized "
            "only while its task is stored, and only if the schedule was changed or paused at most ten times since the "
            "task's creation, or a listed backfill created the task."
        ),
    ] = True
    overlap: Annotated[
        Literal["allow_all", "buffer_all"],
        Field(
            description="`buffer_all`: each run waits until no other run of the schedule is in progress. `allow_all`: "
            "runs do not wait."
        ),
    ] = "allow_all"


class ScheduleTagFilter(Body):
    """Selects schedules by tags."""

    tags: Annotated[
        dict[TagKey, TagValue],
        Field(
            min_length=1,
            max_length=MAX_TAGS,
            description="Only schedules whose `task` has all of these tags.",
            examples=[{"team": "dba"}],
            json_schema_extra={"additionalProperties": False},
        ),
    ]


class SchedulesByTag(Body):
    """Pauses or resumes the schedules that have certain tags."""

    filter: Annotated[ScheduleTagFilter, Field(description="The schedules to pause or resume.")]
    reason: Annotated[
        Reason, Field(description="Reason for the action, shown with the schedules and their events.")
    ] = ""


def read_schedules_by_tag(document: Document) -> SchedulesByTag:
    """Decodes the body of a request.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(SchedulesByTag, document)


def request_of(body: SchedulesByTag, kind: BulkKind, text: bytes) -> BulkRequest:
    """Converts a body into a request."""
    action = FilterAction(wanted=TaskFilter(tags=body.filter.tags))
    return BulkRequest(kind, action, text, by=Attribution(reason=body.reason))


def read_stored(kind: BulkKind, text: bytes) -> BulkRequest:
    """Decodes the stored body of an accepted request."""
    return request_of(read_schedules_by_tag(request_json.read(text.decode(), depth=MAX_JSON_DEPTH)), kind, text)
