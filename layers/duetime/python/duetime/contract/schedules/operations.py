"""Operations on schedules and calendars, and the parameters of their queries."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from duetime.contract.bulk.operations import filter_action
from duetime.contract.http.operation import IF_MATCH, KEY, TRACEPARENT, Header, Operation, Parameters, Returns
from duetime.contract.http.request_errors import FaultCode, ParametersInvalid
from duetime.contract.http.timestamps import ends_after, instant_of
from duetime.contract.schedules import bodies, calendars, responses
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, TIME_SCHEMA, Reason, TaskType
from duetime.contract.tasks.operations import NEW_TASK
from duetime.contract.tasks.queries import EstimateQuery, PageSize, WantedTags, parts_of
from duetime.domain import errors
from duetime.domain import errors as for_schedules
from duetime.domain.limits import ACTIONS_INLINE, MAX_EXAMINED, MAX_OCCURRENCES, MAX_PAGE
from duetime.domain.schedules.runs import RunStatus
from duetime.domain.schedules.schedule import ScheduleState
from duetime.domain.schedules.schedule_record import ScheduleFilter
from duetime.domain.times import LAST_INSTANT, Millis

LISTED = 20
"""Default number of occurrences in a list."""
_WHOLE = re.compile(r"[0-9]{1,4}")


def _count(text: object) -> int:
    number = int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else 0
    if not 1 <= number <= MAX_OCCURRENCES:
        raise ValueError(f"should be a whole number from 1 to {MAX_OCCURRENCES}")
    return number


def _statuses(texts: object) -> tuple[RunStatus, ...]:
    try:
        found = tuple(sorted({RunStatus(part) for part in parts_of(texts)}))
    except ValueError:
        found = ()
    if not found:
        raise ValueError(f"should be one or several of {', '.join(RunStatus)}")
    return found


_Instant = Annotated[Millis | None, BeforeValidator(instant_of), WithJsonSchema(TIME_SCHEMA)]


def _states(texts: object) -> tuple[ScheduleState, ...]:
    try:
        found = tuple(sorted({ScheduleState(str(text)) for text in parts_of(texts)}))
    except ValueError:
        found = ()
    if not found:
        raise ValueError(f"should be one or several of {', '.join(ScheduleState)}")
    return found


class ScheduleListQuery(Parameters):
    """Parameters of `GET /v1/schedules`."""

    repeatable: ClassVar[frozenset[str]] = frozenset({"state", "tag"})

    state: Annotated[
        tuple[ScheduleState, ...],
        BeforeValidator(_states),
        WithJsonSchema({"type": "array", "items": {"type": "string", "enum": [each.value for each in ScheduleState]}}),
        Field(description="Only schedules in this state. The parameter may be repeated."),
    ] = ()
    type: Annotated[TaskType | None, Field(description="Only schedules whose tasks have this type.")] = None
    tag: Annotated[
        WantedTags,
        Field(
            description="Only schedules whose tasks have this tag, as `key:value`. If repeated, the tasks must have "
            "all of these tags."
        ),
    ] = Field(default_factory=dict)
    name_prefix: Annotated[
        str | None,
        Field(pattern=SCHEDULE_NAME_PATTERN, description="Only schedules whose names begin with this text."),
    ] = None
    limit: Annotated[PageSize, Field(description="Maximum number of schedules on a page.")] = MAX_PAGE
    next_token: Annotated[
        str | None, Field(description="`next_token` from the previous page. All other parameters must be the same.")
    ] = None

    @property
    def wanted(self) -> ScheduleFilter:
        """The filter that these parameters describe."""
        return ScheduleFilter(self.state, self.type or "", self.tag, self.name_prefix or "")

    def scope(self, owner: str) -> str:
        """The scope for which the list's page tokens are valid."""
        return repr((owner, "schedules", self.state, self.type, sorted(self.tag.items()), self.name_prefix))


