"""The operations on schedules and calendars."""

from __future__ import annotations

from duetime.contract.http.operation import IF_MATCH, Operation, Returns
from duetime.contract.schedules import bodies, calendars, queries, responses
from duetime.contract.tasks.operations import NEW_TASK
from duetime.contract.tasks.report_bodies import NoFields
from duetime.domain import errors

_SCHEDULE = Returns(responses.ScheduleResponse, "The schedule.", {"ETag": "The schedule's version."})
_CALENDAR = Returns(calendars.CalendarResponse, "The calendar.")
_CHANGED = (errors.ScheduleStateConflict, errors.ScheduleVersionMismatch)

CREATE = Operation(
    "createSchedule",
    "POST /v1/schedules",
    "Create a schedule",
    _SCHEDULE.created("Path of the schedule."),
    description="It has exactly one of `cron`, `rate`, `interval`, `dates` and `permanent`, and begins at once. "
    "A timing that never comes is refused.",
    body=bodies.ScheduleCreate,
    nesting=1,
    errors=(errors.ScheduleExists,),
)
LIST = Operation(
    "listSchedules",
    "GET /v1/schedules",
    "List one's schedules",
    Returns(responses.SchedulePage, "A page of the list."),
    description="In the order of their names.",
    query=queries.ScheduleListQuery,
)
PREVIEW = Operation(
    "previewSchedule",
    "POST /v1/schedules/preview",
    "See what a timing means",
    Returns(responses.PreviewResponse, "What comes."),
    description="The next occurrences by the clock of the zone and in UTC, with each decision about clocks and "
    "calendars in words. Nothing is created.",
    body=bodies.PreviewRequest,
)
READ = Operation(
    "getSchedule",
    "GET /v1/schedules/{name}",
    "Read a schedule",
    _SCHEDULE,
    description="With the next five occurrences, and why others did not run lately.",
)
CHANGE = Operation(
    "changeSchedule",
    "PATCH /v1/schedules/{name}",
    "Change a schedule",
    _SCHEDULE.but("The schedule after the change."),
    description="Takes effect at once: occurrences that are queued already are dropped when they are claimed, and "
    "made anew from now on. A new timing takes the place of the old one, of whatever kind.",
    body=bodies.SchedulePatch,
    nesting=1,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
DELETE = Operation(
    "deleteSchedule",
    "DELETE /v1/schedules/{name}",
    "Remove a schedule",
    Returns(responses.ScheduleResponse, "The schedule as it was."),
    description="What is queued of it does not run any more; what runs goes on.",
    headers=(IF_MATCH,),
    errors=(errors.ScheduleVersionMismatch,),
)
PAUSE = Operation(
    "pauseSchedule",
    "POST /v1/schedules/{name}/pause",
    "Hold a schedule",
    _SCHEDULE.but("The paused schedule."),
    description="What is queued of it does not run; what runs goes on.",
    body=bodies.PauseRequest,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
RESUME = Operation(
    "resumeSchedule",
    "POST /v1/schedules/{name}/resume",
    "Let a paused schedule go on",
    _SCHEDULE,
    description="From now on; what the pause missed does not run.",
    body=NoFields,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
TRIGGER = Operation(
    "triggerSchedule",
    "POST /v1/schedules/{name}/trigger",
    "Run a schedule's task now",
    NEW_TASK,
    description="Once, whatever its rhythm, which does not change.",
    body=NoFields,
    errors=(*_CHANGED, errors.ContentExpired),
)
BACKFILL = Operation(
    "backfillSchedule",
    "POST /v1/schedules/{name}/backfill",
    "Run the occurrences of a stretch of the past",
    _SCHEDULE.accepted("The schedule, with the backfill that has begun."),
    description="Again, or for the first time, at a pace.",
    body=bodies.BackfillRequest,
    errors=_CHANGED,
)
CANCEL_BACKFILL = Operation(
    "cancelBackfill",
    "DELETE /v1/schedules/{name}/backfill/{backfill_id}",
    "End a backfill before it is done",
    _SCHEDULE,
    description="What it has placed already runs.",
)
LIST_OCCURRENCES = Operation(
    "listOccurrences",
    "GET /v1/schedules/{name}/occurrences",
    "List the occurrences of a schedule",
    Returns(responses.OccurrencesResponse, "The occurrences."),
    description="In order of time, past ones and those to come, each with its task when there is one, and why it "
    "does not run when it does not.",
    query=queries.OccurrencesQuery,
)
LIST_CALENDARS = Operation(
    "listCalendars",
    "GET /v1/calendars",
    "List one's calendars",
    Returns(calendars.CalendarPage, "A page of the list."),
    description="In the order of their names.",
    query=calendars.CalendarListQuery,
)
READ_CALENDAR = Operation("getCalendar", "GET /v1/calendars/{name}", "Read a calendar", _CALENDAR)
PUT_CALENDAR = Operation(
    "putCalendar",
    "PUT /v1/calendars/{name}",
    "Create or replace a calendar",
    _CALENDAR,
    description="As JSON, or as an iCalendar file (`text/calendar`) whose events are its days and spans. Schedules "
    "that name it heed it for every occurrence that is not placed yet.",
    query=calendars.ICalendarQuery,
    body=calendars.CalendarFields,
    body_types=("text/calendar",),
)
DELETE_CALENDAR = Operation(
    "deleteCalendar",
    "DELETE /v1/calendars/{name}",
    "Remove a calendar",
    _CALENDAR.but("The calendar as it was."),
    description="Refused while a schedule names it.",
    errors=(errors.CalendarUsed,),
)
