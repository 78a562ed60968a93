"""The bodies of actions on a schedule that exists: a pause, a run now, a changed occurrence, a backfill."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from duetime.contract.http.request_model import Body
from duetime.contract.http.timestamps import instant_of
from duetime.contract.tasks.fields import TIME_SCHEMA, printable
from duetime.domain.limits import MAX_BACKFILL_PER_MINUTE, MAX_NOTE_LENGTH
from duetime.domain.schedules.occurrence_actions import OccurrenceAction
from duetime.domain.times import Millis

BACKFILLED_PER_MINUTE = 60
Reason = Annotated[str, Field(max_length=MAX_NOTE_LENGTH), AfterValidator(printable)]
PastMoment = Annotated[
    Millis, BeforeValidator(instant_of), WithJsonSchema({**TIME_SCHEMA, "examples": ["2026-11-20T00:00:00Z"]})
]


class SchedulePause(Body):
    """Pauses a schedule, for a reason."""

    reason: Annotated[
        Reason, Field(description="Why it is paused; shown as `paused_reason`.", examples=["the printer is broken"])
    ] = ""


class ScheduleActionRequest(Body):
    """An action on a schedule; the body can be left out."""

    reason: Annotated[Reason, Field(description="Why; shown with the events of the schedule.")] = ""


class OccurrenceUpdate(Body):
    """Updates one occurrence that is to come."""

    scheduled_at: Annotated[
        Millis,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(description="The time that the timing gives, as in `upcoming`."),
    ]
    action: Annotated[
        OccurrenceAction,
        Field(
            strict=False,
            description="Skip it, move it to `due_at`, run it now instead of at its time, or restore it to its time.",
        ),
    ]
    due_at: Annotated[
        Millis | None,
        BeforeValidator(instant_of),
        WithJsonSchema(TIME_SCHEMA),
        Field(description="When it runs instead; with `move` only. No calendar and no jitter applies then."),
    ] = None
    reason: Annotated[Reason, Field(description="Why; shown with the events of the schedule.")] = ""


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
            description="Whether occurrences that have a run already are passed over. A run is known while its task is "
            "stored, if it was created since the tenth latest change of the schedule, or by a backfill in the list."
        ),
    ] = True
    overlap: Annotated[
        Literal["allow_all", "buffer_all"],
        Field(
            description="`buffer_all`: each run waits until the schedule has no other run in progress. `allow_all`: "
            "none does."
        ),
    ] = "allow_all"