class OccurrencesQuery(Parameters):
    """Parameters of `GET /v1/schedules/{name}/occurrences`."""

    scheduled_after: Annotated[
        _Instant, Field(description="Only occurrences at this time or later; the default is now.")
    ] = None
    scheduled_before: Annotated[
        _Instant, ends_after("scheduled_after"), Field(description="Only occurrences before this time.")
    ] = None
    limit: Annotated[
        int,
        BeforeValidator(_count),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_OCCURRENCES}),
        Field(description="Maximum number of occurrences."),
    ] = LISTED

    def bounds(self, now: Millis) -> tuple[Millis, Millis]:
        """The first and the last moment of the list.

        Raises:
            ParametersInvalid: the last moment is in the past although the list starts now.
        """
        start = now if self.scheduled_after is None else self.scheduled_after
        end = LAST_INSTANT if self.scheduled_before is None else self.scheduled_before - 1
        if end < start:
            reason = "should be in the future if scheduled_after is left out: the list begins now"
            raise ParametersInvalid.of("scheduled_before", reason, FaultCode.CONFLICT)
        return start, end


class RunListQuery(Parameters):
    """Parameters of `GET /v1/schedules/{name}/runs`."""

    repeatable: ClassVar[frozenset[str]] = frozenset({"status"})

    status: Annotated[
        tuple[RunStatus, ...],
        BeforeValidator(_statuses),
        WithJsonSchema({"type": "array", "items": {"type": "string", "enum": [each.value for each in RunStatus]}}),
        Field(description="Only runs with this status. The parameter may be repeated."),
    ] = ()
    scheduled_after: Annotated[
        _Instant,
        Field(
            description="Only runs scheduled for this time or later; the default is the schedule's creation. "
            "For requested runs and backfills, the due time is compared."
        ),
    ] = None
    scheduled_before: Annotated[
        _Instant,
        ends_after("scheduled_after"),
        Field(description="Only runs scheduled before this time."),
    ] = None
    limit: Annotated[
        PageSize,
        Field(description="Maximum number of tasks on a page, not counting occurrences without a task."),
    ] = MAX_PAGE
    next_token: Annotated[
        str | None, Field(description="`next_token` from the previous page. All other parameters must be the same.")
    ] = None

    def scope(self, owner: str, name: str) -> str:
        """The scope for which the list's page tokens are valid."""
        return repr((owner, "runs", name, self.scheduled_after, self.scheduled_before, self.status))


class ScheduleUpdateQuery(Parameters):
    """Parameters of `PATCH /v1/schedules/{name}`."""

    reason: Annotated[Reason, Field(description="Reason for the update, shown in the schedule's events.")] = ""


ONLY_NEW = Header("If-None-Match", "`*` to store the calendar only if no calendar has this name.", {"const": "*"})
_SCHEDULE = Returns(
    responses.ScheduleResponse,
    "The schedule.",
    {"ETag": "An ETag that changes with the schedule's version and with the content of the response."},
)
_BACKFILL = Returns(responses.BackfillResponse, "The backfill.")
_CALENDAR = Returns(calendars.CalendarResponse, "The calendar.", {"ETag": "The calendar's version."})
_CHANGED = (for_schedules.ScheduleStateConflict, for_schedules.ScheduleVersionMismatch)

