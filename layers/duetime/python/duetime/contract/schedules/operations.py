"""Operations on schedules and calendars."""

from __future__ import annotations

from duetime.contract.bulk.operations import filter_action
from duetime.contract.http.operation import IF_MATCH, KEY, TRACEPARENT, Header, Operation, Returns
from duetime.contract.schedules import (
    bodies,
    calendars,
    queries,
    responses,
)
from duetime.contract.tasks.operations import NEW_TASK
from duetime.contract.tasks.queries import EstimateQuery
from duetime.domain import errors
from duetime.domain.limits import ACTIONS_INLINE, MAX_EXAMINED
from duetime.domain.schedules import errors as for_schedules

ONLY_NEW = Header("If-None-Match", "`*`: only if there is no calendar of this name.", {"const": "*"})
_SCHEDULE = Returns(
    responses.ScheduleResponse,
    "The schedule.",
    {"ETag": "Changes with the schedule's version and with what the response shows."},
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
    "active at once. A timing without any occurrence is refused.",
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
    description="Ordered by name.",
    query=queries.ScheduleListQuery,
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
    description="With its next five occurrences, and the reasons why recent ones did not run.",
)
UPDATE = Operation(
    "updateSchedule",
    "PATCH /v1/schedules/{name}",
    "Update a schedule",
    _SCHEDULE.but("The schedule after the update."),
    description="A merge patch (RFC 7396); `task` is merged, too, and its `payload` is replaced as a whole. A new "
    "timing replaces the previous one of any kind. It takes effect at once: occurrences that are already queued are "
    "dropped, and created again from now on.",
    query=queries.ScheduleUpdateQuery,
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
    description="It continues from now on: occurrences during the pause do not run. Repeating the request changes "
    "nothing.",
    body=bodies.ScheduleActionRequest,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
PAUSE_BY_TAG = filter_action(
    "pauseSchedulesByTag",
    "POST /v1/schedules/pause",
    "Pause all active schedules with some tags",
    "Answered 200 if done within about a second; otherwise 202, and a bulk operation does the rest.",
    bodies.SchedulesByTag,
)
RESUME_BY_TAG = filter_action(
    "resumeSchedulesByTag",
    "POST /v1/schedules/resume",
    "Resume all paused schedules with some tags",
    "Like `pauseSchedulesByTag`, regardless of who paused them.",
    bodies.SchedulesByTag,
)
RUN = Operation(
    "runSchedule",
    "POST /v1/schedules/{name}/run",
    "Run a schedule's task now",
    NEW_TASK,
    description="Creates one task at once, even if the schedule is paused. Its timing does not change.",
    body=bodies.ScheduleActionRequest,
    headers=(KEY, IF_MATCH, TRACEPARENT),
    errors=(for_schedules.ScheduleVersionMismatch, errors.ContentExpired, errors.KeyReused, errors.TaskDeleted),
)
CREATE_BACKFILL = Operation(
    "createBackfill",
    "POST /v1/schedules/{name}/backfills",
    "Backfill a past period",
    _BACKFILL.created("Path of the backfill."),
    description="Runs the occurrences of the period at the given pace: those without a run, or with "
    "`only_missing: false` all of them. A pause of the schedule does not concern it.",
    body=bodies.BackfillCreate,
    headers=(KEY, IF_MATCH),
    errors=(*_CHANGED, errors.KeyReused),
)
LIST_BACKFILLS = Operation(
    "listBackfills",
    "GET /v1/schedules/{name}/backfills",
    "List the backfills of a schedule",
    Returns(responses.BackfillList, "The backfills, the oldest first."),
    description="Those in progress, and the latest that have finished.",
)
GET_BACKFILL = Operation(
    "getBackfill",
    "GET /v1/schedules/{name}/backfills/{backfill_id}",
    "Get a backfill",
    _BACKFILL,
    description="With its progress.",
)
CANCEL_BACKFILL = Operation(
    "cancelBackfill",
    "DELETE /v1/schedules/{name}/backfills/{backfill_id}",
    "Cancel a backfill",
    _BACKFILL.but("The cancelled backfill."),
    description="Tasks that it has already created run. A backfill that has finished does not change.",
)
LIST_OCCURRENCES = Operation(
    "listOccurrences",
    "GET /v1/schedules/{name}/occurrences",
    "List the occurrences of a schedule",
    Returns(responses.OccurrenceList, "The occurrences."),
    description="Past and future occurrences in order of time, each with its task if there is one, or the reason "
    "why it does not run.",
    query=queries.OccurrencesQuery,
)
UPDATE_OCCURRENCE = Operation(
    "updateOccurrence",
    "POST /v1/schedules/{name}/occurrences/update",
    "Skip, move or run early one occurrence",
    _SCHEDULE.but("The schedule after the change."),
    description="Changes one occurrence that is to come, and nothing else. One that is due within seconds has a task: "
    "change that. Another timing drops the changes of occurrences that it does not have. Repeating the request changes "
    "nothing.",
    body=bodies.OccurrenceUpdate,
    headers=(IF_MATCH,),
    errors=_CHANGED,
)
LIST_RUNS = Operation(
    "listScheduleRuns",
    "GET /v1/schedules/{name}/runs",
    "List the runs of a schedule",
    Returns(responses.ScheduleRunPage, "A page of runs."),
    description="Its runs, newest first, since it was created and over all its changes: timed, manual and backfill "
    "runs, skipped and missed ones with the reason, and the next planned ones. A run is listed with its task and its "
    f"outcome as long as the task is kept. A page examines at most {MAX_EXAMINED} of your tasks, so it can be empty "
    "and still have a next page; `applied` says what the list covers.",
    query=queries.RunListQuery,
)
LIST_EVENTS = Operation(
    "listScheduleEvents",
    "GET /v1/schedules/{name}/events",
    "List the events of a schedule",
    Returns(responses.ScheduleEventList, "The events, oldest first."),
    description="Its creation, and what users and the system did to it since, by whom and why. The latest "
    f"{ACTIONS_INLINE} actions are kept; `dropped` counts the older ones. What became of its occurrences are its runs.",
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
    description="As JSON, or as an iCalendar file (`text/calendar`) whose events become its days and spans. "
    "Schedules that use the calendar apply it to every occurrence that has no task yet.",
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
    description="Refused while a schedule uses it.",
    headers=(IF_MATCH,),
    errors=(for_schedules.CalendarVersionMismatch, for_schedules.CalendarUsed),
)
