"""What the events of a schedule look like in responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.tasks.event_responses import ActorResponse
from duetime.contract.tasks.responses import Instant
from duetime.domain.schedules.schedule_history import ScheduleAction
from duetime.domain.tasks.action_history import ActorType
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule_history import ScheduleActionRecord
    from duetime.domain.schedules.schedule_record import StoredSchedule

CREATED: Literal["created"] = "created"
ScheduleEventType: TypeAlias = Literal[
    "created", "updated", "paused", "resumed", "run_requested", "backfill_requested", "backfill_cancelled"
]


class ScheduleEventResponse(TypedDict):
    """Something that was done to a schedule."""

    type: Annotated[ScheduleEventType, Field(description="What happened.")]
    at: Annotated[Instant, Field(description="When it happened.")]
    actor: Annotated[ActorResponse, Field(description="Who did it: a user, or the system.")]
    reason: Annotated[str | None, Field(description="Why, as the actor said; null if nothing was said.")]
    version: Annotated[int | None, Field(description="Version of the schedule after it; null for its creation.")]
    fields: Annotated[
        Sequence[str],
        Field(
            description="Of an update: the names of the fields that were changed; those of the task begin with `task.`."
        ),
    ]
    task_id: Annotated[str | None, Field(description="Of a run that was requested: its task.")]
    backfill_id: Annotated[str | None, Field(description="Of a backfill: its id.")]


class ScheduleEventList(TypedDict):
    """The events of a schedule, oldest first."""

    events: Annotated[Sequence[ScheduleEventResponse], Field(description="The events.")]
    dropped: Annotated[
        int, Field(description="How many of the oldest actions are no longer listed: only the latest are kept.")
    ]


def schedule_events(stored: StoredSchedule) -> ScheduleEventList:
    """The events of a schedule."""
    created = ScheduleEventResponse(
        type=CREATED,
        at=to_iso(stored.created_at),
        actor=ActorResponse(kind=ActorType.USER, name=stored.owner),
        reason=None,
        version=None,
        fields=[],
        task_id=None,
        backfill_id=None,
    )
    events = [created, *(_event(each, stored.owner) for each in stored.actions.records)]
    return ScheduleEventList(events=events, dropped=stored.actions.dropped)


def _event(record: ScheduleActionRecord, owner: str) -> ScheduleEventResponse:
    by = record.by
    name = None if by.actor is ActorType.SYSTEM else by.name or owner
    return ScheduleEventResponse(
        type=record.action.value,
        at=to_iso(record.at),
        actor=ActorResponse(kind=by.actor, name=name),
        reason=by.reason or None,
        version=record.version,
        fields=list(record.fields),
        task_id=record.subject if record.action is ScheduleAction.RUN_REQUESTED else None,
        backfill_id=record.subject if record.action in _OF_BACKFILLS else None,
    )


_OF_BACKFILLS = frozenset({ScheduleAction.BACKFILL_REQUESTED, ScheduleAction.BACKFILL_CANCELLED})
