"""From the bodies of requests about schedules to what use cases take."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from duetime.contract.http.json_paths import BODY
from duetime.contract.http.request_errors import Fault, FieldsInvalid
from duetime.contract.http.validation_errors import read_body
from duetime.contract.schedules.bodies import (
    TIMINGS,
    BackfillRequest,
    PauseRequest,
    PreviewRequest,
    ScheduleCreate,
    SchedulePatch,
)
from duetime.contract.tasks.decoding import spec_of
from duetime.contract.tasks.fields import SCHEDULE_NAME_PATTERN
from duetime.domain.errors import ScheduleNotFound
from duetime.domain.schedules.definition import ScheduleChange, ScheduleSpec, Written
from duetime.domain.schedules.occurrences import Occurrence, following
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.schedule import Schedule, check, next_permanent_run
from duetime.domain.schedules.time_zones import zone_named
from duetime.domain.schedules.timings import Permanent
from duetime.domain.tasks.task import TaskSpec
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.contract.http.request_json import Document
    from duetime.contract.schedules.bodies import TaskTemplate, TimingFields
    from duetime.domain.schedules.calendars import Calendar
    from duetime.domain.times import Millis

_NAME = re.compile(SCHEDULE_NAME_PATTERN)
_PREVIEW_TASK = TaskSpec("")
_SAYS_WHEN = ("due_at", "delay_seconds")
_MADE = {"written", "task", "name", "clock", "calendars"}
_KEPT_AS_IT_IS = tuple(each.name for each in fields(ScheduleSpec) if each.name not in _MADE)


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
        written=_written(body),
        task=_template(body.task),
        clock=_clock(body),
        calendars=tuple(body.calendars),
        **{name: getattr(body, name) for name in _KEPT_AS_IT_IS},
    )


def schedule_change(document: Document) -> ScheduleChange:
    """The change that a body asks for.

    Raises:
        FieldsInvalid: some fields cannot be accepted, or there are none.
        FieldInvalid: one of them cannot.
    """
    body = read_body(SchedulePatch, document)
    given = body.model_fields_set
    if not given:
        raise FieldsInvalid([Fault(BODY, "names no field to change")])
    kept = (*_KEPT_AS_IT_IS, "dst_gap", "dst_fold")
    changes: dict[str, Any] = {name: getattr(body, name) for name in kept if name in given}
    if given & {*TIMINGS, "dialect"}:
        changes["written"] = _written(body)
    if "task" in given:
        changes["task"] = _template(body.task)
    if "calendars" in given:
        changes["calendars"] = tuple(body.calendars)
    if "timezone" in given:
        changes["timezone"] = zone_named(body.timezone)
    return ScheduleChange(changes)


def preview_request(document: Document, now: Millis) -> PreviewSpec:
    """The preview that a body asks for; a rate without a start is counted from its first moment.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
        FieldInvalid: one of them cannot.
    """
    body = read_body(PreviewRequest, document)
    start = now if body.start is None else body.start
    spec = ScheduleSpec(
        _written(body),
        _PREVIEW_TASK,
        clock=_clock(body),
        on_excluded=body.on_excluded,
        jitter_seconds=body.jitter_seconds,
        start_at=body.start_at,
        end_at=body.end_at,
    )
    schedule = Schedule("preview", spec, spec.written.timing, start, remaining_runs=body.remaining_runs)
    return PreviewSpec(check(schedule), tuple(body.calendars), start - 1, body.count)


def pause_note(document: Document) -> str:
    """Why a schedule is held.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    return read_body(PauseRequest, document).note


def backfill_request(document: Document) -> BackfillRequest:
    """The stretch and the pace of a backfill.

    Raises:
        FieldsInvalid: some fields cannot be accepted.
    """
    return read_body(BackfillRequest, document)


def _written(body: TimingFields) -> Written:
    """The one timing that a body gives, which can be read.

    Raises:
        FieldInvalid: there is none, or more than one, or it cannot be accepted; says why.
    """
    given: dict[str, Any] = {name: getattr(body, name) for name in TIMINGS if name in body.model_fields_set}
    if "dates" in given:
        given["dates"] = tuple(body.dates)
    found = Written(**given, dialect=body.dialect)
    # What cannot be read is refused here, and never stored.
    _ = found.timing
    return found


def _clock(body: TimingFields) -> Clock:
    return Clock(zone_named(body.timezone), body.dst_gap, body.dst_fold)


def _template(task: TaskTemplate) -> TaskSpec:
    """The task of each occurrence; the schedule says when it is due."""
    if given := [name for name in _SAYS_WHEN if name in task.model_fields_set]:
        raise FieldsInvalid(
            Fault(f"task.{name}", "belongs to no schedule's task: the schedule says when") for name in given
        )
    return spec_of(task, ("task",))