CREATE = Operation(
    "createSchedule",
    "POST /v1/schedules",
    "Create a schedule",
    _SCHEDULE.created("Path of the schedule."),
    description="A schedule has exactly one of `cron`, `rate`, `interval`, `dates`, `permanent` and `timings`, and is "
    "active at once. A timing without occurrences is rejected.",
    query=EstimateQuery,
    body=bodies.ScheduleCreate,
    nesting=1,
    headers=(KEY, TRACEPARENT),
    errors=(for_schedules.ScheduleExists, for_schedules.ScheduleNotFound, errors.KeyReused),
)
LIST = Operation(
    "listSchedules",
    "GET /v1/schedules",
    "List schedules",
    Returns(responses.SchedulePage, "A page of schedules."),
    description=f"The schedules are ordered by name. A page examines at most {MAX_EXAMINED} schedules, so a page can "
    "be short or empty and still have a next page, if an owner has many schedules that do not match.",
    query=ScheduleListQuery,
)
PREVIEW = Operation(
    "previewSchedule",
    "POST /v1/schedules/preview",
    "Preview the occurrences of a timing",
    Returns(responses.PreviewResponse, "The next occurrences."),
    description="The next occurrences in local time and in UTC, with an explanation of each effect of clock changes "
    "and calendars. Nothing is created.",
    body=bodies.PreviewRequest,
    is_question=True,
)
READ = Operation(
    "getSchedule",
    "GET /v1/schedules/{name}",
    "Get a schedule",
    _SCHEDULE,
    description="The schedule with its next five occurrences, and why recent occurrences did not run.",
)
UPDATE = Operation(
    "updateSchedule",
    "PATCH /v1/schedules/{name}",
    "Update a schedule",
    _SCHEDULE.but("The schedule after the update."),
    description="The body is a merge patch (RFC 7396): `task` is merged, too, and its `payload` is replaced "
    "completely. A new timing replaces the previous timing, regardless of its kind. The update takes effect at once: "
    "queued occurrences that are not due yet are dropped and created again with the new timing and task.",
    query=ScheduleUpdateQuery,
    body=bodies.SchedulePatch,
    nesting=1,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
DELETE = Operation(
    "deleteSchedule",
    "DELETE /v1/schedules/{name}",
    "Delete a schedule",
    Returns(responses.ScheduleResponse, "The deleted schedule."),
    description="Queued occurrences do not run; running tasks continue.",
    headers=(IF_MATCH,),
    errors=(for_schedules.ScheduleVersionMismatch,),
)
PAUSE = Operation(
    "pauseSchedule",
    "POST /v1/schedules/{name}/pause",
    "Pause a schedule",
    _SCHEDULE.but("The paused schedule."),
    description="Queued occurrences do not run; running tasks continue. Repeating the request changes nothing.",
    body=bodies.SchedulePause,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
RESUME = Operation(
    "resumeSchedule",
    "POST /v1/schedules/{name}/resume",
    "Resume a paused schedule",
    _SCHEDULE,
    description="The schedule continues from now on: occurrences during the pause do not run. Repeating the request "
    "changes nothing.",
    body=bodies.ScheduleActionRequest,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
PAUSE_BY_TAG = filter_action(
    "pauseSchedulesByTag",
    "POST /v1/schedules/pause",
    "Pause all active schedules with certain tags",
    "If all schedules are paused within about a second, the response is 200. Otherwise, the response is 202, and a "
    "bulk operation pauses the rest.",
    bodies.SchedulesByTag,
)
RESUME_BY_TAG = filter_action(
    "resumeSchedulesByTag",
    "POST /v1/schedules/resume",
    "Resume all paused schedules with certain tags",
    "Works like `pauseSchedulesByTag`, regardless of who paused the schedules.",
    bodies.SchedulesByTag,
)
RUN = Operation(
    "runSchedule",
    "POST /v1/schedules/{name}/run",
    "Run a schedule's task now",
    NEW_TASK,
    description="Creates one task at once, even if the schedule is paused; the task may be due later, and have another "
    "payload. The schedule's timing does not change. Like any run, the task does not start if the schedule is deleted "
    "first.",
    body=bodies.ScheduleRunRequest,
    headers=(KEY, IF_MATCH, TRACEPARENT),
    errors=(for_schedules.ScheduleVersionMismatch, errors.ContentExpired, errors.KeyReused, errors.TaskDeleted),
)
CREATE_BACKFILL = Operation(
    "createBackfill",
    "POST /v1/schedules/{name}/backfills",
    "Backfill a past period",
    _BACKFILL.created("Path of the backfill."),
    description="Runs the occurrences in the period at the given pace. With `only_missing: false`, occurrences that "
    "already have a run are also included. Pausing the schedule does not affect the backfill.",
    body=bodies.BackfillCreate,
    headers=(KEY, IF_MATCH),
    errors=(*_CHANGED, errors.KeyReused),
)
LIST_BACKFILLS = Operation(
    "listBackfills",
    "GET /v1/schedules/{name}/backfills",
    "List the backfills of a schedule",
    Returns(responses.BackfillList, "The backfills, oldest first."),
    description="All backfills in progress, and the latest finished backfills.",
)
GET_BACKFILL = Operation(
    "getBackfill",
    "GET /v1/schedules/{name}/backfills/{backfill_id}",
    "Get a backfill",
    _BACKFILL,
    description="The backfill with its progress.",
)
CANCEL_BACKFILL = Operation(
    "cancelBackfill",
    "DELETE /v1/schedules/{name}/backfills/{backfill_id}",
    "Cancel a backfill",
    _BACKFILL.but("The cancelled backfill."),
    description="Tasks that the backfill has already created still run. A finished backfill does not change.",
)
LIST_OCCURRENCES = Operation(
    "listOccurrences",
    "GET /v1/schedules/{name}/occurrences",
    "List the occurrences of a schedule",
    Returns(responses.OccurrenceList, "The occurrences."),
    description="Past and future occurrences in order of time, each with its task, if any, or the reason why it does "
    "not run.",
    query=OccurrencesQuery,
)
UPDATE_OCCURRENCE = Operation(
    "updateOccurrence",
    "POST /v1/schedules/{name}/occurrences/update",
    "Skip, move or run early one occurrence",
    _SCHEDULE.but("The schedule after the change."),
    description="Changes only one future occurrence. An occurrence that is due within seconds already has a task: "
    "change the task instead. A later change to the schedule's timing drops changes to occurrences that no longer "
    "exist. Repeating the request changes nothing.",
    body=bodies.OccurrenceUpdate,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
LIST_RUNS = Operation(
    "listScheduleRuns",
    "GET /v1/schedules/{name}/runs",
    "List the runs of a schedule",
    Returns(responses.ScheduleRunPage, "A page of runs."),
    description="All runs since the schedule's creation, newest first: scheduled, manual and backfill runs, skipped "
    "and missed runs with the reason, and the next planned runs. A run is listed with its task and outcome while the "
    f"task is kept. A page examines at most {MAX_EXAMINED} of your tasks, so it can be empty and still have a next "
    "page; `applied` is the range of the list.",
    query=RunListQuery,
)
LIST_EVENTS = Operation(
    "listScheduleEvents",
    "GET /v1/schedules/{name}/events",
    "List the events of a schedule",
    Returns(responses.ScheduleEventList, "The events, oldest first."),
    description="The schedule's creation and all later actions by users and by the system, with actor and reason. The "
    f"latest {ACTIONS_INLINE} actions are kept; `dropped` counts older actions. Outcomes of occurrences are in "
    "`listScheduleRuns`.",
)
LIST_CALENDARS = Operation(
    "listCalendars",
    "GET /v1/calendars",
    "List calendars",
    Returns(calendars.CalendarPage, "A page of calendars."),
    description="Ordered by name.",
    query=calendars.CalendarListQuery,
)
READ_CALENDAR = Operation(
    "getCalendar",
    "GET /v1/calendars/{name}",
    "Get a calendar",
    _CALENDAR,
    description="All dates, weekdays, windows and spans of the calendar.",
)
PUT_CALENDAR = Operation(
    "putCalendar",
    "PUT /v1/calendars/{name}",
    "Create or replace a calendar",
    _CALENDAR.but("The calendar after the replacement."),
    accepted=_CALENDAR.created("Path of the calendar."),
    description="The body is JSON, or an iCalendar file (`text/calendar`) whose events become days and spans. "
    "Schedules that use the calendar apply the change to every occurrence that has no task yet.",
    query=calendars.ICalendarQuery,
    body=calendars.CalendarFields,
    body_types=("text/calendar",),
    headers=(IF_MATCH, ONLY_NEW),
    errors=(for_schedules.CalendarVersionMismatch, for_schedules.CalendarExists),
)
DELETE_CALENDAR = Operation(
    "deleteCalendar",
    "DELETE /v1/calendars/{name}",
    "Delete a calendar",
    _CALENDAR.but("The deleted calendar."),
    description="The request is rejected while a schedule uses the calendar.",
    headers=(IF_MATCH,),
    errors=(for_schedules.CalendarVersionMismatch, for_schedules.CalendarUsed),
)
