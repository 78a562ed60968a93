"""The operations on schedules and calendars."""

from __future__ import annotations

from dataclasses import replace

from duetime.contract.http.operation import IF_MATCH, IF_NONE_MATCH, KEY, Header, Operation, Returns
from duetime.contract.schedules import bodies, calendar_responses, calendars, queries, responses
from duetime.contract.tasks.operations import NEW_TASK
from duetime.contract.tasks.report_bodies import NoFields
from duetime.domain import errors


def repeatable(returns: Returns) -> Returns:
    """A response that says whether it is one of before."""
    return replace(returns, headers={**returns.headers, **_REPLAYED})


ONLY_NEW = Header("If-None-Match", "`*`: only if there is no calendar of this name.", {"const": "*"})
REPLAYED = "Idempotent-Replayed"
_REPLAYED = {REPLAYED: "`true` where an earlier request with the same idempotency key did it."}
_SCHEDULE = Returns(
    responses.ScheduleResponse, "The schedule.", {"ETag": "The schedule's version, and what is shown of it."}
)
_BACKFILL = Returns(responses.BackfillResponse, "The backfill.")
_CALENDAR = Returns(calendar_responses.CalendarResponse, "The calendar.", {"ETag": "The calendar's version."})
_CHANGED = (errors.ScheduleStateConflict, errors.ScheduleVersionMismatch)

CREATE = Operation(
    "createSchedule",
    "POST /v1/schedules",
    "Create a schedule",
    repeatable(_SCHEDULE.created("Path of the schedule.")),
    description="It has exactly one of `cron`, `rate`, `interval`, `dates` and `permanent`, and begins at once. "
    "A timing that never comes is refused.",
    body=bodies.ScheduleCreate,
    nesting=1,
    headers=(KEY,),
    errors=(errors.ScheduleExists, errors.ScheduleNotFound, errors.KeyReused),
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
    headers=(IF_NONE_MATCH,),
)
UPDATE = Operation(
    "updateSchedule",
    "PATCH /v1/schedules/{name}",
    "Update a schedule",
    _SCHEDULE.but("The schedule after the update."),
    description="A merge patch (RFC 7396), of its task too, whose `payload` is replaced as a whole. Another timing "
    "replaces the one before, of whatever kind. Takes effect at once: occurrences that are queued already are dropped "
    "when they are claimed, and made anew from now on.",
    body=bodies.SchedulePatch,
    nesting=1,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
DELETE = Operation(
    "deleteSchedule",
    "DELETE /v1/schedules/{name}",
    "Delete a schedule",
    Returns(responses.ScheduleResponse, "The schedule as it was."),
    description="What is queued of it does not run any more; what runs goes on.",
    headers=(IF_MATCH,),
    errors=(errors.ScheduleVersionMismatch,),
)
PAUSE = Operation(
    "pauseSchedule",
    "POST /v1/schedules/{name}/pause",
    "Pause a schedule",
    _SCHEDULE.but("The paused schedule."),
    description="What is queued of it does not run; what runs goes on.",
    body=bodies.PauseRequest,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
RESUME = Operation(
    "resumeSchedule",
    "POST /v1/schedules/{name}/resume",
    "Resume a paused schedule",
    _SCHEDULE,
    description="From now on; what the pause missed does not run. One that is active stays as it is.",
    body=NoFields,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
RUN = Operation(
    "runSchedule",
    "POST /v1/schedules/{name}/run",
    "Run a schedule's task now",
    repeatable(NEW_TASK),
    description="Once, whatever its timing, which does not change, and even if it is paused.",
    body=NoFields,
    headers=(KEY, IF_MATCH),
    errors=(errors.ScheduleVersionMismatch, errors.ContentExpired, errors.KeyReused, errors.TaskDeleted),
)
CREATE_BACKFILL = Operation(
    "createBackfill",
    "POST /v1/schedules/{name}/backfills",
    "Run the occurrences of a past period",
    repeatable(_BACKFILL.created("Path of the backfill.")),
    description="Again, or for the first time, at a pace.",
    body=bodies.BackfillRequest,
    headers=(KEY, IF_MATCH),
    errors=(*_CHANGED, errors.KeyReused),
)
LIST_BACKFILLS = Operation(
    "listBackfills",
    "GET /v1/schedules/{name}/backfills",
    "List the backfills of a schedule",
    Returns(responses.BackfillPage, "The backfills, the oldest first."),
    description="Those on their way, and the latest that have finished.",
)
GET_BACKFILL = Operation(
    "getBackfill",
    "GET /v1/schedules/{name}/backfills/{backfill_id}",
    "Read a backfill",
    _BACKFILL,
)
CANCEL_BACKFILL = Operation(
    "cancelBackfill",
    "DELETE /v1/schedules/{name}/backfills/{backfill_id}",
    "Cancel a backfill",
    _BACKFILL.but("The backfill, cancelled."),
    description="What it has given a task already runs. One that has finished stays as it is.",
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
    Returns(calendar_responses.CalendarPage, "A page of the list."),
    description="In the order of their names.",
    query=calendars.CalendarListQuery,
)
READ_CALENDAR = Operation(
    "getCalendar", "GET /v1/calendars/{name}", "Read a calendar", _CALENDAR, headers=(IF_NONE_MATCH,)
)
PUT_CALENDAR = Operation(
    "putCalendar",
    "PUT /v1/calendars/{name}",
    "Create or replace a calendar",
    _CALENDAR.but("The calendar that was replaced."),
    accepted=_CALENDAR.created("Path of the calendar."),
    description="As JSON, or as an iCalendar file (`text/calendar`) whose events are its days and spans. Schedules "
    "that name it apply it to every occurrence that has no task yet.",
    query=calendars.ICalendarQuery,
    body=calendars.CalendarFields,
    body_types=("text/calendar",),
    headers=(IF_MATCH, ONLY_NEW),
    errors=(errors.CalendarVersionMismatch, errors.CalendarExists),
)
DELETE_CALENDAR = Operation(
    "deleteCalendar",
    "DELETE /v1/calendars/{name}",
    "Delete a calendar",
    _CALENDAR.but("The calendar as it was."),
    description="Refused while a schedule names it.",
    headers=(IF_MATCH,),
    errors=(errors.CalendarVersionMismatch, errors.CalendarUsed),
)
