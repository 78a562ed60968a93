"""From the bodies of requests about schedules to what use cases take."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from duetime.contract.http.json_paths import BODY
from duetime.contract.http.merge_patch import merged
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import reject_invalid_values
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.schedules.bodies import (
    BackfillCreate,
    OccurrenceUpdate,
    PreviewRequest,
    ScheduleActionRequest,
    ScheduleCreate,
    SchedulePatch,
    SchedulePause,
    TaskTemplate,
)
from duetime.contract.schedules.encoding import template_fields
from duetime.contract.schedules.timing_fields import TIMINGS, TimingFields
from duetime.contract.tasks.decoding import spec_of
from duetime.contract.tasks.field_decoding import reject_uniqueness
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN
from duetime.domain.schedules.definition import ScheduleSpec, ScheduleUpdate, Written
from duetime.domain.schedules.errors import ScheduleNotFound
from duetime.domain.schedules.occurrence_actions import OccurrenceAction, OccurrenceRequest
from duetime.domain.schedules.occurrences import Occurrence, following
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.schedule import Schedule, check, next_permanent_run
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.schedules.timings import Permanent
from duetime.domain.tasks.task_spec import TaskSpec
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.contract.http.request_json import Document
    from duetime.contract.schedules.timing_fields import SingleTiming
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.times import Millis


_NAME = re.compile(SCHEDULE_NAME_PATTERN)
_PREVIEW_TASK = TaskSpec("")
_SAYS_WHEN = ("due_at", "delay_seconds")
LISTS = ("calendars", "extra_dates", "excluded_dates")
_MADE = {"written", "task", "name", "clock", "changed_occurrences", *LISTS}
PLAIN_FIELDS = tuple(each.name for each in fields(ScheduleSpec) if each.name not in _MADE)


@dataclass(frozen=True, slots=True)
class PreviewSpec:
    """A preview that is asked for.

    Attributes:
        schedule: the timing as a schedule that is nowhere stored, without its calendars.
        calendars: the names of those.
        after: the instant before the first one.
        count: how many occurrences.
    """

    schedule: Schedule
    calendars: tuple[str, ...]
    after: Millis
    count: int

    def occurrences(self, calendars: tuple[Calendar, ...]) -> Sequence[Occurrence]:
        """What comes, its calendars given. Of a permanent schedule only the first run has a time."""
        schedule = replace(self.schedule, calendars=calendars)
        timing = schedule.timing
        if not isinstance(timing, Permanent):
            return following(schedule, self.after, self.count)
        at = next_permanent_run(schedule, self.after + 1 - timing.pause)
        said = f"and again {timing.pause // SECOND} s after the end of each run"
        return [] if at is None else [Occurrence(at, at, at, schedule.spec.clock.zone.text_at(at), note=said)]


def schedule_name(text: str) -> str:
    """The name in a path.

    Raises:
        ScheduleNotFound: no schedule can have it.
    """
    if _NAME.fullmatch(text) is None:
        raise ScheduleNotFound(text)
    return text


def schedule_spec(document: Document) -> ScheduleSpec:
    """The schedule that a body asks for.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
        FieldInvalid: one of them cannot.
    """
    body = read_body(ScheduleCreate, document)
    return ScheduleSpec(
        name=body.name,
        written=written_of(body),
        task=template_of(body.task),
        clock=clock_of(body),
        calendars=tuple(body.calendars),
        extra_dates=tuple(body.extra_dates),
        excluded_dates=tuple(body.excluded_dates),
        **{name: getattr(body, name) for name in PLAIN_FIELDS},
    )


def preview_request(document: Document, now: Millis) -> PreviewSpec:
    """The preview that a body asks for; a rate without a start is counted from its first moment.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
        FieldInvalid: one of them cannot.
    """
    body = read_body(PreviewRequest, document)
    start = now if body.start is None else body.start
    spec = ScheduleSpec(
        written_of(body),
        _PREVIEW_TASK,
        clock=clock_of(body),
        name=body.name,
        extra_dates=tuple(body.extra_dates),
        excluded_dates=tuple(body.excluded_dates),
        on_excluded=body.on_excluded,
        spread_seconds=body.spread_seconds,
        jitter_seconds=body.jitter_seconds,
        start_at=body.start_at,
        end_at=body.end_at,
    )
    schedule = Schedule("preview", spec, spec.written.timing, start, remaining_runs=body.remaining_runs)
    return PreviewSpec(check(schedule), tuple(body.calendars), start - 1, body.count)


def pause_reason(document: Document) -> str:
    """Why a schedule is paused.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    return read_body(SchedulePause, document).reason


def action_reason(document: Document) -> str:
    """Why something is done to a schedule.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    return read_body(ScheduleActionRequest, document).reason


def occurrence_request(document: Document) -> tuple[OccurrenceRequest, str]:
    """What is to be done to one occurrence, and why.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    body = read_body(OccurrenceUpdate, document)
    if (body.due_at is not None) is not (body.action is OccurrenceAction.MOVE):
        raise FieldsInvalid(
            [Fault("due_at", "should be given with the action move, and only then", FaultCode.CONFLICT)]
        )
    return OccurrenceRequest(body.scheduled_at, body.action, body.due_at), body.reason


