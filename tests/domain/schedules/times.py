"""Functions with which tests write and read instants and schedules."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from duetime.domain.schedules.definition import ScheduleSpec, Written
from duetime.domain.schedules.recurrence_builder import recurrence_of
from duetime.domain.schedules.recurrences import UTC_CLOCK, Clock
from duetime.domain.schedules.schedule import Schedule
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import Millis, from_datetime

if TYPE_CHECKING:
    from duetime.domain.schedules.timings import Timing


def at(text: str) -> Millis:
    """The instant that a string such as `2027-03-28T01:30` names, in UTC or with an offset."""
    moment = datetime.fromisoformat(text)
    return from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def clock(zone: str, gap: Gap = Gap.SKIP, fold: Fold = Fold.FIRST) -> Clock:
    """The clock of a zone."""
    return Clock(zone_named(zone), gap, fold)


def scheduled(timing: Timing | str, where: Clock = UTC_CLOCK) -> Schedule:
    """A schedule with a timing or a cron expression."""
    found = parse_timing(cron=timing) if isinstance(timing, str) else timing
    # The written form of the timing is not parsed again.
    spec = ScheduleSpec(Written(), TaskSpec("report"), clock=where)
    return Schedule("schedule", spec, found, at("2026-11-21"))


def changed(schedule: Schedule, **changes: Any) -> Schedule:  # noqa: ANN401 - any field of a schedule or its specification
    """The schedule with changed fields, in its record or in its timing."""
    own = {each.name for each in fields(schedule)} & changes.keys()
    spec = replace(schedule.spec, **{name: value for name, value in changes.items() if name not in own})
    return replace(schedule, spec=spec, **{name: changes[name] for name in own})


def locals_of(timing: Timing | str, where: Clock, after: str, count: int) -> list[str]:
    """The next local times of a timing."""
    recurrence = recurrence_of(parse_timing(cron=timing) if isinstance(timing, str) else timing, where, at(after))
    found: list[str] = []
    instant = at(after) - 1
    while len(found) < count:
        following = recurrence.after(instant)
        if following is None:
            break
        found.append(where.zone.text_at(following))
        instant = following
    return found
