"""Days and date-times that a schedule excludes from its timing."""

from __future__ import annotations

import re
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.schedules.time_zones import Wall, day_of
from duetime.domain.schedules.timings import parse_moment
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.schedules.time_zones import Zone
    from duetime.domain.times import Millis

FIELD = "excluded_dates"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@frozen
class ExcludedDates:
    """The excluded days and times.

    Attributes:
        days: whole days by the schedule's clock.
        walls: times by its clock; a repeated time is excluded both times.
        instants: times given with an offset.
    """

    days: frozenset[date]
    walls: frozenset[Wall]
    instants: frozenset[Millis]

    def covers(self, at: Millis, zone: Zone) -> bool:
        """Whether an instant is excluded."""
        wall = zone.wall_at(at)
        return at in self.instants or wall in self.walls or day_of(wall) in self.days


@lru_cache(maxsize=256)
def parse_excluded_dates(texts: tuple[str, ...]) -> ExcludedDates:
    """Parses days such as `2026-12-25`, and date-times with an offset or in the schedule's zone.

    Raises:
        FieldInvalid: an entry is neither; the field contains its index.
    """
    days: set[date] = set()
    walls: set[Wall] = set()
    instants: set[Millis] = set()
    for index, text in enumerate(texts):
        field = f"{FIELD}[{index}]"
        if _DAY.fullmatch(text):
            days.add(_day(text, field))
            continue
        moment = parse_moment(text, field)
        if moment.offset is None:
            walls.add(moment.wall)
        else:
            instants.add(moment.wall - moment.offset)
    return ExcludedDates(frozenset(days), frozenset(walls), frozenset(instants))


def _day(text: str, field: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise FieldInvalid(field, "names a day that does not exist", FaultCode.OUT_OF_RANGE) from None
