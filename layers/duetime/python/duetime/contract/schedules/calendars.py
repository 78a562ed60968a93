"""The REST API for calendars: bodies, queries and responses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from duetime.contract.http.operation import Parameters
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.request_json import path_of
from duetime.contract.http.request_model import Body
from duetime.contract.http.timestamps import instant_of
from duetime.contract.http.validation_errors import matching_parameter, read_body
from duetime.contract.schedules.bodies import Bound, Timezone
from duetime.contract.tasks.encoding import instant
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN, TIME_SCHEMA, each_once, printable
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.domain.errors import CalendarNotFound
from duetime.domain.limits import MAX_CALENDAR_DATES, MAX_CALENDAR_WINDOWS, MAX_NAME_LENGTH, MAX_PAGE
from duetime.domain.operating_parameters import CALENDAR_NOTICE
from duetime.domain.schedules.calendars import EMPTY_CALENDAR, Calendar, CalendarMode, Span, Window
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis, to_iso

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document


Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)
TIME_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$|^24:00(:00)?$"
DATE_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_NAME = re.compile(SCHEDULE_NAME_PATTERN)


def _time_of_day(text: object) -> Millis:
    if not isinstance(text, str) or re.fullmatch(TIME_PATTERN, text) is None:
        raise ValueError("should be a time of day such as 22:00, or 24:00")
    hours, minutes, seconds = (*map(int, text.split(":")), 0)[:3]
    return hours * HOUR + minutes * MINUTE + seconds * SECOND


_Label = Annotated[
    str, Field(max_length=MAX_NAME_LENGTH, description="Human-readable label."), AfterValidator(printable)
]
_Time = Annotated[
    Millis,
    BeforeValidator(_time_of_day),
    WithJsonSchema({"type": "string", "pattern": TIME_PATTERN}),
]
_Moment = Annotated[Millis, BeforeValidator(instant_of), WithJsonSchema(TIME_SCHEMA)]
_Day = Annotated[str, Field(pattern=DATE_PATTERN)]
_Weekdays = Annotated[list[Weekday], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(each_once)]


def _labeled(value: object) -> object:
    """Converts a list of dates into dates without labels."""
    return dict.fromkeys(value, "") if isinstance(value, list) and all(isinstance(x, str) for x in value) else value


class CalendarWindowInput(Body):
    """A time window on given weekdays. If the end is before the start, the window continues after midnight."""

    start: Annotated[
        _Time, Field(description="Start, inclusive: a local time in the calendar's time zone.", examples=["22:00"])
    ]
    end: Annotated[_Time, Field(description="End, exclusive.", examples=["06:00"])]
    weekdays: Annotated[
        _Weekdays, Field(min_length=1, description="Days on which the window starts; all days if left out.")
    ] = Field(default_factory=lambda: [*WEEKDAYS])
    label: _Label = ""


class CalendarSpanInput(Body):
    """A period of time."""

    start: Annotated[_Moment, Field(description="Start of the period, inclusive.")]
    end: Annotated[_Moment, Field(description="End of the period, exclusive.")]
    reason: _Label = ""


class CalendarFields(Body):
    """A calendar to be created or completely replaced."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"timezone": "Europe/London", "dates": {"2026-12-25": "Christmas Day"}, "weekdays": ["sun"]}]
        }
    )

    mode: Annotated[
        CalendarMode,
        Field(
            strict=False, description="Whether schedules run outside the calendar's times, or only within these times."
        ),
    ] = CalendarMode.EXCLUDES
    timezone: Annotated[Timezone, Field(description="IANA time zone of the calendar's days and windows.")] = "UTC"
    dates: Annotated[
        dict[_Day, _Label],
        BeforeValidator(_labeled),
        Field(max_length=MAX_CALENDAR_DATES, description="Dates, each with a label; a list of dates is also accepted."),
        WithJsonSchema(
            {
                "anyOf": [
                    {
                        "type": "object",
                        "propertyNames": {"pattern": DATE_PATTERN},
                        "additionalProperties": {"type": "string"},
                    },
                    {"type": "array", "items": {"type": "string", "pattern": DATE_PATTERN}},
                ]
            }
        ),
    ] = Field(default_factory=dict)
    except_dates: Annotated[
        list[_Day],
        Field(
            max_length=MAX_CALENDAR_DATES, description="Dates to which `dates`, `weekdays` and `windows` do not apply."
        ),
    ] = Field(default_factory=list)
    weekdays: Annotated[_Weekdays, Field(description="Days of the week.", examples=[["sat", "sun"]])] = Field(
        default_factory=list
    )
    name: Annotated[str | None, Field(description="The name in the path, which can be left out.")] = None
    windows: Annotated[
        list[CalendarWindowInput], Field(max_length=MAX_CALENDAR_WINDOWS, description="Time windows of the day.")
    ] = Field(default_factory=list)
    spans: Annotated[list[CalendarSpanInput], Field(max_length=MAX_CALENDAR_DATES, description="Periods of time.")] = (
        Field(default_factory=list)
    )
    known_until: Annotated[
        Bound,
        Field(
            description="Time after which the calendar is incomplete; null if the calendar is always complete. "
            f"Schedules mark occurrences after this time, and an event and an alarm are raised "
            f"{CALENDAR_NOTICE // DAY} days before it."
        ),
    ] = None


