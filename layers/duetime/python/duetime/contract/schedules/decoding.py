"""Decodes request bodies for schedules."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import BODY, merged, reject_invalid_values
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.mapping import value_of
from duetime.contract.schedules.bodies import (
    TIMINGS,
    BackfillCreate,
    OccurrenceUpdate,
    PreviewRequest,
    ScheduleActionRequest,
    ScheduleCreate,
    SchedulePatch,
    SchedulePause,
    ScheduleRunRequest,
    TaskTemplate,
    TimingFields,
)
from duetime.contract.schedules.encoding import template_fields
from duetime.contract.tasks.bodies import TaskPatch as PatchOfATask
from duetime.contract.tasks.decoding import spec_of
from duetime.contract.tasks.field_decoding import ROOT, milliseconds, payload_bytes, reject_uniqueness
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN
from duetime.domain.errors import ScheduleNotFound
from duetime.domain.schedules.definition import ScheduleSpec, ScheduleUpdate, Written
from duetime.domain.schedules.occurrence_actions import ManualRun, OccurrenceAction, OccurrenceRequest
from duetime.domain.schedules.occurrences import Occurrence, following
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.schedule import Schedule, check, next_permanent_run
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.schedules.timings import Permanent
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.contract.http.request_json import Document
    from duetime.contract.schedules.bodies import SingleTiming
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.times import Millis


_NAME = re.compile(SCHEDULE_NAME_PATTERN)
_PREVIEW_TASK = TaskSpec("")
_SAYS_WHEN = ("due_at", "delay_seconds")
LISTS = ("calendars", "extra_dates", "excluded_dates")
_MADE = {"written", "task", "name", "clock", "changed_occurrences", *LISTS}
_PLAIN_FIELDS = tuple(each.name for each in fields(ScheduleSpec) if each.name not in _MADE)


@frozen
class PreviewSpec:
    """A decoded request for a preview.

    Attributes:
        schedule: a schedule with the timing, which is not stored and has no calendars yet.
        calendars: names of the calendars.
        after: the instant after which occurrences are previewed.
        count: number of occurrences.
    """

    schedule: Schedule
    calendars: tuple[str, ...]
    after: Millis
    count: int

    def occurrences(self, calendars: tuple[Calendar, ...]) -> Sequence[Occurrence]:
        """The timing's occurrences under the given calendars.

        For a permanent schedule, only the time of the first run is known.
        """
        schedule = replace(self.schedule, calendars=calendars)
        timing = schedule.timing
        if not isinstance(timing, Permanent):
            return following(schedule, self.after, self.count)
        at = next_permanent_run(schedule, self.after + 1 - timing.pause)
        said = f"and again {timing.pause // SECOND} s after the end of each run"
        return [] if at is None else [Occurrence(at, at, at, schedule.spec.clock.zone.text_at(at), note=said)]


def schedule_name(text: str) -> str:
    """Parses the name in a path.

    Raises:
        ScheduleNotFound: the text cannot be a name.
    """
    if _NAME.fullmatch(text) is None:
        raise ScheduleNotFound(text)
    return text


def schedule_spec(document: Document) -> ScheduleSpec:
    """Decodes a schedule.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
    """
    body = read_body(ScheduleCreate, document)
    return value_of(
        ScheduleSpec,
        body,
        written=written_of(body),
        task=template_of(body.task),
        clock=clock_of(body),
        calendars=tuple(body.calendars),
        extra_dates=tuple(body.extra_dates),
        excluded_dates=tuple(body.excluded_dates),
        changed_occurrences=(),
    )


def preview_request(document: Document, now: Millis) -> PreviewSpec:
    """Decodes a preview; rates without a start begin at the preview's start.

    Raises:
        FieldsInvalid: some fields are invalid.
        FieldInvalid: a field is invalid.
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
    """Decodes the reason for a pause.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(SchedulePause, document).reason


def action_reason(document: Document) -> str:
    """Decodes the reason for an action on a schedule.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(ScheduleActionRequest, document).reason


def run_request(document: Document) -> tuple[ManualRun, str]:
    """Decodes a requested run of a schedule's task, and the reason for it.

    Raises:
        FieldsInvalid: some fields are invalid, or contradict each other.
    """
    body = read_body(ScheduleRunRequest, document)
    if body.due_at is not None and "delay_seconds" in body.model_fields_set:
        reason = "cannot be given together with due_at"
        raise FieldsInvalid([Fault("delay_seconds", reason, FaultCode.CONFLICT)])
    payload = payload_bytes(PatchOfATask(payload=body.payload), ROOT) if "payload" in body.model_fields_set else None
    return ManualRun(payload, body.due_at, milliseconds(body.delay_seconds)), body.reason


def occurrence_request(document: Document) -> tuple[OccurrenceRequest, str]:
    """Decodes the action on one occurrence, and the reason for it.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(OccurrenceUpdate, document)
    if (body.due_at is not None) is not (body.action is OccurrenceAction.MOVE):
        raise FieldsInvalid(
            [Fault("due_at", "should be given with the action move, and only then", FaultCode.CONFLICT)]
        )
    return OccurrenceRequest(body.scheduled_at, body.action, body.due_at), body.reason


def backfill_request(document: Document) -> BackfillCreate:
    """Decodes the period and the pace of a backfill.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    return read_body(BackfillCreate, document)