def backfill_request(document: Document) -> BackfillCreate:
    """The period and the pace of a backfill.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    return read_body(BackfillCreate, document)


def written_of(body: TimingFields) -> Written:
    """The one timing that a body gives, which can be read.

    Raises:
        FieldInvalid: there is none, or more than one, or it cannot be accepted; says why.
    """
    given: dict[str, Any] = {name: value for name in TIMINGS if (value := getattr(body, name)) is not None}
    if body.permanent is not None:
        given["permanent"] = body.permanent.gap_seconds
    return readable(Written(**given | lists_of(body), dialect=body.dialect))


def lists_of(body: TimingFields | SingleTiming) -> dict[str, Any]:
    """The timings that a body gives as lists, as they are kept."""
    lists: dict[str, Any] = {}
    if body.dates is not None:
        lists["dates"] = tuple(body.dates)
    if isinstance(body, TimingFields) and body.timings is not None:
        lists["timings"] = tuple(
            Written(each.cron, each.rate, each.interval, dialect=each.dialect, **lists_of(each))
            for each in body.timings
        )
    return lists


def readable(written: Written) -> Written:
    """A timing that can be read: any other is refused here, and never stored.

    Raises:
        FieldInvalid: there is none, or more than one, or it cannot be accepted; says why.
    """
    _ = written.timing
    return written


def clock_of(body: TimingFields) -> Clock:
    """In whose zone a timing is, and what becomes of times that its clock leaves out or repeats."""
    return Clock(zone_named(body.timezone), body.dst_gap, body.dst_fold)


def template_of(task: TaskTemplate) -> TaskSpec:
    """The task of each occurrence; the schedule says when it is due."""
    if given := [name for name in _SAYS_WHEN if name in task.model_fields_set]:
        raise FieldsInvalid(
            Fault(f"task.{name}", "belongs to no schedule's task: the schedule says when", FaultCode.NOT_ALLOWED)
            for name in given
        )
    reject_uniqueness(task, ("task",), "belongs to no schedule's task: `overlap` says what happens to runs that meet")
    return spec_of(task, ("task",))


_PAYLOAD, _TASK, _TOPOLOGY = "payload", "task", "topology"
_BY_GRAPH = ("notify_within_seconds",)
"""Fields of a task that follow from the graph of a topology, unless they are given."""


@dataclass(frozen=True, slots=True)
class TimingPatch:
    """What an update says of a timing; another timing replaces the one before."""

    body: SchedulePatch

    def of(self, before: Written) -> Written:
        """The timing with the update.

        Raises:
            FieldInvalid: there is none left, or more than one, or it cannot be accepted; says why.
        """
        body, given = self.body, self.body.model_fields_set
        fields: dict[str, Any] = {name: getattr(body, name) for name in TIMINGS if name in given}
        fields |= lists_of(body)
        if body.permanent is not None:
            has_gap = "gap_seconds" in body.permanent.model_fields_set
            fields["permanent"] = body.permanent.gap_seconds if has_gap else before.permanent or 0
        if all(value is None for value in fields.values()):
            fields = {name: getattr(before, name) for name in TIMINGS} | fields
        if "dialect" in given:
            fields["dialect"] = body.dialect
        elif fields.get("cron") is not None:
            fields["dialect"] = before.dialect
        return readable(Written(**fields))


@dataclass(frozen=True, slots=True)
class TaskPatch:
    """What an update says of the task of a schedule, merged; its payload is replaced as a whole."""

    patch: Mapping[str, Any]

    @property
    def has_payload(self) -> bool:
        """Whether it gives another payload."""
        return _PAYLOAD in self.patch

    def of(self, before: TaskSpec) -> TaskSpec:
        """The task with the update.

        Raises:
            FieldsInvalid: some fields cannot be accepted.
        """
        fields = merged(template_fields(before), self.patch, opaque=(_PAYLOAD,))
        if self.patch.keys() & {_PAYLOAD, "target"} and fields.get("target", {}).get("kind") == _TOPOLOGY:
            fields = {name: value for name, value in fields.items() if name not in _BY_GRAPH or name in self.patch}
        after = template_of(validated(TaskTemplate, fields, (_TASK,)))
        # A type that was accepted once is not refused by an update of something else.
        is_same = (after.type, after.target) == (before.type, before.target)
        return replace(after, allow_unknown_type=after.allow_unknown_type or is_same)


def schedule_update(document: Document, name: str) -> ScheduleUpdate:
    """The update that a body asks for, of the schedule of a name.

    Raises:
        FieldsInvalid: some fields cannot be accepted, or there are none.
        FieldInvalid: one of them cannot.
    """
    value = document.value
    task: object = {}
    if isinstance(value, dict):
        if not value:
            raise FieldsInvalid([Fault(BODY, "names no field to change", FaultCode.REQUIRED)])
        reject_invalid_values(value, document)
        task = value.get(_TASK, {})
        # Its task is read once it is merged; its own name changes nothing.
        value = {key: each for key, each in value.items() if key != _TASK and (key, each) != ("name", name)}
        document = replace(document, value=value)
    body = read_body(SchedulePatch, document)
    if not isinstance(task, dict):
        raise FieldsInvalid([Fault(_TASK, "should be an object", FaultCode.WRONG_TYPE)])
    given = body.model_fields_set
    fields: dict[str, Any] = {
        each: getattr(body, each) for each in (*PLAIN_FIELDS, "dst_gap", "dst_fold") if each in given
    }
    fields |= {each: tuple(getattr(body, each)) for each in LISTS if each in given}
    if "timezone" in given:
        fields["timezone"] = zone_named(body.timezone)
    timing = TimingPatch(body) if given & {*TIMINGS, "dialect"} else None
    return ScheduleUpdate(fields, timing=timing, task=TaskPatch(task) if task else None)