class CalendarListQuery(Parameters):
    """Parameters of `GET /v1/calendars`."""

    limit: Annotated[PageSize, Field(description="Maximum number of calendars on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


class ICalendarQuery(Parameters):
    """Parameters of `PUT /v1/calendars/{name}` for a body that is an iCalendar file."""

    mode: Annotated[
        CalendarMode | None,
        Field(
            strict=False,
            description="Whether schedules run outside the events of an iCalendar file, or only during the events.",
        ),
    ] = None
    timezone: Annotated[
        Timezone | None,
        Field(description="The time zone of dates in an iCalendar file; UTC if left out."),
    ] = None

    def reject(self) -> None:
        """Rejects all parameters, because the body is JSON.

        Raises:
            ParametersInvalid: there is a parameter.
        """
        if given := sorted(self.model_fields_set):
            reason = "is allowed with an iCalendar file only; a calendar as JSON has it in its body"
            raise ParametersInvalid(Fault(name, reason, FaultCode.NOT_ALLOWED) for name in given)


def calendar_name(text: str) -> str:
    """Parses the name in a path.

    Raises:
        CalendarNotFound: the text cannot be a name.
    """
    if _NAME.fullmatch(text) is None:
        raise CalendarNotFound(text)
    return text


def new_calendar_name(text: str) -> str:
    """Parses the name in the path of a calendar to be stored.

    Raises:
        ParametersInvalid: the text cannot be a name.
    """
    return matching_parameter(text, SCHEDULE_NAME_PATTERN)


def calendar_of(document: Document, name: str) -> Calendar:
    """Decodes a calendar.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
    """
    body = read_body(CalendarFields, document)
    if body.name not in {None, name}:
        raise FieldsInvalid([Fault("name", f"should be {name!r}, as in the path, or be left out", FaultCode.CONFLICT)])
    _reject_empty(body.spans)
    calendar = Calendar(
        name,
        body.mode,
        zone_named(body.timezone),
        dates={_day(text, ("dates", text)): label for text, label in body.dates.items()},
        except_dates=frozenset(_day(text, ("except_dates", at)) for at, text in enumerate(body.except_dates)),
        weekdays=_numbers(body.weekdays),
        windows=tuple(Window(each.start, each.end, _numbers(each.weekdays), each.label) for each in body.windows),
        spans=tuple(Span(each.start, each.end, each.reason) for each in body.spans),
        known_until=body.known_until,
    )
    if calendar.is_empty:
        reason = f"is empty, like the other fields, {EMPTY_CALENDAR[calendar.mode]}"
        raise FieldsInvalid([Fault("dates", reason, FaultCode.REQUIRED)])
    return calendar


def _reject_empty(spans: Sequence[CalendarSpanInput]) -> None:
    faults = [
        Fault(path_of(("spans", index, "end")), "should be after start", FaultCode.CONFLICT)
        for index, span in enumerate(spans)
        if span.end <= span.start
    ]
    if faults:
        raise FieldsInvalid(faults)


def _day(text: str, place: tuple[str | int, ...]) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise FieldsInvalid(
            [Fault(path_of(place), "names a day that does not exist", FaultCode.OUT_OF_RANGE)]
        ) from None


def _numbers(weekdays: Sequence[Weekday]) -> frozenset[int]:
    return frozenset(WEEKDAYS.index(day) for day in weekdays)


class CalendarWindowResponse(TypedDict):
    """A time window on given weekdays."""

    start: str
    end: str
    weekdays: Sequence[Weekday]
    label: str


class CalendarSpanResponse(TypedDict):
    """A period of time."""

    start: Instant
    end: Instant
    reason: str


class CalendarResponse(TypedDict):
    """A calendar, which is a named set of times."""

    name: Annotated[str, Field(description="Name of the calendar.")]
    mode: CalendarMode
    timezone: str
    dates: Annotated[Mapping[str, str], Field(description="Dates, each with a label.")]
    except_dates: Sequence[str]
    weekdays: Sequence[Weekday]
    windows: Sequence[CalendarWindowResponse]
    spans: Sequence[CalendarSpanResponse]
    known_until: Annotated[
        Instant | None,
        Field(
            description="Time after which the calendar is incomplete; null if the calendar is always complete. "
            "Replace the calendar before then."
        ),
    ]


class CalendarPage(TypedDict):
    """A page of calendars."""

    calendars: Sequence[CalendarResponse]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


def calendar_response(calendar: Calendar) -> CalendarResponse:
    """The response for a calendar."""
    return CalendarResponse(
        name=calendar.name,
        mode=calendar.mode,
        timezone=calendar.zone.name,
        dates={str(day): label for day, label in sorted(calendar.dates.items())},
        except_dates=[str(day) for day in sorted(calendar.except_dates)],
        weekdays=_names(calendar.weekdays),
        windows=[
            CalendarWindowResponse(
                start=_clock(each.start), end=_clock(each.end), weekdays=_names(each.weekdays), label=each.label
            )
            for each in calendar.windows
        ],
        spans=[
            CalendarSpanResponse(start=to_iso(each.start), end=to_iso(each.end), reason=each.reason)
            for each in calendar.spans
        ],
        known_until=instant(calendar.known_until),
    )


def _names(weekdays: frozenset[int]) -> list[Weekday]:
    return [WEEKDAYS[day] for day in sorted(weekdays)]


def _clock(since_midnight: Millis) -> str:
    """Formats a time of day, with seconds only if they are not zero."""
    if since_midnight == DAY:
        return "24:00"
    minutes, rest = divmod(since_midnight, MINUTE)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{rest // SECOND:02d}" if rest else text