def written_of(body: TimingFields) -> Written:
    """Parses the timing in a body.

    Raises:
        FieldInvalid: there is not exactly one valid timing; the error gives the reason.
    """
    given: dict[str, Any] = {name: value for name in TIMINGS if (value := getattr(body, name)) is not None}
    if body.permanent is not None:
        given["permanent"] = body.permanent.gap_seconds
    return readable(Written(**given | lists_of(body), dialect=body.dialect))


def lists_of(body: TimingFields | SingleTiming) -> dict[str, Any]:
    """The dates and the timings in a body's lists, in stored form."""
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
    """Validates a timing before it is stored.

    Raises:
        FieldInvalid: there is not exactly one valid timing; the error gives the reason.
    """
    _ = written.timing
    return written


def clock_of(body: TimingFields) -> Clock:
    """The time zone of a timing, and the rules for clock changes."""
    return Clock(zone_named(body.timezone), body.dst_gap, body.dst_fold)


def template_of(task: TaskTemplate) -> TaskSpec:
    """The template for an occurrence's task, whose due time the schedule determines."""
    if given := [name for name in _SAYS_WHEN if name in task.model_fields_set]:
        raise FieldsInvalid(
            Fault(
                f"task.{name}", "is not allowed in a schedule's task: the schedule sets the time", FaultCode.NOT_ALLOWED
            )
            for name in given
        )
    reject_uniqueness(task, ("task",), "is not allowed in a schedule's task: use `overlap` of the schedule")
    return spec_of(task, ("task",))


_PAYLOAD, _TASK, _TOPOLOGY = "payload", "task", "topology"
_NULLABLE = ("retry", "lock", "rate", "notify_on", "expires_seconds", "fair_key")
"""Options that can be null and can have type defaults."""
_BY_GRAPH = ("notify_within_seconds",)
"""Task fields that a topology's graph determines, unless they are set."""


@frozen
class TimingPatch:
    """The update of a timing; a new timing replaces the old timing."""

    body: SchedulePatch

    def of(self, before: Written) -> Written:
        """Returns the updated timing.

        Raises:
            FieldInvalid: not exactly one valid timing is left; the error gives the reason.
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


@frozen
class TaskPatch:
    """A merge patch for a schedule's task, in which the payload is replaced completely."""

    patch: Mapping[str, Any]

    @property
    def has_payload(self) -> bool:
        """Whether the update sets a payload."""
        return _PAYLOAD in self.patch

    def of(self, before: TaskSpec) -> TaskSpec:
        """Returns the updated task.

        Raises:
            FieldsInvalid: some fields are invalid.
        """
        # Null turns off the type's default, if there is one. If an option cannot be null, null removes the option.
        opaque = (_PAYLOAD, "order", *(name for name in _NULLABLE if self.patch.get(name, name) is None))
        known = template_fields(before)
        for given, other in (("lock", "locks"), ("locks", "lock")):
            if self.patch.get(given) and not self.patch.get(other):
                # `lock` and `locks` are two forms of the same option, so each replaces the other.
                known.pop(other, None)
        fields = merged(known, self.patch, opaque)
        if self.patch.keys() & {_PAYLOAD, "target"} and fields.get("target", {}).get("kind") == _TOPOLOGY:
            fields = {name: value for name, value in fields.items() if name not in _BY_GRAPH or name in self.patch}
        after = template_of(validated(TaskTemplate, fields, (_TASK,)))
        # An update of other fields must not be rejected because of a type that was accepted before.
        is_same = (after.type, after.target) == (before.type, before.target)
        return replace(after, allow_unknown_type=after.allow_unknown_type or is_same)


def schedule_update(document: Document, name: str) -> ScheduleUpdate:
    """Decodes the update of a schedule.

    Raises:
        FieldsInvalid: some fields are invalid, or no field is given.
        FieldInvalid: a field is invalid.
    """
    value = document.value
    task: object = {}
    if isinstance(value, dict):
        if not value:
            raise FieldsInvalid([Fault(BODY, "has no field to change", FaultCode.REQUIRED)])
        reject_invalid_values(value, document)
        task = value.get(_TASK, {})
        # The task is validated after merging; the unchanged name is ignored.
        value = {key: each for key, each in value.items() if key != _TASK and (key, each) != ("name", name)}
        document = replace(document, value=value)
    body = read_body(SchedulePatch, document)
    if not isinstance(task, dict):
        raise FieldsInvalid([Fault(_TASK, "should be an object", FaultCode.WRONG_TYPE)])
    given = body.model_fields_set
    fields: dict[str, Any] = {
        each: getattr(body, each) for each in (*_PLAIN_FIELDS, "dst_gap", "dst_fold") if each in given
    }
    fields |= {each: tuple(getattr(body, each)) for each in LISTS if each in given}
    if "timezone" in given:
        fields["timezone"] = zone_named(body.timezone)
    timing = TimingPatch(body) if given & {*TIMINGS, "dialect"} else None
    return ScheduleUpdate(fields, timing=timing, task=TaskPatch(task) if task else None)
